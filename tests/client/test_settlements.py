"""Every question is settled exactly once, in bounds, and the first answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import gathered, next_of, until
from support.fake_terminals import FakeTerminals
from support.peers import soon
from support.permission_scene import CANCELLED, OPTIONS, Scene, question, scene, selected
from support.raw_agent import ENDED, Json

from dragoman import Policy, Rule
from dragoman.errors import UnknownQuestion
from dragoman.host.claims.claim_reader import ClaimReader
from dragoman.host.permissions import always_rules, consent
from dragoman.host.permissions.questions import MOST_OPEN, MOST_WEIGHT, NO_ROOM
from dragoman.host.permissions.wording import with_losses
from dragoman.session import events as e
from dragoman.session import state_limits
from dragoman.session.facts import Decider
from dragoman.session.state_limits import weigh_struct

# ── settled exactly once ──────────────────────────────────────────────────────────────────────


async def by_an_answer(s: Scene) -> None:
    await s.answer("once")


async def by_a_cancel(s: Scene) -> None:
    cancelling = asyncio.create_task(s.session.cancel())
    await s.agent.expect("session/cancel")
    s.agent.reply(s.prompt_id, {"stopReason": "cancelled"})
    await soon(cancelling)


async def by_the_end_of_the_turn(s: Scene) -> None:
    s.agent.reply(s.prompt_id, ENDED)
    await until(lambda: not s.session.busy)


async def by_closing_the_session(s: Scene) -> None:
    closing = asyncio.create_task(s.session.close())
    await s.agent.expect("session/cancel")
    s.agent.reply(s.prompt_id, {"stopReason": "cancelled"})
    await soon(closing)


async def by_withdrawing(s: Scene) -> None:
    s.agent.send({"method": "$/cancel_request", "params": {"requestId": "ask 1"}})
    await until(lambda: s.settlements)


WAYS: list[tuple[Callable[[Scene], Coroutine[Any, Any, None]], Any, str, Decider]] = [
    (by_an_answer, selected("once"), "answered", "person"),
    (by_a_cancel, CANCELLED, "the turn was cancelled", "cancel"),
    (by_the_end_of_the_turn, CANCELLED, "the turn ended", "cancel"),
    (by_closing_the_session, CANCELLED, "the turn was cancelled", "cancel"),
    (by_withdrawing, -32800, "the request was withdrawn", "cancel"),
]


@pytest.mark.parametrize(("settle", "expected", "reason", "by"), WAYS)
async def test_a_question_is_settled_once_and_the_agent_told(
    settle: Callable[[Scene], Coroutine[Any, Any, None]],
    expected: Any,
    reason: str,
    by: Decider,
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission()
        request = await s.waiting()
        await settle(s)
        told = await soon(asking)
        assert told.get("result", told.get("error", {}).get("code")) == expected
        (settlement,) = s.settlements
        assert (settlement.decision.reason, settlement.decision.by) == (reason, by)
        assert s.session.state.pending == {}
        with pytest.raises(UnknownQuestion, match="waits for an answer"):
            await s.session.answer(request.id, "once")
    assert len(s.settlements) == 1


async def test_a_crash_settles_what_waits_before_the_turn_ends(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        await s.agent.vanish()
        await until(lambda: not s.session.busy)
        asking.cancel()
        assert s.effect == ("cancelled", "the turn was interrupted")
        last = [type(event) for event in s.heard[-2:]]
        assert last == [e.PermissionSettled, e.TurnEnded]
    assert len(s.settlements) == 1


async def test_closing_the_client_settles_what_waits(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        await s.client.aclose()
        asking.cancel()
        assert s.effect == ("cancelled", "the client was closed")
    assert len(s.settlements) == 1


async def test_a_question_is_settled_before_the_turn_that_ends_with_it(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await next_of(turn, e.PermissionRequested)
        s.agent.reply(s.prompt_id, ENDED)
        rest = await gathered(turn)
        assert [type(event) for event in rest] == [e.PermissionSettled, e.TurnEnded]
        await soon(asking)


READABLE = {"type": "diff", "path": "a.txt", "newText": "x"}
UNREADABLE: list[Json] = [
    {"content": [READABLE, {"type": "diff", "path": "/etc/passwd"}]},
    {"content": "not even a list"},
    # What it names in addition is judged by itself, and as little understood.
    {"content": "not even a list", "rawInput": {"url": "https://example.com/x"}},
    {"content": "not even a list", "rawInput": {"tool": "mcp__github__delete_repo"}},
    {"locations": [{"path": "a.txt"}, {"path": 7}]},
    # More than is kept of one tool call.
    {"content": [READABLE, {"type": "diff", "path": "b.txt", "newText": "x" * 5_000_000}]},
    {"content": [READABLE], "rawInput": {"note": "x" * 5_000_000, "command": "rm -rf ."}},
]


@pytest.mark.parametrize("part", UNREADABLE)
@pytest.mark.parametrize("told", ["in the request", "before it"])
async def test_no_rule_allows_what_has_a_part_that_cannot_be_read(
    part: Json, told: str, tmp_path: Path
) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        allowed = s.ask_permission(question(kind="edit", content=[READABLE]))
        assert (await soon(allowed))["result"] == selected("once")
        call: Json = {"toolCallId": "odd", "kind": "edit", **part}
        if told == "before it":
            s.agent.update("tool_call", title="Do it", **call)
            call = {"toolCallId": "odd"}
        asking = s.ask_permission(question(call=call))
        pending = await s.waiting()
        assert "unread" in [getattr(item, "kind", "") for item in pending.content]
        await s.answer("no")
        await soon(asking)


async def test_a_question_that_nobody_could_read_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        words = {"kind": "allow_once", "name": "x" * 1_000}
        many = [{**words, "optionId": f"{number}"} for number in range(2_000)]
        answer = await soon(s.ask_permission({**question(), "options": many}))
        assert answer["error"]["code"] == -32602
        assert "too large" in answer["error"]["message"]
        assert not s.session.state.pending


async def test_only_so_many_questions_wait_at_a_time(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        waiting = [s.ask_permission(question()) for _ in range(MOST_OPEN)]
        await until(lambda: len(s.session.state.pending) == MOST_OPEN)
        # Refused in the agent's own words, so that it goes on.
        assert (await soon(s.ask_permission(question())))["result"] == selected("no")
        refused = [event for event in s.heard if isinstance(event, e.AccessDecided)]
        assert [event.decision.reason for event in refused] == [NO_ROOM]
        assert len(s.session.state.pending) == MOST_OPEN
        await s.session.answer(next(iter(s.session.state.pending)), "once")
        assert (await soon(waiting[0]))["result"] == selected("once")
        waiting.append(s.ask_permission(question()))
        await until(lambda: len(s.session.state.pending) == MOST_OPEN)
        await by_the_end_of_the_turn(s)
        await soon(asyncio.gather(*waiting))


async def test_for_a_question_without_room_no_file_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused in any case, and an agent may ask as often as it likes."""
    looked = 0

    async def counted(*args: Any) -> Any:
        nonlocal looked
        looked += 1
        return await with_losses(*args)

    monkeypatch.setattr(consent, "with_losses", counted)
    new = question(call={"content": [{"type": "diff", "path": "a.txt", "newText": "x"}]})
    async with scene(tmp_path) as s:
        await s.begin()
        waiting = [s.ask_permission(new) for _ in range(MOST_OPEN)]
        await until(lambda: len(s.session.state.pending) == MOST_OPEN)
        assert looked == MOST_OPEN
        for _ in range(3):
            assert (await soon(s.ask_permission(new)))["result"] == selected("no")
        assert looked == MOST_OPEN
        await by_the_end_of_the_turn(s)
        await soon(asyncio.gather(*waiting))


async def test_questions_that_wait_weigh_only_so_much_together(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        shown = {"type": "content", "content": {"type": "text", "text": "x" * 1_000_000}}
        asking = [s.ask_permission(question(call={"content": [shown]})) for _ in range(40)]
        await until(lambda: len([x for x in s.heard if isinstance(x, e.AccessDecided)]) == 24)
        assert weigh_struct(list(s.session.state.pending.values())) <= MOST_WEIGHT
        await by_the_end_of_the_turn(s)
        await soon(asyncio.gather(*asking))


async def test_many_requests_about_a_large_call_are_read_one_by_one_and_it_is_not_weighed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs the loop little, and others get a turn between two."""
    reading, most, weighed = 0, 0, 0
    claim, weigh = ClaimReader.read, state_limits.weigh

    async def read(*args: Any) -> Any:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            return await claim(*args)
        finally:
            reading -= 1

    def counted(value: Any) -> int:
        nonlocal weighed
        weight = weigh(value)
        weighed += weight
        return weight

    monkeypatch.setattr(ClaimReader, "read", read)
    async with scene(tmp_path) as s:
        await s.begin()
        content = [
            {"type": "diff", "path": f"{tmp_path}/{at}", "newText": "x"} for at in range(5_000)
        ]
        call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "content": content}
        s.agent.send({"method": "session/update", "params": {"sessionId": "s1", "update": call}})
        await until(lambda: s.session.state.tool_call("t"))
        large = s.session.state.tool_call("t")
        assert large is not None
        monkeypatch.setattr(state_limits, "weigh", counted)
        params = {**question(), "toolCall": {"toolCallId": "t"}}
        asking = [s.ask_permission(params) for _ in range(40)]
        await until(
            lambda: (
                len(s.session.state.pending)
                + len([x for x in s.heard if isinstance(x, e.AccessDecided)])
                == len(asking)
            )
        )
        asked = len(s.session.state.pending)
        assert most == 1
        assert 1 <= asked < 10
        # Those that are asked are weighed when they are kept, and none that is refused.
        assert weighed < 2 * (asked + 1) * large.size
        await by_the_end_of_the_turn(s)
        await soon(asyncio.gather(*asking))


async def test_a_question_without_answers_is_not_asked(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        assert (await soon(s.ask_permission(question([]))))["result"] == CANCELLED
        assert s.effect == ("cancelled", "the question has no answer to choose")
        assert not s.requests


def notices(s: Scene) -> list[str]:
    return [event.text for event in s.heard if isinstance(event, e.Notice)]


async def test_a_question_with_more_options_than_can_be_weighed_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        many = [(f"never {number}", "reject_always") for number in range(33)]
        answer = await soon(s.ask_permission(question(many)))
        assert answer["error"]["code"] == -32602
        reason = "a question has at most 32 options, not 33"
        assert answer["error"]["message"] == reason
        assert notices(s) == [f"a question from the agent was refused: {reason}"]
        asking = s.ask_permission(question(many[:32]))
        await s.answer("never 0")
        await soon(asking)


async def test_an_option_that_is_too_long_to_be_read_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        answer = await soon(s.ask_permission(question([("a" * 4097, "allow_once")])))
        assert answer["error"]["code"] == -32602
        reason = "the id, name and kind of an option may have at most 4096 characters each"
        assert answer["error"]["message"] == reason
        assert notices(s) == [f"a question from the agent was refused: {reason}"]
        asking = s.ask_permission(question([("a" * 4096, "allow_once")]))
        await s.answer("a" * 4096)
        await soon(asking)


async def test_what_answers_lead_to_is_worked_out_once_and_told_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    describe = always_rules.describe

    def seen(rule: Rule) -> str:
        described.append(describe(rule))
        return described[-1]

    monkeypatch.setattr(always_rules, "describe", seen)
    async with scene(tmp_path) as s:
        await s.begin()
        many = [(f"never {number}", "reject_always") for number in range(20)]
        call = {"kind": "execute", "rawInput": {"command": "ab " * 10_000}}
        asking = s.ask_permission(question([*many, ("no", "reject_once")], call=call))
        pending = await s.waiting()
        assert len(described) <= 2
        [consequence] = {option.consequence or "" for option in pending.options[:20]}
        assert "exactly this command" in consequence
        assert len(consequence) < 200
        await s.answer("no")
        await soon(asking)


async def test_the_names_of_variables_are_in_the_question_and_their_values_are_not(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, terminals=FakeTerminals()) as s:
        await s.begin()
        call = {"command": "make test", "env": {"LD_PRELOAD": "/x.so", "A set; nothing": "1"}}
        asking = s.ask_permission(question(kind="execute", rawInput=call))
        pending = await s.waiting()
        assert pending.env == ["LD_PRELOAD", "A set; nothing"]
        await s.answer("no")
        await soon(asking)
        env = [{"name": f"V{number}", "value": "secret"} for number in range(300)]
        running = asyncio.create_task(s.run("make", "test", env=env))
        pending = await s.waiting()
        assert (pending.env[0], pending.env[255:]) == ("V0", ["V255", "… and 44 more"])
        assert pending.title.endswith("V255, … and 44 more set")
        assert b"secret" not in msgspec.json.encode(pending)
        await s.answer("reject")
        await soon(running)


LONG = "ab " * 50_000


async def test_a_command_too_long_to_run_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True), terminals=FakeTerminals()) as s:
        await s.begin()
        call = question(kind="execute", rawInput={"command": LONG})
        told = await soon(s.ask_permission(call))
        assert "at most 131072 characters" in told["error"]["message"]
        for words in ([LONG], ["ab", *["ab"] * 50_000]):
            told = await s.run(*words)
            assert told["error"]["code"] == -32602
            assert "at most 131072 characters" in told["error"]["message"]
    assert "at most 131072" in notices(s)[0]


async def test_a_long_command_is_asked_about_and_never_remembered(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        call = {"kind": "execute", "rawInput": {"command": "ab " * 12_000}}
        asking = s.ask_permission(question(call=call))
        pending = await s.waiting()
        told = {option.id: option.consequence for option in pending.options}
        assert "the command is too long to remember" in (told["always"] or "")
        assert pending.always is None
        await s.answer("no")
        await soon(asking)


async def test_a_request_that_fits_was_read_whatever_else_it_holds(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        more = {**READABLE, "changes": ["another version has these"]}
        allowed = s.ask_permission(question(kind="edit", content=[more]))
        assert (await soon(allowed))["result"] == selected("once")


async def test_the_first_answer_counts(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission()
        request = await s.waiting()
        await s.session.answer(request.id, "no")
        with pytest.raises(KeyError):
            await s.session.answer(request.id, "once")
        assert (await soon(asking))["result"] == selected("no")
        assert s.effect == ("deny", "answered")


async def test_an_option_the_request_does_not_have_is_no_answer(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission()
        request = await s.waiting()
        with pytest.raises(ValueError, match="has no option 'yes'"):
            await s.session.answer(request.id, "yes")
        with pytest.raises(KeyError):
            await s.session.answer("permission-0", "once")
        await s.session.answer(request.id, "once")
        await soon(asking)


async def test_an_answer_to_one_question_is_none_to_another(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        first = s.ask_permission()
        await s.answer("once")
        await soon(first)
        old = s.requests[0].request_id
        second = s.ask_permission()
        await s.waiting()
        with pytest.raises(KeyError):
            await s.session.answer(old, "once")
        assert s.pending().id != old
        await s.answer("no")
        assert (await soon(second))["result"] == selected("no")


async def test_questions_asked_at_once_are_answered_each_by_itself(tmp_path: Path) -> None:
    """Going on after an answered question is no refusal of one that was not read yet."""
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        tasks = [s.ask_permission() for _ in range(3)]
        await until(lambda: len(s.session.state.pending) == 3)
        for option in ("once", "no", "always"):
            asked = await next_of(turn, e.PermissionRequested)
            await s.session.answer(asked.request_id, option)
        answers = [(await soon(task))["result"] for task in tasks]
        # Nothing in the request could be remembered, so the agent is told the same.
        assert answers == [selected("once"), selected("no"), selected("once")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([("always", "allow_always"), ("once", "allow_once"), ("no", "reject_once")], "once"),
        ([("always", "allow_always"), ("no", "reject_once")], "always"),
    ],
)
async def test_the_agent_is_not_told_always_where_the_answer_counts_once(
    options: list[tuple[str, str]], expected: str, tmp_path: Path
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(options))
        await s.answer("always")
        assert (await soon(asking))["result"] == selected(expected)
        assert s.settlements[-1].option_id == expected
        notices = [event.text for event in s.heard if isinstance(event, e.Notice)]
        assert notices[0].startswith("the answer counts once only: ")


async def test_control_an_always_that_is_remembered_is_told_as_such(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(OPTIONS, rawInput={"command": ["make", "test"]}))
        await s.answer("always")
        assert (await soon(asking))["result"] == selected("always")


async def test_a_question_after_the_cancel_is_cancelled_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        cancelling = asyncio.create_task(s.session.cancel())
        await s.agent.expect("session/cancel")
        assert (await soon(s.ask_permission()))["result"] == CANCELLED
        assert s.effect == ("cancelled", "the turn is being cancelled")
        refused = await s.write("x")
        assert "being cancelled" in refused["error"]["message"]
        s.agent.reply(s.prompt_id, {"stopReason": "cancelled"})
        await soon(cancelling)
