"""Rules that come with a prompt from another process: they hold for its turn alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.hosting import Place, two_hosts
from support.hubs import TestLauncher, seen_until, stored, stored_events
from support.peers import soon

from dragoman import Policy, Rule
from dragoman.client.client_options import HostCapabilities
from dragoman.errors import CommandRefused
from dragoman.host.rules.policy import flag_rules
from dragoman.host.rules.rule import RuleFields
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import check_terms, kept_terms
from dragoman.session import events as e
from dragoman.session.facts import TurnTerms
from dragoman.testing import AgentTurn, ScriptedAgent


async def asks(turn: AgentTurn) -> None:
    claim = {"command": "make"}
    turn.say(str(await turn.request_permission("c", kind="execute", raw_input=claim)))


@asynccontextmanager
async def two_windows(
    folder: Path, agent: ScriptedAgent, *, attended: bool = False, policy: Policy | None = None
) -> AsyncGenerator[tuple[Hub, Hub]]:
    """An owner that nobody answers for, unless it is attended, and another process."""
    launcher = TestLauncher({"it": agent}, policy=policy)
    async with (
        stored(folder) as ours,
        stored(folder) as theirs,
        Hub(ours, launcher, attended=attended) as owner,
        Hub(theirs, launcher, attended=False) as other,
    ):
        yield owner, other


def terms(*rules: Rule, **fields: Any) -> TurnTerms:
    given = [msgspec.to_builtins(RuleFields.of(rule)) for rule in rules]
    words = [rule.source for rule in rules]
    return TurnTerms(by="process 7", options=words, rules=given, **fields)


EXEC = flag_rules(execute=True)
PLAIN = c.RuledPrompt("go", TurnTerms(by="process 8", on_ask="reject"))
"""No rules, and nobody to ask."""
DENY = Rule(effect="deny", operation="execute", source="--policy rules.toml")


async def answers(other: Hub, session_id: str, *commands: c.Command) -> list[str]:
    """What the agent said in the turns of these prompts, sent by another process."""
    after = (await other.record(session_id)).last_seq
    for command in commands:
        await soon(other.send(session_id, command))
    ended = seen_until(other.watch(session_id, after), e.TurnEnded, times=len(commands))
    return [event.text for event in await soon(ended) if isinstance(event, e.AgentMessage)]


# ── what holds ────────────────────────────────────────────────────────────────────────────────


async def test_rules_hold_for_the_turn_they_came_with_and_no_other(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent(asks)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        ruled = c.RuledPrompt("go", terms(*EXEC))
        said = await answers(other, live.id, PLAIN, ruled, PLAIN)
        assert said == ["reject", "allow", "reject"]


async def test_rules_of_another_session_are_not_touched(tmp_path: Path) -> None:
    """One policy serves all sessions of an agent."""
    go_on = asyncio.Event()

    async def waits(turn: AgentTurn) -> None:
        if turn.text == "wait":
            await go_on.wait()
        await asks(turn)

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        one = await owner.create("it", str(tmp_path))
        two = await owner.create("it", str(tmp_path))
        await other.send(one.id, c.RuledPrompt("wait", terms(*EXEC)))
        assert await answers(other, two.id, PLAIN) == ["reject"]
        go_on.set()
        seen = await soon(seen_until(other.watch(one.id), e.TurnEnded))
        assert [event.text for event in seen if isinstance(event, e.AgentMessage)] == ["allow"]


async def test_a_rule_that_denies_beats_the_flags_of_the_owner(tmp_path: Path) -> None:
    policy = Policy(yolo=True)
    async with two_windows(tmp_path, ScriptedAgent(asks), policy=policy) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        ruled = c.RuledPrompt("go", terms(DENY))
        assert await answers(other, live.id, ruled, c.Prompt("go")) == ["reject", "allow"]


async def test_the_record_says_whose_rules_held(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent(asks)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        given = terms(*EXEC, on_ask="wait")
        await answers(other, live.id, c.RuledPrompt("go", given))
        events = await stored_events(owner, live.id)
        [started] = [event for event in events if isinstance(event, e.TurnStarted)]
        assert started.terms == given
        [notice] = [event.text for event in events if isinstance(event, e.Notice)]
        assert notice.startswith("process 7 asked for --exec in this turn; the rules of the")


async def test_questions_are_refused_or_wait_as_the_sender_wants(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent(asks), attended=True) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        # Someone is at the owner's terminal, but was not asked.
        ruled = c.RuledPrompt("go", terms(on_ask="reject"))
        assert await answers(other, live.id, ruled) == ["reject"]
    async with two_windows(tmp_path / "b", ScriptedAgent(asks)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        # The question waits although nobody is at the owner's terminal.
        await other.send(live.id, c.RuledPrompt("go", terms(on_ask="wait")))
        await soon(seen_until(other.watch(live.id), e.PermissionRequested))
        [pending] = (await other.state(live.id)).pending
        await other.send(live.id, c.AnswerPermission(pending, "allow"))
        seen = await soon(seen_until(other.watch(live.id), e.TurnEnded))
        assert [event.text for event in seen if isinstance(event, e.AgentMessage)] == ["allow"]


# ── while it waits ────────────────────────────────────────────────────────────────────────────


async def test_rules_stay_with_a_prompt_that_waits_and_is_edited(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def waits(turn: AgentTurn) -> None:
        if turn.text == "wait":
            await go_on.wait()
        else:
            await asks(turn)

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await other.send(live.id, c.Prompt("wait"))
        queued = await other.send(live.id, c.RuledPrompt("go", terms(*EXEC)))
        await other.send(live.id, PLAIN)
        await other.send(live.id, c.EditQueued(queued["turn"], "go on"))
        go_on.set()
        seen = await soon(seen_until(other.watch(live.id), e.TurnEnded, times=3))
        said = [event.text for event in seen if isinstance(event, e.AgentMessage)]
        assert said == ["allow", "reject"]


async def test_rules_stay_with_a_prompt_that_the_next_owner_sends(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        if turn.text == "wait":
            await turn.cancelled.wait()
        else:
            await asks(turn)

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await other.send(live.id, c.Prompt("wait"))
        await other.send(live.id, c.RuledPrompt("go", terms(*EXEC)))
        await owner.detach(live)
        heir = await other.open(live.id)
        [turn] = heir.session.queued
        await heir.go_on_with(turn)
        seen = await soon(seen_until(other.watch(live.id), e.TurnEnded, times=2))
        assert [event.text for event in seen if isinstance(event, e.AgentMessage)] == ["allow"]


# ── what cannot hold ──────────────────────────────────────────────────────────────────────────


async def test_what_one_machine_allows_does_not_count_on_another(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with two_hosts(place, ScriptedAgent(asks), ScriptedAgent(asks)) as (one, two):
        live = await one.create("it", place.cwd)
        with pytest.raises(CommandRefused, match="runs on another machine") as refused:
            await two.send(live.id, c.RuledPrompt("go", terms(*EXEC, home="two")))
        assert refused.value.code == "elsewhere"
        assert live.state.turns == []
        strict = terms(DENY, home="two", on_ask="reject")
        assert await answers(two, live.id, c.RuledPrompt("go", strict)) == ["reject"]
        own = terms(*EXEC, home="one")
        assert await answers(two, live.id, c.RuledPrompt("go", own)) == ["allow"]


def test_a_prompt_that_waited_for_another_machine_keeps_only_what_is_strict() -> None:
    given = terms(*EXEC, DENY, home="one")
    assert kept_terms(given, "one") == (given, [])
    kept, [lost] = kept_terms(given, "two")
    assert [rule["effect"] for rule in kept.rules] == ["deny"]
    assert lost.startswith("the prompt was queued with --exec --policy rules.toml, which allows")
    strict = terms(DENY, home="one")
    assert kept_terms(strict, "two") == (strict, [])
    unreadable = TurnTerms(by="x", rules=[{"effect": "maybe"}])
    kept, lost_too = kept_terms(unreadable, None)
    assert (kept.rules, kept.on_ask, len(lost_too)) == ([], "reject", 1)


@pytest.mark.parametrize(
    ("given", "offered", "code"),
    [
        (terms(*flag_rules(write=True)), ["terminal/create"], "not_offered"),
        (terms(*EXEC), ["fs/write_text_file"], "not_offered"),
        (terms(*flag_rules(yolo=True)), [], None),
        (terms(DENY), [], None),
        (TurnTerms(by="x", rules=[{"effect": "maybe"}]), [], "invalid"),
        (terms(*(DENY for _ in range(5000))), [], "too_large"),
    ],
)
def test_rules_that_would_do_nothing_are_refused(
    given: TurnTerms, offered: list[str], code: str | None
) -> None:
    if code is None:
        check_terms(given, "s", home=None, offered=offered)
        return
    with pytest.raises(CommandRefused) as refused:
        check_terms(given, "s", home=None, offered=offered)
    assert refused.value.code == code


def test_an_owner_of_an_earlier_version_does_not_leave_the_rules_out() -> None:
    """The command has a name of its own: an extra field would be ignored."""
    body = c.encode_command(c.RuledPrompt("go", terms(DENY)))
    assert msgspec.json.decode(body)["command"] == "ruled_prompt"
    assert c.decode_command(body) == c.RuledPrompt("go", terms(DENY))


async def test_writes_that_the_owner_does_not_serve_are_refused(tmp_path: Path) -> None:
    class ReadsOnly(TestLauncher):
        def client(self, agent: str, cwd: str, offer: Any) -> Any:
            self._options = {"policy": Policy((Rule(effect="deny", operation="write"),))}
            return super().client(agent, cwd, offer)

    assert "fs/write_text_file" in HostCapabilities().methods
    agents = ReadsOnly({"it": ScriptedAgent(asks)})
    async with stored(tmp_path) as store, Hub(store, agents) as hub:
        live = await hub.create("it", str(tmp_path))
        with pytest.raises(CommandRefused, match="does not offer fs/write_text_file"):
            await hub.send(live.id, c.RuledPrompt("go", terms(*flag_rules(write=True))))
