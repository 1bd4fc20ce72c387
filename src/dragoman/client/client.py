"""The client: one connection to one agent, and the sessions on it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Unpack

from dragoman.agents.extensions import Quirks
from dragoman.agents.known import known_command
from dragoman.agents.sign_ins import AuthStatus
from dragoman.client.capabilities import (
    AgentCapabilities,
    AgentInfo,
    AuthMethod,
    SessionInfo,
    explained,
)
from dragoman.client.client_options import (
    Archived,
    Attendance,
    HostCapabilities,
    SessionOptions,
    Timeouts,
    offered_by,
)
from dragoman.client.connection import Connection
from dragoman.client.connection_questions import OutsideQuestions
from dragoman.client.dialects.dialect import Dialect, Meta, Welcome
from dragoman.client.router import Router
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.session_controls import CLOSED_SECONDS
from dragoman.client.sessions.session_factory import Listener, Openings, Terms, absolute
from dragoman.errors import (
    AuthRequired,
    CancelIgnored,
    ConnectionClosed,
    DragomanError,
    MethodNotFound,
    ResourceNotFound,
    SessionGone,
    Unsupported,
)
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    ElicitationProvider,
    ElicitationRequest,
)
from dragoman.host.gate import checked_providers
from dragoman.host.permissions.questions import PermissionsProvider
from dragoman.host.rules.policy import Policy
from dragoman.host.terminals.provider import TerminalsProvider
from dragoman.host.workspace.files import FilesProvider
from dragoman.public_face import PublicFace, names
from dragoman.rpc import Pace, Tap
from dragoman.session.facts import OnLimit
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.session.state_limits import ID, LIMITS, weigh_struct
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import (
    ProxyTarget,
    RemoteAgent,
    agent_name,
    is_remote,
    named,
    side_of,
)
from dragoman.transport.transport import Transport

if TYPE_CHECKING:
    from dragoman.agents.settings.settings_file import ModelProvider
    from dragoman.host.fence.fence import Fence

logger = logging.getLogger("dragoman.client")


class Client(PublicFace):
    """A connection to an agent. Make one with `Client.start`, and use it as a context manager.

    Entering it starts the agent and performs the handshake, which raises StartError,
    ConnectionLost, CallTimeout, RemoteError or VersionMismatch. From then on `agent_info`,
    `capabilities`, `auth_methods` and `protocol_version` have what the agent said of itself.
    """

    internal = names(
        "attended dialect explained extensions openings pauses read_at reconnect_session "
        "require strays"
    )

    agent_info: AgentInfo
    """The agent's own name and version."""
    capabilities: AgentCapabilities
    """What the agent offers."""
    protocol_version: int
    """The negotiated version of ACP; 0 before the handshake."""
    auth_methods: list[AuthMethod]
    """The sign-in methods that the agent offers."""
    meta: Meta
    """The `_meta` of the agent's answer to `initialize`."""

    def __init__(
        self,
        agent: AgentCommand | RemoteAgent | Transport,
        *,
        name: str,
        capabilities: HostCapabilities,
        terms: Terms,
        timeouts: Timeouts,
        tap: Tap | None,
        protocol: int = 1,
        proxies: Sequence[ProxyTarget] = (),
        questions: Attendance | None = None,
        fence: Fence | None = None,
        model_providers: Mapping[str, ModelProvider | None] | None = None,
    ) -> None:
        self.name = name
        self.fence = fence
        """The fence around the agent and its terminals, if there is one."""
        self.timeouts = timeouts
        self._questions: Attendance | None = questions
        self._greet(Welcome())
        self._outside = OutsideQuestions(
            terms.providers.elicitation, offered=capabilities.elicitation, attended=self.attended
        )
        self.on_question: Callable[[], None] | None = None
        """Called when a question is added to `pending` or removed from it."""
        self._outside.on_change = self._note_question
        self._router = Router(self._outside)
        self.extensions = self._router.extensions
        """What the program serves beyond ACP; see `dragoman.ext`."""
        if fence is not None:
            fence.network.rules.sessions = self._router.gates
        self._router.note_auth = self._note_auth
        self.auth: AuthStatus | None = None
        """Whether the agent is signed in, as it last said; None if it said nothing yet."""
        self.on_auth: Callable[[AuthStatus], None] | None = None
        """Called when that changes."""
        side = side_of(agent, proxies)
        self.files_are_here = side == "here"
        offers = offered_by(capabilities, terms.policy, name, side)
        if fence is not None:
            fence.policy, fence.agent = terms.policy, name
        self._connection = Connection(
            agent,
            self._router,
            offers=offers,
            timeouts=timeouts,
            tap=tap,
            on_lost=self._lost,
            protocol=protocol,
            proxies=proxies,
            fence=fence,
            model_providers=model_providers,
        )
        self.openings = Openings(
            self, self._router, terms, offers, folders_are_here=side != "there"
        )
        self._reconnecting = asyncio.Lock()

    @classmethod
    def start(
        cls,
        agent: str | AgentCommand | RemoteAgent | Transport,
        *,
        name: str | None = None,
        capabilities: HostCapabilities | None = None,
        policy: Policy | None = None,
        timeouts: Timeouts | None = None,
        tap: Tap | None = None,
        files: FilesProvider | None = None,
        terminals: TerminalsProvider | None = None,
        permissions: PermissionsProvider | None = None,
        elicitation: ElicitationProvider | None = None,
        quirks: Quirks | None = None,
        listen: Listener | None = None,
        protocol: int = 1,
        proxies: Sequence[ProxyTarget] = (),
        questions: Attendance | None = None,
        fence: Fence | None = None,
        model_providers: Mapping[str, ModelProvider | None] | None = None,
        limits: Sequence[SpendingLimit] = (),
        on_limit: OnLimit = "fail",
    ) -> Client:
        """A client for `agent`: a known agent by name, an address, a command, or a transport.

        `name` is what rules and records call the agent; by default, the name it was started by or
        gives itself. `policy` decides what the agent may do through us. What it leaves open goes to
        `permissions`, or to the program that reads the turn. `questions` says what happens if
        neither answers: `wait` for `session.answer`, or `refuse`. Without it we refuse, until the
        program first reads `session.pending` or calls `session.events()`. `tap` sees every frame,
        `listen` every event. `protocol` is the newest version of ACP to speak, 1 or 2. `proxies`
        are between us and the agent, the nearest to us first. `fence` is built around the agent and
        the terminals that we serve. `model_providers` are set each time the agent starts. `limits`
        apply to each session; `on_limit` says what happens to a prompt when the agent reports a
        limit of its model provider.

        Raises UnknownAgent for an unknown name, ValueError for a proxy at an address other than a
        WebSocket's, and TypeError for anything else that is not an agent, or for a provider that
        lacks a method.
        """
        providers = checked_providers(files, terminals, permissions, elicitation, fence)
        known_as = name or agent_name(agent)
        return cls(
            named(_found(agent), known_as),
            name=known_as,
            capabilities=capabilities or HostCapabilities(),
            terms=Terms(policy or Policy(), providers, quirks, listen, limits, on_limit),
            timeouts=timeouts or Timeouts(),
            tap=tap,
            protocol=protocol,
            proxies=tuple(proxies),
            questions=questions,
            fence=fence,
            model_providers=model_providers,
        )

    def __repr__(self) -> str:
        version = f"ACP {self.protocol_version}" if self.protocol_version else "not started"
        return f"<Client of {self.name or 'an agent'}, {version}>"

    # ── the connection ────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Client:
        self._greet(await self._connection.connect())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _greet(self, welcome: Welcome) -> None:
        self.protocol_version = welcome.protocol_version
        self.agent_info = welcome.agent
        self.capabilities = welcome.capabilities
        self.auth_methods = welcome.auth_methods
        self.meta = welcome.meta
        self.name = self.name or welcome.agent.name

    @property
    def dialect(self) -> Dialect:
        """How to speak to this agent. Raises ConnectionClosed before entering the client."""
        return self._connection.dialect

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that were started: those of proxies, then the agent's."""
        return self._connection.pids

    @property
    def connection_error(self) -> DragomanError | None:
        """Why the connection ended, once it has."""
        return self._connection.error

    def read_at(self, pace: Pace) -> None:
        """Wait for what `pace` returns, if anything, before reading more from the agent. Call it
        before entering the client."""
        self._connection.pace = pace

    @property
    def pauses(self) -> int | None:
        """How often reading was paused and continued; None while it is paused. Time that we did not
        read does not count as silence of the agent."""
        return self._connection.pauses

    @property
    def strays(self) -> int:
        """How often the agent sent something for a session that is not open here."""
        return self._router.strays

    def _lost(self, error: DragomanError) -> None:
        for session in self._router.sessions():
            session.lost(error)

    async def aclose(self) -> None:
        """End everything in order: sessions and their terminals, the transport, the process."""
        reason = "the client was closed"
        error = self.connection_error or ConnectionClosed(reason)
        sessions = self._router.sessions()
        for session in sessions:
            self._router.remove(session)
        try:
            await asyncio.gather(*(session.shut(reason, error) for session in sessions))
        finally:
            await self._connection.aclose()
            await self.openings.aclose()
            if self.fence is not None:
                await self.fence.aclose()

    async def kill(self, reason: str = "the agent was ended") -> None:
        """End the agent at once. Running turns end with the reason; sessions can `reconnect`."""
        await self._connection.kill(reason)

    # ── signing in ────────────────────────────────────────────────────────────────────────────

    async def authenticate(self, method_id: str, *, meta: Meta = None) -> None:
        """Sign in with one of `auth_methods` whose kind is `agent`. There is no time limit.

        Raises ValueError for an unknown method, or one that is run in a terminal instead.
        """
        known = {method.id: method for method in self.auth_methods}
        if method_id not in known:
            names = ", ".join(known) or "none"
            raise ValueError(f"unknown sign-in method {method_id!r}; available: {names}")
        if known[method_id].kind != "agent":
            raise ValueError(f"to sign in with {method_id!r}, run the agent in a terminal")
        try:
            await self.dialect.authenticate(method_id, meta)
        finally:
            self._outside.withdraw(None)
        self._note_auth(AuthStatus("authenticated"))

    @property
    def pending(self) -> list[ElicitationRequest]:
        """What the agent asks outside any session, while it signs in or opens one. `questions` says
        whether these wait for `answer_elicitation`. By default, they are declined until the program
        first reads this, and wait from then on."""
        if self._outside.attended is None:
            self._outside.attended = True
        return list(self._outside.pending.values())

    def _note_question(self) -> None:
        if self.on_question is not None:
            self.on_question()

    @property
    def questions(self) -> Attendance | None:
        """What happens to a question that nobody answers at once, here and in sessions opened from
        now on; None if the program did not choose."""
        return self._questions

    @questions.setter
    def questions(self, questions: Attendance | None) -> None:
        self._questions = questions
        self._outside.attended = self.attended

    @property
    def attended(self) -> bool | None:
        """Whether the program answers questions; None if it did not choose."""
        return None if self._questions is None else self._questions == "wait"

    async def answer_elicitation(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Answer one of `pending`. Raises UnknownQuestion if it is unknown or settled,
        ValueError if the form does not accept the content."""
        self._outside.answer(request_id, answer)

    async def logout(self, *, meta: Meta = None) -> None:
        """Sign out. Raises Unsupported if the agent does not offer it."""
        self.require("logout", "logout")
        await self.dialect.logout(meta)
        self._note_auth(AuthStatus("unauthenticated"))

    async def auth_status(self, *, meta: Meta = None) -> str:
        """Ask the agent whether it is signed in. Returns the `state` of the answer; `auth` has all
        of it. Raises Unsupported."""
        self.require("auth_status", "auth/status")
        status = await self.dialect.auth_status(meta)
        self._note_auth(status)
        return status.state

    def _note_auth(self, status: AuthStatus) -> None:
        before, self.auth = self.auth, status
        if status != before and self.on_auth is not None:
            self.on_auth(status)

    def explained(self, error: DragomanError) -> DragomanError:
        """The same error, shortened; if it asks for a sign-in, its message says what to do."""
        if isinstance(error, AuthRequired):
            self._note_auth(AuthStatus("unauthenticated"))
        return explained(error, self.auth_methods)

    @property
    def reply_meta(self) -> dict[str, dict[str, Any]]:
        """The `_meta` of the agent's newest reply to a method, such as `session/list`, if it had
        one. The replies that open sessions and end turns are in `Session.meta` and `TurnEnded`."""
        return self.dialect.reply_meta

    # ── providers of models ───────────────────────────────────────────────────────────────────

    async def list_providers(self, *, meta: Meta = None) -> list[dict[str, Any]]:
        """The model providers that the agent can use. Raises Unsupported."""
        self.require("providers", "providers/list")
        return await self.dialect.list_providers(meta)

    async def set_provider(
        self,
        provider_id: str,
        api_type: str,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        meta: Meta = None,
    ) -> None:
        """Change the address and headers of a model provider, now and whenever the agent is started
        again. Raises Unsupported."""
        from dragoman.agents.settings.settings_file import ModelProvider

        provider = ModelProvider(api_type=api_type, base_url=base_url, headers=dict(headers or {}))
        await self._provide("providers/set", provider_id, provider, meta)

    async def disable_provider(self, provider_id: str, *, meta: Meta = None) -> None:
        """Switch a provider off. Raises Unsupported."""
        await self._provide("providers/disable", provider_id, None, meta)

    async def _provide(
        self, method: str, provider_id: str, provider: ModelProvider | None, meta: Meta
    ) -> None:
        self.require("providers", method)
        await self.dialect.set_provider(provider_id, provider, meta)
        self._connection.model_providers[provider_id] = provider

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    async def new_session(
        self, cwd: str | os.PathLike[str], **options: Unpack[SessionOptions]
    ) -> Session:
        """Start a session in the folder `cwd`. The options are those of `SessionOptions`.

        Raises ValueError if the folder does not exist, AuthRequired if the agent requires a
        sign-in first, and what any call raises.
        """
        place = self.openings.place(cwd, **options)
        return await self.openings.new(place, "new")

    async def load_session(
        self, session_id: str, cwd: str | os.PathLike[str], **options: Unpack[SessionOptions]
    ) -> Session:
        """Open a session that the agent knows; its history is in `session.state` again.

        Raises Unsupported if the agent cannot load, ValueError for an empty id.
        """
        return await self._reopen("load", session_id, cwd, options)

    async def resume_session(
        self, session_id: str, cwd: str | os.PathLike[str], **options: Unpack[SessionOptions]
    ) -> Session:
        """Open a session that the agent knows, without its history.

        Raises Unsupported if the agent cannot resume, ValueError for an empty id.
        """
        return await self._reopen("resume", session_id, cwd, options)

    async def _reopen(
        self,
        way: Literal["load", "resume"],
        session_id: str,
        cwd: str | os.PathLike[str],
        options: SessionOptions,
    ) -> Session:
        self.require(way, f"session/{way}")
        return await self.openings.reopen(way, session_id, self.openings.place(cwd, **options))

    async def fork_session(
        self,
        session_id: str,
        cwd: str | os.PathLike[str],
        *,
        after: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """Start a session that remembers what the other one did. If `after` is the id of one of
        the agent's messages, the new session remembers only what happened up to that message.

        Raises Unsupported if the agent cannot fork, or cannot fork at a message; ValueError for
        an empty id.
        """
        place = self.openings.place(cwd, **options)
        return await self.openings.fork(session_id, place, after)

    async def ensure_session(
        self,
        session_id: str | None,
        cwd: str | os.PathLike[str],
        *,
        allow_new: bool = False,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """Continue a session: load it, else resume it, else start a new one if `allow_new`.

        `session.continuity` says which it was: `replayed`, `continued`, `reset`, or `new` when
        there was no id. Raises SessionNotContinued, ValueError for an empty id.
        """
        place = self.openings.place(cwd, **options)
        if session_id is None:
            return await self.openings.new(place, "new")
        return await self.openings.ensure(session_id, place, allow_new=allow_new)

    # ── sessions the agent keeps ──────────────────────────────────────────────────────────────

    async def list_sessions(
        self,
        cwd: str | os.PathLike[str] | None = None,
        cursor: str | None = None,
        *,
        archived: Archived | None = None,
        meta: Meta = None,
    ) -> AsyncIterator[SessionInfo]:
        """The sessions that the agent knows, page by page from `cursor`, except those it describes
        in more than 64 KiB. `archived` says whether archived sessions are included; by default, the
        agent decides. Raises Unsupported."""
        self.require("list", "session/list")
        if archived is not None:
            self.require("archive", "session/archive")
        folder = None if cwd is None else absolute(cwd)
        seen: set[str | None] = set()
        while cursor not in seen:
            seen.add(cursor)
            page, cursor = await self.dialect.list_sessions(folder, cursor, meta, archived=archived)
            for info in page:
                if len(info.id) <= ID and weigh_struct(info) <= LIMITS.fact:
                    yield info
            if cursor is None:
                return
        logger.warning("the agent's session pages form a loop")

    async def delete_session(self, session_id: str, *, meta: Meta = None) -> None:
        """Have the agent delete a session. Raises Unsupported."""
        self.require("delete", "session/delete")
        await self.dialect.delete_session(session_id, meta)
        if (session := self._router.get(session_id)) is not None:
            self._router.remove(session)
            await session.shut("the session was deleted")
            session.gate.forget()

    async def close_session(self, session_id: str, *, meta: Meta = None) -> None:
        """Cancel the running turn and close the session, in the agent too if it supports that.

        Raises SessionGone when it is not open here, CancelIgnored when the agent does not
        stop; the session is closed here in any case.
        """
        session = self._router.get(session_id)
        if session is None:
            raise SessionGone(session_id)
        session.begin_closing()
        try:
            await self._close_remotely(session, meta)
        finally:
            self._router.remove(session)
            self.dialect.forget(session_id)
            await session.shut("the session was closed")

    async def _close_remotely(self, session: Session, meta: Meta) -> None:
        offered = self.capabilities.close
        try:
            await session.cancel()
        except CancelIgnored:
            if not offered:
                raise
        if offered and self.connection_error is None:
            # An agent that does not know the session, or after all cannot close, has none to close.
            with suppress(MethodNotFound, ResourceNotFound):
                await self.dialect.close_session(session.id, meta)
        await session.has_stopped(CLOSED_SECONDS)  # some answer the close before the prompt

    async def archive_session(self, session_id: str, *, meta: Meta = None) -> None:
        """Have the agent archive a session. Raises Unsupported."""
        self.require("archive", "session/archive")
        await self.dialect.archive_session(session_id, meta)

    async def unarchive_session(self, session_id: str, *, meta: Meta = None) -> None:
        """Have the agent restore an archived session. Raises Unsupported."""
        self.require("archive", "session/unarchive")
        await self.dialect.unarchive_session(session_id, meta)

    async def session_status(self, session_id: str, *, meta: Meta = None) -> str:
        """Whether the session is loaded, in the agent's own terms. Raises Unsupported."""
        self.require("status", "session/status")
        return await self.dialect.session_status(session_id, meta)

    def require(self, capability: str, method: str) -> None:
        """Raise Unsupported for a method the agent did not advertise, without a round trip."""
        if not getattr(self.capabilities, capability):
            raise Unsupported(method)

    # ── after a crash ─────────────────────────────────────────────────────────────────────────

    async def reconnect_session(self, session: Session) -> None:
        """Start the agent again if it is gone, and have it continue this session."""
        async with self._reconnecting:
            if self.connection_error is not None:
                self._greet(await self._connection.reconnect())
        await session.gate.close()  # no agent knows what the lost one had running
        await self.openings.reconnect(session)


def _found(
    agent: str | AgentCommand | RemoteAgent | Transport,
) -> AgentCommand | RemoteAgent | Transport:
    if isinstance(agent, str):
        return RemoteAgent(agent) if is_remote(agent) else known_command(agent)
    if isinstance(agent, AgentCommand | RemoteAgent) or hasattr(agent, "receive"):
        return agent
    raise TypeError(
        "expected the name or address of an agent, an AgentCommand, a RemoteAgent or a Transport, "
        f"not {type(agent).__name__}"
    )
