"""Answer permission requests: with rules, with a provider of your own, or in the event loop."""

import asyncio

import dragoman
from dragoman.events import PermissionRequested


class AllowReadmeOnly:
    """A permissions provider is one method: the id of an option, or None to refuse."""

    async def request_permission(self, request: dragoman.PermissionRequest) -> str | None:
        if request.operation == "write" and all(p.endswith("README.md") for p in request.paths):
            return next(o.id for o in request.options if o.kind == "allow_once")
        return None


async def with_rules() -> None:
    rules = [dragoman.Rule(effect="allow", operation="execute", argv=("git", "status"))]
    policy = dragoman.Policy(rules, write=True)
    async with dragoman.Client.start("demo", policy=policy) as client:
        await (await client.new_session(".")).prompt("Improve the README")


async def with_a_provider() -> None:
    async with dragoman.Client.start("demo", permissions=AllowReadmeOnly()) as client:
        await (await client.new_session(".")).prompt("Improve the README")


async def in_the_loop() -> None:
    async with dragoman.Client.start("demo") as client:
        session = await client.new_session(".")
        async for event in session.prompt("Improve the README"):
            if isinstance(event, PermissionRequested):
                print(event.title, event.paths, [option.words for option in event.options])
                await session.answer(event.request_id, event.options[-1].id)


if __name__ == "__main__":
    asyncio.run(in_the_loop())
