"""The agents of a bridge: one process per connection, or one on our standard streams.

Decides what the agent is started with, and ends it with us; the bytes are passed on unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dragoman.errors import AgentExited, ChainBroken, ConnectionLost, DragomanError, StartError
from dragoman.safe_text import single_line
from dragoman.transport.pipes import InputPipe, OutputPipe
from dragoman.transport.transport import Start, Transport
from dragoman.web.failures import RequestFailed
from dragoman.wire.framing import Framer

logger = logging.getLogger("dragoman.bridge")

_LOG_COLUMNS = 300


class BridgedAgent:
    """One process. It is given frames as they come, and none of them becomes two."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._framer = Framer()

    async def send(self, frame: bytes) -> None:
        """Returns when little enough waits to be read by the agent."""
        self._transport.send(frame.replace(b"\n", b" ") + b"\n")
        await self._transport.drain()

    async def frames(self) -> AsyncIterator[list[bytes]]:
        """What the agent says, as many messages as came at once; what else it prints is dropped.

        Raises FrameTooLarge.
        """
        while data := await self._transport.receive():
            found = [frame.strip() for frame in self._framer.feed(data)]
            messages = [frame for frame in found if frame.startswith((b"{", b"["))]
            if len(messages) < len(found):
                logger.debug("skipped lines that are not messages")
            if messages:
                yield messages

    async def why_ended(self) -> str:
        """For the other side, which needs not know what the agent printed."""
        failure = await self._transport.failure(spoke=True, printed="")
        match failure:
            case AgentExited():
                return f"the agent {failure.ending}"
            case ChainBroken() if failure.component.startswith("the proxy "):
                return "a proxy in front of the agent ended"
            case _:
                return "it ended"

    async def aclose(self) -> None:
        await self._transport.aclose()


class AgentProcesses:
    """Starts at most `limit` of them at once."""

    def __init__(self, start: Start, limit: int) -> None:
        self._start = start
        self._limit = limit
        self._running = 0

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[BridgedAgent]:
        """A new one, ended with all its descendants behind it.

        Raises Failure when there are too many, StartError.
        """
        if self._running >= self._limit:
            message = f"the limit of {self._limit} connections is reached"
            raise RequestFailed(503, "too_many", message, headers={"retry-after": "5"})
        self._running += 1
        try:
            agent = BridgedAgent(await self._started())
            try:
                yield agent
            finally:
                await agent.aclose()
        finally:
            self._running -= 1

    async def _started(self) -> Transport:
        try:
            return await self._start()
        except DragomanError as error:
            # The operator of the bridge can fix it, not the client that is refused.
            logger.warning("no agent was started: %s", single_line(str(error), _LOG_COLUMNS))
            raise


async def relay(start: Start) -> ConnectionLost | StartError | None:
    """Run the agent until our input ends, a signal comes, or it ends by itself: then why.

    Raises StartError, and ChainBroken for a proxy before it.
    """
    agent = await start()
    ours_in, ours_out = OutputPipe(os.dup(0)), InputPipe(os.dup(1))
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    inward = asyncio.create_task(_pump(ours_in.receive, agent.send, agent.drain))
    outward = asyncio.create_task(_pump(agent.receive, ours_out.send, ours_out.drain))
    ending = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait({inward, outward, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not outward.done():
            return None
        await ours_out.drain()
        return await agent.failure(spoke=True, printed="")
    finally:
        for task in (inward, outward, ending):
            task.cancel()
        await agent.aclose()
        ours_in.close()
        ours_out.finish()


async def _pump(
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], None],
    drain: Callable[[], Awaitable[None]],
) -> None:
    while data := await receive():
        send(data)
        await drain()
