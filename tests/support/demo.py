"""Talking to the demo agent over real stdio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from support.peers import tidy_loop

from dragoman import Client, HostCapabilities, Policy, Session, Turn
from dragoman.session import events as e

YOLO = Policy(yolo=True)

Kind = TypeVar("Kind", bound=e.Event)


@asynccontextmanager
async def demo(
    policy: Policy | None = None, capabilities: HostCapabilities | None = None
) -> AsyncGenerator[Client]:
    async with (
        tidy_loop(),
        Client.start("demo", policy=policy, capabilities=capabilities) as client,
    ):
        yield client


@asynccontextmanager
async def demo_session(
    cwd: Path, policy: Policy | None = None, capabilities: HostCapabilities | None = None
) -> AsyncGenerator[Session]:
    """A session that does not waste time on speaking slowly."""
    async with demo(policy, capabilities) as client:
        session = await client.new_session(cwd)
        await session.set_model("demo-swift")
        yield session


async def events_of(turn: Turn) -> list[e.Event]:
    async with asyncio.timeout(60):
        return [event async for event in turn]


def only(events: list[e.Event], kind: type[Kind]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def said(events: list[e.Event]) -> str:
    return "".join(event.text for event in only(events, e.AgentMessage))


async def answer_to(session: Session, prompt: str) -> str:
    return said(await events_of(session.prompt(prompt)))
