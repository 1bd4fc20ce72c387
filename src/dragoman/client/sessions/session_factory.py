"""Opens sessions: new, forked, loaded, resumed, or continued after a crash.

Updates may come before the reply that names their session, and history before or after it; here
they are assigned to their session in order.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from dragoman.agents.extensions import Quirks, fork_point, forks_at_messages, quirks_for
from dragoman.agents.known import known_as
from dragoman.client.asking.result_tool import desk_in, result_tool
from dragoman.client.capabilities import lacking_for
from dragoman.client.client_options import HostCapabilities, traced
from dragoman.client.dialects.dialect import Opened, Place
from dragoman.client.mcp import InProcessServer, McpServer, StdioServer, supported
from dragoman.client.router import Router
from dragoman.client.sessions.session import NOT_OPENED, Session
from dragoman.client.sessions.session_log import SessionLog
from dragoman.errors import (
    AuthRequired,
    InvalidMessage,
    LimitUnusable,
    RemoteError,
    SessionBusy,
    SessionNotContinued,
    Unsupported,
)
from dragoman.host.gate import Gate, Providers
from dragoman.host.permissions.consent import Consent
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.jail import found
from dragoman.host.workspace.roots import Workspace
from dragoman.results.wanted_result import TOOL
from dragoman.session import events as e
from dragoman.session.facts import OnLimit, SystemPrompt
from dragoman.session.limits.spending import Meter
from dragoman.session.limits.spending_limits import SpendingLimit, limits_for
from dragoman.session.state_limits import ID, LIMITS, fitted

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.relay.mcp_relay import McpRelay

Listener: TypeAlias = Callable[[Session, e.Event], None]
Way: TypeAlias = Literal["load", "resume"]

_MOST_WAITS = 200
"""For more of a history; an agent may send one without end."""

_NO_WAY = "the agent can neither load nor resume sessions"


class Terms(msgspec.Struct):
    """On what terms the sessions of a client work: what decides, and who is asked and notified."""

    policy: Policy
    providers: Providers
    quirks: Quirks | None = None
    listen: Listener | None = None
    limits: Sequence[SpendingLimit] = ()
    on_limit: OnLimit = "fail"


class Openings(msgspec.Struct, eq=False):
    """Makes the sessions of one client, whose agent is offered the `offers`."""

    client: Client
    router: Router
    terms: Terms
    offers: HostCapabilities
    folders_are_here: bool = True
    _relay: McpRelay | None = None

    def place(
        self,
        cwd: str | os.PathLike[str],
        *,
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        mcp_servers: Sequence[McpServer] = (),
        system_prompt: str | SystemPrompt | None = None,
        meta: dict[str, Any] | None = None,
        results: bool | type[Any] | Mapping[str, Any] = False,
    ) -> Place:
        """Where the session is to work. Raises ValueError for a folder that does not exist, and for
        a system prompt that cannot be one; ValueError and TypeError for what cannot be the type of
        results."""
        agent = self.client.capabilities
        if results is not False:
            mcp_servers = [*mcp_servers, result_tool(results)]
        servers, notes = supported(mcp_servers, agent, is_here=self.client.files_are_here)
        programs: dict[str, StdioServer] = {}
        if not agent.mcp_acp:
            programs, servers = self._relayed(servers, notes)
        extra = [self._folder(path) for path in additional_directories]
        if extra and not agent.additional_directories:
            notes.append("the additional directories were not sent: the agent does not accept any")
        if isinstance(system_prompt, str):
            system_prompt = SystemPrompt(system_prompt)
        if system_prompt is not None and (lacking := lacking_for(system_prompt, agent)) is not None:
            notes.append(f"the system prompt was not sent: the agent does not accept {lacking}")
            system_prompt = None
        self._must_be_inside(cwd, *additional_directories)
        if self.client.fence is not None and (problem := self.client.fence.problem):
            notes.append(f"there is no fence around the agent: {problem}")
        if self.client.fence is not None and (problem := self.client.fence.network.problem):
            notes.append(f"the agent reaches the whole network: {problem}")
        if self.client.fence is not None and (problem := self.client.fence.no_gate):
            notes.append(f"what runs inside the fence is not recorded: {problem}")
        return Place(
            cwd=self._folder(cwd),
            additional_directories=extra,
            tell_directories=agent.additional_directories,
            mcp_servers=servers,
            programs=programs,
            system_prompt=system_prompt,
            meta=traced(meta),
            notes=notes,
        )

    def _must_be_inside(self, *folders: str | os.PathLike[str]) -> None:
        """Raises ValueError for a folder in which a fenced agent can write nothing."""
        fence = self.client.fence
        for folder in folders:
            if fence is not None and not fence.holds(os.path.abspath(folder)):
                raise ValueError(f"the agent's fence does not include {os.fspath(folder)!r}")

    def _relayed(
        self, servers: Sequence[McpServer], notes: list[str]
    ) -> tuple[dict[str, StdioServer], list[McpServer]]:
        """What the agent starts to reach servers of this process, by id, and the servers without
        those for which that cannot be."""
        programs: dict[str, StdioServer] = {}
        kept: list[McpServer] = []
        for server in servers:
            if isinstance(server, InProcessServer):
                try:
                    programs[server.id] = self._the_relay().program(server)
                except OSError as error:
                    notes.append(f"MCP server {server.name!r} left out: {error}")
                    continue
            kept.append(server)
        return programs, kept

    def _the_relay(self) -> McpRelay:
        if self._relay is None:
            from dragoman.client.relay.mcp_relay import McpRelay  # few sessions need one

            fence = self.client.fence
            folder = None if fence is None else fence.folder
            self._relay = McpRelay(self.router.in_process_server, folder)
        return self._relay

    async def aclose(self) -> None:
        if self._relay is not None:
            await self._relay.aclose()

    def _folder(self, path: str | os.PathLike[str]) -> str:
        """A folder of another machine cannot be looked for here."""
        return _folder(path) if self.folders_are_here else absolute(path)

    # ── opening ───────────────────────────────────────────────────────────────────────────────

    async def new(self, place: Place, continuity: e.Continuity) -> Session:
        self._must_keep(place)
        opened: list[Session] = []

        def on_opened(answer: Opened) -> None:
            opened.append(self._adopt(answer, place, continuity, replaying=False))

        async with self._undone_if_cut(opened):
            with self.router.opening(place), self._explaining():
                await self.client.dialect.new_session(place, on_opened)
        return opened[0]

    @property
    def forks_at_messages(self) -> bool:
        """Whether a fork may end with a message of the agent."""
        info, capabilities = self.client.agent_info, self.client.capabilities
        return capabilities.fork and forks_at_messages(info.name, info.version)

    async def fork(self, session_id: str, place: Place, after: str | None = None) -> Session:
        self.client.require("fork", "session/fork")
        _check_id(session_id)
        self._must_keep(place)
        if after is not None:
            if not self.forks_at_messages:
                raise Unsupported("session/fork at an earlier message")
            place.meta = {**(place.meta or {}), **fork_point(after)}
        opened: list[Session] = []

        def on_opened(answer: Opened) -> None:
            opened.append(self._adopt(answer, place, "continued", replaying=True))

        async with self._undone_if_cut(opened):
            with self.router.opening(place), self._explaining():
                await self.client.dialect.fork_session(session_id, place, on_opened)
        return opened[0]

    @asynccontextmanager
    async def _undone_if_cut(self, opened: list[Session]) -> AsyncGenerator[None]:
        """The caller may be cancelled just when the reply arrives: then nobody has it."""
        try:
            yield
        except BaseException:
            for session in opened:
                await self._give_up(session, None)
            raise

    async def reopen(self, way: Way, session_id: str, place: Place) -> Session:
        """Load or resume. A session of that id that is open here already ends for it.

        Raises SessionBusy while that one has a turn running.
        """
        _check_id(session_id)
        self._must_keep(place)
        before = self.router.get(session_id)
        if before is not None and before.busy:
            raise SessionBusy(session_id)
        # The history comes before the reply, so the session must be there first.
        continuity: e.Continuity = "replayed" if way == "load" else "continued"
        session = self._make(session_id, place, continuity, replaying=True)
        try:
            await self._call(way, session_id, place, lambda answer: _tell(session, answer, way))
        except BaseException:
            await self._give_up(session, before)
            raise
        if before is not None:
            await before.shut("the session was reopened")
        return session

    async def _give_up(self, session: Session, before: Session | None) -> None:
        self.router.remove(session)
        if before is None:
            await session.abandon()
        else:
            # Terminals are known by the session's id: those of the one before continue.
            self.router.add(before)
            session.log.close(NOT_OPENED)

    async def ensure(self, session_id: str, place: Place, *, allow_new: bool) -> Session:
        _check_id(session_id)
        reason = _NO_WAY
        # Only a history that is loaded says what the agent has.
        for way in self._ways(known=place.history is not None and place.delivery is None):
            try:
                return await self.reopen(way, session_id, place)
            except AuthRequired:
                raise
            except RemoteError as error:
                reason = str(error)
        if not allow_new:
            raise SessionNotContinued(session_id, reason)
        return await self.new(place, "reset")

    async def reconnect(self, session: Session) -> None:
        """Have the agent, started again, continue a session that is still here."""

        def on_opened(answer: Opened, way: Way) -> None:
            session.log.record(self._opened(session.id, session.place, "continued"))
            _tell(session, answer, way)

        session.log.reopening()
        reason = _NO_WAY
        for way in self._ways(known=True):
            try:
                told = partial(on_opened, way=way)
                return await self._call(way, session.id, session.place, told)
            except AuthRequired:
                raise
            except RemoteError as error:
                reason = str(error)
        raise SessionNotContinued(session.id, reason)

    def _ways(self, *, known: bool) -> list[Way]:
        """Resuming comes first when the history is known here already."""
        agent = self.client.capabilities
        ways: list[Way] = ["load"] if agent.load else []
        ways = [*ways, "resume"] if agent.resume else ways
        return ways[::-1] if known else ways

    async def _call(
        self, way: Way, session_id: str, place: Place, on_opened: Callable[[Opened], None]
    ) -> None:
        dialect = self.client.dialect
        call = dialect.load_session if way == "load" else dialect.resume_session
        with self.router.opening(place), self._explaining():
            await call(session_id, place, on_opened)
        if (session := self.router.get(session_id)) is not None:
            await self._history_complete(way, session)
            if way == "load" and session.log.delivery is not None:
                session.log.delivery.complete()
            session.log.settled()

    async def _history_complete(self, way: Way, session: Session) -> None:
        """Some agents answer first and send the history right after; a prompt sent meanwhile would
        make it look live. An agent that resumes should send none: wait only if it does."""
        seen, pauses = -1 if way == "load" else 0, self.client.pauses
        waits = 0
        while waits < _MOST_WAITS:
            was_read = pauses is not None and pauses == self.client.pauses
            if was_read and session.log.retold == seen:
                return
            waits += was_read
            seen, pauses = session.log.retold, self.client.pauses
            await asyncio.sleep(self.client.timeouts.history)

    @contextmanager
    def _explaining(self) -> Generator[None]:
        """An agent that wants a sign-in first: say how to do that."""
        try:
            yield
        except AuthRequired as error:
            raise self.client.explained(error) from error

    # ── making ────────────────────────────────────────────────────────────────────────────────

    def _adopt(
        self, answer: Opened, place: Place, continuity: e.Continuity, *, replaying: bool
    ) -> Session:
        if len(answer.session_id) > ID:
            raise InvalidMessage(f"the agent's session id has more than {ID} characters")
        if self.router.get(answer.session_id) is not None:
            raise InvalidMessage("the agent gave a new session the id of one that is open")
        session = self._make(answer.session_id, place, continuity, replaying=replaying)
        self.router.deliver_held(session)
        _tell(session, answer, "fork")
        return session

    def _make(
        self, session_id: str, place: Place, continuity: e.Continuity, *, replaying: bool
    ) -> Session:
        opening = [
            self._opened(session_id, place, continuity),
            *(e.Notice(note, "warning", source="client") for note in place.notes),
        ]
        log = SessionLog(
            opening,
            replaying=replaying,
            recorder=place.recorder,
            history=place.history,
            quota=place.quota,
        )
        log.counted_tokens = self.quirks.counted_tokens
        log.delivery = place.delivery
        session = Session(
            self.client,
            session_id=session_id,
            place=place,
            log=log,
            gate=self._gate(session_id, place, log),
        )
        if (listen := self.terms.listen) is not None:
            log.listeners.append(lambda event: listen(session, event))
        if place.on_limit is not None:
            session.parking.on_limit = place.on_limit
        meter = place.meter or self.new_meter()
        if limits := self.limits_in(place):
            from dragoman.client.sessions.limit_watch import watch_limits

            watch_limits(session, limits, meter, place.ledger)
        self.router.add(session)
        if self.client.fence is not None:
            self.client.fence.network.rules.tell()
        return session

    def _must_keep(self, place: Place) -> None:
        """Raises LimitUnusable for a limit that nothing could be compared with."""
        limits = self.limits_in(place)
        if not limits:
            return
        from dragoman.agents.settings.limit_settings import must_be_told

        must_be_told(limits, known_as(self.client.name, None))
        shared = next((each for each in limits if each.is_shared), None)
        if shared is not None and place.ledger is None:
            reason = "a limit of several sessions needs a hub, which has a store"
            raise LimitUnusable(shared.source, reason)

    def limits_in(self, place: Place) -> list[SpendingLimit]:
        """The limits that a session has there."""
        limits = (*place.limits, *self.terms.limits)
        return limits_for(limits, self.client.name, place.cwd)

    def new_meter(self) -> Meter:
        """For one session."""
        return Meter()

    @property
    def quirks(self) -> Quirks:
        """Those that were given, else those that are known of the agent."""
        return self.terms.quirks or quirks_for(self.client.agent_info.name)

    def _gate(self, session_id: str, place: Place, log: SessionLog) -> Gate:
        workspace = found(Workspace(session_id, place.cwd, tuple(place.additional_directories)))
        consent = Consent(
            workspace,
            agent=self.client.name,
            policy=self.terms.policy,
            permissions=self.terms.providers.permissions,
            elicitation=self.terms.providers.elicitation,
            state=log.state,
            record=log.record_work,
            habits=self.quirks,
            attended=self.client.attended,
            limit=place.question_timeout or self.client.timeouts.question,
        )
        if desk_in(place) is not None:
            consent.own_tool = TOOL
        gate = Gate(
            workspace=workspace,
            agent=self.client.name,
            consent=consent,
            providers=self.terms.providers,
            offered=self.offers.methods,
            missing_file=self.quirks.missing_file,
            state=log.state,
            record=log.record_work,
        )
        self._oversee(gate, consent, log)
        return gate

    def _oversee(self, gate: Gate, consent: Consent, log: SessionLog) -> None:
        """Have the session judge what runs inside the fence, until it ends."""
        fence = self.client.fence
        if fence is None or (inside := fence.gate) is None:
            return
        from dragoman.host.fence.overseer import (
            Overseer,  # few sessions are fenced
            ProgramLog,
        )

        overseer = Overseer(
            workspace=gate.workspace,
            agent=self.client.name,
            policy=self.terms.policy,
            log=ProgramLog(log.record_work),
            consent=consent,
        )
        inside.attach(overseer)
        gate.on_close = lambda: inside.detach(overseer)

    def _opened(self, session_id: str, place: Place, continuity: e.Continuity) -> e.SessionOpened:
        return e.SessionOpened(
            session_id,
            place.cwd,
            continuity,
            place.additional_directories,
            self.client.name,
            fence=None if self.client.fence is None else self.client.fence.way,
            network=None if self.client.fence is None else self.client.fence.network.hosts,
        )


def _tell(session: Session, answer: Opened, way: Way | Literal["fork"]) -> None:
    session.log.open()
    session.log.answered(way)
    session.meta = fitted(answer.meta, LIMITS.fact)[0]
    asked, session.place.asked = session.place.asked, []
    for event in (*asked, *answer.facts):
        session.log.record(event)


def _check_id(session_id: str) -> None:
    if not session_id:
        raise ValueError("the session id must not be empty")


def absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(path)


def _folder(path: str | os.PathLike[str]) -> str:
    folder = absolute(path)
    if not os.path.isdir(folder):
        there = os.path.lexists(folder)
        raise ValueError(f"{folder} {'is not a directory' if there else 'does not exist'}")
    return folder
