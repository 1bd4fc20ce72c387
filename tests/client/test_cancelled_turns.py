"""A turn that is cancelled: what the agent is told, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, kinds, opened, until
from support.peers import settled, soon
from support.raw_agent import ENDED, RawAgent, Refusal

from dragoman import Timeouts
from dragoman.errors import (
    CancelIgnored,
    ConnectionClosed,
)
from dragoman.session.content import Meta


async def test_cancelling_tells_the_agent_and_waits_for_its_answer(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        agent.update("tool_call", toolCallId="t", title="Work", status="in_progress")
        await until(lambda: session.state.tool_calls)
        cancelling = asyncio.create_task(session.cancel())
        assert (await agent.expect("session/cancel"))["params"] == {"sessionId": "s1"}
        assert session.state.tool_calls["t"].status == "cancelled"
        agent.say("stopping")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
        events = await gathered(turn)
        assert kinds(events) == [
            "TurnStarted",
            "ToolCallUpdated",
            "TurnCancelling",
            "AgentMessage",
            "TurnEnded",
        ]
        assert turn.stop_reason == "cancelled"
        assert turn.error is None


async def test_cancelling_twice_is_one_cancel(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("hi")
        request = await agent.expect("session/prompt")
        both = [asyncio.create_task(session.cancel()) for _ in range(2)]
        await agent.expect("session/cancel")
        await settled()
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(asyncio.gather(*both))
    assert len(agent.sent("session/cancel")) == 1


async def test_a_detached_turn_runs_on_when_its_awaiter_is_cancelled(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        turn = session.prompt("hi").detach()
        request = await agent.expect("session/prompt")
        waiting = asyncio.ensure_future(turn)
        await settled()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert repr(turn) == f"<Turn {turn.id}: running>"
        agent.reply(request["id"], ENDED)
        await soon(turn.wait())
        assert repr(turn) == f"<Turn {turn.id}: end_turn>"
        assert repr(session) == f"<Session s1 in {tmp_path}: 1 turn>"
        assert repr(client).endswith(", ACP 1>")
    assert agent.sent("session/cancel") == []


async def test_cancelling_when_nothing_runs_does_nothing(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await session.cancel()
    assert agent.sent("session/cancel") == []


async def test_a_prompt_cancelled_before_it_was_sent_is_never_sent(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        await soon(session.cancel())
        assert turn.stop_reason == "cancelled"
    assert (agent.sent("session/prompt"), agent.sent("session/cancel")) == ([], [])


async def test_the_next_prompt_in_the_queue_follows_a_cancelled_one(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("one")
        second = session.prompt("two")
        request = await agent.expect("session/prompt")
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
        agent.reply((await agent.expect("session/prompt"))["id"], ENDED)
        assert (await soon(second)).stop_reason == "end_turn"


async def test_an_agent_that_ignores_a_cancel_is_reported_and_may_still_end(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, timeouts=Timeouts(cancel=0.02)) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        with pytest.raises(CancelIgnored, match=r"did not stop within 0\.02 s"):
            await session.cancel()
        assert not turn.done
        agent.reply(request["id"], ENDED)
        assert (await soon(turn)).stop_reason == "end_turn"


async def test_request_cancelled_as_an_answer_is_a_cancelled_turn(tmp_path: Path) -> None:
    def cancelled(params: Any) -> Any:
        raise Refusal(-32800, "request cancelled")

    async with opened(RawAgent(session__prompt=cancelled), tmp_path) as (_, session):
        assert (await soon(session.prompt("hi"))).stop_reason == "cancelled"


async def test_cancelling_while_the_agent_dies_waits_for_the_end(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        await agent.vanish()
        await until(lambda: client.connection_error)
        await soon(session.cancel())
        assert isinstance(turn.error, ConnectionClosed)


async def test_a_cancel_that_cannot_be_sent_waits_for_the_end_of_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection has just gone; the turn is about to learn of it."""

    def gone(session_id: str, meta: Meta) -> None:
        raise ConnectionClosed

    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        monkeypatch.setattr(client.dialect, "cancel", gone)
        cancelling = asyncio.create_task(session.cancel())
        await settled()
        await agent.vanish()
        await soon(cancelling)
        assert isinstance(turn.error, ConnectionClosed)
