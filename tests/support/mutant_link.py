"""A connection to an agent, or to a client, that is not quite what it was: a mutation sees every
message of it, and may change it, drop it, or put others beside it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from dragoman.conformance.probing.loose_json import Wire, obj
from dragoman.errors import ConnectionLost, StartError
from dragoman.transport.transport import Transport
from dragoman.wire.framing import Framer

Frames: TypeAlias = list[Wire | bytes]
"""What goes on instead of a message; bytes are a line as it is."""


class Mutation:
    """Changes nothing. One for each connection, so it may remember what it has seen."""

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        """What the other side gets instead of a message of ours; None for the message."""
        return None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        """What we get instead of a message of the other side's; None for the message."""
        return None

    def written(self, link: MutantLink, data: bytes) -> bytes:
        """What goes on instead of the bytes that we wrote."""
        return data


class MutantLink:
    """Our end of a connection, with a mutation in it."""

    def __init__(self, inner: Transport, mutation: Mutation) -> None:
        self.asked: dict[str, Wire] = {}
        """Our requests, by their ids."""
        self._inner = inner
        self._mutation = mutation
        self._framer = Framer()
        self._injected: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._pump = asyncio.create_task(self._read())
        self._ended = False
        self.died = False
        self.stays = False
        """Whether the end of the connection is kept from us."""

    # ── what a mutation can do ────────────────────────────────────────────────────────────────

    def inject(self, message: Wire | bytes) -> None:
        """Have us receive this now."""
        self._injected.append(_line(message))
        self._news.set()

    def tell(self, message: Wire) -> None:
        """Have the other side receive this."""
        self._inner.send(_line(message))

    def die(self) -> None:
        """End the connection, as something that has failed."""
        self.died = True
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._news.set()

    def request(self, reply: Wire) -> Wire:
        """The request of ours that this answers; empty if it answers none."""
        return {} if "method" in reply else self.asked.get(repr(reply.get("id")), {})

    # ── being a transport ─────────────────────────────────────────────────────────────────────

    async def receive(self) -> bytes:
        while not self._injected and not self._ended:
            self._news.clear()
            await self._news.wait()
        data = b"" if self._ended else b"".join(self._injected)
        self._injected.clear()
        return data

    async def _read(self) -> None:
        while data := await self._inner.receive():
            for frame in self._framer.feed(data):
                self._take(frame)
        if not self.stays:
            self._end()

    def _take(self, frame: bytes) -> None:
        message = _parsed(frame)
        instead = self._mutation.received(self, message) if message else None
        for each in [frame] if instead is None else instead:
            self.inject(each)

    def send(self, data: bytes) -> None:
        data = self._mutation.written(self, data)
        if not data.endswith(b"\n"):
            self._inner.send(data)
            return
        for frame in data[:-1].split(b"\n"):
            self._pass_on(frame)

    def _pass_on(self, frame: bytes) -> None:
        message = _parsed(frame)
        if "method" in message and "id" in message:
            self.asked[repr(message["id"])] = message
        instead = self._mutation.sent(self, message) if message else None
        self._inner.send(b"".join(map(_line, [frame] if instead is None else instead)))

    @property
    def pending(self) -> int:
        return self._inner.pending

    async def drain(self) -> None:
        await self._inner.drain()

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        return await self._inner.failure(spoke=spoke, printed=printed)

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._end()


def _line(message: Wire | bytes) -> bytes:
    frame = message if isinstance(message, bytes) else msgspec.json.encode(message)
    return frame + b"\n"


def _parsed(frame: bytes) -> Wire:
    try:
        return obj(msgspec.json.decode(frame))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


Change: TypeAlias = Callable[[Wire], object]
"""Changes a message, or what is in it, where it stands."""
When: TypeAlias = Callable[[Wire], bool]
