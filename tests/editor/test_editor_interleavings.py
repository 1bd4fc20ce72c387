"""Three windows on one session, in any order: one outcome, and all of them see it."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from support.clients import until
from support.editors import Office, offices
from support.peers import soon
from support.serving import Served, also_served

from dragoman import Session
from dragoman.errors import DragomanError
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import AgentEntry, SessionState, UserEntry
from dragoman.store.base import event_pages
from dragoman.store.records import decode_events
from dragoman.testing import AgentTurn, ScriptedAgent

SEED = 27
ACTIONS = 12


class Asking:
    """Each turn has a number, asks, and says what it was answered."""

    def __init__(self) -> None:
        self.turns = 0

    async def __call__(self, turn: AgentTurn) -> None:
        self.turns += 1
        number = self.turns
        turn.say(f"<{number}")
        turn.tool_call(f"t{number}", f"Turn {number}")
        chosen = await turn.request_permission(f"t{number}", title=f"Turn {number}")
        turn.tool_call_update(f"t{number}", status="completed")
        turn.say(f" {chosen}>")


class Windows:
    """An editor of the process that runs the session, the page of a server, and a command line in a
    third process."""

    def __init__(
        self, here: Office, editor: Session, page: Served, command: Hub, random_: random.Random
    ) -> None:
        self._here, self._random = here, random_
        self.editor, self._page, self._command = editor, page, command
        self.id = editor.id
        self.prompts: list[asyncio.Task[object]] = []
        self.sent = 0

    async def act(self) -> None:
        """Something that a person does, somewhere."""
        what = self._random.choice(["prompt", "prompt", "answer", "answer", "cancel"])
        where = self._random.choice(["editor", "page", "command"])
        await getattr(self, f"_{what}_in_{where}")()
        for _ in range(self._random.randrange(40)):
            await asyncio.sleep(0)

    def _words(self) -> str:
        self.sent += 1
        return f"prompt {self.sent}"

    async def _prompt_in_editor(self) -> None:
        self.prompts.append(asyncio.create_task(_ended(self.editor, self._words())))

    async def _prompt_in_page(self) -> None:
        await self._page.prompt(self.id, self._words())

    async def _prompt_in_command(self) -> None:
        await self._command.send(self.id, c.Prompt(self._words()), opens=False)

    async def _answer_in_editor(self) -> None:
        for asked in list(self.editor.state.pending.values()):
            with suppress(DragomanError, KeyError, ValueError):
                await self.editor.answer(asked.id, self._choice())

    async def _answer_in_page(self) -> None:
        for asked in (await self._page.detail(self.id))["pending"]:
            path = f"/api/sessions/{self.id}/permissions/{asked['id']}"
            answered = await self._page.http.post(path, json={"optionId": self._choice()})
            assert answered.status_code in (200, 204, 409), answered.text  # another was quicker

    async def _answer_in_command(self) -> None:
        for asked in list((await self._command.state(self.id)).pending.values()):
            with suppress(DragomanError):
                command = c.AnswerPermission(asked.id, self._choice())
                await self._command.send(self.id, command, opens=False)

    def _choice(self) -> str:
        return self._random.choice(["allow", "reject"])

    async def _cancel_in_editor(self) -> None:
        with suppress(DragomanError):
            await self.editor.cancel()

    async def _cancel_in_page(self) -> None:
        await self._page.call("POST", f"/api/sessions/{self.id}/cancel")

    async def _cancel_in_command(self) -> None:
        with suppress(DragomanError):
            await self._command.send(self.id, c.Cancel(), opens=False)

    async def finish(self) -> None:
        """Answer whatever is still asked, until all is done."""
        live = self._here.hub.live[self.id]
        async with asyncio.timeout(60):
            while not (live.idle and all(prompt.done() for prompt in self.prompts)):
                await self._answer_in_editor()
                await asyncio.sleep(0.001)
        await soon(asyncio.gather(*self.prompts))
        await live.recording.stored()


async def _ended(session: Session, words: str) -> str | None:
    """How the prompt ended, for the editor that sent it: it does end."""
    try:
        turn = session.prompt(words)
        await turn
    except DragomanError:
        return None
    return turn.stop_reason


def said(state: SessionState) -> str:
    return "".join(entry.text for entry in state.entries if isinstance(entry, AgentEntry))


async def outcome(here: Office, session_id: str) -> tuple[str, list[str], int]:
    """What is on record: each turn ended once, each question settled once. What was said, the
    prompts that were sent, and the number of those that were dropped before."""
    dropped = 0
    started, ended, asked, settled = (list[str]() for _ in range(4))
    async for page in event_pages(here.hub.store, session_id):
        for event in decode_events(page):
            match event:
                case e.TurnStarted():
                    started.append(event.turn_id)
                case e.TurnEnded():
                    ended.append(event.turn_id)
                case e.PermissionRequested():
                    asked.append(event.request_id)
                case e.PermissionSettled():
                    settled.append(event.request_id)
                case e.PromptUnqueued(dropped=True):
                    dropped += 1
                case _:
                    pass
    assert ended == started
    assert sorted(asked) == sorted(settled)
    state = await stored_state(here.hub.store, session_id)
    return said(state), [x.text for x in state.entries if isinstance(x, UserEntry)], dropped


async def interleaved(folder: Path, seed: int) -> None:
    random_, script = random.Random(seed), Asking()
    (folder / "store").mkdir(parents=True)
    (folder / "home").symlink_to("store")
    agent = ScriptedAgent(script)
    async with (
        offices(folder, [{"it": agent}, {"it": agent}]) as [here, there],
        also_served(folder, {"it": agent}, on_disk=True) as page,
        here.editor(protocol=1 + seed % 2) as editor,
    ):
        session = await editor.new_session(folder)
        await here.hub.send(session.id, c.Rename("so that it is kept"))
        windows = Windows(here, session, page, there.hub, random_)
        for _ in range(ACTIONS):
            await windows.act()
        await windows.finish()
        words, prompts, dropped = await outcome(here, session.id)
        await until(lambda: said(session.state) == words)
        assert len(prompts) + dropped == windows.sent  # an editor's cancel drops what it queued
        # An editor is told that a question is withdrawn after it was shown the rest.
        await until(lambda: session.state.pending == {})
        read = await page.once(session.id, lambda found: found["status"] != "running")
        assert not read["pending"]
        assert await read_over_http(page, session.id) == words
        assert said(await there.hub.state(session.id)) == words
        async with there.editor() as third:
            late = await third.load_session(session.id, folder)
            assert said(late.state) == words
            shown = [x.text for x in late.state.entries if isinstance(x, UserEntry)]
            assert shown == prompts


async def read_over_http(page: Served, session_id: str) -> str:
    """What the agent has said, by the events that the page reads."""
    events = await page.call("GET", f"/api/sessions/{session_id}/events?after=0&limit=1000")
    state = SessionState()
    for event in msgspec.convert(events["events"], list[e.Event]):
        reduce(state, event)
    return said(state)


@pytest.mark.parametrize("seed", range(SEED, SEED + 8))
async def test_three_windows_come_to_one_outcome(tmp_path: Path, seed: int) -> None:
    await interleaved(tmp_path / "it", seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(100, 600, 20))
async def test_five_hundred_interleavings_come_to_one_outcome_each(
    tmp_path: Path, first: int
) -> None:
    for seed in range(first, first + 20):
        await interleaved(tmp_path / str(seed), seed)
