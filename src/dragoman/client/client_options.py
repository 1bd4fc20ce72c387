"""Options of a client and of its sessions: what the agent is offered, how long to wait, tracing."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import msgspec

from dragoman.client.mcp import McpServer
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import SystemPrompt

if TYPE_CHECKING:
    from dragoman.host.rules.policy import Policy
    from dragoman.transport.transport import Side

Attendance: TypeAlias = Literal["wait", "refuse"]
"""What becomes of a question that no provider takes and the reader of the turn does not answer: it
can `wait` for `answer`, or we `refuse` it."""


Archived: TypeAlias = Literal["include", "exclude", "only"]
"""Which of the sessions that an agent has archived it lists."""


class HostCapabilities(msgspec.Struct, kw_only=True, frozen=True):
    """What the agent is offered. What is switched off is neither advertised nor served."""

    read_files: bool = True
    write_files: bool = True
    terminals: bool = True
    elicitation: bool = True
    terminal_sign_in: bool = False
    meta: dict[str, Any] | None = None

    @property
    def methods(self) -> frozenset[str]:
        """The methods that are switched on, among those that can be switched off."""
        switches = {
            "fs/read_text_file": self.read_files,
            "fs/write_text_file": self.write_files,
            "terminal/create": self.terminals,
            "elicitation/create": self.elicitation,
        }
        return frozenset(method for method, on in switches.items() if on)


def offered_by(
    host: HostCapabilities, policy: Policy, agent: str, side: Side | None
) -> HostCapabilities:
    """What the program wants to offer, but nothing that rules deny altogether. Files and commands
    of another machine are not ours to offer, nor can a sign-in run there."""
    offered = msgspec.structs.replace(
        host,
        read_files=host.read_files and policy.could_allow("read", agent=agent, person=True),
        write_files=host.write_files and policy.could_allow("write", agent=agent, person=True),
        terminals=host.terminals and policy.could_allow("execute", agent=agent, person=True),
    )
    if side == "here":
        return offered
    return msgspec.structs.replace(
        offered, read_files=False, write_files=False, terminals=False, terminal_sign_in=False
    )


class Timeouts(msgspec.Struct, kw_only=True, frozen=True):
    """How long to wait, in seconds. A prompt has no time limit unless `progress` is set."""

    initialize: float = 60.0
    """For the handshake."""
    control: float = 30.0
    """For the reply to any call other than a prompt."""
    cancel: float = 30.0
    """For the agent to stop after a cancellation."""
    progress: float | None = None
    """Ends a turn if nothing is heard from the agent, nor from a command it runs, for that long.
    The time that a question waits for its answer does not count."""
    question: float | None = None
    """For the answer to a permission request or a form; after that, the request is refused. Without
    a limit it waits as long as its turn."""
    history: float = 0.05
    """How long an agent must be silent after it loaded a session for its history to count as
    complete: some agents reply first and send the history right after. What repeats a known history
    is recognized later, too."""


class SessionOptions(TypedDict, total=False):
    """Options for opening a session. Those that the agent does not accept are not sent to it, and a
    notice says so."""

    additional_directories: Sequence[str | os.PathLike[str]]
    mcp_servers: Sequence[McpServer]
    system_prompt: str | SystemPrompt | None
    """A text is added to the agent's own instructions."""
    meta: dict[str, Any] | None
    """The `_meta` of the request."""
    results: bool | type[Any] | Mapping[str, Any]
    """Whether the agent gets a tool with which it submits the results of `Session.ask`; a type or a
    JSON schema is what all of them have to be, and the agent reads that with the tool."""


_TRACE_PARENT = lazy_pattern(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_MOST_STATE = 512
_trace: ContextVar[dict[str, str]] = ContextVar("trace", default={})  # noqa: B039 - never changed


@contextmanager
def tracing(traceparent: str | None, tracestate: str | None = None) -> Generator[None]:
    """While this lasts, requests that open a session, send a prompt or steer carry this W3C trace
    context in their `_meta`. An invalid one is ignored, as the W3C recommends."""
    trace: dict[str, str] = {}
    if traceparent is not None and _TRACE_PARENT.fullmatch(traceparent):
        trace = {"traceparent": traceparent}
        if tracestate and len(tracestate) <= _MOST_STATE and tracestate.isprintable():
            trace["tracestate"] = tracestate
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)


def current_trace() -> dict[str, str]:
    """The trace context of the caller, if it has one."""
    return _trace.get()


def traced(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """With the caller's trace context; what `meta` says of it itself counts."""
    trace = _trace.get()
    return meta if not trace else trace | (meta or {})
