"""An agent on our own standard input and output: for `ssh host dragoman bridge AGENT --stdio`.

What the agent is started with, and that nothing of it outlives us, is seen to here; the bytes
are passed on as they are.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from dragoman.errors import ConnectionLost, StartError
from dragoman.transport.base import Start
from dragoman.transport.pipes import InputPipe, OutputPipe


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
