"""Agents at an address, checked over WebSocket and HTTP, also with TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.bridges import TOKEN, bridged
from support.https import make_certificate
from support.peers import tidy_loop

from dragoman.conformance.catalogue import select, table
from dragoman.conformance.check import Check
from dragoman.conformance.examination.agent_examination import examine_agent
from dragoman.conformance.examination.examinee import Examinee
from dragoman.conformance.examination.verdict import ConformanceReport
from dragoman.testing.demo.demo_agent import DemoAgent
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport

ON_LINES = {
    "frames.not-json",
    "frames.not-an-object",
    "frames.empty-list",
    "frames.blank-line",
    "frames.no-method",
    "frames.split",
}


async def examined(
    scheme: str, checks: list[Check[Examinee]], certificate: Path | None = None
) -> ConformanceReport:
    agent = DemoAgent()

    async def start() -> Transport:
        return agent.connect()

    async with tidy_loop(), bridged(start) as web, tunnel(web.port, certificate) as port:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        remote = RemoteAgent(f"{scheme}://127.0.0.1:{port}/acp", headers)
        return await examine_agent(remote, checks, name="afar")


@asynccontextmanager
async def tunnel(port: int, certificate: Path | None) -> AsyncGenerator[int]:
    """The port of a proxy that adds TLS; the same one without a certificate."""
    if certificate is None:
        yield port
        return
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    links: set[asyncio.Task[None]] = set()

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        links.add(task)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            pumped(reader, inner_writer, outer_host(), b"127.0.0.1:%d" % port),
            pumped(inner_reader, writer),
        )

    def outer_host() -> bytes:
        return b"127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    server = await asyncio.start_server(link, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.wait(links)


async def pumped(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: bytes = b"", real: bytes = b""
) -> None:
    """As a reverse proxy does, it names the host that is behind it."""
    try:
        while data := await reader.read(65536):
            writer.write(data.replace(host, real) if host else data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_agent_at_an_address_passes_every_check_that_can_be_made(scheme: str) -> None:
    report = await examined(scheme, list(table("agent")))
    assert {each.id: each.text for each in report.verdicts if each.outcome == "fail"} == {}
    skipped = {each.id: each.text for each in report.verdicts if each.outcome == "skip"}
    of_processes = {key for key in skipped if key.startswith("process.")}
    assert {skipped[key] for key in of_processes} == {"the agent is not a process of this machine"}
    assert len(of_processes) == 6
    assert (set(skipped) >= ON_LINES) == (scheme == "http")
    assert report.count("pass") >= 120


@pytest.mark.parametrize("scheme", ["wss", "https"])
async def test_an_agent_behind_tls_is_checked_the_same_way(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    checks = select(table("agent"), ["initialize", "session", "prompt", "load"])
    report = await examined(scheme, checks, certificate)
    assert {each.id: each.text for each in report.verdicts if each.outcome != "pass"} == {}
