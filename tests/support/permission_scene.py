"""A running turn in which an agent asks for things, and a look at what becomes of its questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.clients import opened, until
from support.peers import soon
from support.raw_agent import Json, RawAgent

from dragoman import Client, Session, Turn
from dragoman.session import events as e
from dragoman.session.state import PendingPermission

CANCELLED = {"outcome": {"outcome": "cancelled"}}
OPTIONS = [
    ("once", "allow_once"),
    ("always", "allow_always"),
    ("no", "reject_once"),
    ("never", "reject_always"),
]


def selected(option: str) -> Json:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def question(
    options: list[tuple[str, str]] | None = None, *, call: Json | None = None, **fields: Any
) -> Json:
    """The params of a permission request."""
    return {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "t", "title": "Do it", **(call or {}), **fields},
        "options": [
            {"optionId": option, "name": option, "kind": kind}
            for option, kind in (OPTIONS if options is None else options)
        ],
    }


class Scene:
    """A turn that is running, and everything one needs to see what becomes of its questions."""

    def __init__(self, agent: RawAgent, client: Client, session: Session, cwd: Path) -> None:
        self.agent = agent
        self.client = client
        self.session = session
        self.cwd = cwd
        self.heard: list[e.Event] = []
        self.prompt_id: Any = None
        self._asked = 0

    async def begin(self) -> Turn:
        turn = self.session.prompt("go")
        self.prompt_id = (await self.agent.expect("session/prompt"))["id"]
        return turn

    def ask(self, method: str, params: Json) -> asyncio.Task[Json]:
        """A request of the agent's, on its way."""
        self._asked += 1
        return asyncio.create_task(self.agent.ask(method, params, f"ask {self._asked}"))

    async def result(self, method: str, params: Json) -> Json:
        return await soon(self.ask(method, params))

    def ask_permission(self, params: Json | None = None) -> asyncio.Task[Json]:
        return self.ask("session/request_permission", question() if params is None else params)

    async def write(self, content: str, name: str = "a.txt") -> Json:
        params = {"sessionId": "s1", "path": str(self.cwd / name), "content": content}
        return await self.result("fs/write_text_file", params)

    async def run(self, command: str, *args: str, **fields: Any) -> Json:
        params = {"sessionId": "s1", "command": command, "args": list(args), **fields}
        return await self.result("terminal/create", params)

    def pending(self) -> PendingPermission:
        (waiting,) = self.session.state.pending.values()
        assert isinstance(waiting, PendingPermission)
        return waiting

    async def waiting(self) -> PendingPermission:
        """The one question that waits."""
        await until(lambda: self.session.state.pending)
        return self.pending()

    async def answer(self, option: str) -> None:
        await self.session.answer((await self.waiting()).id, option)

    @property
    def settlements(self) -> list[e.PermissionSettled | e.AccessDecided]:
        """How what the agent asked for was decided, by someone or by a rule."""
        return [
            event
            for event in self.heard
            if isinstance(event, e.PermissionSettled)
            or (isinstance(event, e.AccessDecided) and event.tool_call_id is not None)
        ]

    @property
    def requests(self) -> list[e.PermissionRequested]:
        return [event for event in self.heard if isinstance(event, e.PermissionRequested)]

    @property
    def effect(self) -> tuple[str, str]:
        """How the last question was settled."""
        decision = self.settlements[-1].decision
        return decision.effect, decision.reason


@asynccontextmanager
async def scene(cwd: Path, *, attended: bool = True, **options: Any) -> AsyncGenerator[Scene]:
    agent = RawAgent()
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with opened(agent, cwd, listen=listen, **options) as (client, session):
        made = Scene(agent, client, session, cwd)
        made.heard = heard
        if attended:
            session.events()
        yield made
