"""An agent on a WebSocket of the bridge: what is logged of it, and who is cut off."""

from __future__ import annotations

import logging
import os
import sys

import pytest
from support.bridges import TOKEN, InMemory, bridged
from support.clients import until
from support.peers import soon, tidy_loop

from dragoman.bridge.http_connections import BridgeLimits
from dragoman.errors import RemoteLost
from dragoman.transport.reconnection import ReconnectingRoute
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport

DEAF = ("-I", "-S", "-c", "import time; time.sleep(1000)")


async def test_neither_the_token_nor_a_query_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with tidy_loop(), bridged(InMemory().start) as web:
        address = web.agent("ws").url.replace("#", "?key=CANARY#")
        await (await ReconnectingRoute(RemoteAgent(address)).connect()).aclose()
    assert TOKEN not in caplog.text
    assert "CANARY" not in caplog.text


async def test_an_agent_that_takes_nothing_is_ended_though_its_client_is_not_seen_leaving() -> None:
    limits = BridgeLimits(stall=0.3)
    started: list[StdioTransport] = []

    async def start() -> Transport:
        started.append(await StdioTransport.start(AgentCommand(sys.executable, DEAF)))
        return started[-1]

    async with tidy_loop(), bridged(start, limit=1, limits=limits) as web:
        ours = await ReconnectingRoute(web.agent("ws")).connect()
        ours.send(b'{"x":"' + b"y" * (1 << 20) + b'"}\n')
        assert await soon(ours.receive()) == b""
        error = await ours.failure(spoke=True, printed="")
        await ours.aclose()
        await until(lambda: not os.path.exists(f"/proc/{started[0].pid}"))
    assert isinstance(error, RemoteLost)
    reason = "the agent did not read its input for too long"
    assert error.reason == f"the other side rejected it ({reason})"


async def test_a_slow_reader_is_not_cut_off_for_a_late_pong() -> None:
    async with tidy_loop(), bridged(InMemory().start) as web:
        patience = web.running.config.ws_ping_timeout
    assert patience is None or patience >= 2 * BridgeLimits().stall
