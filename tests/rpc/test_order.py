"""Order is a promise: what was on the wire first is handled first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from support.peers import connected, settled, soon

from dragoman.errors import WouldDeadlock


def note(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"note","params":%d}' % number


def reply(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":"done"}' % key


async def test_notifications_are_handled_in_wire_order_and_before_the_reply_behind_them() -> None:
    chance = random.Random(1)
    seen: list[int] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        seen.append(msgspec.json.decode(params))

    async with connected(on_notification=handle) as (peer, wire):
        call = asyncio.create_task(peer.call("prompt", b"{}"))
        key = await wire.read_call()
        for number in range(1000):
            wire.write(note(number))
        wire.write(reply(key))
        assert bytes(await soon(call)) == b'"done"'
        assert seen == list(range(1000))


async def test_one_notification_is_done_before_the_next_begins() -> None:
    steps: list[str] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        steps.append("begin")
        await settled()
        steps.append("end")

    async with connected(on_notification=handle) as (_, wire):
        wire.write(note(1), note(2), note(3))
        await wire.ping()
        assert steps == ["begin", "end"] * 3


async def test_a_handler_may_handle_at_once_or_later() -> None:
    seen: list[int] = []

    async def later(number: int) -> None:
        await asyncio.sleep(0)
        seen.append(number)

    def handle(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, None] | None:
        number = msgspec.json.decode(params, type=int)
        return later(number) if number % 2 else seen.append(number)

    async with connected(on_notification=handle) as (_, wire):
        wire.write(*map(note, range(10)))
        await wire.ping()
        assert seen == list(range(10))


async def test_on_reply_runs_between_the_notifications_around_the_reply() -> None:
    seen: list[str] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        await asyncio.sleep(0)
        seen.append(bytes(params).decode())

    async with connected(on_notification=handle) as (peer, wire):
        call = asyncio.create_task(
            peer.call("new", b"{}", on_reply=lambda result: seen.append(bytes(result).decode()))
        )
        key = await wire.read_call()
        wire.write(note(1), reply(key), note(2))
        await soon(call)
        await wire.ping()
        assert seen == ["1", '"done"', "2"]


@pytest.mark.parametrize("error", [KeyError("no such field"), TimeoutError()])
async def test_an_error_in_on_reply_reaches_the_caller_and_nobody_else(error: Exception) -> None:
    def broken(result: msgspec.Raw) -> None:
        raise error

    async with connected() as (peer, wire):
        call = asyncio.create_task(peer.call("new", b"{}", timeout=30, on_reply=broken))
        wire.write(reply(await wire.read_call()))
        [outcome] = await soon(asyncio.gather(call, return_exceptions=True))
        assert outcome is error
        await wire.ping()


async def test_a_handler_that_fails_does_not_stop_what_follows() -> None:
    seen: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("later")

    async def give_up() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    def handle(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, None] | None:
        seen.append(method)
        match method:
            case "fails":
                raise RuntimeError("at once")
            case "fails later":
                return fail()
            case "gives up":
                return give_up()
            case _:
                return None

    methods = ["fails", "fails later", "gives up", "works"]
    async with connected(on_notification=handle) as (peer, wire):
        for method in methods:
            wire.write(b'{"jsonrpc":"2.0","method":"%b"}' % method.encode())
        await wire.ping()
        assert (seen, peer.error) == (methods, None)


async def test_calling_from_a_notification_handler_raises_at_once() -> None:
    raised: list[BaseException] = []

    async with connected(on_notification=lambda method, params: handle()) as (peer, wire):

        async def handle() -> None:
            try:
                await peer.call("session/new", b"{}")
            except WouldDeadlock as error:
                raised.append(error)

        wire.write(note(1))
        await wire.ping()  # also shows that no request was sent
        [error] = raised
        assert isinstance(error, WouldDeadlock)
        assert error.method == "session/new"


async def test_a_task_started_in_a_notification_handler_may_call() -> None:
    calls: list[asyncio.Task[msgspec.Raw]] = []

    async with connected(on_notification=lambda method, params: handle()) as (peer, wire):

        async def handle() -> None:
            calls.append(asyncio.create_task(peer.call("session/new", b"{}")))

        wire.write(note(1))
        wire.write(reply(await wire.read_call()))
        assert bytes(await soon(calls[0])) == b'"done"'


async def test_a_notification_handler_may_notify() -> None:
    async with connected(
        on_notification=lambda method, params: peer.notify("session/cancel", b"{}")
    ) as (peer, wire):
        wire.write(note(1))
        assert (await wire.read_json())["method"] == "session/cancel"


async def test_frames_of_many_senders_never_interleave() -> None:
    texts = [letter * 100_000 for letter in "abcdefghijklmnopqrst"]

    async def echo(method: str, params: msgspec.Raw) -> bytes:
        await asyncio.sleep(0)
        return bytes(params)

    async with connected(on_request=echo) as (peer, wire):
        calls = [asyncio.create_task(peer.call("c", b'"%b"' % t.encode())) for t in texts]
        for text in texts:
            words = (text[:1000].encode(), text.encode())
            wire.write(b'{"jsonrpc":"2.0","id":"%b","method":"e","params":"%b"}' % words)
            peer.notify("n", b'"%b"' % text.encode())
        got: list[str] = []
        for _ in range(3 * len(texts)):
            message = await wire.read_json()
            got.append(message["params"] if "method" in message else message["result"])
            if message.get("method") == "c":
                wire.write(reply(b"%d" % message["id"]))
        assert sorted(got) == sorted(texts * 3)
        await soon(asyncio.gather(*calls))
