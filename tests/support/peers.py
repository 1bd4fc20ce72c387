"""A peer under test, and the other side of its connection in raw frames.

`connected()` also sees to it that nothing is left behind: no task, no error nobody looked at.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from support.transport_pairs import OtherSide, Pair, in_memory

from dragoman.errors import MethodNotFound
from dragoman.rpc import OnNotification, OnRequest, Peer, PeerLimits, Tap
from dragoman.wire.framing import Framer

SECONDS = 60

Result = TypeVar("Result")


class Wire:
    """The other side: writes and reads frames as bytes, so that nothing is taken for granted."""

    def __init__(self, transport: OtherSide) -> None:
        self.transport = transport
        self._framer = Framer()
        self._frames: deque[bytes] = deque()
        self._pings = 0

    def write(self, *frames: bytes) -> None:
        """Send frames, all in one piece of bytes."""
        self.transport.send(b"".join(frame + b"\n" for frame in frames))

    async def read(self) -> bytes:
        """The next frame the peer sent."""
        while not self._frames:
            async with asyncio.timeout(SECONDS):
                data = await self.transport.receive()
            if not data:
                raise EOFError
            self._frames.extend(self._framer.feed(data))
        return self._frames.popleft()

    async def read_json(self) -> Any:
        return json.loads(await self.read())

    async def read_call(self) -> bytes:
        """The id of the call the peer makes next."""
        return msgspec.json.encode((await self.read_json())["id"])

    async def ping(self) -> None:
        """Fails unless the peer lives, and has sent nothing else that was not read."""
        await self._ping()
        await settled()  # by now everything was read; let what it set off come to its end
        await self._ping()

    async def _ping(self) -> None:
        self._pings += 1
        self.write(b'{"jsonrpc":"2.0","id":"ping %d","method":"ping"}' % self._pings)
        answer = await self.read()
        assert answer == b'{"jsonrpc":"2.0","id":"ping %d","result":"pong"}' % self._pings

    async def end(self) -> None:
        """Close the connection from this side."""
        await self.transport.aclose()


def ignore(method: str, params: msgspec.Raw) -> None:
    """A handler of notifications that has nothing to do."""


def refuse(method: str, params: msgspec.Raw) -> bytes:
    """A handler of requests that knows no method."""
    raise MethodNotFound


async def wait_for_ever(method: str, params: msgspec.Raw) -> bytes:
    """A handler of requests that is never done."""
    await asyncio.Event().wait()
    return b"null"


async def start_call(peer: Peer, wire: Wire) -> asyncio.Task[msgspec.Raw]:
    """A call that has been sent."""
    call = asyncio.create_task(peer.call("work", b"{}"))
    await wire.read_call()
    return call


@asynccontextmanager
async def connected(
    *,
    on_notification: OnNotification = ignore,
    on_request: OnRequest = refuse,
    waits: frozenset[str] = frozenset(),
    tap: Tap | None = None,
    limits: PeerLimits | None = None,
    pair: Pair = in_memory,
) -> AsyncGenerator[tuple[Peer, Wire]]:
    """A peer that also answers `ping`, and its other side."""

    def answer(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        return b'"pong"' if method == "ping" else on_request(method, params)

    async with (
        tidy_loop(),
        pair() as (ours, theirs),
        Peer(
            ours,
            on_notification=on_notification,
            on_request=answer,
            waits=waits,
            tap=tap,
            limits=limits,
        ) as peer,
    ):
        yield peer, Wire(theirs)


@asynccontextmanager
async def tidy_loop() -> AsyncGenerator[None]:
    """Fails when a task is left over, or an error came up where nobody looked."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    # What was there before is none of ours, and in a long run takes a second to look through.
    gc.freeze()
    try:
        yield
        await settled()
        if ending := asyncio.all_tasks() - before:
            await asyncio.wait(ending, timeout=10)  # only a task that is left over takes that long
            del ending
        gc.collect()
    finally:
        gc.unfreeze()
    assert asyncio.all_tasks() - before == set()
    assert complaints == []


async def settled() -> None:
    """Let everything run that can run without waiting for something."""
    for _ in range(20):
        await asyncio.sleep(0)


class Turns:
    """Counts how often the loop comes round while a block runs."""

    def __init__(self) -> None:
        self.count = 0

    async def __aenter__(self) -> Turns:
        self._counting = asyncio.create_task(self._keep_counting())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._counting.cancel()

    async def _keep_counting(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


async def soon(work: Awaitable[Result]) -> Result:
    """The result of `work`, which must not hang."""
    async with asyncio.timeout(SECONDS):
        return await work
