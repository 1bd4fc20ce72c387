"""Three windows on one session, in any order: one outcome, and all of them see it."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest
from support.clients import until
from support.editors import Office, offices
from support.peers import soon

from dragoman import Session
from dragoman.errors import DragomanError
from dragoman.hub.cluster import commands as c
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
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
    """An editor of the process that runs the session, one of another process in version 2, and a
    page."""

    def __init__(self, here: Office, one: Session, other: Session, random_: random.Random) -> None:
        self._here, self._random = here, random_
        self.editors = [one, other]
        self.prompts: list[asyncio.Task[object]] = []
        self.sent = 0

    async def act(self) -> None:
        """Something that a person does, somewhere."""
        await self._random.choice(
            [self._prompt, self._prompt, self._answer, self._answer, self._cancel]
        )()
        for _ in range(self._random.randrange(40)):
            await asyncio.sleep(0)

    async def _prompt(self) -> None:
        self.sent += 1
        where = self._random.choice([*self.editors, None])
        words = f"prompt {self.sent}"
        if where is None:
            await self._here.hub.send(self.editors[0].id, c.Prompt(words))
        else:
            self.prompts.append(asyncio.create_task(_ended(where, words)))

    async def _answer(self) -> None:
        where = self._random.choice(self.editors)
        for asked in list(where.state.pending.values()):
            with suppress(DragomanError, KeyError, ValueError):
                await where.answer(asked.id, self._random.choice(["allow", "reject"]))

    async def _cancel(self) -> None:
        with suppress(DragomanError):
            await self._here.hub.send(self.editors[0].id, c.Cancel())

    async def finish(self) -> None:
        """Answer whatever is still asked, until all is done."""
        live = self._here.hub.live[self.editors[0].id]
        async with asyncio.timeout(30):
            while not (live.idle and all(prompt.done() for prompt in self.prompts)):
                await self._answer()
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


async def outcome(here: Office, session_id: str) -> tuple[str, list[str]]:
    """What is on record: each turn ended once, each question settled once."""
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
                case _:
                    pass
    assert ended == started
    assert sorted(asked) == sorted(settled)
    state = await stored_state(here.hub.store, session_id)
    return said(state), [x.text for x in state.entries if isinstance(x, UserEntry)]


async def interleaved(folder: Path, seed: int) -> None:
    random_, script = random.Random(seed), Asking()
    folder.mkdir()  # noqa: ASYNC240 - nobody waits yet
    agent = ScriptedAgent(script)
    async with (
        offices(folder, [{"it": agent}, {"it": agent}]) as [here, there],
        here.editor() as first,
        there.editor(protocol=2) as second,
    ):
        one = await first.new_session(folder)
        await here.hub.send(one.id, c.Rename("so that it is kept"))
        other = await second.load_session(one.id, folder)
        windows = Windows(here, one, other, random_)
        for _ in range(ACTIONS):
            await windows.act()
        await windows.finish()
        words, prompts = await outcome(here, one.id)
        await until(lambda: said(one.state) == words and said(other.state) == words)
        assert len(prompts) == windows.sent
        # An editor is told that a question is withdrawn after it was shown the rest.
        await until(lambda: one.state.pending == other.state.pending == {})
        async with there.editor() as third:
            late = await third.load_session(one.id, folder)
            assert said(late.state) == words
            shown = [x.text for x in late.state.entries if isinstance(x, UserEntry)]
            assert shown == prompts


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
async def test_three_windows_come_to_one_outcome(tmp_path: Path, seed: int) -> None:
    await interleaved(tmp_path / "it", seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(100, 600, 20))
async def test_five_hundred_interleavings_come_to_one_outcome_each(
    tmp_path: Path, first: int
) -> None:
    for seed in range(first, first + 20):
        await interleaved(tmp_path / str(seed), seed)
