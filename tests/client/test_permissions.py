"""Who allows it: every question is settled exactly once, and refused when nobody is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import gathered, next_of, opened, until
from support.fake_terminals import FakeTerminals
from support.peers import settled, soon
from support.raw_agent import Json, RawAgent
from support.scene import CANCELLED, ENDED, OPTIONS, Scene, question, scene, selected

from dragoman import Policy, Rule, Timeouts
from dragoman.client.sessions.session import Session
from dragoman.host.claims.claim_reader import MOST_CALLS, ClaimReader
from dragoman.host.permissions import consent, wording
from dragoman.host.permissions.always_rules import describe
from dragoman.host.permissions.losses import with_losses
from dragoman.host.permissions.questions import MOST_OPEN, MOST_WEIGHT, NO_ROOM, PermissionRequest
from dragoman.session import bounds
from dragoman.session import events as e
from dragoman.session.bounds import weigh_struct
from dragoman.session.content import Diff, UnknownItem
from dragoman.session.facts import Decider
from dragoman.session.state import PendingPermission

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
        with pytest.raises(KeyError):
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
    claim, weigh = ClaimReader.read, bounds.weigh

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
        monkeypatch.setattr(bounds, "weigh", counted)
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

    def seen(rule: Rule) -> str:
        described.append(describe(rule))
        return described[-1]

    monkeypatch.setattr(wording, "describe", seen)
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


# ── refusing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (OPTIONS, selected("no")),
        ([("once", "allow_once"), ("never", "reject_always")], selected("never")),
        ([("once", "allow_once")], CANCELLED),
        ([], CANCELLED),
    ],
)
async def test_with_nobody_to_ask_a_reject_option_is_picked(
    options: list[tuple[str, str]], expected: Json, tmp_path: Path
) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        running = asyncio.create_task(turn._run())  # pyright: ignore[reportPrivateUsage]
        await settled()
        assert (await s.result("session/request_permission", question(options)))[
            "result"
        ] == expected
        effect, reason = s.effect
        assert reason.startswith("there is nobody to ask")
        assert s.settlements[-1].decision.by == "default"
        assert ("offers no way to refuse" in reason) == (expected == CANCELLED)
        assert effect == ("cancelled" if expected == CANCELLED else "deny")
        s.agent.reply(s.prompt_id, ENDED)
        await soon(running)


async def test_whoever_reads_on_without_answering_has_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await next_of(turn, e.PermissionRequested)
        await settled()
        assert not asking.done()
        assert (await next_of(turn, e.PermissionSettled)).option_id == "no"
        assert (await soon(asking))["result"] == selected("no")


async def test_a_question_nobody_has_read_yet_waits(tmp_path: Path) -> None:
    """Whoever holds the turn may still come to read it."""
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        await settled()
        assert not asking.done()
        assert [type(event) for event in [await anext(turn)]] == [e.TurnStarted]
        asked = await next_of(turn, e.PermissionRequested)
        await s.session.answer(asked.request_id, "once")
        assert (await soon(asking))["result"] == selected("once")


async def test_awaiting_a_turn_refuses_what_already_waits(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        waiting = asyncio.ensure_future(turn)
        assert (await soon(asking))["result"] == selected("no")
        s.agent.reply(s.prompt_id, ENDED)
        await soon(waiting)


async def test_between_turns_there_is_nobody_to_ask(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")


async def test_a_program_that_looks_at_what_is_pending_will_answer(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        assert s.session.pending == []
        asking = s.ask_permission()
        await until(lambda: s.session.pending)
        await s.answer("once")
        assert (await soon(asking))["result"] == selected("once")


async def test_a_program_that_refuses_questions_may_look_at_them(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False, questions="refuse") as s:
        assert s.session.pending == []
        s.session.events()
        assert s.session.pending == []
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")


async def test_a_program_that_said_it_answers_need_not_look_first(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False, questions="wait") as s:
        asking = s.ask_permission()
        request = await s.waiting()
        await settled()
        assert not asking.done()
        await s.session.answer(request.id, "once")
        assert (await soon(asking))["result"] == selected("once")


async def test_a_turn_that_is_read_on_does_not_refuse_what_waits_for_the_program(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, attended=False, questions="wait") as s:
        turn = await s.begin()
        asking = s.ask_permission()
        asked = await next_of(turn, e.PermissionRequested)
        reading = asyncio.create_task(next_of(turn, e.PermissionSettled))
        await settled()
        assert not asking.done()
        await s.session.answer(asked.request_id, "once")
        assert (await soon(reading)).option_id == "once"
        assert (await soon(asking))["result"] == selected("once")


async def test_a_question_waits_no_longer_than_the_limit(tmp_path: Path) -> None:
    limit = Timeouts(question=0.01)
    async with scene(tmp_path, attended=False, questions="wait", timeouts=limit) as s:
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")
        assert s.settlements[-1].decision.by == "nobody"
        assert s.effect == ("deny", "nobody answered within 0.01 seconds")


# ── providers ─────────────────────────────────────────────────────────────────────────────────


class Person:
    """A provider that says what it is told to, after a while."""

    def __init__(self, answer: str | Exception | None = "once") -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []
        self.ready = asyncio.Event()
        self.let_go = False

    async def request_permission(self, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        try:
            await self.ready.wait()
        except asyncio.CancelledError:
            self.let_go = True
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected", "effect"),
    [
        ("once", "once", ("allow", "answered")),
        ("never", "never", ("deny", "answered")),
        (None, "no", ("deny", "refused")),
        ("maybe", "no", ("deny", "the answer 'maybe' is not one of the options")),
        (OSError("no terminal"), "no", ("deny", "the permissions provider failed")),
    ],
)
async def test_a_provider_is_asked(
    answer: str | Exception | None, expected: str, effect: tuple[str, str], tmp_path: Path
) -> None:
    person = Person(answer)
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        await s.begin()
        assert (await soon(s.ask_permission()))["result"] == selected(expected)
        assert s.effect == effect
        (request,) = person.asked
        assert (request.agent, request.title, request.claimed) == ("raw", "Do it", True)
        assert [option.id for option in request.options] == ["once", "always", "no", "never"]


@pytest.mark.parametrize("answer", [None, "reject", "reject_always"])
async def test_that_a_person_refused_is_said_once(answer: str | None, tmp_path: Path) -> None:
    person = Person(answer)
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        run: Json = {"sessionId": "s1", "command": "ls", "args": ["-la"]}
        told = await s.result("terminal/create", run)
        assert told["error"]["message"] == "ls -la: refused"


async def test_a_provider_is_let_go_when_the_answer_comes_from_elsewhere(tmp_path: Path) -> None:
    person = Person()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        await s.begin()
        asking = s.ask_permission()
        await s.answer("no")
        assert (await soon(asking))["result"] == selected("no")
        await until(lambda: person.let_go)
    assert len(s.settlements) == 1


async def test_a_provider_is_asked_between_turns_too(tmp_path: Path) -> None:
    person = Person()
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        assert (await soon(s.ask_permission()))["result"] == selected("once")


# ── rules decide ──────────────────────────────────────────────────────────────────────────────


async def test_yolo_answers_with_the_option_for_once(tmp_path: Path) -> None:
    options = [("always", "allow_always"), ("once", "allow_once"), ("no", "reject_once")]
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        assert (await soon(s.ask_permission(question(options))))["result"] == selected("once")
        assert s.effect == ("allow", "--yolo allows it")
        assert s.settlements[0].decision.rule is not None
        assert s.requests == []


QUESTIONS = [
    [("a", "allow_once"), ("b", "allow_once"), ("no", "reject_once")],
    [("x", "allow_once"), ("x", "reject_once")],
    [("yes", "allow_once"), ("plan", "edit_the_plan")],
]


@pytest.mark.parametrize("options", QUESTIONS)
async def test_options_that_differ_in_more_than_yes_and_no_are_never_picked_automatically(
    options: list[tuple[str, str]], tmp_path: Path
) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(options))
        await s.answer(options[0][0])
        assert (await soon(asking))["result"] == selected(options[0][0])


async def test_yes_once_is_narrower_than_any_yes_for_longer(tmp_path: Path) -> None:
    offered = [("ever", "allow_always"), ("session", "allow_always"), ("once", "allow_once")]
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(offered))
        assert (await soon(asking))["result"] == selected("once")


async def test_an_id_that_means_yes_and_no_is_no_yes(tmp_path: Path) -> None:
    call = {"content": [{"type": "diff", "path": str(tmp_path / "a.txt"), "newText": "new"}]}
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question([("x", "allow_once"), ("x", "reject_once")], call=call))
        await s.answer("x")
        await soon(asking)
        assert s.effect[0] == "answered"
        writing = asyncio.create_task(s.write("new"))
        await s.answer("reject")
        assert "error" in await soon(writing)


async def test_a_question_about_the_mode_goes_to_a_person_even_under_yolo(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(kind="switch_mode"))
        await s.answer("no")
        assert (await soon(asking))["result"] == selected("no")


OPENHANDS = {"agentInfo": {"name": "OpenHands CLI ACP Agent", "version": "1"}}
TWO_WAYS = [
    {"optionId": "yes", "name": "Yes, proceed", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    {"optionId": "risky", "name": "Auto-confirm low risk", "kind": "allow_once"},
]


@pytest.mark.parametrize(
    ("call", "welcome", "chosen"),
    [
        ({"kind": "execute", "rawInput": {"command": "make"}}, None, "yes"),
        ({"kind": "edit", "locations": [{"path": "x.py"}]}, None, "yes"),
        ({"kind": "other", "title": "Which colour?"}, None, None),
        ({"rawInput": {"question": "Which?", "options": ["src/a.py", "src/b.py"]}}, None, None),
        ({"kind": "other", "title": "Confirm Agent Actions"}, None, None),
        ({"kind": "other", "title": "Confirm Agent Actions"}, OPENHANDS, "yes"),
        ({"kind": "other", "title": "Which colour?"}, OPENHANDS, None),
    ],
)
@pytest.mark.parametrize("options", [TWO_WAYS, TWO_WAYS[::-1]])
async def test_of_two_ways_to_say_yes_to_an_action_the_narrower_is_taken(
    tmp_path: Path, call: Json, welcome: Json | None, chosen: str | None, options: list[Json]
) -> None:
    """Without an action it is a question, for a person."""
    agent = RawAgent(welcome=welcome)
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        tool_call = {"toolCallId": "t", **call}
        params = {"sessionId": "s1", "toolCall": tool_call, "options": options}
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        if chosen is None:
            await until(lambda: session.state.pending)
            await session.answer(next(iter(session.state.pending)), "no")
            chosen = "no"
        answer = await soon(asking)
        assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": chosen}


def edits(path: str, call_id: str = "e", **more: Any) -> Json:
    """As OpenHands tells of its editor."""
    raw = {"command": "create", "path": path, "file_text": "AAA", "kind": "FileEditorAction"}
    call = {"toolCallId": call_id, "title": f"Editing {path}", "kind": "edit", "rawInput": raw}
    return call | {"status": "in_progress", "locations": [{"path": path}]} | more


RUNS: Json = {
    "toolCallId": "r",
    "title": "$ make",
    "kind": "execute",
    "status": "in_progress",
    "rawInput": {"command": "make", "is_input": False},
}
CONFIRM: Json = {"title": "Confirm Agent Actions", "kind": "other", "status": "pending"}


@pytest.mark.parametrize(
    ("calls", "flags", "chosen"),
    [
        ([edits("a.txt")], {"write": True}, "yes"),
        ([edits("a.txt"), edits("b.txt", "e2")], {"write": True}, "yes"),
        ([edits("a.txt", status="completed"), edits("b.txt", "e2")], {"write": True}, "yes"),
        ([edits("a.txt", rawInput={"command": "rm a.txt"})], {"write": True}, "no"),
        ([edits("a.txt"), RUNS], {"write": True}, "no"),
        ([edits("a.txt"), RUNS], {"write": True, "execute": True}, "yes"),
        ([edits("a.txt"), RUNS], {"yolo": True}, "yes"),
        ([edits("a.txt"), edits("/etc/x", "e2")], {"yolo": True}, "no"),
        ([RUNS], {"write": True}, "no"),
        ([RUNS], {"execute": True}, "yes"),
        ([], {"write": True}, "no"),
    ],
)
async def test_a_request_for_all_that_is_pending_is_about_just_that(
    tmp_path: Path, calls: list[Json], flags: dict[str, Any], chosen: str
) -> None:
    """OpenHands asks once for all its pending actions, and its request names none of them."""
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path, policy=Policy(**flags)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        for call in calls:
            agent.update("tool_call", **call)
        params = {"toolCall": {"toolCallId": "confirmation-s1", **CONFIRM}, "options": TWO_WAYS}
        asking = agent.ask("session/request_permission", {"sessionId": "s1", **params})
        answer = asyncio.create_task(asking)
        await until(lambda: answer.done() or session.state.pending)
        if session.state.pending:
            await session.answer(next(iter(session.state.pending)), "no")
        assert (await soon(answer))["result"] == selected(chosen)


READS: Json = {
    "toolCallId": "l",
    "title": "Read a.txt",
    "kind": "read",
    "status": "in_progress",
    "rawInput": {"path": "a.txt"},
}
PASSWD = {"type": "diff", "path": "/etc/passwd", "newText": "x"}


async def outcome(
    agent: RawAgent, session: Session, own: Json, *others: Json
) -> tuple[str, PendingPermission | None]:
    """The answer to a request for `own`, with `others` open, and the question if it was one."""
    session.prompt("go")
    await agent.expect("session/prompt")
    for call in others:
        agent.update("tool_call", **call)
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c", **own}, "options": TWO_WAYS}
    answer = asyncio.create_task(agent.ask("session/request_permission", params))
    await until(lambda: answer.done() or session.state.pending)
    asked = next(iter(session.state.pending.values()), None)
    assert asked is None or isinstance(asked, PendingPermission)
    if asked is not None:
        await session.answer(asked.id, "no")
    return (await soon(answer))["result"]["outcome"]["optionId"], asked


@pytest.mark.parametrize(
    "own",
    [
        {"kind": "execute", "rawInput": {"command": "rm -rf ~"}},
        {"rawInput": {"command": "rm -rf ~"}},
        {"rawInput": {"actions": [{"input": '{"cmd": "rm -rf ~"}'}]}},
        {"kind": "execute"},
        {"kind": "edit", "locations": [{"path": "/etc/passwd"}]},
        {"kind": "delete"},
        {"kind": "fetch", "rawInput": {"url": "https://evil.example"}},
        {"kind": "read", "rawInput": {"path": "/etc/passwd"}},
        {"kind": "a kind of its own"},
        {"locations": [{"path": "/etc/passwd"}]},
        {"content": [PASSWD]},
        {"content": [{"type": "diff"}]},
        {"rawInput": "an input that is only text"},
    ],
)
async def test_a_request_for_all_that_is_pending_is_judged_by_its_own_call_too(
    tmp_path: Path, own: Json
) -> None:
    """Any agent may call itself OpenHands and have a harmless call open."""
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        chosen, asked = await outcome(agent, session, CONFIRM | own, READS)
        assert chosen == "no"
        if asked is not None:
            assert asked.title == "Confirm Agent Actions; Read a.txt"
            command = own.get("rawInput", {})
            assert "rm -rf" not in str(command) or asked.argv == ["rm -rf ~"]


async def test_control_a_request_that_says_nothing_is_about_what_is_open(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        silent: Json = {"rawInput": {}, "content": [], "locations": []}
        assert await outcome(agent, session, CONFIRM | silent, READS) == ("yes", None)


def runs(call_id: str, folder: str, line: str = "npm test") -> Json:
    raw = {"command": line, "cwd": folder}
    return {"toolCallId": call_id, "title": line, "kind": "execute", "rawInput": raw}


NPM = Rule(effect="allow", operation="execute", argv=("npm", "test"), cwd="a")
ANY = Rule(effect="allow", operation="execute")


@pytest.mark.parametrize(
    ("rules", "calls", "chosen"),
    [
        ([NPM], [runs("1", "a"), runs("2", "a")], "yes"),
        ([NPM], [runs("1", "a"), runs("2", "evil")], "no"),
        ([NPM], [runs("1", "evil"), runs("2", "a")], "no"),
        ([NPM], [runs("1", "a"), runs("2", "a", "npm run evil")], "no"),
        ([NPM], [runs("1", "a"), READS], "yes"),
        ([NPM], [runs("1", "a"), edits("a.txt")], "no"),
        ([ANY], [runs("1", "a"), runs("2", "evil")], "yes"),
        ([ANY], [runs("1", "a"), runs("2", "/")], "no"),
        ([ANY, Rule(effect="deny", cwd="evil")], [runs("1", "a"), runs("2", "evil")], "no"),
        ([ANY, Rule(effect="ask", cwd="evil")], [runs("1", "evil"), runs("2", "a")], "no"),
        (
            [ANY, Rule(effect="allow", operation="write"), Rule(effect="deny", path="b.txt")],
            [runs("1", "a"), edits("a.txt"), edits("b.txt", "e2")],
            "no",
        ),
    ],
)
async def test_each_of_several_calls_is_judged_alone(
    tmp_path: Path, rules: list[Rule], calls: list[Json], chosen: str
) -> None:
    for name in ("a", "evil"):
        (tmp_path / name).mkdir()
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path, policy=Policy(rules)) as (_, session):
        assert (await outcome(agent, session, CONFIRM, *calls))[0] == chosen


async def test_commands_in_several_folders_are_shown_and_remembered_with_them(
    tmp_path: Path,
) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    always = [{"optionId": "always", "name": "Always", "kind": "allow_always"}, *TWO_WAYS]
    policy = Policy()
    async with opened(agent, tmp_path, policy=policy) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        for call in (runs("1", "a"), runs("2", "e vil"), runs("3", "a", "make")):
            agent.update("tool_call", **call)
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "c", **CONFIRM}, "options": always}
        answer = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: session.state.pending)
        [asked] = session.state.pending.values()
        assert isinstance(asked, PendingPermission)
        here = tmp_path
        assert asked.argv is not None
        assert asked.argv[0].splitlines() == [
            f"cd {here}/a && npm test",
            f"cd '{here}/e vil' && npm test",
            f"cd {here}/a && make",
        ]
        assert asked.cwd is None
        told = [option.consequence for option in asked.options if option.kind == "allow_always"]
        assert "from now on: allow each of these commands by itself" in str(told)
        await session.answer(asked.id, "always")
        assert (await soon(answer))["result"] == selected("always")
        assert [(rule.argv, rule.cwd) for rule in policy.rules] == [
            (("npm", "test"), f"{here}/a"),
            (("npm", "test"), f"{here}/e vil"),
            (("make",), f"{here}/a"),
        ]


async def test_more_calls_than_can_be_shown_are_a_question_that_says_so(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    calls = [READS | {"toolCallId": str(at)} for at in range(MOST_CALLS + 2)]
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        chosen, asked = await outcome(agent, session, CONFIRM, *calls)
        assert chosen == "no"
        assert asked is not None
        unread = [item.raw for item in asked.content if isinstance(item, UnknownItem)]
        assert unread == ["2 tool calls more: too many to be shown"]


async def test_whoever_is_asked_for_all_that_is_pending_sees_what_that_is(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        diff = {"type": "diff", "path": "a.txt", "newText": "AAA"}
        for call in (edits("a.txt", content=[diff]), RUNS):
            agent.update("tool_call", **call)
        params = {"toolCall": {"toolCallId": "confirmation-s1", **CONFIRM}, "options": TWO_WAYS}
        asking = agent.ask("session/request_permission", {"sessionId": "s1", **params})
        answer = asyncio.create_task(asking)
        await until(lambda: session.state.pending)
        [pending] = session.state.pending.values()
        assert isinstance(pending, PendingPermission)
        assert pending.title == "Editing a.txt; $ make"
        assert [item.new_text for item in pending.content if isinstance(item, Diff)] == ["AAA"]
        await session.answer(pending.id, "no")
        await soon(answer)


CLINE = {"agentInfo": {"name": "cline", "version": "3.0.65"}}


def patch(*lines: str, title: str = "apply_patch: {...") -> Json:
    """As Cline asks for it."""
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))
    return question(title=title, kind="other", rawInput={"input": text})


@pytest.mark.parametrize(
    ("params", "welcome", "chosen"),
    [
        (patch("*** Add File: a.txt", "+AAA"), CLINE, "once"),
        (patch("*** Update File: a.txt", "*** Move to: b.txt", "@@", "-x"), CLINE, "once"),
        (patch("*** Add File: a.txt", "+A", "*** Add File: /etc/x", "+B"), CLINE, "no"),
        (patch("*** Update File: a.txt", "*** Move to: ../x"), CLINE, "no"),
        (patch("*** Delete File: .git/config"), CLINE, "no"),
        (patch("+AAA"), CLINE, "no"),
        (patch("*** Add File: a.txt", title="other_tool: {"), CLINE, "no"),
        (patch("*** Add File: a.txt"), None, "no"),
    ],
)
async def test_write_allows_the_patches_of_cline_inside_the_workspace(
    tmp_path: Path, params: Json, welcome: Json | None, chosen: str
) -> None:
    """With most models it edits by a tool that it calls `other`."""
    agent = RawAgent(welcome=welcome)
    async with opened(agent, tmp_path, policy=Policy(write=True)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        answer = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: answer.done() or session.state.pending)
        if session.state.pending:
            await session.answer(next(iter(session.state.pending)), "no")
        assert (await soon(answer))["result"] == selected(chosen)


async def test_only_always_on_offer_is_asked_even_under_yolo(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question([("always", "allow_always"), ("no", "reject_once")]))
        await s.answer("no")
        await soon(asking)


@pytest.mark.parametrize(
    ("options", "expected"), [(OPTIONS, selected("no")), ([("once", "allow_once")], CANCELLED)]
)
async def test_what_a_rule_denies_is_refused_without_asking(
    options: list[tuple[str, str]], expected: Json, tmp_path: Path
) -> None:
    policy = Policy([Rule(effect="deny", operation="execute")], yolo=True)
    params = question(options, rawInput={"command": "rm -rf /"})
    async with scene(tmp_path, policy=policy) as s:
        assert (await soon(s.ask_permission(params)))["result"] == expected
        effect, reason = s.effect
        assert effect == "deny"
        assert ("offers no way to refuse" in reason) == (expected == CANCELLED)


# ── what was said before ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("folder", [".", ".."])
async def test_a_request_is_judged_by_what_the_call_said_before_it_too(
    folder: str, tmp_path: Path
) -> None:
    async with scene(tmp_path, policy=Policy(execute=True)) as s:
        await s.begin()
        told = {"command": "ls", "workdir": str(tmp_path / folder)}
        s.agent.update("tool_call", toolCallId="t", title="ls", kind="execute", rawInput=told)
        params = question(call={"kind": "execute", "rawInput": {"command": "ls"}})
        answer = await s.result("session/request_permission", params)
        assert answer["result"] == selected("once" if folder == "." else "no")
