"""An agent at the doctor's: one session and one short turn serve all checks.

It is offered nothing, it is asked for no work, and it is started again only to see what it
remembers.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

from dragoman.conformance.check import CheckFailed, NotApplicable
from dragoman.conformance.examination.agent_words import Prompts, ended, prompt
from dragoman.conformance.examination.examinee import LATE_SECONDS, AgentProbe, Examinee
from dragoman.conformance.examination.observations import (
    AgentExit,
    Reopening,
    ShortTurn,
    TurnKind,
    WorkTurn,
)
from dragoman.conformance.examination.watched_transport import WatchedTransport
from dragoman.conformance.probing.loose_json import Wire, at, is_text
from dragoman.conformance.probing.pretend_host import PretendHost
from dragoman.errors import DragomanError
from dragoman.transport.transport import Start, Transport

OFFERED: Final[Wire] = {"session": {"configOptions": {"boolean": {}}}}
"""Without this, an agent does not list its switches among its options."""
_GONE: Final = "the agent has exited"


class Patient(Examinee):
    """Opened by `admit`; it never starts an agent by itself."""

    def __init__(self, start: Start, cwd: str, patience: float, *, by_line: bool) -> None:
        prompts = Prompts()
        super().__init__(
            start,
            cwd,
            patience,
            prompts=Prompts(short=prompts.short, long=prompts.long, work=prompts.short),
            capabilities=OFFERED,
            by_line=by_line,
        )
        self.sign_in = ""
        """Why it gives no session to a client that is not signed in."""
        self._made: set[str] = set()

    async def admit(self) -> None:
        """Start the agent, or connect to it. Raises DragomanError."""
        await self.drop()
        self._known.pop("welcome", None)
        self._welcome = None
        self._shared = await self._probe(await self.start()).__aenter__()

    def _probe(self, transport: Transport) -> AgentProbe:
        probe = super()._probe(transport)
        probe.host = PretendHost("reject")
        return probe

    @property
    def stderr(self) -> str | None:
        """What it has printed on standard error; None if that is not seen here."""
        transport = None if self._shared is None else self._shared.transport
        return transport.stderr if isinstance(transport, WatchedTransport) else None

    @property
    def has_session(self) -> bool:
        return isinstance(self._known.get("session"), dict)

    @property
    def lost(self) -> DragomanError | None:
        """Why the connection ended, if it has."""
        return None if self._shared is None else self._shared.over

    async def probe(self) -> AgentProbe:
        """The one connection, introduced. Raises NotApplicable when it has ended."""
        probe = self._shared
        if probe is None:
            raise NotApplicable(_GONE)
        self._welcome = await self.once("welcome", partial(self._introduced, probe))
        if probe.over is not None:
            raise NotApplicable(_GONE)
        return probe

    # ── one session ───────────────────────────────────────────────────────────────────────────

    async def opened(self, probe: AgentProbe, folder: str = "") -> Wire:
        """The one session, whatever the folder."""
        return await self.once("session", partial(self._opened, probe))

    async def _opened(self, probe: AgentProbe) -> Wire:
        try:
            return await super().opened(probe)
        except NotApplicable as why:
            self.sign_in = str(why)
            raise

    async def first_turn(self, probe: AgentProbe) -> str:
        turn = await self.short_turn()
        ended(turn.reply)
        return turn.session_id

    async def _short_turn(self) -> ShortTurn:
        turn = await self.turn("bare")
        return ShortTurn(turn.session_id, turn.reply, [told for told, _ in turn.updates])

    async def turn(self, kind: TurnKind) -> WorkTurn:
        """The one turn, whatever the kind."""
        return await self.once("turn", self._turn)

    async def _turn(self) -> WorkTurn:
        probe = await self.probe()
        session_id, mark = await self.session(probe), len(probe.received)
        reply = await probe.call("session/prompt", prompt(session_id, self.prompts.short))
        before = probe.last_reply - mark
        await probe.limit.of(LATE_SECONDS).rest()
        return WorkTurn(
            session_id=session_id,
            reply=reply,
            received=probe.received[mark:],
            before_reply=before,
            host=probe.host,
        )

    async def greeting(self) -> AgentProbe:
        return await self.probe()

    def settable(self, options: list[Wire]) -> list[Wire]:
        """Only modes: some agents remember a model or a provider for all sessions."""
        return [each for each in options if each.get("category") == "mode"]

    # ── the end, and coming back ──────────────────────────────────────────────────────────────

    async def _departed(self) -> AgentExit:
        probe = self._shared
        if probe is None or not isinstance(probe.transport, WatchedTransport):
            raise NotApplicable("the agent is remote")
        departure = await self.seen_off(probe, probe.transport)
        self._note_sessions(probe)
        await self.drop()
        return departure

    async def _reopened(self, method: str) -> Reopening:
        session_id = (await self.short_turn()).session_id
        return await self.opened_again(await self.probe(), method, session_id)

    def _note_sessions(self, probe: AgentProbe) -> None:
        made: list[Any] = [at(each.message, "result", "sessionId") for each in probe.received]
        self._made.update(str(key) for key in made if is_text(key))

    async def tidy(self) -> None:
        """Delete the sessions that were made, where the agent can."""
        if self._shared is not None:
            self._note_sessions(self._shared)
        with suppress(CheckFailed, NotApplicable):
            await self.needs("sessionCapabilities", "delete")
            for key in sorted(self._made):
                await (await self.probe()).call("session/delete", {"sessionId": key})
