"""Which session a message belongs to; updates that come before their session wait for it.

Agents send updates for a session before the reply that names it, or for a subagent before they
announce it: those are held, and delivered in order when the session is there. What a subagent tells
and asks belongs to the session that it works for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from dragoman.agents.extensions import added_tokens
from dragoman.agents.sign_ins import AuthStatus
from dragoman.client.connection_questions import OutsideQuestions
from dragoman.client.dialects.dialect import Place, PulledSteers
from dragoman.client.dialects.extension_methods import ExtensionMethods
from dragoman.client.mcp import InProcessServer, McpHandler
from dragoman.client.sessions.subagent_routing import Subagents, concerns_tree, placed
from dragoman.errors import InvalidParams, ResourceNotFound
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import NO_SUBJECT, PermissionAnswer, Subject
from dragoman.host.requester import asked_by
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.session.events import Event, SubagentEvent, SubagentUpdated, ToolCallUpdated
from dragoman.session.facts import PermissionOption, TokenUsage
from dragoman.session.state_limits import LIMITS, MIB, weigh_struct

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session
    from dragoman.host.gate import Gate
    from dragoman.session.state import SessionState


logger = logging.getLogger("dragoman.client")


def _unheard(method: str, params: bytes) -> None:
    """There is no agent yet."""


def _unnoted(status: AuthStatus) -> None:
    """There is no client yet."""


async def _drained() -> None:
    """Nothing is on its way."""


# Updates of sessions that are not known yet, kept until they are, within limits.


_LEAST_BYTES = 256  # what holding an event costs, however small it came in

Batch: TypeAlias = tuple[list[Event], int]
"""Events, and the bytes they came in."""


class EarlyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of updates that wait."""

    opening: int = 64 * MIB
    """While a session is being opened: its history may come before the reply that names it."""
    otherwise: int = MIB
    """For a subagent that is announced after it has begun to speak."""


EARLY_LIMITS = EarlyLimits()


class EarlyUpdates:
    """Those of one connection; the oldest go when there are too many, which is said once."""

    def __init__(self, limits: EarlyLimits) -> None:
        self._limits = limits
        self._held: OrderedDict[int, tuple[str, list[Event], int]] = OrderedDict()
        self._numbers: dict[str, deque[int]] = {}
        """Which of them are of a session: an agent may announce very many."""
        self._count = 0
        self._bytes = 0
        self._has_told = False

    def hold(self, session_id: str, events: list[Event], size: int, *, opening: bool) -> None:
        self._count += 1
        self._held[self._count] = session_id, events, size
        self._numbers.setdefault(session_id, deque()).append(self._count)
        self._bytes += _weight(session_id, events, size)
        self._trim(self._limits.opening if opening else self._limits.otherwise)

    def take(self, session_id: str) -> list[Batch]:
        """What came for this session, in order."""
        mine = [self._held.pop(number) for number in self._numbers.pop(session_id, ())]
        self._bytes -= sum(_weight(*each) for each in mine)
        return [(events, size) for _, events, size in mine]

    def opened(self) -> None:
        """No session is being opened any longer: what is left can only be of subagents."""
        while self._held and self._bytes > self._limits.otherwise:
            self._drop_oldest()

    def _trim(self, most: int) -> None:
        while self._bytes > most:
            self._drop_oldest()
            if not self._has_told:
                self._has_told = True
                logger.warning(
                    "updates were dropped: the agent sends too many for sessions that it has not "
                    "opened or announced"
                )

    def _drop_oldest(self) -> None:
        _, oldest = self._held.popitem(last=False)
        numbers = self._numbers[oldest[0]]
        numbers.popleft()
        if not numbers:
            del self._numbers[oldest[0]]
        self._bytes -= _weight(*oldest)


def _weight(session_id: str, events: list[Event], size: int) -> int:
    return len(session_id) + max(size, _LEAST_BYTES * len(events))


class Router:
    """The `Host` of a dialect: every call goes to the gate of its session."""

    def __init__(self, outside: OutsideQuestions, early: EarlyLimits = EARLY_LIMITS) -> None:
        self.outside = outside
        self.note_auth: Callable[[AuthStatus], None] = _unnoted
        self.notify: Callable[[str, bytes], None] = _unheard
        """Sends the agent a notification, once there is a connection."""
        self.extensions = ExtensionMethods()
        self.drain: Callable[[], Awaitable[None]] = _drained
        """Waits until the agent has read most of what it was sent."""
        self._reading = asyncio.Lock()
        self.strays = 0
        """How often the agent sent something for a session that is not open here."""
        self._sessions: dict[str, Session] = {}
        self._opening: list[Place] = []
        self._early = EarlyUpdates(early)
        self._subagents = Subagents()

    def add(self, session: Session) -> None:
        if (before := self._sessions.get(session.id)) is not None:
            self._subagents.drop(before)
        self._sessions[session.id] = session
        self._subagents.adopt(session)

    def get(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id)

    def remove(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self._subagents.drop(session)

    def sessions(self) -> list[Session]:
        return list(self._sessions.values())

    def gates(self) -> list[Gate]:
        """Of the sessions that are open."""
        return [session.gate for session in self._sessions.values()]

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
                self._early.opened()

    def deliver_held(self, session: Session) -> None:
        for events, size in self._early.take(session.id):
            self._deliver(session, None, events, size)

    def on_events(self, session_id: str, events: list[Event], size: int) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            self._deliver(session, None, events, size)
        elif (session := self._subagents.session_of(session_id)) is not None:
            self._deliver(session, session_id, events, size)
        else:
            self.strays += not self._opening
            self._early.hold(session_id, events, size, opening=bool(self._opening))

    def _deliver(
        self, session: Session, speaker: str | None, events: list[Event], size: int
    ) -> None:
        if speaker is None and not concerns_tree(session.state, events):
            session.log.record_told(events, size)
            return
        self._record_all(session, _each_placed(session.state, speaker, events, size))

    def _record_all(self, session: Session, told: Iterator[tuple[Event, int]]) -> None:
        """What a subagent told before it was announced comes right after that. The agent chooses
        how deep its tree is, so this does not call itself."""
        under_way = [told]
        while under_way:
            if (following := next(under_way[-1], None)) is None:
                under_way.pop()
                continue
            event, size = following
            if not isinstance(event, SubagentUpdated):
                session.log.record_told([event], size)
            elif event.session_id not in self._sessions and self._subagents.announced(
                session, event
            ):
                session.log.record_told([event], size)
                early = self._early.take(event.session_id)
                under_way += (
                    _each_placed(session.state, event.session_id, *batch)
                    for batch in reversed(early)
                )

    def known(self, session_id: str) -> SessionState | None:
        if (session := self._sessions.get(session_id)) is not None:
            return session.state
        session = self._subagents.session_of(session_id)
        return None if session is None else session.state.thread_of(session_id)

    def on_extension(self, method: str, params: msgspec.Raw) -> bool:
        return self.extensions.hear(method, params)

    def extension(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        return self.extensions.answer(method, params)

    def on_elicitation_complete(self, elicitation_id: str) -> None:
        """The user did what an address asked for: notify the code that shows the question."""
        for session in self.sessions():
            session.gate.consent.elicitations.complete(elicitation_id)
        self.outside.complete(elicitation_id)

    def on_auth_status(self, status: AuthStatus) -> None:
        self.note_auth(status)

    def on_tokens(self, session_id: str, usage: TokenUsage) -> None:
        session = self._sessions.get(session_id)
        if session is not None and session.running is not None:
            session.running.requested = added_tokens(session.running.requested, usage)

    # ── steers ────────────────────────────────────────────────────────────────────────────────

    def on_run(self, session_id: str, run_id: str | None) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.steering.on_run(run_id)

    async def pull_steers(self, session_id: str) -> PulledSteers:
        session = self._sessions.get(session_id)
        return PulledSteers({}, False) if session is None else await session.steering.pull()

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _serving(self, session_id: str) -> Generator[Gate]:
        """The gate of a session; what a subagent asks is judged as its session's own."""
        session = self._sessions.get(session_id)
        subagent_id = None if session is not None else session_id
        session = session or self._subagents.session_of(session_id)
        if session is None:
            self.strays += 1
            raise ResourceNotFound(f"no such session: {session_id}", {"sessionId": session_id})
        session.log.touch()
        with asked_by(subagent_id):
            yield session.gate

    async def read_text_file(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str:
        with self._serving(session_id) as gate:
            return await gate.read_text_file(path, line, limit, self._one_answer())

    @asynccontextmanager
    async def _one_answer(self) -> AsyncGenerator[None]:
        """A file may be large: the next is read when the agent has taken the one before."""
        async with self._reading:
            await self.drain()
            yield

    async def write_text_file(self, session_id: str, path: str, content: str) -> None:
        with self._serving(session_id) as gate:
            await gate.write_text_file(path, content)

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdated | None,
        options: list[PermissionOption],
        subject: Subject = NO_SUBJECT,
    ) -> PermissionAnswer:
        _check_size(options, subject)
        asker = self._asker(session_id, tool_call, subject)
        with self._serving(session_id) as gate, asked_by(asker):
            return await gate.consent.request_permission(tool_call, options, subject)

    def _asker(
        self, session_id: str, tool_call: ToolCallUpdated | None, subject: Subject
    ) -> str | None:
        """Which subagent asks: that of the session, or of the call that the tool call is under."""
        session, speaker = self._sessions.get(session_id), None
        if session is None:
            session, speaker = self._subagents.session_of(session_id), session_id
        if session is None or tool_call is None:
            return speaker
        parent = subject.parent_call
        told = tool_call if parent is None else SubagentEvent(parent, tool_call)
        asker = speaker
        for event in placed(session.state, speaker, told):
            if isinstance(event, SubagentUpdated):
                self._record_all(session, iter([(event, 0)]))
            elif isinstance(event, SubagentEvent):
                asker = event.session_id
        return asker

    async def create_elicitation(
        self, session_id: str | None, request: ElicitationRequest, tied_to: bytes | None = None
    ) -> ElicitationAnswer:
        _check_size(request)
        if session_id is None:
            places = (place for place in self._opening if place.request_id == tied_to)
            return await self.outside.ask(request, next(places, None))
        with self._serving(session_id) as gate:
            return await gate.create_elicitation(request)

    def asks_outside(self) -> bool:
        return bool(self.outside.pending)

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str:
        with self._serving(session_id) as gate:
            return await gate.create_terminal(command)

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalSnapshot:
        with self._serving(session_id) as gate:
            return await gate.terminal_output(terminal_id)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalExit:
        with self._serving(session_id) as gate:
            return await gate.wait_for_terminal_exit(terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        with self._serving(session_id) as gate:
            await gate.kill_terminal(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        with self._serving(session_id) as gate:
            await gate.release_terminal(terminal_id)

    def mcp_server(self, server_id: str) -> McpHandler:
        return self.in_process_server(server_id).handle

    def in_process_server(self, server_id: str) -> InProcessServer:
        """Raises ResourceNotFound once its session has ended."""
        places = [*self._opening, *(session.place for session in self.sessions())]
        for server in (server for place in places for server in place.mcp_servers):
            if isinstance(server, InProcessServer) and server.id == server_id:
                return server
        raise ResourceNotFound(f"there is no MCP server {server_id}", {"serverId": server_id})


def _each_placed(
    state: SessionState, speaker: str | None, events: list[Event], size: int
) -> Iterator[tuple[Event, int]]:
    """What to record for them; their bytes came in once."""
    for event in events:  # where one goes may depend on those before it
        for told in placed(state, speaker, event):
            yield told, size
            size = 0


def _check_size(*asked: object) -> None:
    """A question stays until it is answered, and a person has to read it."""
    if sum(map(weigh_struct, asked)) > LIMITS.facts:
        raise InvalidParams("the question is too large")
