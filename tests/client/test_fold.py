"""Whatever an agent does: the state of a session is the fold of the events that were recorded."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.fake_terminals import FakeTerminals
from support.folding import event_of, refold

from dragoman import Client, Policy, Session, Timeouts
from dragoman.errors import DragomanError
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_turn import Step

_words = st.text(max_size=5)
_calls = st.sampled_from(["a", "b"])


def _say(text: str) -> Step:
    return lambda turn: turn.say(text)


def _update(update: Any) -> Step:
    return lambda turn: turn.update(update)


def _call(tool: str, status: str) -> Step:
    return lambda turn: turn.tool_call_update(tool, status=status)


def _ask(tool: str) -> Step:
    async def step(turn: AgentTurn) -> None:
        await turn.request_permission(tool, title="May I?")

    return step


def _write(text: str) -> Step:
    async def step(turn: AgentTurn) -> None:
        try:
            await turn.write_text_file(f"{turn.cwd}/a.txt", text)
        except DragomanError:
            turn.say("refused")

    return step


def _run(words: list[str]) -> Step:
    async def step(turn: AgentTurn) -> None:
        terminal = await turn.create_terminal("echo", "-n", *words)
        await turn.terminal("release", terminal)

    return step


def _elicit(message: str) -> Step:
    async def step(turn: AgentTurn) -> None:
        await turn.elicit(message, {"type": "object", "properties": {}})

    return step


async def _vanish(turn: AgentTurn) -> None:
    await turn.vanish()


_steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(_say, _words),
    st.builds(_call, _calls, st.sampled_from(["pending", "in_progress", "completed", "odd"])),
    st.builds(_ask, _calls),
    st.builds(_write, _words),
    st.builds(_run, st.lists(st.sampled_from(["x", "y"]), max_size=2)),
    st.builds(_elicit, _words),
    st.builds(
        _update,
        st.builds(v1.CurrentModeUpdate, current_mode_id=_calls)
        | st.builds(v1.Plan, entries=st.just([]))
        | st.just({"sessionUpdate": "from_the_future", "x": 1})
        | st.builds(v1.SessionInfoUpdate, title=st.none() | _words)
        | st.builds(v1.Notice, severity=st.just("info"), title=_words),
    ),
)
_turns = st.lists(st.tuples(st.lists(_steps, max_size=6), st.sampled_from(["", "cancel", "crash"])))
Answers = st.lists(st.booleans(), max_size=6)


def _script(turns: list[tuple[list[Step], str]]) -> Callable[[AgentTurn], Any]:
    left = iter(turns)

    async def script(turn: AgentTurn) -> None:
        steps, ending = next(left)
        for step in steps:
            doing = step(turn)
            if doing is not None:
                await doing
        if ending == "crash":
            await _vanish(turn)
        if ending == "cancel":
            turn.say("working")
            await turn.cancelled.wait()

    return script


async def _answer(session: Session, event: e.Event, answers: list[bool]) -> None:
    """Some questions are answered with yes, some with no, the rest not at all."""
    if isinstance(event, e.PermissionRequested) and answers:
        kind = "allow_once" if answers.pop() else "reject_once"
        option = next(option for option in event.options if option.kind == kind)
        await session.answer(event.request_id, option.id)


async def _converse(
    turns: list[tuple[list[Step], str]], answers: list[bool], folder: str
) -> tuple[Session, list[bytes]]:
    records: list[bytes] = []

    def listen(session: Session, event: e.Event) -> None:
        records.append(msgspec.json.encode(event))

    agent = ScriptedAgent(_script(turns))
    options: Any = {"policy": Policy(execute=True), "terminals": FakeTerminals(), "listen": listen}
    timeouts = Timeouts(cancel=2)
    async with Client.start(agent.connect(), timeouts=timeouts, **options) as client:
        session = await client.new_session(folder)
        try:
            for _, ending in turns:
                async for event in session.prompt("go"):
                    await _answer(session, event, answers)
                    if ending == "cancel" and event.text == "working":
                        await session.cancel()
        except DragomanError:
            pass  # it crashed, as it was told to
    return session, records


@examples(60)
@given(_turns, Answers)
def test_the_state_is_the_fold_of_what_was_recorded(
    turns: list[tuple[list[Step], str]], answers: list[bool]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session, records = asyncio.run(_converse(turns, answers, folder))
    assert refold(records) == session.state
    events = [event_of(record) for record in records]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    started = [event.turn_id for event in events if isinstance(event, e.TurnStarted)]
    ended = [event.turn_id for event in events if isinstance(event, e.TurnEnded)]
    assert started == ended
    asked = [event.request_id for event in events if isinstance(event, e.PermissionRequested)]
    settled = [event.request_id for event in events if isinstance(event, e.PermissionSettled)]
    assert sorted(asked) == sorted(settled)
    assert session.state.pending == {}
    assert isinstance(events[-1], e.SessionClosed)
