"""Readers that do not read: they cost next to nothing, and are cut off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.types import Message
from support.clients import until
from support.cost import Memory
from support.raw_http import request
from support.serving import STREAM, TOKEN, Served, served

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say
from dragoman.ui_stream import encode
from dragoman.ui_stream.chunks import Chunk, TextDelta
from dragoman.web.streams import chat_stream, stream_response
from dragoman.web.streams.sse import PIECE_BYTES
from dragoman.web.streams.stream_response import Pace, StreamedResponse

MIB = 1024 * 1024
COUNT = 3_000
SIZE = 2_000


async def _flood(turn: AgentTurn) -> None:
    """6 MB of updates that the state does not grow with."""
    turn.tool_call("call", "Flood", status="in_progress")
    for number in range(COUNT):
        title = f"{number} {'x' * SIZE}"
        turn.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": "call", "title": title}, keep=False
        )
        if number % 100 == 0:
            await asyncio.sleep(0)


def _stalled(web: Served, session_id: str) -> socket.socket:
    """A client that asks for the stream and takes nothing of it."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", web.port))
    headers = {"host": f"127.0.0.1:{web.port}", "authorization": f"Bearer {TOKEN}", **STREAM}
    found.sendall(request("GET", f"/api/sessions/{session_id}/events", headers))
    return found


async def _cut_off(web: Served, session_id: str, count: int) -> None:
    """Until so many streams have ended."""
    line = ("GET", f"/api/sessions/{session_id}/events", 200)
    async with asyncio.timeout(240):  # only a failure takes that long
        while web.log.count(line) < count:
            await _a_moment()


async def _a_moment() -> None:
    await asyncio.sleep(0.02)


async def test_a_client_that_leaves_in_the_midst_of_its_body_is_no_failure_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, {"it": ScriptedAgent()}) as web:
        headers = {
            "host": f"127.0.0.1:{web.port}",
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "content-length": "1000",
        }
        _, writer = await asyncio.open_connection("127.0.0.1", web.port)
        writer.write(request("POST", "/api/sessions", headers, b'{"cwd":', length=False))
        await until(lambda: web.connections == 1)
        writer.close()
        await until(lambda: web.log)
        assert web.log == [("POST", "/api/sessions", 499)]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_reader_that_stalls_is_cut_off_and_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_response, "STALL_SECONDS", 1.0)
    async with served(tmp_path, {"flood": ScriptedAgent(_flood)}, on_disk=True) as web:
        session_id = await web.new_session()
        with Memory() as without:
            await web.done(session_id)
        with Memory() as memory:
            stalled = [_stalled(web, session_id) for _ in range(3)]
            await web.done(session_id)
            await _cut_off(web, session_id, 3)
        # Not even the connections are left, although nobody has read what is in them.
        await until(lambda: web.connections <= 1)
        for each in stalled:
            each.close()
        # With a queue for each of them it would be three times all that was told.
        assert memory.peak - without.peak < 16 * MIB < 3 * COUNT * SIZE


async def _streamed(seconds: list[float]) -> list[bool]:
    """Whether the generator is told that its reader is slow, after writes that took so long."""
    pace = Pace()
    seen: list[bool] = []

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in seconds:
            yield b"piece"
            seen.append(pace.slow)

    async def receive() -> Message:
        return await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        if message.get("body"):
            await asyncio.sleep(seconds[len(seen)])

    await StreamedResponse(pieces(), {}, pace)({}, receive, send)
    return seen


@pytest.mark.own_time
async def test_a_reader_is_slow_for_as_long_as_its_writes_take_long() -> None:
    assert await _streamed([0.0, 0.3, 0.3, 0.0]) == [False, True, True, False]


async def test_a_slow_reader_is_told_joined_pieces(tmp_path: Path) -> None:
    async with served(
        tmp_path, {"talker": ScriptedAgent([say(f"w{n} ") for n in range(200)])}
    ) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        batches = web.server.hub.watch(session_id, 0)
        events = await anext(batches)
        whole = web.server.batches.pieces(events, "session", joined=False)
        joined = web.server.batches.pieces(events, "session", joined=True)
        assert sum(map(len, joined)) < sum(map(len, whole)) / 5
        assert web.server.batches.pieces(events, "session", joined=True) is joined


def test_a_chat_stream_is_made_in_pieces_as_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Chunk] = []

    def encode_and_note(chunk: Chunk) -> bytes:
        made.append(chunk)
        return encode(chunk)

    monkeypatch.setattr(chat_stream, "encode", encode_and_note)
    chunks = [TextDelta(id="a", delta="x" * 10_000) for _ in range(50)]
    pieces = chat_stream._pieces_of(chunks)  # pyright: ignore[reportPrivateUsage]
    first = next(pieces)
    assert PIECE_BYTES <= len(first) < PIECE_BYTES + 11_000
    assert len(made) == 7
    assert first + b"".join(pieces) == b"".join(map(encode, chunks))
