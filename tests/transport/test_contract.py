"""What every way to reach an agent promises, tried on each: memory, a process, a WebSocket, HTTP.

Lines are messages here, since over HTTP nothing else can travel.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.bridges import by_http
from support.peers import settled, soon, tidy_loop
from support.socket_server import by_websocket
from support.transport_pairs import OtherSide, Pair, by_process, in_memory

from dragoman.errors import ConnectionClosed, ConnectionLost, FrameTooLarge
from dragoman.rpc import Peer, PeerLimits
from dragoman.transport.transport import Transport
from dragoman.wire.framing import Framer

MEBIBYTE = 1 << 20


@pytest.fixture(params=[in_memory, by_process, by_websocket, by_http], ids=lambda it: it.__name__)
def pair(request: pytest.FixtureRequest) -> Pair:
    return request.param


def message(content: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"content": content}}).encode()


class Lines:
    """What one end receives, line by line."""

    def __init__(self, end: Transport | OtherSide) -> None:
        self._end = end
        self._framer = Framer()
        self._lines: list[bytes] = []

    async def read(self, count: int) -> list[bytes]:
        while len(self._lines) < count:
            async with asyncio.timeout(60):
                data = await self._end.receive()
            assert data, "the connection has ended"
            self._lines += self._framer.feed(data)
        taken, self._lines = self._lines[:count], self._lines[count:]
        return taken


@pytest.mark.parametrize("outward", [True, False], ids=["outward", "inward"])
async def test_lines_arrive_in_the_order_sent(pair: Pair, outward: bool) -> None:
    lines = [message(number) for number in range(300)]
    async with tidy_loop(), pair() as ends:
        sender, receiver = ends if outward else (ends[1], ends[0])
        for line in lines:
            sender.send(line + b"\n")
        assert await Lines(receiver).read(len(lines)) == lines


CONTENTS = [
    *("", "\u2028\u2029\x85", "a\r\nb", "\x00", "🜚" * 100, "data: x\n\n"),
    *("x" * 60, "x" * 200, "x" * 70_000, "y" * 3 * MEBIBYTE),
]


@pytest.mark.parametrize("outward", [True, False], ids=["outward", "inward"])
async def test_a_line_arrives_whole_whatever_is_in_it(pair: Pair, outward: bool) -> None:
    async with tidy_loop(), pair() as ends:
        sender, receiver = ends if outward else (ends[1], ends[0])
        for content in CONTENTS:
            sender.send(message(content) + b"\n")
        assert await Lines(receiver).read(len(CONTENTS)) == [message(it) for it in CONTENTS]


async def test_a_line_may_be_sent_in_pieces(pair: Pair) -> None:
    line = message("in pieces")
    async with tidy_loop(), pair() as (ours, theirs):
        for index in range(len(line)):
            ours.send(line[index : index + 1])
        ours.send(b"")
        ours.send(b"\n" + message("next") + b"\n")
        assert await Lines(theirs).read(2) == [line, message("next")]


async def test_a_reader_that_waits_gets_what_comes(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, theirs):
        reading = asyncio.create_task(ours.receive())
        await settled()
        assert not reading.done()
        theirs.send(message("late") + b"\n")
        assert await soon(reading) == message("late") + b"\n"


async def test_what_the_other_side_said_last_is_heard_before_the_end(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, theirs):
        theirs.send(message("last words") + b"\n")
        await theirs.aclose()
        assert await Lines(ours).read(1) == [message("last words")]
        assert [await soon(ours.receive()) for _ in range(3)] == [b"", b"", b""]
        failure = await soon(ours.failure(spoke=True, printed=""))
        assert isinstance(failure, ConnectionLost)
        assert str(failure)


async def test_what_is_sent_after_the_end_is_dropped(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, theirs):
        await theirs.aclose()
        assert await soon(ours.receive()) == b""
        ours.send(message("too late") + b"\n")
        await soon(ours.drain())
        assert ours.pending == 0


async def test_what_was_sent_before_we_close_still_arrives(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, theirs):
        reading = asyncio.create_task(Lines(theirs).read(2))
        ours.send(message(1) + b"\n" + message(2) + b"\n")
        await soon(ours.aclose())
        assert await reading == [message(1), message(2)]


async def test_our_closing_ends_a_pending_receive_and_may_be_repeated(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, _):
        receiving = asyncio.create_task(ours.receive())
        await settled()
        await soon(asyncio.gather(ours.aclose(), ours.aclose()))
        await soon(ours.aclose())
        assert await soon(receiving) == b""
        ours.send(message("dropped") + b"\n")
        assert ours.pending == 0
        assert isinstance(await ours.failure(spoke=True, printed=""), ConnectionClosed)


async def test_a_sender_is_held_back_by_a_side_that_does_not_read(pair: Pair) -> None:
    large = message("x" * MEBIBYTE)
    async with tidy_loop(), pair() as (ours, theirs):
        for _ in range(24):
            ours.send(large + b"\n")
        draining = asyncio.create_task(ours.drain())
        await asyncio.sleep(0.1)
        assert not draining.done()
        assert ours.pending > MEBIBYTE
        lines = Lines(theirs)
        for _ in range(24):
            assert await lines.read(1) == [large]
        await soon(draining)


async def test_a_reader_that_is_slow_loses_nothing(pair: Pair) -> None:
    large = message("x" * MEBIBYTE)
    async with tidy_loop(), pair() as (ours, theirs):
        for _ in range(16):
            theirs.send(large + b"\n")
        await asyncio.sleep(0.3)
        lines = Lines(ours)
        for _ in range(16):
            assert await lines.read(1) == [large]


async def test_a_frame_over_the_limit_ends_the_connection_and_says_so(pair: Pair) -> None:
    async with tidy_loop(), pair() as (ours, theirs):
        peer = Peer(
            ours,
            on_notification=lambda method, params: None,
            on_request=lambda method, params: b"null",
            limits=PeerLimits(frame_bytes=MEBIBYTE),
        )
        async with peer:
            theirs.send(message("x" * 2 * MEBIBYTE) + b"\n")
            error = await soon(peer.wait_ended())
        assert isinstance(error, FrameTooLarge)
        assert error.limit == MEBIBYTE
