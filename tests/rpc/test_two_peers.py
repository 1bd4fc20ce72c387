"""Two peers, each the other side of the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
from support.peers import ignore, refuse, settled, soon, tidy_loop

from dragoman import errors
from dragoman.errors import CallTimeout, ConnectionClosed, RemoteError
from dragoman.rpc import OnRequest, Peer
from dragoman.transport.memory import memory_pair

REMOTE_ERRORS = [
    cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, RemoteError)
]


@asynccontextmanager
async def two_peers(
    on_request: OnRequest, and_back: OnRequest = refuse
) -> AsyncGenerator[tuple[Peer, Peer]]:
    async with tidy_loop():
        ours, theirs = memory_pair()
        async with (
            Peer(ours, on_notification=ignore, on_request=and_back) as here,
            Peer(theirs, on_notification=ignore, on_request=on_request) as there,
        ):
            yield here, there


@pytest.mark.parametrize("cls", REMOTE_ERRORS)
async def test_an_error_raised_on_one_side_is_raised_on_the_other(cls: type[RemoteError]) -> None:
    async def fail(method: str, params: msgspec.Raw) -> bytes:
        raise cls("because", {"why": [1]})

    async with two_peers(fail) as (here, _):
        with pytest.raises(RemoteError) as caught:
            await soon(here.call("work", b"{}"))
        error = caught.value
        assert isinstance(error, cls)
        assert (error.code, error.message, error.data) == (cls.code, "because", {"why": [1]})


async def test_a_handler_may_call_back_while_the_other_side_waits() -> None:
    async def ask_back(method: str, params: msgspec.Raw) -> bytes:
        return bytes(await there.call("permission", params))

    async with two_peers(ask_back, lambda method, params: b'"yes"') as (here, there):
        assert bytes(await soon(here.call("work", b"{}"))) == b'"yes"'


@pytest.mark.parametrize("timeout", [0.001, None], ids=["by timeout", "by cancellation"])
async def test_a_call_given_up_cancels_its_handler(timeout: float | None) -> None:
    cancelled = asyncio.Event()

    async def work(method: str, params: msgspec.Raw) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b"null"

    async with two_peers(work) as (here, _):
        call = asyncio.create_task(here.call("work", b"{}", timeout=timeout))
        await settled()
        if timeout is None:
            call.cancel()
        with pytest.raises((CallTimeout, asyncio.CancelledError)):
            await soon(call)
        await soon(cancelled.wait())


async def test_many_calls_both_ways_at_once_each_get_their_own_reply() -> None:
    async def echo(method: str, params: msgspec.Raw) -> bytes:
        for _ in range(msgspec.json.decode(params, type=int) % 5):
            await asyncio.sleep(0)
        return bytes(params)

    async with two_peers(echo, echo) as peers:
        calls = [peer.call("echo", b"%d" % n) for n in range(60) for peer in peers]
        results = await soon(asyncio.gather(*calls))
        assert [int(bytes(result)) for result in results] == [n for n in range(60) for _ in peers]


async def test_when_one_side_closes_the_other_learns_it() -> None:
    async with two_peers(refuse) as (here, there):
        await here.aclose()
        assert isinstance(await soon(there.wait_ended()), ConnectionClosed)
