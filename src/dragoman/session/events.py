"""Everything that can happen in a session, one small type each.

`Event` is the union of them all, so a `match` over it can be checked for completeness. Each has
`.text`: the words in it that a person would read, "" where there are none. `seq` and `at` are
stamped when the event is recorded; `replay` marks history that an agent sent again.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.session.content import Content, Location, Meta, ToolContent
from dragoman.session.facts import (
    BackgroundWork,
    Command,
    ConfigOption,
    ContextUsage,
    Continuity,
    Cost,
    Decision,
    ElicitationQuestion,
    FileSummary,
    Kind,
    LimitKind,
    Mode,
    Moment,
    Parking,
    ParkingOutcome,
    PermissionQuestion,
    PlanStep,
    ProgramEnd,
    ProgramRun,
    ReachedLimit,
    RootSnapshot,
    Spoken,
    SteerOutcome,
    SteerStage,
    SteerWay,
    SubagentState,
    TokenUsage,
    TurnTerms,
)


class Recorded(
    Kind,
    msgspec.Struct,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    tag_field="type",
    gc=False,
):
    """What every event carries besides its own fields. None has a cycle for the collector."""

    seq: int = 0
    at: float = 0.0
    replay: bool = False
    meta: Meta = None


class FromAgent(Recorded):
    """An update that only an agent sends."""

    from_agent = True


class SessionOpened(Recorded, tag="session_opened"):
    """The session is open. After `reset`, the agent remembers nothing of the thread so far."""

    session_id: str
    cwd: str
    continuity: Continuity
    additional_directories: list[str] = []
    agent: str = ""
    fence: str | None = None
    """How the kernel confines the agent: `namespaces`, `landlock`, or None if it does not."""
    network: list[str] | None = None
    """The hosts that the agent may reach; None if it may reach all."""


class SessionClosed(Recorded, tag="session_closed"):
    """The session is closed; nothing follows until it is opened again."""

    reason: str = ""


class TurnStarted(Recorded, tag="turn_started"):
    """A prompt went to the agent. `terms` came with it if another process sent it."""

    turn_id: str
    content: list[Content]
    terms: TurnTerms | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content)


class TurnCancelling(Recorded, tag="turn_cancelling"):
    """The turn was asked to stop. It ends when the agent answers, or after a time limit."""

    turn_id: str


class TurnEnded(Recorded, tag="turn_ended"):
    """A turn ended; recorded exactly once. It has the agent's stop reason, or the error that cut
    the turn short. `interrupted` means that the end of its process, or a fork, cut it short."""

    turn_id: str
    stop_reason: str | None = None
    usage: TokenUsage | None = None
    error: str | None = None
    interrupted: bool = False

    @property
    def text(self) -> str:
        return self.error or ""


class _Message(FromAgent, Spoken):
    """`replaces` restarts the message: what it held before no longer counts."""

    is_history = True

    content: Content
    message_id: str | None = None
    replaces: bool = False


class UserMessage(_Message, tag="user_message"):
    """A piece of what the user said, as the agent reports it."""


class AgentMessage(_Message, tag="agent_message"):
    """A piece of the agent's answer."""

    is_answer = True


class AgentThought(_Message, tag="agent_thought"):
    """A piece of the agent's reasoning."""

    is_answer = True


class ToolCallUpdated(FromAgent, tag="tool_call"):
    """A tool call seen for the first time, or what changed about it.

    Fields left UNSET did not change; None clears. `more` is content to append.
    """

    is_history = is_answer = True

    tool_call_id: str
    title: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    kind: str | UnsetType | None = UNSET
    status: str | UnsetType | None = UNSET
    content: list[ToolContent] | UnsetType | None = UNSET
    locations: list[Location] | UnsetType | None = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET
    more: list[ToolContent] = []
    cancellable: bool | UnsetType = UNSET
    forgets_meta: bool = False
    """Whether the earlier metadata no longer counts."""

    @property
    def text(self) -> str:
        return self.title or ""


class PlanUpdated(FromAgent, tag="plan"):
    """The whole plan: as steps, as Markdown, or as the address of a file."""

    is_history = is_answer = True

    steps: list[PlanStep] = []
    plan_id: str = ""
    markdown: str | None = None
    uri: str | None = None

    @property
    def text(self) -> str:
        return self.markdown or "\n".join(step.content for step in self.steps)


class PlanRemoved(FromAgent, tag="plan_removed"):
    """A plan with an id is gone."""

    plan_id: str


class CommandsChanged(FromAgent, tag="commands"):
    """All slash commands that the agent offers now."""

    commands: list[Command]


class ModeChanged(FromAgent, tag="mode"):
    """The mode has changed; `available` has all modes if the agent lists them."""

    mode_id: str
    available: list[Mode] | None = None


class ConfigChanged(FromAgent, tag="config"):
    """All settings of the session as they are now."""

    options: list[ConfigOption]


class InfoChanged(FromAgent, tag="info"):
    """What the agent calls the session; fields left UNSET did not change, None clears."""

    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType | None = UNSET


class UsageChanged(FromAgent, tag="usage"):
    """How full the context is, and what the session has cost so far."""

    used: int
    size: int
    cost: Cost | None = None

    @property
    def usage(self) -> ContextUsage:
        return ContextUsage(self.used, self.size, self.cost)


class Notice(Recorded, tag="notice"):
    """A message for the user, from the agent or from Dragoman."""

    title: str
    severity: str = "info"
    description: str | None = None
    source: Literal["agent", "client"] = "agent"

    @property
    def text(self) -> str:
        return self.title if self.description is None else f"{self.title}: {self.description}"


class LimitReached(Notice, kw_only=True, tag="limit_reached"):
    """A limit is reached: which one, what was done about it, and how to continue."""

    limit: ReachedLimit


class TurnLimited(Notice, kw_only=True, tag="turn_limited"):
    """The agent reports a limit of its model provider and, if it knows, when the limit ends.
    `parked` is the prompt that waits to be sent again."""

    turn_id: str
    kind: LimitKind
    ends_at: float | None = None
    parked: Parking | None = None


class ParkingChanged(Notice, kw_only=True, tag="parking_changed"):
    """What became of a parked prompt: it waits, is sent now, was dropped, or was handed over to or
    from another session. If it waits, `turn_id` is a turn that was to send it and did not."""

    parking_id: str
    outcome: ParkingOutcome
    resumes_at: float | None = None
    turn_id: str | None = None
    session_id: str | None = None


class CompactionUpdated(FromAgent, tag="compaction"):
    """The agent compacts its context. Fields left UNSET did not change, None clears."""

    compaction_id: str
    status: str
    summary: list[Content] | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.summary or ())


class CompactionSummary(FromAgent, Spoken, tag="compaction_summary"):
    """One more piece of a compaction's summary."""

    compaction_id: str
    content: Content


class SubagentUpdated(FromAgent, tag="subagent"):
    """A subagent of this session, new or changed; fields left UNSET did not change, None clears.

    `parent` is the subagent that started it, None if the session's own agent did. `tool_call_id` is
    the call that started it, if the agent reports the subagent's work only as tool calls.
    """

    session_id: str
    title: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    state: SubagentState | UnsetType | None = UNSET
    cwd: str | UnsetType | None = UNSET
    additional_directories: list[str] | UnsetType | None = UNSET
    capabilities: dict[str, Any] | UnsetType | None = UNSET
    parent: str | None = None
    tool_call_id: str | None = None


class SubagentEvent(FromAgent, tag="subagent_event"):
    """What a subagent reports: an event of its own thread, `state.subagents[session_id].thread`.

    Its questions, and what we do for it, are events of the session, with its id in `subagent`.
    """

    session_id: str
    event: Event

    @property
    def is_history(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.event.is_history

    @property
    def text(self) -> str:
        return self.event.text


class PeerMessageUpdated(FromAgent, tag="peer_message"):
    """A message between sessions; fields left UNSET did not change, None clears."""

    message_id: str
    sender_session_id: str | UnsetType | None = UNSET
    recipient_session_id: str | UnsetType | None = UNSET
    sender_message_id: str | UnsetType | None = UNSET
    recipient_message_id: str | UnsetType | None = UNSET
    content: list[Content] | UnsetType | None = UNSET

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content or ())


class PeerMessageChunk(FromAgent, Spoken, tag="peer_message_chunk"):
    """One more piece of a message between sessions."""

    message_id: str
    content: Content


class ActivityChanged(Recorded, tag="activity"):
    """What the agent does between turns, in its own terms (`running`, `requires_action`, `idle`),
    and what runs in the background. Fields left UNSET did not change."""

    activity: str | UnsetType = UNSET
    background: list[BackgroundWork] | UnsetType = UNSET


class UnknownUpdate(FromAgent, tag="unknown"):
    """An update of a kind this version does not know; `raw` is its JSON."""

    kind: str
    raw: str


class PermissionRequested(
    PermissionQuestion, Kind, kw_only=True, tag_field="type", tag="permission_requested", gc=False
):
    """Someone must decide; answer by `request_id` with the id of one of the options.

    If a rule or a cancellation decides, there is only an `AccessDecided`, and nothing to answer.
    """

    # Those of `Recorded`: fields come from one base only.
    seq: int = 0
    at: float = 0.0
    replay: bool = False
    meta: Meta = None
    description: str | None = None
    """What `always` was called when older events were stored; it is moved there."""

    def __post_init__(self) -> None:
        if self.description is not None:
            self.always, self.description = self.description, None

    @property
    def text(self) -> str:
        return self.title


class PermissionSettled(Recorded, tag="permission_settled"):
    """How a request ended; `option_id` is None when it was cancelled."""

    request_id: str
    option_id: str | None
    decision: Decision


class AccessDecided(Recorded, tag="access"):
    """A decision about something the agent wanted, made without asking anyone. If the agent had
    asked for permission, `option_id` is the answer it got; None is a cancellation."""

    operation: str
    decision: Decision
    paths: list[str] = []
    argv: list[str] | None = None
    title: str = ""
    tool_call_id: str | None = None
    option_id: str | None = None
    subagent: str | None = None
    host: str | None = None
    """The host that a program in a fence wanted to reach."""


class ElicitationRequested(
    ElicitationQuestion, Kind, tag_field="type", tag="elicitation_requested", gc=False
):
    """The agent asks the user for something: a form to fill in, or an address to visit."""

    # Those of `Recorded`, as with a permission.
    seq: int = 0
    at: float = 0.0
    replay: bool = False
    meta: Meta = None

    @property
    def text(self) -> str:
        return self.message


class ElicitationSettled(Recorded, tag="elicitation_settled"):
    """A form or URL request was answered. What a person typed is not kept: it may be secret."""

    request_id: str
    action: str


class TerminalStarted(Recorded, tag="terminal_started"):
    """A terminal started. One that Dragoman runs has an `argv`; one of the agent's own may have a
    `command`."""

    is_history = True

    terminal_id: str
    argv: list[str]
    cwd: str = ""
    command: str = ""
    cancellable: bool = False
    subagent: str | None = None


class TerminalOutput(Recorded, tag="terminal_output"):
    """Output of a terminal; with `replaces`, its earlier output is no longer shown."""

    is_history = True

    terminal_id: str
    data: str
    replaces: bool = False

    @property
    def text(self) -> str:
        return self.data


class TerminalExited(Recorded, tag="terminal_exited"):
    """What ran in a terminal has ended."""

    is_history = True

    terminal_id: str
    exit_code: int | None = None
    signal: str | None = None


class TerminalReleased(Recorded, tag="terminal_released"):
    """The agent no longer needs the terminal; its output stays."""

    terminal_id: str


class FileWritten(Recorded, tag="file_written"):
    """Dragoman wrote a file for the agent.

    `created` says that there was no file before. If there was, and `before` is None, its content is
    not here: it was not text, or too large. `imported` says that it comes from an imported file, so
    nobody knows whether it happened.
    """

    path: str
    after: str
    before: str | None = None
    created: bool = False
    imported: bool = False
    subagent: str | None = None


class FileReverted(Recorded, tag="file_reverted"):
    """Changes to a file were undone: all of them, or only those of the turn `turn_id`.
    `restore_id` is the id of the revert; None if it was made without snapshots."""

    path: str
    turn_id: str | None = None
    restore_id: str | None = None


class WorkspaceSnapshot(Recorded, tag="workspace_snapshot"):
    """The session's folders were read, so that what happens to them can be seen and undone.

    `step_id` is the id of a turn or a restore. The snapshot at its end says what it changed:
    `files` lists up to 200 files, and `file_count` counts all of them. `doubt` is set if it is not
    certain who changed them.
    """

    moment: Moment
    step_id: str
    roots: list[RootSnapshot]
    files: list[FileSummary] = []
    file_count: int = 0
    doubt: str = ""


class ProgramsRan(Recorded, tag="programs_ran"):
    """What really ran inside the fence since the last such event. `ended` says how programs of
    earlier events ended; `left_out` counts starts beyond those that are recorded."""

    programs: list[ProgramRun] = []
    ended: list[ProgramEnd] = []
    left_out: int = 0


class PromptQueued(Recorded, tag="prompt_queued"):
    """A prompt was queued, or changed while queued; its `terms` do not change.

    A `steer` is for the running turn, and comes first."""

    queue_id: str
    content: list[Content]
    terms: TurnTerms | None = None
    steer: SteerStage | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content)


class PromptUnqueued(Recorded, tag="prompt_unqueued"):
    """A queued prompt has started its turn, or was `dropped`."""

    queue_id: str
    dropped: bool = False


class Steered(Recorded, tag="steered"):
    """What became of a steer: recorded exactly once, unless it is dropped from the queue.

    Only a `queued` steer will still be sent. `content` is empty if the steer becomes a turn of its
    own (`queued` or `started`), which has the content. `turn_id` is the turn that was running, or
    the one that was started. `reason` says why it was not delivered, if that is known.
    """

    queue_id: str
    outcome: SteerOutcome
    way: SteerWay | None = None
    content: list[Content] = []
    reason: str = ""
    turn_id: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content)


_Turns: TypeAlias = SessionOpened | SessionClosed | TurnStarted | TurnCancelling | TurnEnded
_Told: TypeAlias = UserMessage | AgentMessage | AgentThought | ToolCallUpdated | PlanUpdated
_Facts: TypeAlias = PlanRemoved | CommandsChanged | ModeChanged | ConfigChanged | InfoChanged
_Reports: TypeAlias = UsageChanged | Notice | LimitReached | TurnLimited | ParkingChanged
_Compactions: TypeAlias = CompactionUpdated | CompactionSummary | SubagentUpdated | SubagentEvent
_Others: TypeAlias = PeerMessageUpdated | PeerMessageChunk | ActivityChanged | UnknownUpdate
_Permissions: TypeAlias = PermissionRequested | PermissionSettled | AccessDecided
_Forms: TypeAlias = ElicitationRequested | ElicitationSettled
_Terminals: TypeAlias = TerminalStarted | TerminalOutput | TerminalExited | TerminalReleased
_Files: TypeAlias = FileWritten | FileReverted | WorkspaceSnapshot | ProgramsRan
_Queue: TypeAlias = PromptQueued | PromptUnqueued | Steered
Event: TypeAlias = (
    _Turns
    | _Told
    | _Facts
    | _Reports
    | _Compactions
    | _Others
    | _Permissions
    | _Forms
    | _Terminals
    | _Files
    | _Queue
)
