"""A client and its agent, and the means to look at what happens between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from support.peers import SECONDS, settled, tidy_loop

from dragoman import Client, Session
from dragoman.session import events as e
from dragoman.transport.transport import Transport

Kind = TypeVar("Kind", bound=e.Event)


class Connectable(Protocol):
    def connect(self) -> Transport: ...


@asynccontextmanager
async def started(agent: Connectable, **options: Any) -> AsyncGenerator[Client]:
    """A client of this agent; whatever happens, nothing is left behind when it ends."""
    async with tidy_loop(), Client.start(agent.connect(), **options) as client:
        yield client


@asynccontextmanager
async def opened(
    agent: Connectable, cwd: Path, **options: Any
) -> AsyncGenerator[tuple[Client, Session]]:
    """The same, with a new session."""
    async with started(agent, **options) as client:
        yield client, await client.new_session(cwd)


async def gathered(events: AsyncIterator[e.Event]) -> list[e.Event]:
    """All of them, to the end, which must come soon."""
    async with asyncio.timeout(SECONDS):
        return [event async for event in events]


async def next_of(events: AsyncIterator[e.Event], kind: type[Kind]) -> Kind:
    """The next event of this kind. A turn continues, as it would not after a loop."""
    async with asyncio.timeout(SECONDS):
        while (event := await anext(events, None)) is not None:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the events ended without a {kind.__name__}")


async def until(condition: Callable[[], object]) -> None:
    """Let others run until it holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await _a_moment()


async def _a_moment() -> None:
    await asyncio.sleep(0.001)


def kinds(events: list[e.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


__all__ = ["gathered", "kinds", "next_of", "opened", "settled", "started", "until"]
