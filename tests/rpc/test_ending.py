"""However the other side ends a connection, nobody hangs and everybody learns why."""

from __future__ import annotations

import asyncio
import traceback

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
    tidy_loop,
    wait_for_ever,
)

from dragoman.errors import (
    AgentExited,
    ConnectionClosed,
    ConnectionLost,
    DragomanError,
)
from dragoman.rpc import Peer

REPLY = b'{"jsonrpc":"2.0","id":0,"result":"done"}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"work"}'


# ── the other side ends it ────────────────────────────────────────────────────────────────────


async def test_at_the_end_every_open_call_fails_with_the_reason() -> None:
    async with connected() as (peer, wire):
        calls = [await start_call(peer, wire) for _ in range(20)]
        await wire.end()
        ended = await soon(peer.wait_ended())
        assert isinstance(ended, ConnectionClosed)
        assert str(ended) == "the other side closed the connection"
        assert peer.error is ended
        results = await soon(asyncio.gather(*calls, return_exceptions=True))
        assert results == [ended] * 20


async def test_at_the_end_open_handlers_are_cancelled() -> None:
    ended: list[str] = []

    async def work(method: str, params: msgspec.Raw) -> bytes:
        try:
            return await wait_for_ever(method, params)
        finally:
            ended.append(method)

    async with connected(on_request=work, waits=frozenset({"wait"})) as (peer, wire):
        wire.write(REQUEST, b'{"jsonrpc":"2.0","id":2,"method":"wait"}')
        await settled()
        await wire.end()
        await soon(peer.wait_ended())
        await settled()
        assert ended == ["work", "wait"]


async def test_after_the_end_calling_and_notifying_raise_the_reason_at_once() -> None:
    async with connected() as (peer, wire):
        await wire.end()
        ended = await soon(peer.wait_ended())
        with pytest.raises(ConnectionClosed) as from_call:
            await peer.call("work", b"{}")
        with pytest.raises(ConnectionClosed) as from_notify:
            peer.notify("note", b"{}")
        assert from_call.value is from_notify.value is ended


async def test_the_reason_does_not_grow_with_everyone_who_asks() -> None:
    async with connected() as (peer, wire):
        await wire.end()
        ended = await soon(peer.wait_ended())
        for _ in range(100):
            with pytest.raises(ConnectionClosed):
                await peer.call("work", b"{}")
        assert len(traceback.extract_tb(ended.__traceback__)) < 10


async def test_messages_before_the_end_are_all_handled_first() -> None:
    seen: list[bytes] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        await asyncio.sleep(0)
        seen.append(bytes(params))

    async with connected(on_notification=handle) as (peer, wire):
        call = await start_call(peer, wire)
        wire.write(*(b'{"jsonrpc":"2.0","method":"n","params":%d}' % n for n in range(100)), REPLY)
        await wire.end()
        assert bytes(await soon(call)) == b'"done"'
        await soon(peer.wait_ended())
        assert len(seen) == 100


async def test_a_last_message_without_its_newline_is_handled() -> None:
    async with connected() as (peer, wire):
        call = await start_call(peer, wire)
        wire.transport.send(REPLY)
        await wire.end()
        assert bytes(await soon(call)) == b'"done"'
        assert isinstance(await soon(peer.wait_ended()), ConnectionClosed)


async def test_a_last_notification_without_its_newline_is_handled_before_the_end() -> None:
    seen: list[str] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        await settled()
        seen.append(method)

    async with connected(on_notification=handle) as (peer, wire):
        wire.transport.send(b'{"jsonrpc":"2.0","method":"last","params":["\\ud800"]}\r')
        await wire.end()
        await soon(peer.wait_ended())
        assert seen == ["last"]


async def test_a_last_request_without_its_newline_leaves_nothing_running() -> None:
    async with connected(on_request=wait_for_ever) as (peer, wire):
        wire.transport.send(REQUEST)
        await wire.end()
        await soon(peer.wait_ended())


@pytest.mark.parametrize("cut", range(1, len(REPLY)))
async def test_half_a_reply_at_the_end_is_noise_and_its_call_learns_of_the_end(cut: int) -> None:
    ours, theirs = FakeTransport.with_input(), REPLY[:cut]
    async with Peer(ours, on_notification=ignore, on_request=refuse) as peer:
        call = asyncio.create_task(peer.call("work", b"{}"))
        await settled()
        ours.feed(theirs, b"")
        with pytest.raises(ConnectionClosed):
            await soon(call)
        assert peer.noise.sample == theirs.decode() + "\n"


@pytest.mark.parametrize("half", [REQUEST[:-1], REQUEST[:25], b"Segmentation fault", b"{", b"\xff"])
async def test_half_a_frame_at_the_end_is_noise(half: bytes) -> None:
    async with connected(on_request=wait_for_ever) as (peer, wire):
        call = await start_call(peer, wire)
        wire.transport.send(half)
        await wire.end()
        with pytest.raises(ConnectionClosed):
            await soon(call)
        assert peer.noise.lines == 1


# ── what the transport says ───────────────────────────────────────────────────────────────────


async def end_of(transport: FakeTransport) -> DragomanError:
    async with tidy_loop(), Peer(transport, on_notification=ignore, on_request=refuse) as peer:
        return await soon(peer.wait_ended())


async def test_the_reason_is_the_one_the_transport_gives() -> None:
    exited = AgentExited("agent", code=3, stderr="boom")
    assert await end_of(FakeTransport.with_input(b"", failure=exited)) is exited


@pytest.mark.parametrize(
    ("chunks", "spoke"),
    [
        ([], False),
        ([b"hello\n"], False),
        ([b"hello"], False),
        ([b"[]\n"], False),
        ([b'{"jsonrpc":"2.0","method":7,"id":1}\n'], False),
        ([b'hello\n{"jsonrpc":"2.0","method":"x"}\n'], True),
        ([b'{"jsonrpc":"2.0","meth', b'od":"x"}'], True),
    ],
)
async def test_the_transport_is_told_whether_the_agent_ever_spoke(
    chunks: list[bytes], spoke: bool
) -> None:
    transport = FakeTransport.with_input(*chunks, b"")
    await end_of(transport)
    assert transport.asked["spoke"] is spoke


async def test_the_transport_is_told_what_was_printed_instead() -> None:
    transport = FakeTransport.with_input(b"Usage: agent\n", b"  --help", b"")
    await end_of(transport)
    assert transport.asked["printed"] == "Usage: agent\n  --help\n"


async def test_a_loss_raised_while_receiving_is_the_reason() -> None:
    lost = ConnectionLost("reset")
    assert await end_of(FakeTransport.with_input(lost)) is lost


async def test_a_fault_of_the_transport_ends_the_connection_in_order() -> None:
    ended = await end_of(FakeTransport.with_input(RuntimeError("secret")))
    assert isinstance(ended, ConnectionClosed)
    assert str(ended) == "the connection was closed after an internal error"


async def test_a_call_does_not_wait_for_the_transport_to_drain_when_its_reply_is_here() -> None:
    transport = FakeTransport.with_input()
    async with Peer(transport, on_notification=ignore, on_request=refuse) as peer:
        call = asyncio.create_task(peer.call("work", b"{}"))
        await settled()
        transport.feed(REPLY + b"\n")
        assert bytes(await soon(call)) == b'"done"'
