"""Record a session, replay it without the agent, and read it as events.

python examples/record_and_replay.py session.jsonl
"""

import asyncio
import sys
import tempfile

from dragoman import Client
from dragoman.testing import Recorder, ReplayAgent, load_recording


async def ask(client: Client, folder: str) -> None:
    async with client:
        session = await client.new_session(folder)
        async for event in session.prompt("/think about dragons"):
            print(event.text, end="")


async def main(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(path) as recorder:
            await ask(Client.start("demo", tap=recorder), folder)
        print("And again, with no agent at all:")
        await ask(Client.start(ReplayAgent(path, strict=True).connect()), folder)
    events = [recorded.event for recorded in load_recording(path).events()]
    print(f"{len(events)} events, the last is {type(events[-1]).__name__}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
