"""A client of a few lines on the library, for the checks of conformance.

python scripts/library_client.py AGENT [allow|load]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import dragoman


async def main(agent: str, what: str) -> int:
    policy = dragoman.Policy(yolo=what == "allow")
    async with dragoman.Client.start(dragoman.AgentCommand(agent), policy=policy) as client:
        if what == "load":
            session = await client.load_session("conformance-session", os.getcwd())
        else:
            session = await client.new_session(os.getcwd())
        turn = session.prompt("go")
        cancel = asyncio.get_running_loop().create_task
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGINT, lambda: cancel(session.cancel())
        )
        async for event in turn:
            print(event.text, end="", flush=True)
        return 0 if turn.stop_reason else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1], "".join(sys.argv[2:]))))
    except dragoman.DragomanError as error:
        sys.exit(f"{type(error).__name__}: {error}")
