"""Limits that an agent reports: its prompt waits, and is sent once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.clients import opened, until
from support.peers import SECONDS

from dragoman import RemoteError, Session
from dragoman.client.sessions.parking import CONTINUE, LEAST_WAIT, MOST_ATTEMPTS
from dragoman.client.sessions.turn import Turn
from dragoman.session import events as e
from dragoman.session.facts import OnLimit
from dragoman.testing import AgentTurn, ScriptedAgent

SOON = "Rate limit exceeded: retry after 0.01s"
LATER = "You've hit your usage limit, try again in 5 hours"


class Limited:
    """An agent that reports a limit for its first prompts, after what it does with them."""

    def __init__(
        self, report: str = SOON, times: int = 1, work: Callable[[AgentTurn], None] | None = None
    ) -> None:
        self.prompts: list[str] = []
        self._report, self._times, self._work = report, times, work

    async def __call__(self, turn: AgentTurn) -> None:
        self.prompts.append(turn.text)
        if len(self.prompts) > self._times:
            turn.say("done")
            return
        if self._work is not None:
            self._work(turn)
        raise RemoteError(self._report, code=-32603)


@asynccontextmanager
async def at_limit(
    agent: Limited, cwd: Path, on_limit: OnLimit = "park"
) -> AsyncGenerator[tuple[Session, Turn]]:
    """A session whose first turn has ended at the limit."""
    async with opened(ScriptedAgent(agent), cwd, on_limit=on_limit) as (_, session):
        turn = session.prompt("fix it")
        async with asyncio.timeout(SECONDS):
            await turn
        yield session, turn


async def following(session: Session, turn: Turn) -> Turn:
    async with asyncio.timeout(SECONDS):
        sent = await session.parking.continued(turn)
        assert sent is not None
        return await sent


async def test_a_prompt_of_which_nothing_was_done_is_sent_again(tmp_path: Path) -> None:
    agent = Limited()
    async with at_limit(agent, tmp_path) as (session, turn):
        assert turn.parked is not None
        assert turn.parked.repeats
        assert (await following(session, turn)).text == "done"
        assert agent.prompts == ["fix it", "fix it"]
        assert session.state.parked is None


def speaks(turn: AgentTurn) -> None:
    turn.say("I began")


def works(turn: AgentTurn) -> None:
    turn.tool_call("a", "A")


@pytest.mark.parametrize("work", [speaks, works])
async def test_an_agent_that_did_something_is_asked_to_continue(
    tmp_path: Path, work: Callable[[AgentTurn], None]
) -> None:
    agent = Limited(work=work)
    async with at_limit(agent, tmp_path) as (session, turn):
        await following(session, turn)
        assert agent.prompts == ["fix it", CONTINUE]


async def test_thoughts_are_nothing_done(tmp_path: Path) -> None:
    agent = Limited(work=lambda turn: turn.think("hm"))
    async with at_limit(agent, tmp_path) as (session, turn):
        await following(session, turn)
        assert agent.prompts == ["fix it", "fix it"]


async def test_a_limit_that_is_the_answer_parks_the_prompt_too(tmp_path: Path) -> None:
    said = "Ran into this error: Rate limit exceeded: retry after 0.01s."
    prompts: list[str] = []

    async def script(turn: AgentTurn) -> None:
        prompts.append(turn.text)
        turn.say(said if len(prompts) == 1 else "done")

    async with opened(ScriptedAgent(script), tmp_path, on_limit="park") as (_, session):
        turn = await session.prompt("fix it")
        await following(session, turn)
        assert prompts == ["fix it", "fix it"]


async def test_the_end_that_the_agent_reports_is_waited_for(tmp_path: Path) -> None:
    async with at_limit(Limited(LATER), tmp_path) as (session, turn):
        told = [each for each in session.state.entries if each.text.startswith("the agent reports")]
        assert "a used-up plan" in told[0].text
        assert "continues at" in told[0].text
        parked = session.state.parked
        assert parked is turn.parked
        assert parked is not None
        assert parked.resumes_at is not None
        assert 5 * 3600 - 60 < parked.resumes_at - time.time() <= 5 * 3600 + 60


async def test_sessions_at_the_same_limit_continue_at_different_times(tmp_path: Path) -> None:
    end = round(time.time()) + 5 * 3600
    told: list[float] = []
    for _ in range(8):
        async with at_limit(Limited(f"usage limit reached|{end}"), tmp_path) as (session, _):
            assert session.state.parked is not None
            told.append((session.state.parked.resumes_at or 0) - end)
    assert all(0 <= late <= 61 for late in told)
    # Each is one of 256 steps: eight are the same once in 10^16 times.
    assert len(set(told)) > 1


async def test_a_prompt_that_comes_meanwhile_is_sent_after_it(tmp_path: Path) -> None:
    agent = Limited(LATER)
    async with at_limit(agent, tmp_path) as (session, turn):
        later = session.prompt("and then this")
        assert not later.sent
        sent = await session.parking.send_now()
        await sent
        await later
        assert agent.prompts == ["fix it", "fix it", "and then this"]
        assert await session.parking.continued(turn) is sent


async def test_what_is_dropped_is_not_sent(tmp_path: Path) -> None:
    agent = Limited(LATER)
    async with at_limit(agent, tmp_path) as (session, turn):
        session.parking.drop()
        assert await session.parking.continued(turn) is None
        assert (await session.prompt("another")).text == "done"
        assert agent.prompts == ["fix it", "another"]
        with pytest.raises(KeyError):
            await session.parking.send_now()


async def test_it_is_tried_five_times_at_most(tmp_path: Path) -> None:
    agent = Limited(times=99)
    async with at_limit(agent, tmp_path) as (session, _):
        session.parking.least_wait = 0.0
        await until(lambda: session.state.parked is None and not session.busy)
        assert len(agent.prompts) == MOST_ATTEMPTS + 1
        assert session.state.turns[-1].status == "failed"


async def test_an_end_that_was_wrong_is_not_relied_on(tmp_path: Path) -> None:
    agent = Limited(times=99)
    async with at_limit(agent, tmp_path) as (session, turn):
        before, sent = time.time(), await session.parking.continued(turn)
        for number in range(MOST_ATTEMPTS - 1):
            assert sent is not None
            await sent
            assert sent.parked is not None
            assert (sent.parked.resumes_at or 0.0) >= before + LEAST_WAIT * 2**number
            before, sent = time.time(), await session.parking.send_now()
        assert sent is not None
        with pytest.raises(RemoteError):
            await sent


async def test_ask_waits_for_a_person(tmp_path: Path) -> None:
    agent = Limited()
    async with at_limit(agent, tmp_path, "ask") as (session, turn):
        assert turn.parked is not None
        assert turn.parked.resumes_at is None
        session.parking.wait()
        await following(session, turn)
        assert agent.prompts == ["fix it", "fix it"]


async def test_without_parking_the_turn_fails_and_says_why(tmp_path: Path) -> None:
    agent = Limited()
    async with opened(ScriptedAgent(agent), tmp_path) as (_, session):
        with pytest.raises(RemoteError):
            await session.prompt("fix it")
        assert session.state.parked is None
        events = [each.text for each in session.state.entries]
        assert any("a rate limit" in text for text in events)


async def test_other_errors_are_not_limits(tmp_path: Path) -> None:
    agent = Limited("the file is missing")
    async with opened(ScriptedAgent(agent), tmp_path, on_limit="park") as (_, session):
        seen = session.events()
        with pytest.raises(RemoteError):
            await session.prompt("fix it")
        assert not any(isinstance(each, e.TurnLimited) for each in seen.ready)


@pytest.mark.own_time
async def test_a_person_and_the_clock_send_it_once(tmp_path: Path) -> None:
    agent = Limited("Rate limit exceeded: retry after 0.05s")
    async with at_limit(agent, tmp_path) as (session, turn):
        sent = await session.parking.send_now()
        assert await following(session, turn) is sent
        await asyncio.sleep(60)  # in no time: the clock of this test jumps
        assert agent.prompts == ["fix it", "fix it"]


async def test_closing_drops_it(tmp_path: Path) -> None:
    async with at_limit(Limited(LATER), tmp_path) as (session, _):
        await session.close()
        assert session.state.parked is None
