"""The official TypeScript SDK on the other side: its clients through our bridge, its server with
our client."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from support.bridges import TOKEN, bridged
from support.https import make_certificate
from support.peers import tidy_loop
from support.typescript import node, printed

from dragoman import Client, Policy
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.target import RemoteAgent

DEMO = AgentCommand(sys.executable, ("-P", "-m", "dragoman.testing.demo"))


@pytest.mark.parametrize("way", ["ws", "http"])
async def test_the_bridge_serves_the_official_clients(way: str, tmp_path: Path) -> None:
    async with tidy_loop(), bridged(partial(StdioTransport.start, DEMO)) as web:
        url = f"{way}://127.0.0.1:{web.port}/acp"
        async with node("client.mjs", way, url, TOKEN, str(tmp_path)) as client:
            told = await printed(client)
            assert await client.wait() == 0
    assert (told["agent"], told["stopReason"]) == ("dragoman-demo", "end_turn")
    assert {"plan", "tool_call", "agent_message_chunk"} <= set(told["kinds"])
    assert "You did not allow the change" in told["text"]
    assert len(told["asked"]) >= 1


async def test_the_official_server_is_reached_over_http_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with tidy_loop(), node("server.mjs", str(certificate)) as server:
        url = f"https://127.0.0.1:{await printed(server)}/acp"
        async with Client.start(RemoteAgent(url), policy=Policy(yolo=True)) as client:
            session = await client.new_session(tmp_path)
            turn = await session.prompt("hi")
            assert turn.stop_reason == "end_turn"
            assert session.state.entries[-1].text == "yes over HTTP/2.0"
