"""However we end a connection, nothing is left running and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from support.fake_transport import FakeTransport
from support.peers import (
    connected,
    ignore,
    refuse,
    settled,
    soon,
    start_call,
    wait_for_ever,
)

from dragoman.errors import (
    ConnectionClosed,
)
from dragoman.rpc import Peer

REPLY = b'{"jsonrpc":"2.0","id":0,"result":"done"}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"work"}'


async def test_closing_settles_calls_and_handlers_and_ends_the_other_side() -> None:
    async with connected(on_request=wait_for_ever) as (peer, wire):
        call = await start_call(peer, wire)
        wire.write(REQUEST)
        await settled()
        await soon(peer.aclose())
        with pytest.raises(ConnectionClosed) as caught:
            await soon(call)
        assert caught.value is peer.error
        assert str(caught.value) == "the connection is closed"
        with pytest.raises(EOFError):
            await wire.read()


async def test_closing_again_changes_nothing() -> None:
    async with connected() as (peer, wire):
        await wire.end()
        ended = await soon(peer.wait_ended())
        await soon(peer.aclose())
        await soon(asyncio.gather(peer.aclose(), peer.aclose()))
        assert peer.error is ended


async def test_leaving_the_block_closes_even_when_it_raises() -> None:
    class Oops(Exception):
        pass

    calls: list[asyncio.Task[msgspec.Raw]] = []

    async def leave() -> None:
        async with connected() as (peer, wire):
            calls.append(await start_call(peer, wire))
            raise Oops

    with pytest.raises(Oops):
        await leave()
    with pytest.raises(ConnectionClosed):
        await soon(calls[0])


async def test_closing_waits_for_handlers_to_clean_up() -> None:
    cleaned_up = False

    async def work(method: str, params: msgspec.Raw) -> bytes:
        nonlocal cleaned_up
        try:
            return await wait_for_ever(method, params)
        finally:
            await settled()
            cleaned_up = True

    async with connected(on_request=work) as (peer, wire):
        wire.write(REQUEST)
        await settled()
        await soon(peer.aclose())
        assert cleaned_up


@pytest.mark.parametrize("turns", range(8))
async def test_closing_in_the_moment_a_request_is_read_leaves_nothing_behind(turns: int) -> None:
    async with connected(on_request=wait_for_ever) as (peer, wire):
        wire.write(REQUEST)
        for _ in range(turns):
            await asyncio.sleep(0)
        await soon(peer.aclose())


async def test_closing_cancels_the_handler_of_a_notification() -> None:
    ended = asyncio.Event()

    async def handle(method: str, params: msgspec.Raw) -> None:
        try:
            await wait_for_ever(method, params)
        finally:
            ended.set()

    async with connected(on_notification=handle) as (peer, wire):
        wire.write(b'{"jsonrpc":"2.0","method":"note"}')
        await settled()
        await soon(peer.aclose())
        assert ended.is_set()


async def test_nothing_is_handled_once_a_handler_has_closed_the_connection() -> None:
    seen: list[str] = []

    def handle(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, None] | None:
        seen.append(method)
        return peer.aclose() if method == "bye" else None

    async with connected(on_notification=handle) as (peer, wire):
        wire.write(b'{"jsonrpc":"2.0","method":"bye"}', b'{"jsonrpc":"2.0","method":"late"}')
        await soon(peer.wait_ended())
        await settled()
        assert seen == ["bye"]


async def test_a_notification_handler_may_close_the_connection() -> None:
    async with connected(on_notification=lambda method, params: peer.aclose()) as (peer, wire):
        call = await start_call(peer, wire)
        wire.write(b'{"jsonrpc":"2.0","method":"bye"}')
        with pytest.raises(ConnectionClosed):
            await soon(call)
        await soon(peer.aclose())


async def test_a_request_handler_may_close_the_connection() -> None:
    def close(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        return close_and_answer()

    async with connected(on_request=close) as (peer, wire):

        async def close_and_answer() -> bytes:
            await peer.aclose()
            return b"null"

        call = await start_call(peer, wire)
        wire.write(REQUEST)
        with pytest.raises(ConnectionClosed):
            await soon(call)
        await soon(peer.aclose())


async def test_a_peer_can_be_closed_before_it_was_entered() -> None:
    peer = Peer(FakeTransport.with_input(), on_notification=ignore, on_request=refuse)
    await soon(peer.aclose())
    assert isinstance(peer.error, ConnectionClosed)
