"""An agent that is not read for a while, because the disk has to catch up: nobody takes that for a
silence of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.clients import gathered, tidy_loop, until
from support.peers import soon
from support.raw_agent import ENDED, RawAgent, notification, text_block

from dragoman import Client, Timeouts
from dragoman.session.state import AgentEntry

SHORT = 0.5
"""Seconds after which an agent is given up that is silent by itself."""


class Gate:
    """Nothing is read while it is closed."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.opened.set()

    def pace(self) -> Awaitable[None] | None:
        return None if self.opened.is_set() else self._until_open()

    async def _until_open(self) -> None:
        await self.opened.wait()

    async def close(self, client: Client, agent: RawAgent) -> None:
        self.opened.clear()
        agent.say("the last that is read")
        await until(lambda: client.pauses is None)

    async def is_left_closed_for(self, waiting: asyncio.Future[Any]) -> None:
        """For much longer than a silent agent is waited for."""
        assert not (await asyncio.wait([waiting], timeout=3 * SHORT))[0]
        self.opened.set()


@asynccontextmanager
async def paced(agent: RawAgent, timeouts: Timeouts) -> AsyncGenerator[tuple[Client, Gate]]:
    gate = Gate()
    client = Client.start(agent.connect(), timeouts=timeouts)
    client.read_at(gate.pace)
    async with tidy_loop(), client:
        yield client, gate


async def test_a_turn_is_not_given_up(tmp_path: Path) -> None:
    agent = RawAgent()
    async with paced(agent, Timeouts()) as (client, gate):
        session = await client.new_session(tmp_path)
        turn = session.prompt("go", timeout=SHORT)
        request = await agent.expect("session/prompt")
        await gate.close(client, agent)
        agent.reply(request["id"], ENDED)
        await gate.is_left_closed_for(asyncio.ensure_future(turn.wait()))
        assert (await soon(turn)).stop_reason == "end_turn"


async def test_nor_is_a_call(tmp_path: Path) -> None:
    agent = RawAgent()
    async with paced(agent, Timeouts(control=SHORT)) as (client, gate):
        await client.new_session(tmp_path)
        await gate.close(client, agent)
        signing_out = asyncio.ensure_future(client.logout())
        await gate.is_left_closed_for(signing_out)
        await soon(signing_out)


async def test_nor_a_cancel(tmp_path: Path) -> None:
    agent = RawAgent()
    async with paced(agent, Timeouts(cancel=SHORT)) as (client, gate):
        session = await client.new_session(tmp_path)
        turn = session.prompt("go")
        request = await agent.expect("session/prompt")
        await gate.close(client, agent)
        cancelling = asyncio.ensure_future(session.cancel())
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await gate.is_left_closed_for(cancelling)
        await soon(cancelling)
        assert (await soon(turn)).stop_reason == "cancelled"


async def test_history_that_waits_to_be_read_is_not_taken_for_what_happens_now(
    tmp_path: Path,
) -> None:
    agent = RawAgent(session__load=None)
    async with paced(agent, Timeouts()) as (client, gate):
        loading = asyncio.ensure_future(client.load_session("s1", tmp_path))
        request = await agent.expect("session/load")
        gate.opened.clear()
        agent.reply(request["id"], {})
        await until(lambda: client.pauses is None)
        old = notification("agent_message_chunk", session="s1", content=text_block("of old"))
        agent.send(old)
        await gate.is_left_closed_for(loading)
        session = await soon(loading)
        turn = session.prompt("go")
        agent.reply((await agent.expect("session/prompt"))["id"], ENDED)
        assert not [event for event in await gathered(turn) if event.text == "of old"]
    said = [each.text for each in session.state.entries if isinstance(each, AgentEntry)]
    assert said == ["of old"]
