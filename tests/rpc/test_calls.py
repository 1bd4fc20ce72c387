"""Calls of ours: each gets its own reply, an error, or a clear end, and nothing but one."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from support.peers import Wire, connected, settled, soon

from dragoman import errors
from dragoman.errors import CallTimeout, InternalError, RemoteError
from dragoman.rpc import Peer
from dragoman.wire.error_replies import remote_error


def reply(key: bytes, result: bytes = b'"done"') -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key, result)


async def start(
    peer: Peer, wire: Wire, timeout: float | None = None
) -> tuple[asyncio.Task[msgspec.Raw], bytes]:
    """A call that has been sent, and its id."""
    call = asyncio.create_task(peer.call("work", b"{}", timeout=timeout))
    return call, await wire.read_call()


async def test_a_call_is_sent_as_one_frame_and_returns_its_result() -> None:
    async with connected() as (peer, wire):
        call = asyncio.create_task(peer.call("session/new", b'{"cwd":"/"}'))
        sent = b'{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/"}}'
        assert await wire.read() == sent
        wire.write(reply(b"0", b'{"a": [1.0]}'))
        assert bytes(await soon(call)) == b'{"a": [1.0]}'


async def test_replies_out_of_order_reach_their_own_callers() -> None:
    async with connected() as (peer, wire):
        calls = [await start(peer, wire) for _ in range(10)]
        for number, (_, key) in reversed(list(enumerate(calls))):
            wire.write(reply(key, b"%d" % number))
        results = [bytes(await soon(call)) for call, _ in calls]
        assert results == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize(
    "cls", [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, RemoteError)]
)
async def test_an_error_reply_raises_the_error_of_its_code(cls: type[RemoteError]) -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        error = json.dumps({"code": cls.code, "message": "no", "data": [1]}).encode()
        wire.write(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key, error))
        with pytest.raises(cls) as caught:
            await soon(call)
        expected = type(remote_error(cls.code, ""))
        assert type(caught.value) is expected
        found = (caught.value.code, caught.value.message, caught.value.data)
        assert found == (cls.code, "no", [1])


async def test_an_error_reply_with_an_unknown_code_keeps_it() -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        wire.write(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-1,"message":"no"}}' % key)
        with pytest.raises(RemoteError) as caught:
            await soon(call)
        assert (type(caught.value), caught.value.code) == (RemoteError, -1)


@pytest.mark.parametrize(
    "members",
    [
        b'"error":"text"',
        b'"error":["text"]',
        b'"error":7',
        b'"error":{}',
        b'"error":null',
        b'"x":1',
    ],
)
async def test_an_error_reply_of_any_shape_settles_its_call(members: bytes) -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        wire.write(b'{"jsonrpc":"2.0","id":%b,%b}' % (key, members))
        with pytest.raises(InternalError):
            await soon(call)
        await wire.ping()


@pytest.mark.parametrize("echo", [b"0.0", b"-0", b"0e1"])
async def test_an_id_echoed_as_another_spelling_of_the_number_settles_its_call(echo: bytes) -> None:
    async with connected() as (peer, wire):
        call, _ = await start(peer, wire)
        wire.write(reply(echo))
        await soon(call)


@pytest.mark.parametrize("echo", [b'"0"', b"false", b"null", b"1", b"{}", b"9" * 5000, b"1e999"])
async def test_a_reply_with_an_unknown_id_is_ignored(echo: bytes) -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        wire.write(reply(echo, b'"wrong"'))
        wire.write(b'{"jsonrpc":"2.0","id":%b,"error":{"code":1,"message":"wrong"}}' % echo)
        wire.write(reply(key))
        assert bytes(await soon(call)) == b'"done"'


async def test_a_second_reply_with_the_same_id_is_ignored() -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        wire.write(reply(key), reply(key, b'"again"'))
        wire.write(b'{"jsonrpc":"2.0","id":%b,"error":"again"}' % key)
        assert bytes(await soon(call)) == b'"done"'
        await wire.ping()


async def test_what_ends_a_call_early_is_no_business_of_the_others() -> None:
    async with connected() as (peer, wire):
        long, key = await start(peer, wire, timeout=30)
        short, _ = await start(peer, wire, timeout=0.001)
        with pytest.raises(CallTimeout):
            await soon(short)
        wire.write(reply(key))
        assert bytes(await soon(long)) == b'"done"'


async def test_a_call_without_a_reply_in_time_raises_and_tells_the_other_side() -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire, timeout=0.001)
        with pytest.raises(CallTimeout) as caught:
            await soon(call)
        assert (caught.value.method, caught.value.seconds) == ("work", 0.001)
        assert await wire.read() == cancel_of(key)


async def test_a_reply_after_the_timeout_is_ignored() -> None:
    late: list[msgspec.Raw] = []
    async with connected() as (peer, wire):
        with pytest.raises(CallTimeout):
            await soon(peer.call("work", b"{}", timeout=0.001, on_reply=late.append))
        key = await wire.read_call()
        await wire.read()
        wire.write(reply(key))
        await wire.ping()
        assert late == []


async def test_a_cancelled_call_tells_the_other_side() -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(call)
        assert await wire.read() == cancel_of(key)
        wire.write(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32800,"message":"ok"}}' % key)
        await wire.ping()


async def test_a_call_that_got_its_reply_tells_nothing_more() -> None:
    async with connected() as (peer, wire):
        call, key = await start(peer, wire)
        wire.write(reply(key))
        await soon(call)
        await wire.ping()


@pytest.mark.parametrize("answer", [b'"result":1', b'"error":{"code":1,"message":"no"}'])
async def test_a_call_cancelled_as_its_reply_is_read_tells_nothing_more(answer: bytes) -> None:
    def cancel_the_other(result: msgspec.Raw) -> None:
        other.cancel()

    async with connected() as (peer, wire):
        other, key = await start(peer, wire)
        first = asyncio.create_task(peer.call("work", b"{}", on_reply=cancel_the_other))
        wire.write(reply(await wire.read_call()), b'{"jsonrpc":"2.0","id":%b,%b}' % (key, answer))
        await soon(first)
        await settled()
        assert other.cancelled()
        await wire.ping()


async def test_params_laid_out_over_lines_are_sent_as_one() -> None:
    async with connected() as (peer, wire):
        peer.notify("note", b'{\n  "a": 1\n}')
        assert await wire.read() == b'{"jsonrpc":"2.0","method":"note","params":{"a":1}}'


def cancel_of(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % key
