"""`$/cancel_request` from the other side: the handler is cancelled, the request still answered."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from support.peers import connected, settled, wait_for_ever


def request(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"work"}' % key


def cancel(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % key


@pytest.mark.parametrize("key", [b"1", b'"a"', b"null", b"true", b"1.5", b"1e999", b"{}"])
async def test_a_cancelled_request_is_answered_as_cancelled(key: bytes) -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(key))
        await settled()
        wire.write(cancel(key))
        answer = await wire.read()
        error = b'{"code":-32800,"message":"request cancelled"}'
        assert answer == b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key, error)
        await wire.ping()


async def test_a_request_cancelled_before_its_handler_began_is_answered() -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(b"1"), cancel(b"1"))
        assert (await wire.read_json())["error"]["code"] == -32800
        await wire.ping()


async def test_a_handler_learns_of_the_cancellation() -> None:
    cleaned_up = False

    async def work(method: str, params: msgspec.Raw) -> bytes:
        nonlocal cleaned_up
        try:
            return await wait_for_ever(method, params)
        finally:
            cleaned_up = True

    async with connected(on_request=work) as (_, wire):
        wire.write(request(b"1"))
        await settled()
        wire.write(cancel(b"1"))
        await wire.read()
        assert cleaned_up


async def test_a_handler_that_finishes_anyway_answers_with_its_result() -> None:
    async def work(method: str, params: msgspec.Raw) -> bytes:
        try:
            return await wait_for_ever(method, params)
        except asyncio.CancelledError:
            return b'"partial"'

    async with connected(on_request=work) as (_, wire):
        wire.write(request(b"1"))
        await settled()
        wire.write(cancel(b"1"))
        assert (await wire.read_json())["result"] == "partial"
        await wire.ping()


async def test_only_the_named_request_is_cancelled() -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(b"1"), request(b"2"), request(b'"2"'))
        await settled()
        wire.write(cancel(b"2"))
        assert (await wire.read_json())["id"] == 2
        await wire.ping()


async def test_an_id_written_otherwise_is_the_same() -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(rb'"\u0061"'))
        await settled()
        wire.write(cancel(b'"a"'))
        assert await wire.read() == (
            rb'{"jsonrpc":"2.0","id":"\u0061",'
            rb'"error":{"code":-32800,"message":"request cancelled"}}'
        )


@pytest.mark.parametrize(
    "params",
    [
        b'{"requestId":2}',
        b'{"requestId":"1"}',
        b'{"requestId":true}',
        b'{"requestId":null}',
        b'{"requestId":1e999}',
        b'{"requestId":%b}' % (b"9" * 5000),
        b'{"requestId":{"a":1}}',
        b"{}",
        b"[]",
        b"null",
        b"1",
    ],
)
async def test_a_cancellation_of_something_unknown_is_ignored(params: bytes) -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(b"1"))
        await settled()
        wire.write(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":%b}' % params)
        await wire.ping()


async def test_a_cancellation_that_comes_too_late_is_ignored() -> None:
    async with connected(on_request=lambda method, params: b"null") as (_, wire):
        wire.write(request(b"1"), cancel(b"1"), cancel(b"1"))
        assert "result" in await wire.read_json()
        await wire.ping()


async def test_a_request_cancelled_twice_is_answered_once() -> None:
    async with connected(on_request=wait_for_ever) as (_, wire):
        wire.write(request(b"1"))
        await settled()
        wire.write(cancel(b"1"), cancel(b"1"))
        await wire.read()
        await wire.ping()


async def test_a_second_cancellation_does_not_disturb_a_handler_that_cleans_up() -> None:
    async def work(method: str, params: msgspec.Raw) -> bytes:
        try:
            return await wait_for_ever(method, params)
        finally:
            await settled()
            cleaned_up.append(method)

    cleaned_up: list[str] = []
    async with connected(on_request=work) as (_, wire):
        wire.write(request(b"1"))
        await settled()
        wire.write(cancel(b"1"), cancel(b"1"))
        wire.write(cancel(b"1"))
        assert (await wire.read_json())["error"]["code"] == -32800
        assert cleaned_up == ["work"]


async def test_the_cancellation_is_not_handed_to_the_handler_of_notifications() -> None:
    seen: list[str] = []
    async with connected(on_notification=lambda method, params: seen.append(method)) as (_, wire):
        wire.write(cancel(b"1"))
        await wire.ping()
        assert seen == []
