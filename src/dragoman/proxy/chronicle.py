"""What passes through a proxy as events of its sessions, which are on record while it runs."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import Any

import msgspec

from dragoman.errors import InvalidMessage
from dragoman.host.rules.policy import Policy
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.proxy.client_question import ClientQuestion
from dragoman.proxy.proxied_session import ProxiedSession
from dragoman.proxy.session_book import Page, SessionBook
from dragoman.schema import codec
from dragoman.session import events as e
from dragoman.session.content import Content, Text
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord
from dragoman.testing.recordings.asked_requests import EFFECTS, asked_effect, asked_permission
from dragoman.testing.recordings.recorded_events import Transcript, current_name
from dragoman.wire.messages import Failure, Notification, Reply, Request
from dragoman.wire.proxy_passing import Side

MOST_EARLY = 1000
"""Updates that may come before the reply that opens their session."""

OPENS_KNOWN = frozenset({"session/load", "session/resume"})
OPENS_NEW = frozenset({"session/new", "session/fork"})


class _Opening(msgspec.Struct, rename="camel"):
    """What a request that opens a session says, or its reply, in either version."""

    session_id: str = ""
    cwd: str = ""
    additional_directories: list[str] | None = None

    @property
    def more(self) -> list[str]:
        return self.additional_directories or []


class _Name(msgspec.Struct):
    name: str = ""


class _Welcome(msgspec.Struct, rename="camel"):
    agent_info: _Name | None = None
    info: _Name | None = None


class Chronicle(Transcript):
    """Writes down what is said. `agent` is what the rules and the record call the agent; without
    it, what it calls itself."""

    def __init__(self, book: SessionBook, policy: Policy, agent: str | None) -> None:
        super().__init__()
        self.agent = agent or ""
        self.sessions: dict[str, ProxiedSession] = {}
        """Those that are open, by what the agent calls them."""
        self._book = book
        self._policy = policy
        self._early: list[tuple[str, e.Event]] = []

    def recorders(self) -> list[EventRecorder]:
        return [each.page.recording for each in self.sessions.values()]

    # ── opening and closing ───────────────────────────────────────────────────────────────────

    async def before(self, request: Request) -> None:
        """A request of the client that opens a session which the agent knows. Raises SessionOwned
        where another process runs it, and StoreError: then it is not passed on."""
        if request.method not in OPENS_KNOWN:
            return
        asked = codec.decode(request.params, _Opening)
        await self.close(asked.session_id)
        known = await self._book.known(self.agent, asked.session_id)
        if known is None:
            begun = self._book.begin(self.agent, asked.session_id, asked.cwd, asked.more)
            await self._open(asked.session_id, begun)
            self._retelling.add(asked.session_id)
        else:
            session = await self._open(
                asked.session_id, self._book.take_up(known, asked.session_id)
            )
            session.reopening()

    async def made(self, request: Request, reply: Reply | Failure) -> None:
        """The agent has made a session. Raises as `before` does, for the client."""
        if request.method not in OPENS_NEW or isinstance(reply, Failure):
            return
        made, asked = (codec.decode(each, _Opening) for each in (reply.result, request.params))
        parent = None
        if request.method == "session/fork":
            parent = await self._parent(asked.session_id)
        if parent is None:
            begun = self._book.begin(self.agent, made.session_id, asked.cwd, asked.more)
        else:
            begun = self._book.fork(parent, made.session_id, asked.cwd or parent.cwd)
        session = await self._open(made.session_id, begun)
        if parent is not None:
            session.reopening()
        early, self._early = self._early, []
        for session_id, event in early:
            self.told(session_id, event)
        session.reopened()

    async def _parent(self, session_id: str) -> SessionRecord | None:
        if (session := self.sessions.get(session_id)) is not None:
            await session.page.recording.settled()
            return session.page.recording.record
        return await self._book.known(self.agent, session_id)

    async def _open(self, session_id: str, opening: Awaitable[Page]) -> ProxiedSession:
        session = ProxiedSession(await opening, self.agent, self._policy)
        self.sessions[session_id] = session
        self.states[session_id] = session.state
        return session

    async def close(self, session_id: str) -> None:
        """The client no longer has it open."""
        self.states.pop(session_id, None)
        if (session := self.sessions.pop(session_id, None)) is not None:
            session.close()
            await self._book.close(session.page)

    async def aclose(self) -> None:
        for session_id in list(self.sessions):
            await self.close(session_id)

    # ── what is said ──────────────────────────────────────────────────────────────────────────

    def note(self, side: Side, message: Request | Notification | Reply | Failure) -> None:
        """Record what a message says. What cannot be read is passed on anyway."""
        try:
            if side == "client":
                self._sent(message)
            else:
                self._received(message)
        except InvalidMessage:
            return

    def told(self, session_id: str, event: e.Event) -> None:
        owner = self._owners.get(session_id, session_id)
        session = self.sessions.get(owner)
        if session is None:
            if len(self._early) < MOST_EARLY:
                self._early.append((session_id, event))
            return
        if owner != session_id:
            super().told(session_id, event)
            return
        for news in session.news_in(event):
            super().told(session_id, news)

    def happen(self, session_id: str, event: e.Event) -> None:
        session = self.sessions.get(self._owners.get(session_id, session_id))
        if session is None:
            return
        if isinstance(event, e.SessionOpened):
            event.agent = self.agent
            if session.state.turns:
                event.continuity = "continued"
        if isinstance(event, e.TurnEnded):
            session.works()
        super().happen(session_id, event)

    def _record(self, state: SessionState, event: e.Event) -> None:
        self.sessions[state.session_id].record(event)

    def begin_turn(self, session_id: str, content: list[Any]) -> str:
        self._retelling.discard(session_id)
        if (session := self.sessions.get(session_id)) is not None:
            session.prompted(_text(content))
        turn_id = f"turn-{os.urandom(8).hex()}"
        self.happen(session_id, e.TurnStarted(turn_id, content))
        return turn_id

    def reopen(self, session_id: str, cwd: str, more: list[str]) -> None:
        self.happen(session_id, e.SessionOpened(session_id, cwd, "continued", more))

    def _replied(self, request: Request, reply: Reply | Failure) -> None:
        if request.method == "initialize" and isinstance(reply, Reply) and not self.agent:
            said = codec.decode(reply.result, _Welcome)
            self.agent = (said.agent_info or said.info or _Name()).name or "agent"
        super()._replied(request, reply)
        if request.method in OPENS_KNOWN:
            asked = codec.decode(request.params, _Opening)
            if (session := self.sessions.get(asked.session_id)) is not None:
                session.reopened()

    # ── what the agent asks for ───────────────────────────────────────────────────────────────

    def is_question(self, request: Request) -> bool:
        return current_name(request.method) == "session/request_permission"

    async def permission(
        self, request: Request, question: ClientQuestion
    ) -> Reply | Failure | None:
        """The answer for the agent; None where the client alone can give it. Raises RemoteError."""
        try:
            asked = asked_permission(request, second=self.second is not None)
        except InvalidMessage:
            return None
        owner = self._owners.get(asked.session_id, asked.session_id)
        session = self.sessions.get(owner)
        if session is None:
            return None
        subagent = None if owner == asked.session_id else asked.session_id
        return await session.permission(asked, question, subagent)

    def check(self, request: Request) -> None:
        """Something that the client is to do. Raises RemoteError where a rule forbids it."""
        method = current_name(request.method)
        if method not in EFFECTS:
            return
        try:
            asked = codec.decode(request.params, _Opening)
            session = self.sessions.get(self._owners.get(asked.session_id, asked.session_id))
            if session is None:
                return
            access = asked_effect(method, request, session.workspace, self.agent)
        except (InvalidMessage, ValueError):
            return
        session.check(access)


def _text(content: list[Content]) -> str:
    return "\n".join(each.text for each in content if isinstance(each, Text))
