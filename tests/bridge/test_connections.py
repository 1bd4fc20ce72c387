"""Connections over HTTP: the second try at a handshake, and too many sessions."""

from __future__ import annotations

from typing import Any

import pytest
from support.bridges import bridged, by_http
from support.peers import soon, tidy_loop
from support.raw_agent import RawAgent, Refusal

from dragoman import Client
from dragoman.bridge import http_connections
from dragoman.transport.transport import Transport

LIMIT = 4
LIMITS = http_connections.BridgeLimits(sessions=LIMIT)


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_agent_that_refuses_version_2_is_spoken_to_in_version_1(scheme: str) -> None:
    def hello(params: dict[str, Any]) -> dict[str, Any]:
        if params["protocolVersion"] == 2:
            raise Refusal(-32022, "unsupported", {})
        return {"protocolVersion": 1}

    async def start() -> Transport:
        return RawAgent(initialize=hello).connect()

    async with (
        bridged(start) as web,
        Client.start(web.agent(scheme), protocol=2) as client,
    ):
        assert client.protocol_version == 1


def update(session: int) -> bytes:
    return b'{"method":"session/update","params":{"sessionId":"s%d"}}\n' % session


async def test_sessions_that_nobody_reads_do_not_end_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with tidy_loop(), by_http(LIMITS) as (ours, theirs):
        for session in range(LIMIT + 1):
            theirs.send(update(session))
        theirs.send(b'{"method":"x"}\n')
        assert await soon(ours.receive()) == b'{"method":"x"}\n'
    assert caplog.text.count("was dropped") == 1


async def test_sessions_that_were_read_and_left_make_room() -> None:
    connection = http_connections.HttpConnection(_nobody(), LIMITS)
    for session in range(LIMIT):
        connection.mailbox(f"s{session}").put(b"{}")
    events = connection.mailbox("s1").events()
    assert await anext(events) == b"data: {}\n\n"
    await events.aclose()
    connection.mailbox("new").is_read = True
    assert connection.mailbox("s0").is_idle is False
    with pytest.raises(http_connections.RequestFailed, match="too many sessions"):
        connection.mailbox("one more")


def _nobody() -> Any:
    """No agent is spoken to."""
