"""The agent under examination: how to reach it, and what has been seen of it already.

Checks share a connection as long as it is in order, and look at the same few turns.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Self, TypeAlias, TypeVar

from dragoman.conformance.check import CheckFailed, NotApplicable
from dragoman.conformance.examination.agent_words import Prompts, hello, prompt, text_of
from dragoman.conformance.examination.observations import (
    AgentExit,
    Reopening,
    ShortTurn,
    TurnKind,
    WorkTurn,
)
from dragoman.conformance.examination.watched_transport import WatchedTransport, left_below
from dragoman.conformance.probing.evidence import Evidence
from dragoman.conformance.probing.loose_json import Wire, at, is_text, obj
from dragoman.conformance.probing.pretend_host import (
    CANCELLED,
    EVERYTHING,
    NOTHING,
    Consent,
    PretendHost,
)
from dragoman.conformance.probing.probe import Probe, error_code, error_text
from dragoman.conformance.probing.wait_limit import WaitLimit, ended, family
from dragoman.errors import DragomanError
from dragoman.transport.transport import Start, Transport

_LEAVE_SECONDS: Final = 2.0
"""What an agent may need to write down what it has to remember."""
LATE_SECONDS: Final = 0.3
"""What may still be on its way after an answer."""
_SIGN_IN: Final = -32000

AgentProbe: TypeAlias = Probe[PretendHost]
"""A connection to an agent."""

_CONSENT: Final[dict[TurnKind, Consent]] = {
    "allow": "allow",
    "reject": "reject",
    "fail": "fail",
    "cancel": "hold",
    "bare": "allow",
}
T = TypeVar("T")


class Examinee:
    """Use it as an async context manager: it ends what it started."""

    def __init__(
        self,
        start: Start,
        cwd: str,
        patience: float = 20.0,
        exit_seconds: float = 5.0,
        prompts: Prompts | None = None,
        *,
        capabilities: Wire = EVERYTHING,
        by_line: bool = True,
    ) -> None:
        """`patience` bounds each wait for an answer, `exit_seconds` that for the agent's end.
        `by_line` says whether messages follow each other on one stream."""
        self.start = start
        self.cwd = cwd
        self.prompts = (prompts or Prompts()).within(cwd)
        self.patience = patience
        self.exit_seconds = exit_seconds
        self.by_line = by_line
        self.evidence = Evidence()
        self.evidence.call(cwd, "$CWD")
        self._capabilities = capabilities
        self._shared: AgentProbe | None = None
        self._welcome: Wire | None = None
        self._known: dict[str, Any] = {}
        self._sessions = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drop()

    # ── connections ───────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def stranger(self) -> AsyncGenerator[AgentProbe]:
        """A connection of its own, on which nothing was said."""
        async with self._probe(await self._started()) as probe:
            try:
                yield probe
            finally:
                await _left(probe)

    @asynccontextmanager
    async def own(self, capabilities: Wire | None = None) -> AsyncGenerator[AgentProbe]:
        """A connection of its own, introduced."""
        async with self.stranger() as probe:
            await self._introduced(probe, capabilities)
            yield probe

    @asynccontextmanager
    async def process(self) -> AsyncGenerator[tuple[AgentProbe, WatchedTransport]]:
        """A connection of its own to an agent whose process is ours, introduced. Raises
        NotApplicable."""
        async with self.stranger() as probe:
            if not isinstance(probe.transport, WatchedTransport):
                raise NotApplicable("the agent is not a process of this machine")
            await self._introduced(probe)
            yield probe, probe.transport

    async def probe(self) -> AgentProbe:
        """The connection that checks share."""
        if self._shared is not None and self._shared.over is not None:
            await self.drop()
        if self._shared is None:
            self._shared = await self._probe(await self._started()).__aenter__()
            self._welcome = await self._introduced(self._shared)
        return self._shared

    async def _started(self) -> Transport:
        try:
            return await self.start()
        except DragomanError as error:
            raise CheckFailed(f"the agent cannot be started: {error}") from error

    def _probe(self, transport: Transport) -> AgentProbe:
        limit = WaitLimit(self.patience)
        if isinstance(transport, WatchedTransport):
            limit = WaitLimit(self.patience, partial(family, transport.pid))
        return Probe(transport, PretendHost(), self.evidence, limit)

    async def _introduced(self, probe: AgentProbe, capabilities: Wire | None = None) -> Wire:
        offered = self._capabilities if capabilities is None else capabilities
        return await probe.result("initialize", hello(offered))

    async def drop(self) -> None:
        """End the shared connection: what comes next gets a new one."""
        probe, self._shared = self._shared, None
        if probe is not None:
            await _left(probe)
            await probe.aclose()

    async def welcome(self) -> Wire:
        """What the agent says of itself."""
        if self._welcome is None:
            await self.probe()
        assert self._welcome is not None
        return self._welcome

    async def offers(self, *path: str) -> Any:
        """What it advertises there; None for nothing."""
        value = at(await self.welcome(), "agentCapabilities", *path)
        return None if value is False else value

    async def needs(self, *path: str) -> None:
        """Raises NotApplicable unless it advertises this."""
        if await self.offers(*path) is None:
            raise NotApplicable(f"the agent does not advertise {'.'.join(path)}")

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def opened(self, probe: AgentProbe, folder: str = "") -> Wire:
        """The result of `session/new`, in a folder below ours if one is named. Raises
        NotApplicable if a sign-in is needed first."""
        cwd = os.path.join(self.cwd, folder) if folder else self.cwd
        if folder:
            os.makedirs(cwd, exist_ok=True)
        reply = await probe.call("session/new", {"cwd": cwd, "mcpServers": []})
        if error_code(reply) == _SIGN_IN:
            raise NotApplicable(f"the agent requires a sign-in first: {error_text(reply)}")
        if reply.get("error") is not None:
            raise CheckFailed(f"session/new was answered with an error: {error_text(reply)}")
        made = obj(reply.get("result"))
        if is_text(key := made.get("sessionId")):
            self._sessions += 1
            self.evidence.call(str(key), f"$SESSION{self._sessions}")
        return made

    async def session(self, probe: AgentProbe) -> str:
        """The id of a new session."""
        return str((await self.opened(probe)).get("sessionId"))

    async def twins(self, probe: AgentProbe) -> tuple[str, str]:
        """The ids of two sessions in one folder."""
        first, second = [await self.opened(probe, "twins") for _ in range(2)]
        return str(first.get("sessionId")), str(second.get("sessionId"))

    async def first_turn(self, probe: AgentProbe) -> str:
        """A session with one short turn in it."""
        session_id = await self.session(probe)
        await probe.result("session/prompt", prompt(session_id, self.prompts.short))
        return session_id

    def settable(self, options: list[Wire]) -> list[Wire]:
        """The options that may be changed to see what happens."""
        return options

    # ── what is seen once ─────────────────────────────────────────────────────────────────────

    async def once(self, name: str, see: Callable[[], Awaitable[T]]) -> T:
        """What `see` brings the first time; what it raises then is raised each time."""
        if name not in self._known:
            try:
                self._known[name] = await see()
            except (CheckFailed, NotApplicable) as error:
                self._known[name] = error
        found = self._known[name]
        if isinstance(found, Exception):
            raise found
        return found

    async def greeting(self) -> AgentProbe:
        """A connection, by now closed, on which the agent answered a handshake, a new session and
        an unknown method."""
        return await self.once("greeting", self._greeted)

    async def _greeted(self) -> AgentProbe:
        async with self.own() as probe:
            await self.session(probe)
            await probe.settle()
        return probe

    async def short_turn(self) -> ShortTurn:
        """A turn in which the agent says something."""
        return await self.once("short turn", self._short_turn)

    async def _short_turn(self) -> ShortTurn:
        probe = await self.probe()
        session_id = await self.session(probe)
        reply = await probe.call("session/prompt", prompt(session_id, self.prompts.short))
        return ShortTurn(session_id, reply, probe.updates(session_id))

    async def turn(self, kind: TurnKind) -> WorkTurn:
        """A turn in which the agent works."""
        return await self.once(f"turn {kind}", partial(self._worked, kind))

    async def _worked(self, kind: TurnKind) -> WorkTurn:
        async with self.own(NOTHING if kind == "bare" else None) as probe:
            probe.host = PretendHost(_CONSENT[kind])
            session_id, mark = await self.session(probe), len(probe.received)
            key = probe.begin("session/prompt", prompt(session_id, self.prompts.work))
            if kind == "cancel":
                await self._cancel_at_question(probe, session_id, key)
            reply = await probe.reply_to(key, "session/prompt")
            before = probe.last_reply - mark
            if kind == "allow":
                await probe.limit.of(LATE_SECONDS).rest()
            return WorkTurn(
                session_id=session_id,
                reply=reply,
                received=probe.received[mark:],
                before_reply=before,
                host=probe.host,
            )

    async def _cancel_at_question(self, probe: AgentProbe, session_id: str, key: Any) -> None:
        wait = probe.limit.wait()
        while not probe.host.held:
            if probe.replies(key):
                raise NotApplicable("the agent asked no permission")
            if probe.over is not None:
                raise CheckFailed(f"the agent ended in the turn: {probe.over}")
            if not await probe.change(wait):
                why = f"the agent asked and answered nothing within {self.patience:g} s"
                raise CheckFailed(why)
        probe.notify("session/cancel", {"sessionId": session_id})
        probe.host.consent = "reject"
        for asked in probe.host.held:
            probe.grant(asked, CANCELLED)

    async def reopening(self, method: str) -> Reopening:
        """A session with one turn, opened again with `session/load` or `session/resume`. Raises
        NotApplicable if nothing was said that could be replayed."""
        return await self.once(method, partial(self._reopened, method))

    async def _reopened(self, method: str) -> Reopening:
        first = await self.probe()
        session_id = await self.first_turn(first)
        if not text_of(first.updates(session_id)).strip():
            raise NotApplicable("the agent said nothing that could be replayed")
        # Others can have it only when this connection is closed.
        await self.drop()
        async with self.own() as probe:
            return await self.opened_again(probe, method, session_id)

    async def opened_again(self, probe: AgentProbe, method: str, session_id: str) -> Reopening:
        """What comes when a session is opened again on this connection."""
        mark = len(probe.received)
        await probe.result(method, self.where(session_id))
        answered = probe.last_reply
        await probe.limit.of(LATE_SECONDS).rest()
        return Reopening(
            probe.updates(session_id, mark, answered), probe.updates(session_id, answered)
        )

    def where(self, session_id: str) -> Wire:
        """The params of what opens a session that exists."""
        return {"sessionId": session_id, "cwd": self.cwd, "mcpServers": []}

    async def departure(self) -> AgentExit:
        """How the agent ends. Raises NotApplicable if its process is not ours."""
        return await self.once("departure", self._departed)

    async def _departed(self) -> AgentExit:
        async with self.process() as (probe, process):
            await self.session(probe)
            return await self.seen_off(probe, process)

    async def seen_off(self, probe: AgentProbe, process: WatchedTransport) -> AgentExit:
        """What becomes of a process whose input ends."""
        keeper, limit = process.keeper(), probe.limit.of(self.exit_seconds)
        status = await process.end_input(limit)
        if status is None:
            return AgentExit(None, [])
        left = left_below(keeper)
        names = [name for pid, name in left.items() if not await ended(pid, limit)]
        return AgentExit(status, sorted(names))


async def _left(probe: AgentProbe) -> None:
    """Let the agent exit by itself: on a busy machine, that takes longer than a transport waits."""
    if isinstance(probe.transport, WatchedTransport):
        await probe.transport.end_input(probe.limit.of(_LEAVE_SECONDS))
