"""Everything at once: prompts, answers, cancels, closes and crashes at random moments.

Whatever happens, each turn ends once, each question is settled once, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest
from support.peers import soon, tidy_loop

from dragoman import Client, Session, Timeouts, Turn
from dragoman.errors import DragomanError
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent

TIMEOUTS = Timeouts(cancel=0.1, progress=0.1)


class Storm:
    """One client and one session under random weather."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.events: list[e.Event] = []

    def maybe(self, probability: float) -> bool:
        return self.chance.random() < probability

    def listen(self, session: Session, event: e.Event) -> None:
        self.events.append(event)

    async def script(self, turn: AgentTurn) -> None:
        for _ in range(self.chance.randrange(6)):
            await self.step(turn)

    async def step(self, turn: AgentTurn) -> None:
        match self.chance.randrange(7):
            case 0:
                turn.say("x")
            case 1:
                turn.tool_call("a", "A", status="in_progress")
            case 2:
                await turn.request_permission("a")
            case 3:
                with suppress(DragomanError):
                    await turn.write_text_file(f"{self.folder}/a.txt", "x")
            case 4 if self.maybe(0.3):
                await turn.vanish()
            case 5 if self.maybe(0.3):
                await turn.cancelled.wait()
            case _:
                await asyncio.sleep(0)

    async def read(self, session: Session, turn: Turn) -> None:
        with suppress(DragomanError):
            async for event in turn:
                if isinstance(event, e.PermissionRequested) and self.maybe(0.5):
                    with suppress(KeyError):
                        await session.answer(event.request_id, event.options[0].id)
                if self.maybe(0.1):
                    await session.cancel()
                if self.maybe(0.03):
                    await session.close()

    async def blow(self) -> None:
        agent = ScriptedAgent(self.script).connect()
        async with (
            tidy_loop(),
            Client.start(agent, listen=self.listen, timeouts=TIMEOUTS) as client,
        ):
            session = await client.new_session(self.folder)
            readers: list[asyncio.Task[None]] = []
            with suppress(DragomanError):
                for _ in range(self.chance.randrange(1, 4)):
                    turn = session.prompt("go")
                    readers.append(asyncio.create_task(self.read(session, turn)))
                    await asyncio.sleep(0)
            if self.maybe(0.3):
                await client.aclose()
            await soon(asyncio.gather(*readers))
        assert session.state.pending == {}

    def check(self) -> None:
        started = [event.turn_id for event in self.events if isinstance(event, e.TurnStarted)]
        ended = [event.turn_id for event in self.events if isinstance(event, e.TurnEnded)]
        assert started == ended
        asked = [ev.request_id for ev in self.events if isinstance(ev, e.PermissionRequested)]
        settled = [ev.request_id for ev in self.events if isinstance(ev, e.PermissionSettled)]
        assert sorted(asked) == sorted(settled)
        closed = [event for event in self.events if isinstance(event, e.SessionClosed)]
        assert closed == [self.events[-1]]


async def weather(seeds: range, folder: Path) -> None:
    for seed in seeds:
        storm = Storm(seed, folder)
        try:
            await storm.blow()
            storm.check()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


async def test_a_hundred_storms_end_well(tmp_path: Path) -> None:
    await weather(range(100), tmp_path)


@pytest.mark.soak
@pytest.mark.within(600)
async def test_two_thousand_storms_end_well(tmp_path: Path) -> None:
    await weather(range(100, 2100), tmp_path)
