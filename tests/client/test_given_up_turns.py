"""Turns that nobody waits for any longer: they are cancelled, unless they were detached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.clients import gathered, kinds, opened, until
from support.peers import settled, soon
from support.raw_agent import ENDED, RawAgent

from dragoman import Session, Turn
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say


async def test_a_turn_is_cancelled_with_the_task_that_awaits_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        awaiting = asyncio.ensure_future(turn)
        request = await agent.expect("session/prompt")
        awaiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(awaiting)
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(turn.wait())
        assert turn.stop_reason == "cancelled"
        assert not session.busy


async def test_a_timeout_around_a_turn_stops_the_agent(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await turn
        await agent.expect("session/cancel")


async def reading(turn: Turn, see: Callable[[str], object]) -> None:
    async for event in turn:
        see(event.text)


async def test_a_turn_is_cancelled_with_the_task_that_reads_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn, seen = session.prompt("hi"), list[str]()
        reader = asyncio.create_task(reading(turn, seen.append))
        request = await agent.expect("session/prompt")
        agent.say("well")
        await until(lambda: "well" in seen)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(reader)
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(turn.wait())
        assert turn.stop_reason == "cancelled"
        assert not session.busy


async def test_a_timeout_around_a_loop_over_a_turn_stops_the_agent(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await reading(turn, str)
        await agent.expect("session/cancel")


async def to_first_word(turn: Turn) -> None:
    async for event in turn:
        if isinstance(event, e.AgentMessage):
            break


async def failing_at_first_word(turn: Turn) -> None:
    async for event in turn:
        if isinstance(event, e.AgentMessage):
            raise LookupError


async def busy_elsewhere_at_first_word(turn: Turn) -> None:
    async for event in turn:
        if isinstance(event, e.AgentMessage):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()


@pytest.mark.parametrize(
    "loop", [to_first_word, failing_at_first_word, busy_elsewhere_at_first_word]
)
async def test_a_loop_that_is_left_early_stops_the_agent(
    loop: Callable[[Turn], Awaitable[None]], tmp_path: Path
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        agent.say("well")
        with suppress(LookupError, TimeoutError):
            await soon(loop(turn))
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(turn.wait())
        assert turn.stop_reason == "cancelled"


async def reading_on(turn: Turn) -> None:
    await to_first_word(turn)
    await to_first_word(turn)
    await turn


async def test_a_turn_that_is_read_on_or_awaited_right_after_a_loop_continues(
    tmp_path: Path,
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        reading = asyncio.create_task(reading_on(turn))
        for word in ("one", "two"):
            agent.say(word)
            await settled()
        agent.reply(request["id"], ENDED)
        await soon(reading)
        assert turn.stop_reason == "end_turn"
    assert agent.sent("session/cancel") == []


async def test_a_detached_turn_continues_after_a_loop(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi").detach()
        request = await agent.expect("session/prompt")
        agent.say("well")
        await soon(to_first_word(turn))
        await settled()
        agent.reply(request["id"], ENDED)
        assert kinds(await gathered(turn)) == ["TurnEnded"]
    assert agent.sent("session/cancel") == []


async def test_a_queued_prompt_is_dropped_with_the_task_that_reads_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("first")
        await agent.expect("session/prompt")
        reader = asyncio.create_task(reading(session.prompt("second"), str))
        await settled()
        assert len(session.queued) == 1
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(reader)
        assert session.queued == []
        assert session.busy


async def test_a_queued_prompt_is_dropped_with_the_task_that_awaits_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("first")
        await agent.expect("session/prompt")
        awaiting = asyncio.ensure_future(session.prompt("second"))
        await settled()
        assert len(session.queued) == 1
        awaiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(awaiting)
        assert session.queued == []
        assert session.busy


async def test_a_block_that_is_left_early_stops_the_turn_and_waits_for_its_end(
    tmp_path: Path,
) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.say("first")
        await turn.cancelled.wait()

    async with opened(ScriptedAgent(script), tmp_path) as (_, session):
        async with session.prompt("hi") as turn:
            async for event in turn:
                if isinstance(event, e.AgentMessage):
                    break
        assert turn.done
        assert turn.stop_reason == "cancelled"
        assert not session.busy


async def test_a_block_around_a_whole_turn_cancels_nothing(tmp_path: Path) -> None:
    heard: list[e.Event] = []

    def hear(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with opened(ScriptedAgent([say("hello")]), tmp_path, listen=hear) as (_, session):
        async with session.prompt("hi") as turn:
            await soon(turn)
        assert turn.stop_reason == "end_turn"
        assert not [each for each in heard if isinstance(each, e.TurnCancelling)]
