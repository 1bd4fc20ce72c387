"""Every exception Dragoman raises.

`docs/reference/errors.md`, generated from this module, draws the tree. Data is in attributes; the
sentence for people is `str(error)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class DragomanError(Exception):
    """The base class of Dragoman's exceptions."""

    _sentence: ClassVar[str] = ""

    def __str__(self) -> str:
        return self._sentence.format_map(vars(self)) if self._sentence else super().__str__()


class ConnectionLost(DragomanError):
    """The connection to the agent is gone; nothing more can be sent or received."""


class ConnectionClosed(ConnectionLost):
    """The connection was closed cleanly, by us or by the other side."""

    def __init__(self, reason: str = "the connection is closed") -> None:
        super().__init__(reason)
        self.reason = reason


class AgentExited(ConnectionLost):
    """The agent's process ended unexpectedly; `name` is the agent's display name, if it
    differs from the command."""

    def __init__(
        self,
        command: str,
        *,
        code: int | None = None,
        signal: str | None = None,
        stderr: str = "",
        name: str = "",
    ) -> None:
        super().__init__(command, code, signal, stderr)
        self.command = command
        self.name = name
        self.code = code
        self.signal = signal
        self.stderr = stderr

    @property
    def ending(self) -> str:
        """How the process ended, as the end of a sentence."""
        if self.signal is not None:
            return f"was ended by {self.signal}"
        if self.code is not None:
            return f"exited with code {self.code}"
        return "closed its output"

    @property
    def story(self) -> str:
        """How it ended, and the end of what it printed."""
        return _with_tail(self.ending, self.stderr)

    def __str__(self) -> str:
        return f"the agent {self.name or self.command!r} {self.story}"


class NotAnAgent(AgentExited):
    """The process ended before it sent any ACP message; `printed` is what it wrote instead."""

    def __init__(
        self,
        command: str,
        *,
        code: int | None = None,
        signal: str | None = None,
        stderr: str = "",
        printed: str = "",
    ) -> None:
        super().__init__(command, code=code, signal=signal, stderr=stderr)
        self.printed = printed

    @property
    def story(self) -> str:
        said = f"ended before it spoke ACP ({self.ending})"
        # A banner on the one says nothing of the failure on the other.
        return _with_tail(said, f"{self.printed.rstrip()}\n{self.stderr}")


class PeerStalled(ConnectionLost):
    """The other side stopped reading: `pending` bytes could not be delivered."""

    _sentence = "the agent stopped reading its input ({pending} bytes could not be sent)"

    def __init__(self, pending: int) -> None:
        super().__init__(pending)
        self.pending = pending


class RemoteLost(ConnectionLost):
    """The connection to a remote agent was lost; `reason` says how, `refused` whether the agent
    rejected us."""

    _sentence = "the connection to {place} was lost: {reason}"

    def __init__(self, place: str, reason: str, *, refused: bool = False) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason
        self.refused = refused


class ChainBroken(ConnectionLost):
    """A component of a proxy chain failed, which ended the chain; `component` names it, `reason`
    says how it failed."""

    _sentence = "{component} {reason}"

    def __init__(self, component: str, reason: str) -> None:
        super().__init__(component, reason)
        self.component = component
        self.reason = reason


class StartError(DragomanError):
    """The agent could not be started."""

    _sentence = "could not start {command!r}: {reason}"

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(command, reason)
        self.command = command
        self.reason = reason


class CommandNotFound(StartError):
    """There is no such command; also raised for a wrapper that exits with 127 at once."""

    def __init__(self, command: str, reason: str = "command not found") -> None:
        super().__init__(command, reason)


class FenceError(StartError):
    """A program was to run in a fence, but none can be built here; nothing was started."""

    _sentence = "no fence can be built around {command!r}: {reason}; nothing was started"


class Unreachable(StartError):
    """A remote agent could not be reached; `again` says whether another attempt may help, `refused`
    whether the agent asks for other credentials."""

    _sentence = "could not reach {place}: {reason}"

    def __init__(
        self, place: str, reason: str, *, again: bool = False, refused: bool = False
    ) -> None:
        super().__init__(place, reason)
        self.place = place
        self.again = again
        self.refused = refused


class ProtocolError(DragomanError):
    """The other side sent something the protocol does not allow."""


class FrameTooLarge(ProtocolError):
    """A frame exceeded the limit, which ends the connection."""

    _sentence = "a frame exceeds the limit of {limit} bytes"

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class InvalidMessage(ProtocolError):
    """A frame that is not a JSON-RPC message, or whose content does not fit its type."""


class VersionMismatch(ProtocolError):
    """The agent answered the handshake with a version of ACP that we do not speak."""

    _sentence = "the agent speaks ACP version {version}, which is not supported"

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


class RemoteError(DragomanError):
    """An error reply: from the agent to one of our requests, or raised to answer a request from the
    agent with an error."""

    code: int = -32603
    title: ClassVar[str] = "error"

    def __init__(self, message: str = "", data: Any = None, *, code: int | None = None) -> None:
        if code is not None:
            self.code = code
        self.message = message or self.title
        self.data = data
        super().__init__(self.message, data)

    def __str__(self) -> str:
        detail = _detail(self.data)
        known = f"{self.message} (code {self.code})"
        return f"{known}: {detail}" if detail and detail not in self.message else known


class ParseError(RemoteError):
    code, title = -32700, "parse error"


class InvalidRequest(RemoteError):
    code, title = -32600, "invalid request"


class MethodNotFound(RemoteError):
    code, title = -32601, "method not found"


class InvalidParams(RemoteError):
    code, title = -32602, "invalid params"


class InternalError(RemoteError):
    code, title = -32603, "internal error"


class RequestCancelled(RemoteError):
    code, title = -32800, "request cancelled"


class AuthRequired(RemoteError):
    code, title = -32000, "authentication required"
    methods: Sequence[object] = ()
    """The sign-in methods that the agent offers, each an `AuthMethod`."""


class ResourceNotFound(RemoteError):
    code, title = -32002, "resource not found"


class SessionError(DragomanError):
    """Something is wrong with one session; others continue."""

    _sentence = "{sentence}"

    def __init__(self, session_id: str, sentence: str) -> None:
        super().__init__(session_id, sentence)
        self.session_id = session_id
        self.sentence = sentence


class SessionBusy(SessionError):
    """A turn is running, and the caller asked not to queue."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, f"session {session_id} is busy with another turn")


class SessionGone(SessionError):
    """The session is unknown here, or was closed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, f"session {session_id} is unknown or closed")


class SessionNotContinued(SessionError):
    """The session cannot be continued, and starting an empty one was not allowed."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(session_id, f"session {session_id} cannot be continued: {reason}")
        self.reason = reason


class NoProgress(SessionError):
    """The agent made no progress for longer than the caller allowed, which ended the turn."""

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(session_id, f"the agent made no progress for {seconds:g} s")
        self.seconds = seconds


class NoResult(SessionError):
    """The agent gave no valid result; `problems` says what was wrong with each that it gave."""

    def __init__(self, session_id: str, sentence: str, problems: Sequence[str]) -> None:
        super().__init__(session_id, sentence)
        self.problems = tuple(problems)


class CancelIgnored(SessionError):
    """The agent did not stop in time after a cancellation; it may still be working."""

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(session_id, f"the agent did not stop within {seconds:g} s of the cancel")
        self.seconds = seconds


class UnknownSession(SessionError):
    """No session with that id or name is stored; `session_id` is what was asked for."""

    def __init__(self, session_id: str, sentence: str = "") -> None:
        super().__init__(session_id, sentence or f"no such session: {session_id}")


class AmbiguousSession(UnknownSession):
    """The id or name matches more than one session, or is too short to tell."""


class NameTaken(SessionError):
    """Another session of the same folder has that name."""

    def __init__(self, session_id: str, name: str) -> None:
        super().__init__(session_id, f"another session in this directory is named {name}")
        self.name = name


class SessionOwned(SessionError):
    """Another process runs the session: `owner` says which."""

    def __init__(self, session_id: str, owner: str) -> None:
        super().__init__(session_id, f"session {session_id} is run by {owner}")
        self.owner = owner


class LeaseLost(SessionError):
    """Another process has taken the session over; this one can no longer write to it."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, f"session {session_id} was taken over by another process")


class SessionElsewhere(SessionError):
    """The session's workspace and its agent's memory are on another host: `host` is its name."""

    def __init__(self, session_id: str, host: str) -> None:
        super().__init__(session_id, f"session {session_id} belongs to the host {host}")
        self.host = host


class CommandRefused(SessionError):
    """A session could not carry out a command: `code` is a word for programs, `detail` has more,
    such as what is wrong with each field of a form."""

    def __init__(
        self, session_id: str, code: str, sentence: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(session_id, sentence)
        self.code = code
        self.detail = dict(detail or {})


class StoreError(DragomanError):
    """The store at `place` failed, and has changed nothing."""

    _sentence = "{place}: {reason}"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason


class StoreAway(StoreError):
    """The database is temporarily unavailable."""


class StoreFull(StoreAway):
    """The disk is full."""


class StoreCorrupt(StoreError):
    """The database is damaged; `dragoman sessions recover` rebuilds it from the mirrors."""


class SequenceGap(StoreError):
    """The events do not follow those that are stored: `expected` would have been next."""

    def __init__(self, place: str, expected: int, got: int) -> None:
        super().__init__(place, f"got event {got} instead of {expected}")
        self.expected = expected
        self.got = got


class StoreCrowded(StoreError):
    """The database is running, but has no connection left for this process."""


class RowRefused(StoreError):
    """The database refused a row because of its content."""


class RowDuplicate(RowRefused):
    """A row must be unique and is not. Callers get a more specific error instead."""


class UnknownAgent(DragomanError):
    """There is no agent of that name; `settings` is the file in which to add one."""

    def __init__(self, name: str, known: tuple[str, ...], settings: str = "") -> None:
        super().__init__(name, known, settings)
        self.name = name
        self.known = known
        self.settings = settings

    def __str__(self) -> str:
        import difflib  # slow to import, and needed only here

        where = f"; others go into agent_servers in {self.settings}" if self.settings else ""
        meant = difflib.get_close_matches(self.name, self.known, n=1, cutoff=0.75)
        hint = f", did you mean {meant[0]}?" if meant else ";"
        return f"there is no agent {self.name!r}{hint} known agents: {', '.join(self.known)}{where}"


class UnknownHost(DragomanError):
    """No live host has that name, or offers that agent; `wanted` is the name or the agent."""

    _sentence = "{sentence}"

    def __init__(self, wanted: str, sentence: str) -> None:
        super().__init__(wanted, sentence)
        self.wanted = wanted
        self.sentence = sentence


class UnknownQuestion(DragomanError, KeyError):
    """No such question waits for an answer: it was answered or withdrawn, or there was none;
    `request_id` is what was asked for. It is a KeyError as well."""

    _sentence = "no question {request_id} waits for an answer"

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id


class UnknownToken(DragomanError):
    """No access token has that id; `token_id` is what was asked for."""

    _sentence = "no such device or token: {token_id}"

    def __init__(self, token_id: str) -> None:
        super().__init__(token_id)
        self.token_id = token_id


class Unsupported(DragomanError):
    """The agent does not offer this; nothing was sent."""

    _sentence = "the agent does not support {feature}"

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


class ConfigError(DragomanError):
    """A settings or rules file is wrong at `place`; `expected` says what should be there."""

    def __init__(self, file: str, place: str, expected: str) -> None:
        super().__init__(file, place, expected)
        self.file = file
        self.place = place
        self.expected = expected

    def __str__(self) -> str:
        where = f"{self.file}: {self.place}" if self.place else self.file
        return f"{where}: expected {self.expected}"


class LimitUnusable(DragomanError):
    """A limit cannot be enforced; `source` says where it was set, `reason` why it cannot."""

    _sentence = "{source}: {reason}"

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason


class InstallFailed(DragomanError):
    """An agent could not be installed; the message says why."""


class DownloadFailed(DragomanError):
    """A file could not be fetched, or does not match its checksum."""

    _sentence = "{url} could not be fetched: {reason}"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason


class UnsafeArchive(DragomanError):
    """An archive is damaged, or would write outside its folder."""

    _sentence = "{name} was not unpacked: {reason}"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason


class UnusableRequest(DragomanError):
    """A chat request that cannot be carried out; `place` is where in its body the problem is."""

    _sentence = "{place}: {reason}"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason


class UsageError(DragomanError):
    """A command line that cannot be carried out; the message says why."""


class SignInNeeded(DragomanError):
    """The agent requires a sign-in first; the message says how."""


class RevertConflict(DragomanError):
    """Some files cannot be reverted safely, so none was; `reasons` says why for each path.
    `by_force` says whether `force` would revert all of them anyway. It cannot if a file cannot be
    written, or if its earlier content is gone."""

    def __init__(self, reasons: dict[str, str], *, by_force: bool = True) -> None:
        super().__init__(reasons, by_force)
        self.reasons = reasons
        self.by_force = by_force

    def __str__(self) -> str:
        listed = "; ".join(f"{path}: {reason}" for path, reason in self.reasons.items())
        return f"nothing was reverted: {listed}"


class WorktreeError(DragomanError):
    """A worktree could not be made, merged or removed, or there is no such worktree."""


class MergeConflict(WorktreeError):
    """A worktree cannot be merged as things are, so nothing was changed; `reasons` says why for
    each path, and `advice` what to do."""

    def __init__(self, name: str, reasons: dict[str, str], advice: str) -> None:
        super().__init__(name, reasons, advice)
        self.name = name
        self.reasons = reasons
        self.advice = advice

    def __str__(self) -> str:
        listed = "\n".join(f"  {path}: {reason}" for path, reason in self.reasons.items())
        return f"{self.name} was not merged, and nothing was changed; {self.advice}\n{listed}"


class RaceError(DragomanError):
    """A race could not be run or read, or there is no such race."""


class CallTimeout(DragomanError):
    """No reply in time; in a chain, `silent` is the component that did not answer."""

    def __init__(self, method: str, seconds: float, silent: str = "") -> None:
        super().__init__(method, seconds, silent)
        self.method = method
        self.seconds = seconds
        self.silent = silent

    def __str__(self) -> str:
        said = f"no reply to {self.method} within {self.seconds:g} s"
        return f"{said}: {self.silent} has not answered" if self.silent else said


class PromptTooLarge(DragomanError, ValueError):
    """A prompt is larger than the limit, as JSON; nothing was sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"the prompt has {self.size} bytes as JSON, and the limit is {self.limit}; put large "
            "parts in a file and mention it, for the agent to read"
        )


class SlowConsumer(DragomanError):
    """A reader of events fell more than `limit` bytes behind and was disconnected."""

    _sentence = "the reader fell more than {limit} bytes behind; later events were dropped"

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class WouldDeadlock(DragomanError):
    """A call was awaited inside a notification handler, where its reply cannot be read."""

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self.method = method

    def __str__(self) -> str:
        return (
            f"{self.method} was called from a notification handler: its reply is read only after "
            "the handler returns; start a task for the call instead"
        )


def _detail(data: Any) -> str:
    match data:
        case str():
            return data
        case {"message": str(text)} | {"details": str(text)} | {"reason": str(text)}:
            return text
        case _:
            return ""


_TAIL_LINES, _TAIL_LINE = 20, 500


def _with_tail(sentence: str, tail: str) -> str:
    """With the end of what was printed: some agents log every step, and the last ones count."""
    lines = [line[:_TAIL_LINE] for line in tail.strip().split("\n")]
    cut = ["…"] if len(lines) > _TAIL_LINES else []
    shown = "\n".join([*cut, *lines[-_TAIL_LINES:]])
    return f"{sentence}; it printed:\n{shown}" if shown else sentence
