"""The state of a session: the ordered entries of its thread, and the facts around them.

A `SessionState` is made by `reduce` alone; everyone else reads it. It has the newest entries,
within the limits of `bounds`; the stored events have all of them.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.session import events as e
from dragoman.session.content import Content, Diff, Location, Meta, Text, ToolContent
from dragoman.session.events import TurnEnded
from dragoman.session.facts import (
    BackgroundWork,
    Command,
    ConfigOption,
    ContextUsage,
    Continuity,
    Decision,
    ElicitationQuestion,
    Mode,
    Modes,
    Parking,
    PermissionQuestion,
    PlanStep,
    ProgramRun,
    SteerOutcome,
    SteerStage,
    SubagentState,
    TokenUsage,
    TurnTerms,
)
from dragoman.session.state_limits import ID, LIMITS

TERMINAL_TAIL = LIMITS.tail
"""Characters of a terminal's output kept in state; the events have all that is recorded."""

OPEN_STATUSES = frozenset({"pending", "in_progress"})
OVER_STATUSES = frozenset({"completed", "failed", "cancelled"})
"""An agent may have others that are neither."""
AT_WORK = ("running", "requires_action")
"""States of a subagent."""


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", tag_field="type"):
    """An item of the thread; `seq` and `at` are those of its first event."""

    seq: int = 0
    at: float = 0.0
    turn_id: str | None = None
    size: int = 0
    """The estimated size of what is kept."""
    cut: int = 0
    """The estimated size of what was too large to keep; the events have it."""

    @property
    def text(self) -> str:
        """What it says in words, if anything."""
        return ""


class _Spoken(Entry):
    """A message in pieces: plain text as strings, everything else as content.

    Pieces are joined when someone looks, so that a chunk costs the same at any length.
    """

    pieces: list[str | Content] = []
    message_id: str | None = None

    @property
    def text(self) -> str:
        return "".join(p if isinstance(p, str) else p.text for p in self.pieces)

    @property
    def content(self) -> list[Content]:
        """The message as content, with adjacent text joined."""
        parts: list[Content] = []
        words: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                words.append(piece)
                continue
            _flush(words, parts)
            parts.append(piece)
        _flush(words, parts)
        return parts


def _flush(words: list[str], parts: list[Content]) -> None:
    if words:
        parts.append(Text("".join(words)))
        words.clear()


class UserEntry(_Spoken, tag="user"):
    """What the user said: a prompt, or what the agent attributes to the user.

    `reported`: the agent reported it outside a replayed history, so it is possible that nobody
    typed it here. `steer`: it was a message to the running turn, with this outcome; `reason` says
    why.
    """

    reported: bool = False
    steer: SteerOutcome | None = None
    reason: str = ""


class AgentEntry(_Spoken, tag="agent"):
    """What the agent answered."""


class ThoughtEntry(_Spoken, tag="thought"):
    """What the agent was thinking."""


class ToolCall(Entry, tag="tool_call"):
    """Something the agent does or wants to do, as it reports it: a claim, not what we executed."""

    id: str
    title: str = ""
    name: str | None = None
    kind: str = "other"
    status: str = "pending"
    content: list[ToolContent] = []
    locations: list[Location] = []
    raw_input: Any = None
    raw_output: Any = None
    meta: Meta = None
    cancellable: bool = False
    """Whether the agent can stop this call alone."""

    @property
    def text(self) -> str:
        return self.title

    @property
    def diffs(self) -> list[Diff]:
        return [item for item in self.content if isinstance(item, Diff)]


class PlanEntry(Entry, tag="plan"):
    """A plan: as steps, as Markdown, or as the address of a file."""

    plan_id: str = ""
    steps: list[PlanStep] = []
    markdown: str | None = None
    uri: str | None = None

    @property
    def text(self) -> str:
        return self.markdown or "\n".join(step.content for step in self.steps)


class NoticeEntry(Entry, tag="notice"):
    """A message for the user, from the agent or from Dragoman."""

    title: str
    severity: str = "info"
    description: str | None = None
    source: Literal["agent", "client"] = "agent"

    @property
    def text(self) -> str:
        return self.title if self.description is None else f"{self.title}: {self.description}"


class CompactionEntry(Entry, tag="compaction"):
    """The agent compacted its context."""

    id: str
    status: str = "in_progress"
    summary: list[Content] = []
    error: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.summary)


class PeerMessageEntry(Entry, tag="peer_message"):
    """A message between this session and another."""

    id: str
    content: list[Content] = []
    sender_session_id: str | None = None
    recipient_session_id: str | None = None
    sender_message_id: str | None = None
    recipient_message_id: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content)


class ResetEntry(Entry, tag="reset"):
    """The agent lost its memory here: it knows nothing of the entries before."""


class ErrorEntry(Entry, tag="error"):
    """A turn was cut short."""

    message: str

    @property
    def text(self) -> str:
        return self.message


class UnknownEntry(Entry, tag="unknown"):
    """An update of a kind this version does not know."""

    kind: str
    raw: str


AnyEntry: TypeAlias = (
    UserEntry
    | AgentEntry
    | ThoughtEntry
    | ToolCall
    | PlanEntry
    | NoticeEntry
    | CompactionEntry
    | PeerMessageEntry
    | ResetEntry
    | ErrorEntry
    | UnknownEntry
)


class Terminal(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A terminal that we run for the agent, or one of the agent's own that it reports."""

    id: str
    argv: list[str] = []
    cwd: str = ""
    pieces: list[str] = []
    size: int = 0
    running: bool = True
    exit_code: int | None = None
    signal: str | None = None
    released: bool = False
    command: str = ""
    """What runs in a terminal of the agent's own."""
    cancellable: bool = False
    """Whether the agent can stop it."""
    subagent: str | None = None
    """The subagent that it runs for."""

    @property
    def ours(self) -> bool:
        """Whether we run it; otherwise it is the agent's own, and its output is only reported."""
        return bool(self.argv)

    @property
    def output(self) -> str:
        """The last MiB of its output."""
        return "".join(self.pieces)[-TERMINAL_TAIL:]


class PendingPermission(PermissionQuestion, tag_field="kind", tag="permission"):
    """A permission that waits for an answer."""

    request_id: str = msgspec.field(name="id")

    @property
    def id(self) -> str:
        return self.request_id


class PendingElicitation(ElicitationQuestion, tag_field="kind", tag="elicitation"):
    """A form or an address that waits for an answer."""

    request_id: str = msgspec.field(name="id")

    @property
    def id(self) -> str:
        return self.request_id


Pending: TypeAlias = PendingPermission | PendingElicitation


_LONGEST_NAME = 60
_MOST_NAMES = 4


def _short_name(name: str) -> str:
    """In one line, and without the sign that separates it from those that started it."""
    words = " ".join(name[: 4 * _LONGEST_NAME].split()).replace("›", ">")
    is_whole = len(words) <= _LONGEST_NAME and len(name) <= 4 * _LONGEST_NAME
    return words if is_whole else f"{words[: _LONGEST_NAME - 1]}…"


class Subagent(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A session that the agent started for part of its work; `seq` and `at` say when.

    `parent` is the subagent that started it, None if the session's own agent did. Its `thread` is
    the fold of its own events, with its own entries, plan, usage and terminals; its questions are
    in the session's `pending`.
    """

    session_id: str
    title: str | None = None
    description: str | None = None
    state: SubagentState | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    capabilities: dict[str, Any] | None = None
    seq: int = 0
    at: float = 0.0
    parent: str | None = None
    tool_call_id: str | None = None
    """The tool call that started it, if the agent reports its work as tool calls alone."""
    thread: SessionState = msgspec.field(default_factory=lambda: SessionState())  # noqa: PLW0108  # it is defined below

    @property
    def name(self) -> str:
        """What to call it."""
        return self.title or self.session_id

    @property
    def is_at_work(self) -> bool:
        """Whether it works or waits for an answer, as far as the agent says."""
        return self.state is not None and self.state.state in AT_WORK

    @property
    def can_be_cancelled(self) -> bool:
        """Whether the agent can stop this subagent alone."""
        return self.capabilities is not None and self.capabilities.get("cancel") is not None


class QueuedPrompt(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A prompt that waits for the running turn to end."""

    id: str
    content: list[Content]
    terms: TurnTerms | None = None
    steer: SteerStage | None = None
    """For a message to the running turn: whether it waits, or the agent already has it."""


Ending: TypeAlias = Literal["completed", "cancelled", "failed", "interrupted"]
TurnStatus: TypeAlias = Literal["prompting", "streaming", "waiting", "cancelling", Ending]
OVER_TURNS = frozenset({"completed", "cancelled", "failed", "interrupted"})


class TurnState(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One turn: prompting → streaming ⇄ waiting for a permission → (cancelling →) its end.

    It ends as `completed`, with the agent's reason; `cancelled`, by a person; `failed`, with an
    error; or `interrupted`, by the end of the process that ran it, or by a fork.
    """

    id: str
    status: TurnStatus = "prompting"
    stop_reason: str | None = None
    usage: TokenUsage | None = None
    error: str | None = None
    seq: int = 0
    """The number of its first event."""

    @property
    def ending(self) -> Ending | None:
        """How it ended, once it has ended."""
        match self.status:
            case "completed" | "cancelled" | "failed" | "interrupted":
                return self.status
            case _:
                return None

    @property
    def interrupted(self) -> bool:
        """Whether it was cut short by the end of its process, or by a fork."""
        return self.status == "interrupted"


_TOLD_BY_ERROR = frozenset(
    (
        "interrupted: the process that ran the session ended",
        "interrupted: the session was forked in the midst of a turn",
    )
)
"""How the end of a turn said that it was interrupted before it had a field for that."""


def ending_of(event: TurnEnded, *, cancelled: bool) -> Ending:
    """How a turn ended, in a word; `cancelled` where it was to be stopped before."""
    if event.interrupted or event.error in _TOLD_BY_ERROR:
        return "interrupted"
    if event.error is not None:
        return "failed"
    return "cancelled" if cancelled else "completed"


class SessionState(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Everything known about a session: always the fold of its events."""

    session_id: str = ""
    agent: str = ""
    cwd: str = ""
    additional_directories: list[str] = []
    continuity: Continuity = "new"
    fence: str | None = None
    """How the agent is fenced: `namespaces` or `landlock`; None if it is not."""
    network: list[str] | None = None
    """The hosts that the agent may reach; None for all."""
    open: bool = False
    title: str | None = None
    updated_at: str | None = None
    entries: list[AnyEntry] = []
    """The newest entries; `entries_before` older ones are only in the store."""
    entries_before: int = 0
    turns: list[TurnState] = []
    modes: Modes | None = None
    config_options: list[ConfigOption] = []
    commands: list[Command] = []
    usage: ContextUsage | None = None
    terminals: dict[str, Terminal] = {}
    pending: dict[str, Pending] = {}
    subagents: dict[str, Subagent] = {}
    queue: list[QueuedPrompt] = []
    parked: Parking | None = None
    """The prompt that waits for the end of a limit, before those of the queue."""
    activity: str = "idle"
    """What the agent does between turns."""
    background: list[BackgroundWork] = []
    """What runs in the background, as the agent reports it."""
    snapshot: e.WorkspaceSnapshot | None = None
    """The last time the folders were read."""
    programs: list[ProgramRun] = []
    """The newest programs that really ran inside the fence; `programs_before` older ones are only
    in the store, or were too many to be recorded."""
    programs_before: int = 0
    last_seq: int = 0
    size: int = 0
    """The estimated size of all entries."""
    printed: int = 0
    """The number of characters that all terminals have printed."""
    subagents_size: int = 0
    """The estimated size of the threads of all subagents."""
    # Where in the whole thread the entries stand that later events change, by their ids.
    places: dict[str, int] = {}

    @property
    def entry_count(self) -> int:
        """The number of entries in the whole thread."""
        return self.entries_before + len(self.entries)

    def placed(self, key: str) -> AnyEntry | None:
        """The entry under this key of `places`, if it is in memory."""
        place = self.places.get(key, -1) - self.entries_before
        return self.entries[place] if 0 <= place < len(self.entries) else None

    @property
    def tool_calls(self) -> dict[str, ToolCall]:
        """Every tool call in memory by its id, in the order they were first seen."""
        return {entry.id: entry for entry in self.entries if isinstance(entry, ToolCall)}

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """One tool call by its id, without searching the thread."""
        entry = self.placed(f"tool:{tool_call_id[:ID]}")
        return entry if isinstance(entry, ToolCall) else None

    def message(
        self, kind: type[UserEntry | AgentEntry | ThoughtEntry], message_id: str
    ) -> UserEntry | AgentEntry | ThoughtEntry | None:
        """One message by its id, without searching the thread."""
        entry = self.placed(f"{kind.__name__}:{message_id[:ID]}")
        return entry if isinstance(entry, kind) else None

    def thread_of(self, subagent_id: str | None) -> SessionState:
        """The thread of a subagent; the session's own for None, or if there is no such subagent."""
        child = None if subagent_id is None else self.subagents.get(subagent_id)
        return self if child is None else child.thread

    def subagent_path(self, subagent_id: str) -> list[Subagent]:
        """A subagent, preceded by those that started it, the outermost first."""
        path: list[Subagent] = []
        following: str | None = subagent_id
        while following is not None and (child := self.subagents.get(following)) is not None:
            if child in path:
                break
            path.insert(0, child)
            following = child.parent
        return path

    def subagent_name(self, subagent_id: str) -> str:
        """The name of a subagent, preceded by those that started it: `outer › inner`. Always one
        short line, because it is shown next to a question."""
        names = [self._own_name(each) for each in self.subagent_path(subagent_id)]
        if len(names) > _MOST_NAMES:
            names = [names[0], "…", *names[2 - _MOST_NAMES :]]
        return " › ".join(names) or _short_name(subagent_id)

    def _own_name(self, subagent: Subagent) -> str:
        """With a number, if the same agent started others with the same name before."""
        name = _short_name(subagent.name)
        alike = [
            each.session_id
            for each in self.subagents.values()
            if each.parent == subagent.parent and _short_name(each.name) == name
        ]
        number = alike.index(subagent.session_id) if subagent.session_id in alike else 0
        return f"{name} {number + 1}" if number else name

    @property
    def plan(self) -> PlanEntry | None:
        """The newest plan that is neither empty nor removed."""
        plans = (each for each in reversed(self.entries) if isinstance(each, PlanEntry))
        return next((plan for plan in plans if plan.text or plan.uri), None)

    @property
    def turn(self) -> TurnState | None:
        """The running turn, if there is one."""
        if self.turns and self.turns[-1].status not in OVER_TURNS:
            return self.turns[-1]
        return None

    @property
    def mode(self) -> Mode | None:
        """The current mode, if the agent has modes."""
        if self.modes is None:
            return None
        return next((m for m in self.modes.available if m.id == self.modes.current), None)


def answer_of(state: SessionState, turn_id: str) -> str:
    """What the agent has said in a turn, with a blank line between two messages."""
    ours = takewhile(lambda each: each.turn_id in (turn_id, None), reversed(state.entries))
    said = [each.text.strip() for each in ours if type(each) is AgentEntry and each.turn_id]
    return "\n\n".join(reversed(said))


ENDED = "the process that ran the session ended"
FORKED = "the session was forked in the midst of a turn"
IMPORTED = "the session was imported in the midst of a turn"


def loose_ends(state: SessionState, reason: str = ENDED) -> list[e.Event]:
    """The events that end what was left open: questions, terminals, the turn.

    Prompts that were queued stay so, unless this is a fork or an import: they wait where they were
    queued. A steer that the agent may have taken does not. Empty when everything was in order.
    """
    events: list[e.Event] = []
    for pending in state.pending.values():
        if isinstance(pending, PendingPermission):
            decision = Decision("cancelled", reason, by="cancel")
            events.append(e.PermissionSettled(pending.id, None, decision))
        else:
            events.append(e.ElicitationSettled(pending.id, "cancel"))
    running = (t.id for t in state.terminals.values() if t.running and t.ours)
    events += [e.TerminalExited(terminal_id) for terminal_id in running]
    if reason in (FORKED, IMPORTED):
        events += [e.PromptUnqueued(queued.id, dropped=True) for queued in state.queue]
        if state.parked is not None:
            dropped = e.ParkingChanged(reason, parking_id=state.parked.id, outcome="dropped")
            events.append(dropped)
    else:
        events += [
            e.Steered(queued.id, "unsure", content=queued.content, reason=reason)
            for queued in state.queue
            if queued.steer == "sent"
        ]
    if state.turn is not None:
        error = f"interrupted: {reason}"
        events.append(e.TurnEnded(state.turn.id, error=error, interrupted=True))
    return events
