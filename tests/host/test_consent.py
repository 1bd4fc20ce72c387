"""Consent by itself: no client, no agent, a person who says what the test says."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from dragoman.errors import ConfigError, InternalError, InvalidParams
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import Policy, RuleStore
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session.state import SessionState

WORKSPACE = Workspace("s", "/ws")
WRITE = file_access("write", "/ws/a", agent="raw", roots=["/ws"])


class Person:
    """Gives the same answer every time."""

    def __init__(self, option: str | None) -> None:
        self.option = option
        self.asked: list[PermissionRequest] = []

    async def request_permission(self, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return self.option


class Broken:
    """A store that has nothing and takes nothing."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def list(self) -> Sequence[Rule]:
        return ()

    def add(self, rule: Rule) -> None:
        raise self.error


def consent(person: Person | None, policy: Policy) -> tuple[Consent, list[e.Event]]:
    heard: list[e.Event] = []
    made = Consent(
        WORKSPACE,
        agent="raw",
        policy=policy,
        permissions=person,
        elicitation=None,
        state=SessionState(),
        record=heard.append,
    )
    return made, heard


def notices(heard: list[e.Event]) -> list[str]:
    return [event.text for event in heard if isinstance(event, e.Notice)]


# ── always ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [OSError(28, "No space left"), ConfigError("rules", "", "ours")])
async def test_an_always_that_cannot_be_stored_counts_once_and_says_so(error: Exception) -> None:
    person = Person("allow_always")
    store: RuleStore = Broken(error)
    deciding, heard = consent(person, Policy(stored=store))
    await deciding.permit(WRITE, "Write a")
    assert notices(heard) == [f"the answer counts once only: it could not be stored: {error}"]
    await deciding.permit(WRITE, "Write a")
    assert len(person.asked) == 2


async def test_a_never_that_cannot_be_stored_is_still_a_no() -> None:
    deciding, heard = consent(Person("reject_always"), Policy(stored=Broken(OSError("full"))))
    with pytest.raises(InternalError):
        await deciding.permit(WRITE, "Write a")
    assert len(notices(heard)) == 1


async def test_a_question_says_beforehand_what_its_answers_for_always_lead_to() -> None:
    person = Person("reject_always")
    deciding, heard = consent(person, Policy())
    line = terminal_access("echo $a && pwd", agent="raw", cwd="/ws", roots=["/ws"])
    with pytest.raises(InternalError):
        await deciding.permit(line, "Run it")
    (asked,) = [event for event in heard if isinstance(event, e.PermissionRequested)]
    told = {option.kind: option.consequence for option in asked.options}
    why = "only running the line shows what it does, so no rule can cover it"
    assert told["reject_always"] == told["allow_always"] == f"counts once only: {why}"
    assert notices(heard) == [f"the answer {told['reject_always']}"]
    assert list(person.asked[0].options) == asked.options


async def test_a_yes_for_once_stores_nothing() -> None:
    deciding, heard = consent(Person("allow"), Policy(stored=Broken(OSError("full"))))
    await deciding.permit(WRITE, "Write a")
    assert notices(heard) == []


# ── the record ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "policy", [Policy(), Policy(yolo=True), Policy([Rule(effect="allow", operation="read")])]
)
async def test_reading_inside_leaves_no_record_whatever_allows_it(policy: Policy) -> None:
    deciding, heard = consent(None, policy)
    await deciding.permit(file_access("read", "/ws/a", agent="raw", roots=["/ws"]), "Read a")
    assert heard == []


@pytest.mark.parametrize(
    "access",
    [
        file_access("read", "/etc/hosts", agent="raw", roots=["/ws"]),
        WRITE,
        terminal_access("ls", agent="raw", cwd="/ws", roots=["/ws"]),
    ],
)
async def test_whatever_else_a_rule_allows_is_recorded_with_the_rule(access: Access) -> None:
    deciding, heard = consent(None, Policy(yolo=True))
    await deciding.permit(access, "Do it")
    (event,) = heard
    assert isinstance(event, e.AccessDecided)
    assert event.operation == access.operation
    assert event.decision.rule is not None
    assert event.decision.rule["source"] == "--yolo"


async def test_a_read_that_is_refused_is_recorded_wherever_it_is() -> None:
    deciding, heard = consent(None, Policy([Rule(effect="deny", path="secret")]))
    secret = file_access("read", "/ws/secret", agent="raw", roots=["/ws"])
    with pytest.raises(InternalError, match="/ws/secret: refused"):
        await deciding.permit(secret, "Read secret")
    assert [type(event) for event in heard] == [e.AccessDecided]


async def test_a_refusal_is_logged_without_the_words_of_a_command(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    deciding, _ = consent(None, Policy([Rule(effect="deny", operation="execute")]))
    with pytest.raises(InternalError):
        await deciding.permit(WRITE, "Write a")
    with pytest.raises(InvalidParams):
        await deciding.permit(file_access("write", "/x\n", agent="raw", roots=["/ws"]), "Write x")
    command = terminal_access("curl", ["CANARY"], agent="raw", cwd="/ws", roots=["/ws"])
    with pytest.raises(InternalError):
        await deciding.permit(command, "Run curl")
    assert caplog.messages == [
        "write refused: '/ws/a' (there is nobody to ask)",
        "write refused: '/x\\n' (writes outside the workspace are always refused)",
        "execute refused: '' (a rule denies it)",
    ]
