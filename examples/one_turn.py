"""One turn with the demo agent. Replace "demo" with any other agent."""

import asyncio

import dragoman


async def main() -> None:
    async with dragoman.Client.start("demo") as client:
        session = await client.new_session(".")
        turn = session.prompt("Summarise @README.md")
        async for event in turn:
            print(event.text, end="")
        print(turn.stop_reason, session.state.usage)


asyncio.run(main())
