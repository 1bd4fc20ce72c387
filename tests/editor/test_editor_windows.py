"""An editor, the page and the command line on one turn: the same sequence in each."""

from __future__ import annotations

import asyncio
from os import environ
from pathlib import Path
from typing import Any

from support.clients import until
from support.command import COMMAND
from support.editors import offices
from support.peers import SECONDS, soon
from support.serving import STREAM, also_served, sent_events

from dragoman import Session
from dragoman.session import events as e
from dragoman.store.records import decode_event
from dragoman.testing import AgentTurn, ScriptedAgent


class Working:
    """Begins its turn once all are watching."""

    def __init__(self) -> None:
        self.watched = asyncio.Event()

    async def __call__(self, turn: AgentTurn) -> None:
        await self.watched.wait()
        turn.think("hm")
        for number in range(20):
            turn.say(f"{number} ")
        turn.plan(("one", "in_progress"), ("two", "pending"))
        turn.tool_call("t", "Edit", kind="edit", status="pending")
        await turn.request_permission("t", title="Edit")
        turn.tool_call_update("t", status="completed")
        turn.say("done")


def shown(event: e.Event) -> Any:
    """What a person sees of it; None for what is not shown in the thread."""
    match event:
        case e.AgentMessage() | e.AgentThought():
            return type(event).__name__, event.text
        case e.PlanUpdated():
            return [(step.content, step.status) for step in event.steps or []]
        case e.ToolCallUpdated():
            return event.tool_call_id, str(event.status)
        case e.PermissionRequested():
            return "asked"
        case e.PermissionSettled():
            return "settled", event.option_id
        case _:
            return None


def sequence(events: list[e.Event]) -> list[Any]:
    return [each for each in map(shown, events) if each is not None]


async def read_page(web: Any, session_id: str, told: list[e.Event]) -> None:
    """What the page's stream sends, to the end of the turn."""
    path = f"/api/sessions/{session_id}/events?after=0"
    async with web.http.stream("GET", path, headers=STREAM) as response:
        async for sent in sent_events(response):
            told.append(decode_event(sent.data.encode()))
            if any(isinstance(each, e.TurnEnded) for each in told):
                return


async def read_lines(output: asyncio.StreamReader, told: list[e.Event]) -> None:
    """What `dragoman watch --json` prints, to the end of the turn."""
    while line := await output.readline():
        told.append(decode_event(line))
        if isinstance(told[-1], e.TurnEnded):
            return


async def listen(session: Session, told: list[e.Event]) -> None:
    async for event in session.events():
        told.append(event)  # noqa: PERF401 - it is looked at meanwhile


async def test_all_of_them_see_the_same_sequence(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "home").symlink_to("store")
    script = Working()
    agent = ScriptedAgent(script)
    async with (
        offices(tmp_path, [{"it": agent}]) as [here],
        also_served(tmp_path, {"it": agent}, on_disk=True) as web,
        here.editor() as editor,
    ):
        session = await editor.new_session(tmp_path)
        in_editor, on_page, in_terminal = list[e.Event](), list[e.Event](), list[e.Event]()
        watching = await asyncio.create_subprocess_exec(
            *(COMMAND, "watch", session.id, "--all", "--json"),
            env={**environ, "DRAGOMAN_HOME": str(tmp_path / "store")},
            stdout=asyncio.subprocess.PIPE,
        )
        assert watching.stdout is not None
        try:
            readers = [
                asyncio.create_task(read_page(web, session.id, on_page)),
                asyncio.create_task(read_lines(watching.stdout, in_terminal)),
            ]
            following = asyncio.create_task(listen(session, in_editor))
            turn = session.prompt("go on")
            await until(lambda: on_page and in_terminal)
            script.watched.set()
            await until(lambda: session.state.pending)
            await session.answer(next(iter(session.state.pending)), "allow")
            await soon(turn)
            async with asyncio.timeout(SECONDS):
                await asyncio.gather(*readers)
            following.cancel()
        finally:
            watching.kill()
            await watching.wait()
    assert sequence(on_page) == sequence(in_terminal)
    assert [each.seq for each in on_page] == [each.seq for each in in_terminal]
    assert without_repeats(in_editor) == without_repeats(on_page)
    assert "asked" in sequence(in_editor)


def without_repeats(events: list[e.Event]) -> list[Any]:
    """An editor is asked beside the updates, with the tool call that it is about as it is then."""
    kept: list[Any] = []
    for each in sequence(events):
        is_question = each in ("asked", ("settled", "allow"))
        is_known = each[0] == "t" and (each in kept or each[1] == "UNSET")
        if not is_question and not is_known:
            kept.append(each)
    return kept
