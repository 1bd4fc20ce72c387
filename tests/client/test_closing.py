"""Sessions are closed, and lost with their connection; what an agent does between turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clients import gathered, next_of, opened
from support.listeners import Heard, refuse
from support.peers import settled, soon
from support.raw_agent import RawAgent

from dragoman import Timeouts
from dragoman.errors import (
    CancelIgnored,
    InternalError,
    MethodNotFound,
    SessionGone,
)
from dragoman.session import events as e

# ── closing ───────────────────────────────────────────────────────────────────────────────────


async def test_closing_frees_the_session_on_both_sides(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        events = session.events()
        await session.close()
        assert [type(event) for event in await gathered(events)] == [e.SessionClosed]
        assert not session.state.open
        for use in (session.close, session.reconnect):
            with pytest.raises(SessionGone):
                await use()
        with pytest.raises(SessionGone):
            await client.close_session("s1")
        agent.say("are you there?")
        await settled()
        assert session.state.entries == []
    assert agent.sent("session/close") == [{"sessionId": "s1"}]


async def test_an_agent_that_has_no_close_is_not_asked_to(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with opened(agent, tmp_path) as (_, session):
        await session.close()
        assert not session.state.open
    assert agent.sent("session/close") == []


@pytest.mark.parametrize("code", [-32601, -32002])
async def test_an_agent_that_has_nothing_to_close_is_no_error(code: int, tmp_path: Path) -> None:
    async with opened(RawAgent(session__close=refuse(code)), tmp_path) as (_, session):
        await session.close()
        assert not session.state.open


async def test_a_close_the_agent_refuses_is_an_error_and_closed_here(tmp_path: Path) -> None:
    async with opened(RawAgent(session__close=refuse(-32603)), tmp_path) as (_, session):
        with pytest.raises(InternalError):
            await session.close()
        assert not session.state.open


async def test_closing_cancels_the_turn_and_drops_what_is_queued(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = session.events()
        running, queued = session.prompt("one"), session.prompt("two")
        request = await agent.expect("session/prompt")
        closing = asyncio.create_task(session.close())
        await agent.expect("session/cancel")
        with pytest.raises(SessionGone):
            session.prompt("three")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(closing)
        assert (running.stop_reason, queued.stop_reason) == ("cancelled", "cancelled")
        assert await soon(queued) is queued
        assert [type(event) for event in await gathered(events)] == [
            e.TurnStarted,
            e.PromptQueued,
            e.PromptUnqueued,
            e.TurnCancelling,
            e.TurnEnded,
            e.SessionClosed,
        ]
        assert session.state.queue == []
    assert len(agent.sent("session/prompt")) == 1


async def test_closing_does_not_wait_for_ever_for_an_agent_that_goes_on(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, timeouts=Timeouts(cancel=0.02)) as (_, session):
        turn = session.prompt("one")
        await agent.expect("session/prompt")
        await soon(session.close())
        with pytest.raises(SessionGone):
            await soon(turn)
        assert not session.state.open
    assert agent.sent("session/close") == [{"sessionId": "s1"}]


async def test_an_agent_that_cannot_be_made_to_stop_is_reported(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with opened(agent, tmp_path, timeouts=Timeouts(cancel=0.02)) as (_, session):
        session.prompt("one")
        await agent.expect("session/prompt")
        with pytest.raises(CancelIgnored):
            await soon(session.close())
        assert not session.state.open


async def test_nothing_is_recorded_behind_the_close(tmp_path: Path) -> None:
    heard = Heard()
    async with opened(RawAgent(), tmp_path, listen=heard) as (_, session):
        await session.close()
        session.log.record(e.Notice("late"))
    assert isinstance(heard.events[-1][1], e.SessionClosed)


# ── between turns ─────────────────────────────────────────────────────────────────────────────


async def test_updates_outside_a_turn_reach_the_sessions_own_stream(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = session.events()
        agent.update("session_info_update", title="Found")
        agent.say("by the way")
        info = await next_of(events, e.InfoChanged)
        message = await next_of(events, e.AgentMessage)
        assert (info.title, message.text) == ("Found", "by the way")
        assert session.state.title == "Found"


async def test_every_stream_gets_every_event(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        first, second = session.events(), session.events()
        agent.say("hello")
        assert (await next_of(first, e.AgentMessage)).text == "hello"
        assert (await next_of(second, e.AgentMessage)).text == "hello"


async def test_a_method_that_is_offered_and_not_there_is_a_clear_error(tmp_path: Path) -> None:
    agent = RawAgent(session__fork=refuse(-32601, "Method not found"))
    async with opened(agent, tmp_path) as (client, session):
        with pytest.raises(MethodNotFound):
            await client.fork_session("s1", tmp_path)
        assert session.state.open
        assert client.connection_error is None
