"""The agent under examination: how to reach it, and what has been seen of it already.

Checks share a connection as long as it is in order, and look at the same few turns: a prompt costs
an agent more than all the rest.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman._version import __version__
from dragoman.conformance.check import CheckFailed, NotApplicable, expect
from dragoman.conformance.evidence import Evidence
from dragoman.conformance.loose_json import Wire, at, is_text, obj
from dragoman.conformance.pretend_host import (
    CANCELLED,
    EVERYTHING,
    NOTHING,
    AgentRequest,
    Consent,
    PretendHost,
)
from dragoman.conformance.probe import Probe, Received, error_code, error_text, is_error, updates_of
from dragoman.errors import DragomanError
from dragoman.transport.transport import Start

TINY: Final = "Reply with the single word: ready. Use no tools."
LONG: Final = "Count from 1 to 500, one number on each line. Use no tools."
WORK: Final = (
    "Do these two things with your tools, then stop. First create the file conformance.txt in the "
    "current directory, containing the word ready. Then run the command: echo ready"
)
FILE: Final = "conformance.txt"
STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")

LATE_SECONDS: Final = 0.3
"""What may still be on its way behind an answer."""
_SIGN_IN: Final = -32000

AgentProbe: TypeAlias = Probe[PretendHost]
"""A connection to an agent."""

Kind: TypeAlias = Literal["allow", "reject", "fail", "cancel", "bare"]
"""The turns that are looked at: how questions are answered, and one of a client that offers
nothing."""
_CONSENT: Final[dict[Kind, Consent]] = {"cancel": "hold", "bare": "allow"}


class Prompts(msgspec.Struct, frozen=True):
    """What the agent is asked to do. A stand-in for a model may need other words."""

    short: str = TINY
    """To say something."""
    long: str = LONG
    """To continue for a while, so that it can be cancelled."""
    work: str = WORK
    """To write a file and to run a command."""

    def within(self, cwd: str) -> Prompts:
        """The same for a folder, which they may name as {cwd}."""
        return Prompts(*(text.replace("{cwd}", cwd) for text in msgspec.structs.astuple(self)))


class WorkTurn(msgspec.Struct, kw_only=True):
    """A turn in which the agent was to use its tools."""

    session_id: str
    cwd: str
    reply: Wire
    received: list[Received]
    """From the prompt on, and a moment longer than to its answer."""
    before_reply: int
    """How many of them came before the answer."""
    host: PretendHost

    @property
    def updates(self) -> list[tuple[Wire, bytes]]:
        """The updates of the session, each with its frame."""
        return updates_of(self.received, self.session_id)

    def of(self, *kinds: str) -> list[tuple[Wire, bytes]]:
        """The updates of these kinds."""
        return [(told, frame) for told, frame in self.updates if told.get("sessionUpdate") in kinds]

    def asked(self, *prefixes: str) -> list[AgentRequest]:
        """What the agent asked for in it, which there has to be. Raises NotApplicable."""
        found = self.host.of(*prefixes)
        if not found:
            raise NotApplicable(f"the agent sent no {' or '.join(prefixes)} request")
        return found


class Examinee:
    """Use it as an async context manager: it ends what it started."""

    def __init__(
        self,
        start: Start,
        cwd: str,
        patience: float = 20.0,
        exit_seconds: float = 5.0,
        prompts: Prompts | None = None,
    ) -> None:
        self.start = start
        self.cwd = cwd
        self.patience = patience
        self.prompts = (prompts or Prompts()).within(cwd)
        self.exit_seconds = exit_seconds
        """How long it may take to end."""
        self.evidence = Evidence()
        self.evidence.call(cwd, "$CWD")
        self._shared: AgentProbe | None = None
        self._welcome: Wire | None = None
        self._turns: dict[Kind, WorkTurn | Exception] = {}
        self._greeting: AgentProbe | None = None
        self._sessions = 0

    async def __aenter__(self) -> Examinee:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drop()

    # ── connections ───────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def stranger(self) -> AsyncGenerator[AgentProbe]:
        """A connection of its own, on which nothing was said."""
        try:
            transport = await self.start()
        except DragomanError as error:
            raise CheckFailed(f"the agent cannot be started: {error}") from error
        async with Probe(transport, PretendHost(), self.evidence, self.patience) as probe:
            yield probe

    @asynccontextmanager
    async def own(self, capabilities: Wire = EVERYTHING) -> AsyncGenerator[AgentProbe]:
        """A connection of its own, introduced."""
        async with self.stranger() as probe:
            await introduce(probe, capabilities)
            yield probe

    async def probe(self) -> AgentProbe:
        """The connection that checks share."""
        if self._shared is not None and self._shared.over is not None:
            await self.drop()
        if self._shared is None:
            try:
                transport = await self.start()
            except DragomanError as error:
                raise CheckFailed(f"the agent cannot be started: {error}") from error
            probe = await Probe(transport, PretendHost(), self.evidence, self.patience).__aenter__()
            self._shared = probe
            self._welcome = await introduce(probe)
        return self._shared

    async def drop(self) -> None:
        """End the shared connection: what comes next gets a new one."""
        probe, self._shared = self._shared, None
        if probe is not None:
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

    # ── sessions and turns ────────────────────────────────────────────────────────────────────

    async def opened(self, probe: AgentProbe, folder: str = "") -> Wire:
        """The result of `session/new`, in a folder below ours if one is named. Raises
        NotApplicable if a sign-in is needed first."""
        cwd = os.path.join(self.cwd, folder) if folder else self.cwd
        if folder:
            os.makedirs(cwd, exist_ok=True)
        reply = await probe.call("session/new", {"cwd": cwd, "mcpServers": []})
        if error_code(reply) == _SIGN_IN:
            raise NotApplicable("the agent requires a sign-in first")
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

    async def turn(self, kind: Kind) -> WorkTurn:
        """A turn in which the agent works, taken once."""
        if kind not in self._turns:
            try:
                self._turns[kind] = await self._taken(kind)
            except (CheckFailed, NotApplicable) as error:
                self._turns[kind] = error
        taken = self._turns[kind]
        if isinstance(taken, Exception):
            raise taken
        return taken

    async def _taken(self, kind: Kind) -> WorkTurn:
        async with self.own(NOTHING if kind == "bare" else EVERYTHING) as probe:
            probe.host = PretendHost(_CONSENT.get(kind, kind))  # type: ignore[arg-type]
            session_id, mark = await self.session(probe), len(probe.received)
            key = probe.begin("session/prompt", prompt(session_id, self.prompts.work))
            if kind == "cancel":
                try:
                    async with asyncio.timeout(self.patience):
                        await self._cancel_at_question(probe, session_id, key)
                except TimeoutError:
                    why = f"the agent asked and answered nothing within {self.patience:g} s"
                    raise CheckFailed(why) from None
            reply = await probe.reply_to(key, "session/prompt")
            before = probe.last_reply - mark
            await asyncio.sleep(LATE_SECONDS)
            received = probe.received[mark:]
            return WorkTurn(
                session_id=session_id,
                cwd=self.cwd,
                reply=reply,
                received=received,
                before_reply=before,
                host=probe.host,
            )

    async def _cancel_at_question(self, probe: AgentProbe, session_id: str, key: Any) -> None:
        while not probe.host.held:
            if probe.replies(key):
                raise NotApplicable("the agent asked no permission")
            if probe.over is not None:
                raise CheckFailed(f"the agent ended in the turn: {probe.over}")
            await probe.change()
        probe.notify("session/cancel", {"sessionId": session_id})
        probe.host.consent = "reject"
        for asked in probe.host.held:
            probe.grant(asked, CANCELLED)

    async def greeting(self) -> AgentProbe:
        """A connection, by now closed, on which the agent answered a handshake, a new session and
        an unknown method."""
        if self._greeting is None:
            async with self.own() as probe:
                await self.session(probe)
                await probe.settle()
            self._greeting = probe
        return self._greeting

    async def first_turn(self, probe: AgentProbe) -> str:
        """A session with one short turn in it."""
        session_id = await self.session(probe)
        await probe.result("session/prompt", prompt(session_id, self.prompts.short))
        return session_id

    def wrote(self, turn: WorkTurn) -> bool:
        """Whether the file is there, by whatever means."""
        here = Path(self.cwd, FILE)
        return here.exists() or any(path.endswith(FILE) for path in turn.host.files)


async def introduce(probe: AgentProbe, capabilities: Wire = EVERYTHING, version: int = 1) -> Wire:
    """Say hello; what the agent says of itself."""
    params = hello(capabilities, version)
    return await probe.result("initialize", params)


def hello(capabilities: Wire = EVERYTHING, version: int = 1) -> Wire:
    """The params of `initialize`."""
    info = {"name": "dragoman-conformance", "title": "Dragoman", "version": __version__}
    if version == 2:
        return {"protocolVersion": version, "capabilities": {}, "info": info}
    return {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": info}


def prompt(session_id: str, *parts: str | Wire) -> Wire:
    """The params of `session/prompt`; a text is a block."""
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"sessionId": session_id, "prompt": blocks}


def text_of(updates: list[Wire], kind: str = "agent_message_chunk") -> str:
    """The text of message chunks."""
    said = [told for told in updates if told.get("sessionUpdate") == kind]
    return "".join(str(at(told, "content", "text") or "") for told in said)


def ended(reply: Wire) -> str:
    """The stop reason of a prompt. Raises CheckFailed for an error."""
    expect(not is_error(reply), f"the turn ended with an error: {error_text(reply)}")
    return str(at(reply, "result", "stopReason"))
