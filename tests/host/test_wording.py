"""What a question says about an answer for always: the rule it leaves, or why it leaves none."""

from __future__ import annotations

from dragoman.host.permissions.always_rules import Answer, NoRule
from dragoman.host.permissions.wording import with_consequences
from dragoman.host.rules.rule import Rule, Scope
from dragoman.session.facts import PermissionOption

GOOSE = [
    PermissionOption(kind, kind, kind)
    for kind in ("allow_always", "allow_once", "reject_once", "reject_always")
]


def make(answer: Answer, scope: Scope) -> tuple[Rule, ...]:
    rule = Rule(effect=answer, operation="execute", argv=("make",), scope=scope, project="/ws")
    return (rule,)


def told(
    options: list[PermissionOption], why: NoRule | None = None, *, claimed: bool = True
) -> list[PermissionOption]:
    def made(answer: Answer, scope: Scope) -> tuple[Rule, ...] | NoRule:
        return why or make(answer, scope)

    found = with_consequences(options, made, claimed=claimed, names_action=False)
    assert [each.id for each in found] == [each.id for each in options]
    return found


def consequences(
    options: list[PermissionOption], why: NoRule | None = None, *, claimed: bool = True
) -> dict[str, str | None]:
    return {each.kind: each.consequence for each in told(options, why, claimed=claimed)}


def once_only(options: list[PermissionOption], *, claimed: bool = True) -> list[str]:
    found = told(options, NoRule("so it is"), claimed=claimed)
    return [each.kind for each in found if each.counts_once]


def test_every_always_says_which_rule_will_be_written() -> None:
    assert consequences(GOOSE, claimed=False) == {
        "allow_always": "from now on: allow exactly this command in this project",
        "allow_once": None,
        "reject_once": None,
        "reject_always": "from now on: refuse exactly this command in this project",
    }


def test_every_always_that_leaves_no_rule_says_that_it_counts_once_and_why() -> None:
    why = NoRule("the command is a shell line")
    ours = consequences(GOOSE, why, claimed=False)
    assert ours["allow_always"] == "counts once only: the command is a shell line"
    assert ours["reject_always"] == "counts once only: the command is a shell line"


def test_an_always_that_the_agent_is_told_may_be_kept_by_the_agent() -> None:
    why = NoRule("so it is")
    kept = "counts once only, unless the agent itself keeps it: so it is"
    ruled = consequences(GOOSE)["allow_always"]
    assert ruled is not None
    assert ruled.endswith(" in this project; the agent may also remember it")
    theirs = consequences(GOOSE, why)
    # Instead of an allow for always it is told one for once, so that there is nothing to keep.
    assert theirs["allow_always"] == "counts once only: so it is"
    assert theirs["reject_always"] == kept
    without_once = [option for option in GOOSE if option.kind != "allow_once"]
    assert consequences(without_once, why)["allow_always"] == kept


def test_an_always_counts_once_for_sure_only_if_nobody_can_keep_it() -> None:
    assert not any(each.counts_once for each in told(GOOSE))
    assert once_only(GOOSE, claimed=False) == ["allow_always", "reject_always"]
    assert once_only(GOOSE) == ["allow_always"]
    assert once_only([option for option in GOOSE if option.kind != "allow_once"]) == []
