"""A chain of proxies in front of an agent, as one connection; `wire/proxy_routing.py` routes.

To its reader and writer, it is the agent. When one component ends, all of it ends, with one
reason that names which.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Literal, Self, TypeAlias

import msgspec

from dragoman.errors import (
    AgentExited,
    ChainBroken,
    ConnectionClosed,
    ConnectionLost,
    DragomanError,
    FrameTooLarge,
    PeerStalled,
    RemoteLost,
    StartError,
    Unreachable,
)
from dragoman.transport.memory import memory_pair
from dragoman.transport.stdio import StdioTransport
from dragoman.transport.transport import Start, Transport
from dragoman.wire import messages
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer, Noise
from dragoman.wire.messages import Malformed
from dragoman.wire.proxy_routing import CLIENT, DEEPEST, Chain, NotAProxy

# As for one agent: what is not read by then will not be read.
_UNSENT_BYTES = 64 * 1024 * 1024
# For what the last words of a component say to be passed on by the proxies before it: they are
# looked at from time to time, and have done so when nothing changed so many times in a row.
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 6
_LAST_WORDS_SECONDS = 5.0

logger = logging.getLogger("dragoman.chain")

Ending: TypeAlias = ConnectionLost | StartError


class Component(msgspec.Struct, frozen=True):
    """One that is to be in a chain: how to start it, and what to call it."""

    role: Literal["proxy", "agent"]
    name: str
    start: Start
    position: str = ""

    def broken(self, error: DragomanError) -> Ending:
        """The error, so that it names the component."""
        if isinstance(error, Unreachable | RemoteLost):
            return error  # which say where
        if self.role == "agent" and isinstance(error, ConnectionLost | StartError):
            return error
        broken = self.named(_reason(error))
        broken.__cause__ = error
        return broken

    def named(self, reason: str) -> ChainBroken:
        return ChainBroken(str(self), reason)

    def __str__(self) -> str:
        return f"the {self.role} {self.name!r}{self.position}"


def _reason(error: DragomanError) -> str:
    match error:
        case AgentExited():
            return error.story
        case StartError():
            return f"could not be started: {error.reason}"
        case PeerStalled():
            return f"stopped reading its input ({error.pending} bytes could not be sent)"
        case FrameTooLarge():
            return f"sent a frame larger than the limit of {error.limit} bytes"
        case ConnectionClosed():
            return "closed the connection"
        case _:
            return f"failed: {error}"


class _Queue:
    """How much of what waits to be taken flows towards the agent: what flows the other way is in
    the same queue, and waits its turn."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, bool]] = deque()
        self._size = 0

    def put(self, size: int, *, inward: bool) -> None:
        self._size += size
        if self._parts and self._parts[-1][1] == inward:
            size += self._parts.pop()[0]
        self._parts.append((size, inward))

    def inward(self, pending: int) -> int:
        """`pending` is how much of all is left."""
        taken = self._size - pending
        while self._parts and taken > 0:
            size, inward = self._parts.popleft()
            part = min(size, taken)
            taken -= part
            self._size -= part
            if part < size:
                self._parts.appendleft((size - part, inward))
        return sum(size for size, inward in self._parts if inward)


class _Link:
    """A component that runs."""

    def __init__(self, component: Component, transport: Transport) -> None:
        self.component = component
        self.transport = transport
        self.framer = Framer(MAX_FRAME_BYTES)
        self.noise = Noise()
        self.spoke = False
        self.heard = 0
        """How many bytes it has said."""
        self._queue = _Queue()

    @property
    def deepest(self) -> int:
        return DEEPEST if self.component.role == "proxy" else messages.MAX_DEPTH

    @property
    def pending(self) -> int:
        """What flows towards the agent and was not taken yet."""
        return self._queue.inward(self.transport.pending)

    @property
    def unread(self) -> int:
        """All that was not taken yet, as far as that can be seen."""
        there = self.transport
        return there.unread if isinstance(there, StdioTransport) else there.pending

    def send(self, data: bytes, *, inward: bool) -> None:
        self.transport.send(data)
        self._queue.put(len(data), inward=inward)
        if inward and (pending := self.pending) > _UNSENT_BYTES:
            raise PeerStalled(pending)

    async def ending(self) -> Ending:
        failure = await self.transport.failure(spoke=self.spoke, printed=self.noise.sample)
        return self.component.broken(failure)


class ChainTransport:
    """The connection to an agent through proxies; make one with `start`.

    What flows towards the client waits until it is taken, component by component, so that a slow
    client slows the agent down. What flows towards the agent does not wait, as nothing does that
    is sent to a single agent: if both did, two components could wait for each other forever.
    """

    def __init__(self, links: Sequence[_Link]) -> None:
        self._links = links
        self._chain = Chain(len(links))
        self._framer = Framer(MAX_FRAME_BYTES)
        self._outside, self._inside = memory_pair()
        self._error: Ending | None = None
        self._closing: asyncio.Task[None] | None = None
        self._pumps = [
            asyncio.create_task(self._pump(place), name=f"dragoman chain {place}")
            for place in range(1, len(links) + 1)
        ]

    @classmethod
    async def start(cls, components: Sequence[Component]) -> Self:
        """Start all, the agent being the last. Raises ChainBroken and what starting it raises."""
        links: list[_Link] = []
        async with AsyncExitStack() as started:
            for component in components:
                link = await _started(component)
                started.push_async_callback(link.transport.aclose)
                links.append(link)
            started.pop_all()
        return cls(links)

    @property
    def pids(self) -> list[int]:
        """The processes in it, the agent's being the last, if it is one."""
        transports = [link.transport for link in self._links]
        return [each.pid for each in transports if isinstance(each, StdioTransport)]

    @property
    def silent(self) -> str:
        """Who was the last to be greeted and has not answered, if there is one."""
        place = self._chain.ungreeted
        return "" if place is None else str(self._links[place - 1].component)

    # ── as a transport ────────────────────────────────────────────────────────────────────────

    async def receive(self) -> bytes:
        return await self._outside.receive()

    def send(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            self._take(CLIENT, self._framer.feed(data))
        except FrameTooLarge as error:
            self._end(ChainBroken("the client", _reason(error)))

    async def drain(self) -> None:
        await self._links[0].transport.drain()

    @property
    def pending(self) -> int:
        return 0 if self._error is not None else self._links[0].pending

    async def failure(self, *, spoke: bool, printed: str) -> Ending:
        return self._error or ConnectionClosed()

    async def aclose(self) -> None:
        """End all components at once, each in good order; when cancelled, they are killed."""
        closing = self._end(ConnectionClosed())
        try:
            await self._close()
        finally:
            closing.cancel()
            await asyncio.wait({closing})

    # ── passing on ────────────────────────────────────────────────────────────────────────────

    async def _pump(self, place: int) -> None:
        link = self._links[place - 1]
        try:
            while data := await link.transport.receive():
                link.heard += len(data)
                self._take(place, link.framer.feed(data))
                await self._at(place - 1).drain()
            error = await self._ended(place, link)
        except DragomanError as fatal:
            error = link.component.broken(fatal)
        except Exception:
            logger.exception("forwarding failed")
            error = ConnectionClosed("the connection was closed after an internal error")
        self._end(error)

    async def _ended(self, place: int, link: _Link) -> Ending:
        rest = link.framer.rest()
        if messages.is_whole(rest):
            self._take(place, [rest])
        elif rest.strip():
            link.noise.add(rest)
        error = await link.ending()
        if place > 1:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._passed_on(place)
        return error

    async def _passed_on(self, place: int) -> None:
        """Wait until the proxies before this one have passed on what it said last.

        They have when they read all of it and were quiet for a moment; but while they owe an answer
        and this one owes none, they have all that they need to give it.
        """
        before = self._links[: place - 1]
        quiet, seen = 0, [(0, 0)]
        while quiet < _QUIET_LOOKS or self._is_answer_due(place):
            await asyncio.sleep(_LOOK_SECONDS)
            last, seen = seen, [(link.unread, link.heard) for link in before]
            is_quiet = seen == last and not any(unread for unread, _ in seen)
            quiet = quiet + 1 if is_quiet else 0

    def _is_answer_due(self, place: int) -> bool:
        owes = self._chain.owes
        return not owes(place) and any(owes(proxy) for proxy in range(1, place))

    def _take(self, place: int, frames: Iterable[bytes]) -> None:
        """Route what was said, and send what follows, all of one place in one piece.

        Raises FrameTooLarge.
        """
        outgoing: dict[int, list[bytes]] = {}
        try:
            for frame in frames:
                for to, sent in self._routed(place, frame):
                    outgoing.setdefault(to, []).append(sent)
        finally:
            for to, batch in outgoing.items():
                self._send(place, to, b"\n".join(batch) + b"\n")

    def _routed(self, place: int, frame: bytes) -> list[tuple[int, bytes]]:
        if place == CLIENT:
            message = messages.decode(frame)
        else:
            link = self._links[place - 1]
            message = messages.decode(frame, link.deepest)
            self._note(link, message, frame)
        try:
            return self._chain.heard(place, message)
        except NotAProxy as refusal:
            component = self._links[refusal.place - 1].component
            self._end(component.named(f"{refusal.reason}: it is not an ACP proxy"))
            return []

    def _note(self, link: _Link, message: messages.Message, frame: bytes) -> None:
        if not isinstance(message, Malformed):
            link.spoke = True
        elif frame.strip():
            link.noise.add(frame)
            said = "skipped a line of %d bytes from %s: %s"
            logger.debug(said, len(frame), link.component, message.reason)

    def _send(self, place: int, to: int, data: bytes) -> None:
        if to == CLIENT:
            self._inside.send(data)
            return
        link = self._links[to - 1]
        try:
            # Components that send towards the client wait until it reads; all else has a limit.
            link.send(data, inward=to >= place)
        except PeerStalled as stalled:
            self._end(link.component.broken(stalled))

    def _at(self, place: int) -> Transport:
        return self._inside if place == CLIENT else self._links[place - 1].transport

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def _end(self, error: Ending) -> asyncio.Task[None]:
        """Nothing is left running after the first that ends, whether or not someone closes us."""
        if self._closing is None:
            self._error = error
            self._closing = asyncio.create_task(self._close())
        return self._closing

    async def _close(self) -> None:
        await self._inside.aclose()
        for pump in self._pumps:
            pump.cancel()
        closing = [asyncio.create_task(link.transport.aclose()) for link in self._links]
        try:
            await asyncio.wait(closing)
        finally:
            # One that is cancelled has its component killed; before it has begun it has nothing.
            await asyncio.sleep(0)
            for each in closing:
                each.cancel()
            await asyncio.wait([*closing, *self._pumps])


async def _started(component: Component) -> _Link:
    try:
        return _Link(component, await component.start())
    except DragomanError as error:
        broken = component.broken(error)
    raise broken
