"""Steers at random moments, against updates, tool calls, the end, a cancel and a crash.

Whatever meets what, no steer is lost, none runs twice, and they keep their order.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from support.clients import started
from support.own_time import run_in_own_time
from support.steered_agents import WAYS, SteeredAgent, Way

from dragoman import Session
from dragoman.client.sessions.steering import Steer
from dragoman.errors import DragomanError
from dragoman.session import events as e

FEW = 40
MANY = 1000
LIMIT = 1000.0


class Encounter:
    """One session, in which steers meet whatever happens."""

    def __init__(self, way: Way, seed: int) -> None:
        self.chance = Random(seed)
        self.agent = SteeredAgent(way, self.chance)
        self.crashes = self.chance.random() < 0.2
        self.cancels = self.chance.random() < 0.3
        self.steers: list[str] = []
        self.said: list[str] = []
        self.answers: dict[str, Steer] = {}
        self.events: list[e.Event] = []

    async def happen(self, cwd: Path) -> None:
        async with asyncio.timeout(LIMIT):
            await self._happen(cwd)

    async def _happen(self, cwd: Path) -> None:
        protocol = 2 if self.agent.way == "prompt" else 1
        async with started(self.agent, protocol=protocol) as client:
            session = await client.new_session(cwd)
            session.log.listeners.append(self.events.append)
            async with asyncio.TaskGroup() as group:
                session.prompt("first")
                for number in range(self.chance.randrange(1, 5)):
                    group.create_task(self.steer(session, f"steer {number}."))
                    await self.agent.pause()
                    if self.chance.random() < 0.2:
                        self.say(session, f"prompt {number}.")
                if self.cancels:
                    group.create_task(self.cancel(session))
                if self.crashes:
                    await self.agent.pause()
                    await self.agent.crash()
            while session.at_work and client.connection_error is None:
                await self.agent.pause()
            await self.agent.close()
            self.state = session.state

    async def steer(self, session: Session, text: str) -> None:
        try:
            self.steers.append(text)
            self.answers[text] = await session.steer(text)
        except DragomanError:
            self.steers.remove(text)  # the agent was gone, and whoever typed it was told

    def say(self, session: Session, text: str) -> None:
        try:
            session.prompt(text).discard()
            self.said.append(text)
        except DragomanError:
            pass

    async def cancel(self, session: Session) -> None:
        await self.agent.pause()
        with suppress(DragomanError):
            await session.cancel()

    # ── what must hold ────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        taken = self.agent.taken
        assert len(set(taken)) == len(taken), "something ran twice"
        assert [each for each in self.steers if each in taken] == [
            each for each in taken if each in self.steers
        ], "steers changed places"
        for text in self.steers:
            self.check_one(text)
        if not self.crashes:
            assert set(self.steers) <= set(taken), "a steer was lost"
            assert set(self.said) <= set(taken), "a prompt was lost"
        assert not self.state.queue

    def check_one(self, text: str) -> None:
        steer = self.answers[text]
        told = [each for each in self.events if isinstance(each, e.Steered)]
        ended = [each for each in told if each.queue_id == steer.id]
        turns = [each for each in self.events if _is_turn(each, steer.id)]
        outcome = ended[-1].outcome if ended else "queued"
        is_turn = outcome == "queued" or (outcome == "started" and not ended[-1].content)
        assert len(ended) + len(turns) >= 1, "nobody knows what became of it"
        assert len(ended) <= 1, "it is said twice"
        assert len(turns) == is_turn or (self.crashes and not turns)
        in_thread = [each for each in self.state.entries if getattr(each, "text", None) == text]
        assert len(in_thread) == 1, "it has to be in the thread, once"
        if outcome == "refused":
            assert text not in self.agent.taken
        if outcome == "delivered":
            assert text in self.agent.taken


def _is_turn(event: e.Event, steer_id: str) -> bool:
    return isinstance(event, e.TurnStarted) and event.turn_id == steer_id


def _meet(way: Way, seeds: range, cwd: Path) -> None:
    for seed in seeds:
        encounter = Encounter(way, seed)
        try:
            run_in_own_time(encounter.happen(cwd))
            encounter.check()
        except BaseException as error:
            error.add_note(f"way {way}, seed {seed}: taken {encounter.agent.taken}")
            raise


@pytest.mark.parametrize("way", WAYS)
def test_no_steer_is_lost_repeated_or_out_of_order(way: Way, tmp_path: Path) -> None:
    _meet(way, range(FEW), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_nor_at_a_thousand_moments(way: Way, tmp_path: Path) -> None:
    _meet(way, range(FEW, FEW + MANY), tmp_path)
