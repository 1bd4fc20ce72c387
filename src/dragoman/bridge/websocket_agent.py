"""An agent on a WebSocket: each text message is a frame. What it holds is passed on unread."""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress

from starlette.types import Receive, Scope, Send

from dragoman.bridge.agent_processes import AgentProcesses, BridgedAgent
from dragoman.errors import FrameTooLarge
from dragoman.transport.http_routing import CONNECTION_ID

logger = logging.getLogger("dragoman.bridge")

_STALL_SECONDS = 60.0
"""A reader that takes nothing for so long is cut off, and its agent ends; so is a client whose
agent takes nothing, since meanwhile it could not be seen leaving."""
_NORMAL, _FAILED, _STALLED = 1000, 1011, 1008
_LONGEST_REASON = 120


class Sockets:
    """`closing` ends all of them."""

    def __init__(self, agents: AgentProcesses, closing: asyncio.Event) -> None:
        self._agents = agents
        self._closing = closing

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its acceptance to its end. Raises as `Agents.one` does before."""
        await receive()  # that it wants to connect
        async with self._agents.one() as agent:
            headers = [(CONNECTION_ID.lower().encode(), str(uuid.uuid4()).encode())]
            await send({"type": "websocket.accept", "headers": headers})
            code, reason = await self._relay(agent, receive, send)
            if code in (_FAILED, _STALLED):
                logger.warning("a connection was closed: %s", reason)
            with suppress(Exception):  # the other side may have gone first
                close = {"type": "websocket.close", "code": code, "reason": reason}
                await asyncio.wait_for(send(close), 1)

    async def _relay(self, agent: BridgedAgent, receive: Receive, send: Send) -> tuple[int, str]:
        """Both ways, until either has ended; how to close."""
        ways = [
            asyncio.create_task(_inward(agent, receive)),
            asyncio.create_task(_outward(agent, send)),
            asyncio.create_task(self._ending()),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _ending(self) -> tuple[int, str]:
        await self._closing.wait()
        return 1001, "the bridge is closing"


async def _inward(agent: BridgedAgent, receive: Receive) -> tuple[int, str]:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return _NORMAL, ""
        if (text := message.get("text")) is not None:  # binary messages mean nothing here
            try:
                async with asyncio.timeout(_STALL_SECONDS):
                    await agent.send(text.encode())
            except TimeoutError:
                return _STALLED, "the agent did not read its input for too long"


async def _outward(agent: BridgedAgent, send: Send) -> tuple[int, str]:
    try:
        async for frames in agent.frames():
            for frame in frames:
                async with asyncio.timeout(_STALL_SECONDS):
                    text = frame.decode("utf-8", "replace")
                    await send({"type": "websocket.send", "text": text})
    except FrameTooLarge as error:
        return _FAILED, str(error)
    except TimeoutError:
        return _STALLED, "nothing was read for too long"
    except OSError:
        return _NORMAL, ""  # the other side has gone
    return _FAILED, (await agent.why_ended())[:_LONGEST_REASON]
