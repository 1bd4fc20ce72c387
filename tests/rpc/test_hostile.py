"""Every hostile frame leaves a living connection, or one clear error: in memory, printed by a
real process, and sent over a WebSocket."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from support.cost import Memory
from support.hostile import ANSWERED, IGNORED, LONG, SETTLING
from support.peers import connected, soon
from support.socket_server import by_websocket
from support.transport_pairs import Pair, by_process, in_memory

from dragoman.errors import FrameTooLarge, RemoteError


@pytest.fixture(params=[in_memory, by_process, by_websocket])
def pair(request: pytest.FixtureRequest) -> Pair:
    return request.param


def echo(method: str, params: msgspec.Raw) -> bytes:
    return b'"echo"'


@pytest.mark.parametrize("name", IGNORED)
async def test_a_frame_that_asks_for_nothing_is_passed_over(name: str, pair: Pair) -> None:
    async with connected(on_request=echo, pair=pair) as (peer, wire):
        call = asyncio.create_task(peer.call("work", b"{}"))
        key = await wire.read_call()
        wire.write(IGNORED[name])
        await wire.ping()
        assert (peer.error, call.done()) == (None, False)
        wire.write(b'{"jsonrpc":"2.0","id":%b,"result":"done"}' % key)
        assert bytes(await soon(call)) == b'"done"'


@pytest.mark.parametrize("name", ANSWERED)
async def test_a_request_is_answered_once_whatever_is_wrong_with_it(name: str, pair: Pair) -> None:
    async with connected(on_request=echo, pair=pair) as (peer, wire):
        wire.write(ANSWERED[name])
        answer = await wire.read_json()
        assert answer["id"] in ("h", None, True, {"a": []}, LONG.decode())
        assert answer.get("result") == "echo" or answer["error"]["code"] == -32600
        await wire.ping()
        assert peer.error is None


@pytest.mark.parametrize("name", SETTLING)
async def test_a_reply_settles_its_call_whatever_is_wrong_with_it(name: str, pair: Pair) -> None:
    async with connected(pair=pair) as (peer, wire):
        call = asyncio.create_task(peer.call("work", b"{}"))
        wire.write(b'{"jsonrpc":"2.0","id":%b,%b}' % (await wire.read_call(), SETTLING[name]))
        [outcome] = await soon(asyncio.gather(call, return_exceptions=True))
        assert isinstance(outcome, msgspec.Raw | RemoteError)
        await wire.ping()
        assert peer.error is None


async def test_all_of_them_together_change_nothing(pair: Pair) -> None:
    async with connected(on_request=echo, pair=pair) as (peer, wire):
        wire.write(*IGNORED.values(), *ANSWERED.values(), *IGNORED.values())
        for _ in ANSWERED:
            await wire.read()
        await wire.ping()
        assert peer.error is None


async def test_a_line_of_100_mb_fails_the_connection_with_bounded_memory() -> None:
    with Memory() as memory:
        async with connected() as (peer, wire):
            call = asyncio.create_task(peer.call("work", b"{}"))
            piece = b"x" * 65536
            for _ in range(1600):
                wire.transport.send(piece)
            with pytest.raises(FrameTooLarge):
                await soon(call)
    assert memory.peak < 160 << 20
    assert memory.left < 1 << 20
