"""What is too much ends the connection with one clear error, for everyone who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from support.peers import (
    connected,
    soon,
    start_call,
    wait_for_ever,
)

from dragoman.errors import (
    FrameTooLarge,
    PeerStalled,
)
from dragoman.rpc import PeerLimits

REPLY = b'{"jsonrpc":"2.0","id":0,"result":"done"}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"work"}'


async def test_a_frame_too_large_ends_the_connection_with_that_error_for_everyone() -> None:
    seen: list[str] = []
    async with connected(
        on_request=wait_for_ever,
        on_notification=lambda method, params: seen.append(method),
        limits=PeerLimits(frame_bytes=100),
    ) as (peer, wire):
        calls = [await start_call(peer, wire) for _ in range(3)]
        wire.write(REQUEST, b'{"jsonrpc":"2.0","method":"before"}')
        wire.write(b'{"jsonrpc":"2.0","method":"also"}', b"x" * 101, b'{"method":"after"}')
        ended = await soon(peer.wait_ended())
        assert isinstance(ended, FrameTooLarge)
        assert ended.limit == 100
        assert await soon(asyncio.gather(*calls, return_exceptions=True)) == [ended] * 3
        assert seen == ["before", "also"]
        with pytest.raises(FrameTooLarge):
            peer.notify("note", b"{}")


async def test_a_line_without_end_is_refused_at_the_limit() -> None:
    async with connected(limits=PeerLimits(frame_bytes=1000)) as (peer, wire):
        for _ in range(11):
            wire.transport.send(b"x" * 100)
        assert isinstance(await soon(peer.wait_ended()), FrameTooLarge)


async def test_a_peer_that_stops_reading_ends_the_connection_for_every_waiter() -> None:
    async with connected(limits=PeerLimits(unsent_bytes=1 << 20)) as (peer, _):
        params = b'"%b"' % (b"x" * 300_000)
        calls = [asyncio.create_task(peer.call("work", params)) for _ in range(4)]
        ended = await soon(peer.wait_ended())
        assert isinstance(ended, PeerStalled)
        assert ended.pending > 1 << 20
        assert await soon(asyncio.gather(*calls, return_exceptions=True)) == [ended] * 4
        with pytest.raises(PeerStalled):
            peer.notify("note", b"{}")


async def test_answers_nobody_reads_end_the_connection_too() -> None:
    answer = b'"%b"' % (b"x" * 1000)
    async with connected(
        on_request=lambda method, params: answer, limits=PeerLimits(unsent_bytes=100_000)
    ) as (peer, wire):
        wire.write(*[REQUEST] * 200)
        assert isinstance(await soon(peer.wait_ended()), PeerStalled)


async def test_a_handler_that_ends_the_connection_before_it_waits_is_cancelled() -> None:
    def work(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        peer.notify("flood", b'"%b"' % (b"x" * 2000))
        return wait_for_ever(method, params)

    async with connected(on_request=work, limits=PeerLimits(unsent_bytes=1000)) as (peer, wire):
        wire.write(REQUEST)
        assert isinstance(await soon(peer.wait_ended()), PeerStalled)
        await soon(peer.aclose())


async def test_a_slow_reader_is_no_stalled_one() -> None:
    async with connected(limits=PeerLimits(unsent_bytes=1 << 20)) as (peer, wire):
        for _ in range(20):
            peer.notify("note", b'"%b"' % (b"x" * 200_000))
            await wire.read()
        assert peer.error is None
