"""Which session a message belongs to; updates that come before their session wait for it.

Agents send updates for a session before the reply that names it: those are held while an opening
call is under way and delivered, in order, when the session is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.client.connection_questions import OutsideQuestions
from dragoman.client.dialects.dialect import Place, PulledSteers
from dragoman.client.mcp import InProcessServer, McpHandler
from dragoman.errors import InvalidParams, ResourceNotFound
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import NO_SUBJECT, PermissionAnswer, Subject
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.session.bounds import LIMITS, weigh_struct
from dragoman.session.events import Event, ToolCallUpdated
from dragoman.session.facts import PermissionOption

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session
    from dragoman.host.gate import Gate
    from dragoman.session.state import SessionState

logger = logging.getLogger("dragoman.client")

MAX_HELD_BYTES = 64 * 1024 * 1024
_LEAST_BYTES = 256  # what holding an event costs, however small it came in


def _unheard(method: str, params: bytes) -> None:
    """There is no agent yet."""


class Router:
    """The `Host` of a dialect: every call goes to the gate of its session."""

    def __init__(self, outside: OutsideQuestions) -> None:
        self.outside = outside
        self.notify: Callable[[str, bytes], None] = _unheard
        """Sends the agent a notification, once there is a connection."""
        self.strays = 0
        """How often the agent sent something for a session that is not open here."""
        self._sessions: dict[str, Session] = {}
        self._opening: list[Place] = []
        self._held: list[tuple[str, list[Event], int]] = []
        self._held_bytes = 0

    def add(self, session: Session) -> None:
        self._sessions[session.id] = session

    def get(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id)

    def remove(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]

    def sessions(self) -> list[Session]:
        return list(self._sessions.values())

    # ── events ────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def opening(self, place: Place) -> Generator[None]:
        """While this lasts, events of sessions nobody knows are held, and the agent may already
        use what the session brings along."""
        self._opening.append(place)
        try:
            yield
        finally:
            self._opening.remove(place)
            self.outside.withdraw(place)
            if not self._opening:
                self._held.clear()
                self._held_bytes = 0

    def deliver_held(self, session: Session) -> None:
        mine = [held for held in self._held if held[0] == session.id]
        self._held = [held for held in self._held if held[0] != session.id]
        for _, events, size in mine:
            session.log.record_told(events, size)

    def _hold(self, session_id: str, events: list[Event], size: int) -> None:
        self._held_bytes += max(size, _LEAST_BYTES * len(events))
        if self._held_bytes <= MAX_HELD_BYTES:
            self._held.append((session_id, events, size))
        else:
            logger.warning("dropped updates: too many arrived before their session")

    def on_events(self, session_id: str, events: list[Event], size: int) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.log.record_told(events, size)
        elif self._opening:
            self._hold(session_id, events, size)
        else:
            self.strays += 1
            logger.debug("an update for an unknown session was ignored")

    def known(self, session_id: str) -> SessionState | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.state

    def on_elicitation_complete(self, elicitation_id: str) -> None:
        """The user did what an address asked for: notify the code that shows the question."""
        for session in self.sessions():
            session.gate.consent.elicitations.complete(elicitation_id)
        self.outside.complete(elicitation_id)

    # ── steers ────────────────────────────────────────────────────────────────────────────────

    def on_run(self, session_id: str, run_id: str | None) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.steering.on_run(run_id)

    async def pull_steers(self, session_id: str) -> PulledSteers:
        session = self._sessions.get(session_id)
        return PulledSteers({}, False) if session is None else await session.steering.pull()

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    def _gate(self, session_id: str) -> Gate:
        session = self._sessions.get(session_id)
        if session is None:
            self.strays += 1
            raise ResourceNotFound(f"no such session: {session_id}", {"sessionId": session_id})
        session.log.touch()
        return session.gate

    async def read_text_file(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str:
        return await self._gate(session_id).read_text_file(path, line, limit)

    async def write_text_file(self, session_id: str, path: str, content: str) -> None:
        await self._gate(session_id).write_text_file(path, content)

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdated | None,
        options: list[PermissionOption],
        subject: Subject = NO_SUBJECT,
    ) -> PermissionAnswer:
        _check_size(options, subject)
        consent = self._gate(session_id).consent
        return await consent.request_permission(tool_call, options, subject)

    async def create_elicitation(
        self, session_id: str | None, request: ElicitationRequest, tied_to: bytes | None = None
    ) -> ElicitationAnswer:
        _check_size(request)
        if session_id is None:
            places = (place for place in self._opening if place.request_id == tied_to)
            return await self.outside.ask(request, next(places, None))
        return await self._gate(session_id).create_elicitation(request)

    def asks_outside(self) -> bool:
        return bool(self.outside.pending)

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str:
        return await self._gate(session_id).create_terminal(command)

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalSnapshot:
        return await self._gate(session_id).terminal_output(terminal_id)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalExit:
        return await self._gate(session_id).wait_for_terminal_exit(terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        await self._gate(session_id).kill_terminal(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        await self._gate(session_id).release_terminal(terminal_id)

    def mcp_server(self, server_id: str) -> McpHandler:
        return self.in_process_server(server_id).handle

    def in_process_server(self, server_id: str) -> InProcessServer:
        """Raises ResourceNotFound once its session has ended."""
        places = [*self._opening, *(session.place for session in self.sessions())]
        for server in (server for place in places for server in place.mcp_servers):
            if isinstance(server, InProcessServer) and server.id == server_id:
                return server
        raise ResourceNotFound(f"there is no MCP server {server_id}", {"serverId": server_id})


def _check_size(*asked: object) -> None:
    """A question stays until it is answered, and a person has to read it."""
    if sum(map(weigh_struct, asked)) > LIMITS.facts:
        raise InvalidParams("the question is too large")
