"""The agent under test: a client that serves nothing and records everything the agent does.

Knows how to talk to an agent and how it ends; what is good and what is not is for `checks`.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from dragoman._version import __version__
from dragoman.errors import ConnectionLost, DragomanError, MethodNotFound, StartError
from dragoman.process import process_tree
from dragoman.process.child import ExitStatus
from dragoman.rpc import Peer
from dragoman.schema import codec, v1
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.target import RemoteAgent, way_to
from dragoman.transport.transport import Transport

# What the doctor found: a graded line for each check. Pure data.


Grade: TypeAlias = Literal["pass", "warn", "fail", "skip"]


class CheckOutcome(msgspec.Struct, frozen=True):
    """How one check went, in a grade and a sentence."""

    grade: Grade
    text: str


class Finding(CheckOutcome, frozen=True, kw_only=True):
    """An outcome, with the check it is of and how long that took."""

    check: str
    seconds: float = 0.0


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    """One examination of one agent."""

    agent: str
    command: str
    agent_info: dict[str, Any] = {}
    protocol_version: int = 0
    capabilities: dict[str, Any] = {}
    auth_methods: list[str] = []
    wants_sign_in: bool = False
    """Before there can be a session; what needs one was left out."""
    findings: list[Finding] = []

    @property
    def result(self) -> Grade:
        grades = {finding.grade for finding in self.findings}
        return "fail" if "fail" in grades else "warn" if "warn" in grades else "pass"

    def count(self, grade: Grade) -> int:
        return sum(finding.grade == grade for finding in self.findings)


def passed(text: str) -> CheckOutcome:
    return CheckOutcome("pass", text)


def warned(text: str) -> CheckOutcome:
    return CheckOutcome("warn", text)


def failed(text: str) -> CheckOutcome:
    return CheckOutcome("fail", text)


def skipped(text: str) -> CheckOutcome:
    return CheckOutcome("skip", text)


T = TypeVar("T")

_SESSIONS = v1.ClientSessionCapabilities(
    config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
)


class WatchedTransport(StdioTransport):
    """A process whose complaints and whose end can be watched."""

    _left = False

    @property
    def stderr(self) -> str:
        """The end of what it printed on standard error."""
        return self._errors.text()

    async def end_input(self, within: float) -> ExitStatus | None:
        """Close the agent's input; how it ended, None when it did not in that time."""
        self._left = True
        self._input.finish()
        try:
            async with asyncio.timeout(within):
                return await self._process.wait()
        except TimeoutError:
            return None

    async def aclose(self, *, exit_within: float = 2.0, term_within: float = 3.0) -> None:
        """As always; an agent that has had its time to end gets no more."""
        within = 0.0 if self._left else exit_within
        await super().aclose(exit_within=within, term_within=term_within)


class _Update(msgspec.Struct, rename="camel"):
    session_update: str = ""
    content: Any = None


class _Notification(msgspec.Struct, rename="camel"):
    session_id: str = ""
    update: _Update = msgspec.field(default_factory=_Update)


class Patient:
    """The agent, its connection, and what was seen of it."""

    def __init__(self, transport: Transport, cwd: str) -> None:
        self.cwd = cwd
        self.transport = transport
        self.process = transport if isinstance(transport, WatchedTransport) else None
        """None for one that runs elsewhere: what becomes of its process is not seen here."""
        self.peer = Peer(transport, on_notification=self._notified, on_request=self._requested)
        self.by_line = True
        """Whether messages follow each other on one stream."""
        self.keeper = 0 if self.process is None else _parent(self.process.pid)
        self._answer: msgspec.Raw | DragomanError | None = None
        self.welcome = v1.InitializeResponse(protocol_version=0)
        self.raw_welcome: dict[str, Any] = {}
        self.session: v1.NewSessionResponse | None = None
        self.forked: str | None = None
        """The session that was made from it."""
        self.wants_sign_in = False
        self.updates: dict[str, list[str]] = {}
        """The kinds of updates seen so far, by session."""
        self._at_reply: dict[str, int] = {}
        self.said = ""
        self.asked: list[str] = []
        """The methods of ours it called, in order."""
        self.changed = asyncio.Event()
        self.lingered = 0.0
        """Seconds we waited on purpose, which are not the agent's."""

    @classmethod
    async def admit(cls, agent: AgentCommand | RemoteAgent, cwd: str) -> Patient:
        """Start the agent, or be let in where it is. Raises StartError, and ConnectionLost at a
        door that is shut again at once."""
        if isinstance(agent, AgentCommand):
            patient = cls(await WatchedTransport.start(agent), cwd)
            await patient.peer.__aenter__()
            return patient
        patient = cls(await way_to(agent)(), cwd)
        patient.by_line = agent.url.lower().startswith("ws")
        await patient.peer.__aenter__()
        try:
            await patient._knock()
        except BaseException:
            await patient.discharge()
            raise
        return patient

    async def _knock(self) -> None:
        """Over HTTP only the first message tells whether we are let in. What it is answered with,
        even an error, is kept."""
        try:
            self._answer = await self.introduce()
        except (StartError, ConnectionLost):
            raise
        except DragomanError as error:
            self._answer = error

    async def introduce(self) -> msgspec.Raw:
        """What it answers to `initialize`, which is sent once."""
        if isinstance(self._answer, DragomanError):
            raise self._answer
        if self._answer is not None:
            return self._answer
        request = v1.InitializeRequest(
            protocol_version=1,
            client_info=v1.Implementation(name="dragoman", title="Dragoman", version=__version__),
            # Else its switches are not among the options it tells of.
            client_capabilities=v1.ClientCapabilities(session=_SESSIONS),
        )
        return await self.peer.call("initialize", codec.encode(request))

    async def discharge(self) -> None:
        await self.peer.aclose()

    # ── talking ───────────────────────────────────────────────────────────────────────────────

    async def call(self, method: str, request: Any, reply_type: type[T]) -> T:
        """Raises what `Peer.call` raises, and InvalidMessage for an answer that does not fit."""
        raw = await self.peer.call(method, codec.encode(request), on_reply=self._replied)
        return codec.decode(codec.object_of(raw), reply_type)

    async def prompt(self, session_id: str, text: str) -> v1.PromptResponse:
        content: list[v1.ContentBlock] = [v1.TextContent(text=text)]
        request = v1.PromptRequest(session_id=session_id, prompt=content)
        return await self.call("session/prompt", request, v1.PromptResponse)

    def cancel(self, session_id: str) -> None:
        request = v1.CancelNotification(session_id=session_id)
        self.peer.notify("session/cancel", codec.encode(request))

    def seen(self, session_id: str) -> list[str]:
        return self.updates.setdefault(session_id, [])

    def seen_at_reply(self, session_id: str) -> int:
        """How many updates of a session stood before the last reply, on the wire."""
        return self._at_reply.get(session_id, 0)

    async def until_updated(self, session_id: str, beyond: int) -> None:
        """Wait for more updates of this session than there were."""
        while len(self.seen(session_id)) <= beyond:
            self.changed.clear()
            await self.changed.wait()

    async def linger(self, seconds: float) -> None:
        """Leave it time to do what it should not."""
        self.lingered += seconds
        await asyncio.sleep(seconds)

    def left_behind(self) -> list[str]:
        """The names of processes that live on, once the agent itself has ended."""
        if self.keeper in (0, os.getpid()):
            return []
        return [_name(pid) for pid in process_tree.descendants(self.keeper) if _lives(pid)]

    # ── what it does ──────────────────────────────────────────────────────────────────────────

    def _notified(self, method: str, params: msgspec.Raw) -> None:
        if method != "session/update":
            return
        try:
            seen = msgspec.json.decode(params, type=_Notification)
        except msgspec.DecodeError:
            return
        self.seen(seen.session_id).append(seen.update.session_update)
        match seen.update.content:
            case {"text": str(text)} if seen.update.session_update == "agent_message_chunk":
                self.said += text
            case _:
                pass
        self.changed.set()

    def _replied(self, raw: msgspec.Raw) -> None:
        self._at_reply = {session_id: len(kinds) for session_id, kinds in self.updates.items()}

    def _requested(self, method: str, params: msgspec.Raw) -> bytes:
        self.asked.append(method)
        if method == "session/request_permission":
            return codec.encode(_refusal(params))
        raise MethodNotFound(f"{method} was not offered")


def _refusal(params: msgspec.Raw) -> v1.RequestPermissionResponse:
    request = codec.decode(params, v1.RequestPermissionRequest)
    for option in request.options:
        if option.kind.startswith("reject"):
            chosen = v1.SelectedPermissionOutcome(option_id=option.option_id)
            return v1.RequestPermissionResponse(outcome=chosen)
    return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())


def _parent(pid: int) -> int:
    """The pid of the process's keeper; 0 if it cannot be known."""
    return int(_status(pid).get("PPid", "0"))


def _name(pid: int) -> str:
    return _status(pid).get("Name", str(pid))


def _lives(pid: int) -> bool:
    return _status(pid).get("State", "Z")[:1] not in "ZX"


def _status(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            pairs = (line.partition(":") for line in file)
            return {name: value.strip() for name, _, value in pairs}
    except OSError:
        return {}
