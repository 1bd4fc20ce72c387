"""Types for sessions over HTTP: lists, details, requests, events and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.sessions.limit_watch import BoundLimit
from dragoman.host.snapshots.folder_changes import FolderProblem
from dragoman.host.snapshots.line_history import FileComparison
from dragoman.hub.rewound_sessions import Rewound
from dragoman.hub.stored.usage_report import Grouping, UsageRow
from dragoman.session.events import Continuity, Event
from dragoman.session.facts import (
    Author,
    BackgroundWork,
    Command,
    ConfigOption,
    ContextUsage,
    FenceMode,
    LeftOut,
    LimitScope,
    Modes,
    Offer,
    OnLimit,
    Parking,
    ProgramRun,
    SteerOutcome,
    SteerWay,
    SystemPrompt,
)
from dragoman.session.limits.spending import Spending
from dragoman.session.limits.spending_limits import Reaction
from dragoman.session.state import (
    AnyEntry,
    Ending,
    Pending,
    PlanEntry,
    QueuedPrompt,
    Subagent,
    Terminal,
    TurnState,
)
from dragoman.store.records import SessionRecord, Status, public_fields
from dragoman.web.last_turn import Ended
from dragoman.web.shapes.server_shapes import Count, Cursor, SessionHost, Shape


class OwnerShape(Shape):
    """The process that runs a session; `here` is this server."""

    label: str
    pid: int
    here: bool


class Summary(Shape):
    """A session in a list."""

    id: str
    name: str | None
    title: str | None
    agent: str
    agent_session_id: str | None
    cwd: str
    """Empty while an imported session has no workspace: `PATCH` gives it one."""
    imported_from: str | None
    """The folder that an imported session came from, as its file says."""
    status: Status
    failed: bool
    """The last turn ended with an error; false while one is at work."""
    last_ending: Ending | None
    """How the last turn ended; null before the first, and while one is at work."""
    created_at: datetime
    updated_at: datetime
    archived: bool
    parent: str | None
    last_seq: int
    owner: OwnerShape | None
    host: SessionHost | None


class RunningAgent(Shape):
    """What the agent of a session that runs here says about itself."""

    name: str
    version: str
    protocol_version: int
    capabilities: AgentCapabilities


class Detail(Summary):
    """A session with all that is known of it; `entries` are the last, or those asked for."""

    running_agent: RunningAgent | None
    resume_on: list[str]
    """Hosts that have its agent, when its own is not there: `move` takes it to one."""
    additional_directories: list[str]
    offer: Offer
    """What its agent is offered; settings and flags where it runs may offer less."""
    system_prompt: SystemPrompt | None
    """Sent to its agent whenever that opens the session."""
    continuity: Continuity
    fence: str | None
    """How its agent is fenced: `namespaces` or `landlock`; null if it is not."""
    network: list[str] | None
    """The hosts that its agent may reach; null for all."""
    pending: list[Pending]
    turn: TurnState | None
    last_turn: TurnState | None
    """The running one, or else the one that ended last, with the tokens its agent told."""
    stopped: dict[str, str]
    """Why turns stopped before their end, by their ids; those that ended as they should are not
    among them."""
    modes: Modes | None
    config_options: list[ConfigOption]
    commands: list[Command]
    usage: ContextUsage | None
    queue: list[QueuedPrompt]
    parked: Parking | None
    """The prompt that waits for the end of a limit that the agent reported."""
    activity: str
    """What the agent does outside of turns: `idle`, unless it works on its own."""
    background: list[BackgroundWork]
    """What the agent says runs on, as it names it."""
    plan: PlanEntry | None
    programs: list[ProgramRun]
    """The newest programs that really ran inside its fence."""
    programs_before: int
    """How many ran before those."""
    terminals: list[Terminal]
    subagents: list[Subagent]
    entries: list[AnyEntry]
    first_entry: int
    entry_count: int


class SessionPage(Shape):
    """`next` is the cursor for `before`, null on the last page; `position` is the end of the stream
    of all events before this was read."""

    sessions: list[Summary]
    next: str | None
    position: int


class ListQuery(Shape):
    status: Status | None = None
    agent: str | None = None
    cwd: str | None = None
    archived: bool | None = None
    q: str | None = None
    """Words of the title, the name or the folder."""
    limit: Count = 100
    before: str | None = None


class OfferShape(Shape, forbid_unknown_fields=True):
    """What a session's agent is offered; the host's settings and flags may offer less."""

    files: bool = True
    terminals: bool = True


class LimitShape(Shape, forbid_unknown_fields=True):
    """As in the settings: at most so much `cost`, `tokens`, `time` (such as `10m`), `toolCalls` or
    `turns`, of the session, or `per` turn, or of all sessions of the day, the agent or the
    project."""

    cost: float | None = None
    tokens: int | None = None
    time: str | None = None
    tool_calls: int | None = None
    turns: int | None = None
    currency: str | None = None
    per: LimitScope = "session"
    then: Reaction = "stop"


class NewSession(Shape):
    """Without an agent or a folder, the server's own; without a host, the least busy one that has
    both. The session keeps its `offer`, its `fence` and its `system_prompt`, wherever it continues;
    a stricter fence of the host's settings or flags counts more. A system prompt that is only a
    text is added to the agent's own instructions; without one, that of the settings counts. Its
    `limits` hold besides those of the settings; `onLimit` says what becomes of a prompt when the
    agent reports a limit of its model provider."""

    agent: str | None = None
    cwd: str | None = None
    host: str | None = None
    name: str | None = None
    mode: str | None = None
    config: dict[str, str | bool] = msgspec.field(default_factory=dict[str, str | bool])
    additional_directories: list[str] = msgspec.field(default_factory=list[str])
    offer: OfferShape = msgspec.field(default_factory=OfferShape)
    system_prompt: str | SystemPrompt | None = None
    fence: FenceMode = "off"
    limits: list[LimitShape] = msgspec.field(default_factory=list[LimitShape])
    on_limit: OnLimit | None = None


class LimitList(Shape):
    """The limits that hold for a session, where this server runs it; what was `used` is null if the
    agent has not reported it."""

    limits: list[BoundLimit]


class DetailQuery(Shape):
    """`entries` of them at most: the last, or the last before the one numbered `before`."""

    entries: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    before: Cursor | None = None


class EntryPage(Shape):
    """Entries of a subagent; `first_entry` is the number of the first of them."""

    entries: list[AnyEntry]
    first_entry: int
    entry_count: int


class SessionEdit(Shape):
    """`cwd` is the workspace of an imported session that has none yet."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")] | None = None
    title: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    archived: bool | None = None
    cwd: str | None = None


class ForkBody(Shape, forbid_unknown_fields=True):
    """`cwd` is the workspace of the fork where the session has none."""

    name: str | None = None
    cwd: str | None = None


class DeleteQuery(Shape):
    """`local` keeps the agent's own copy."""

    local: bool = False


def summary_fields(
    record: SessionRecord, owner: OwnerShape | None, host: SessionHost | None, ended: Ended | None
) -> dict[str, Any]:
    """The fields of a `Summary`, which a `Detail` has too."""
    return public_fields(record) | {
        "failed": ended is not None and ended.failed,
        "last_ending": None if ended is None else ended.ending,
        "owner": owner,
        "host": host,
    }


class PromptBody(Shape):
    """`text`, whose mentions become links, or blocks of `content` as in ACP, or both. With
    `on_reset` new, a session that its agent does not remember continues without that memory."""

    text: str | None = None
    content: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    on_reset: Literal["fail", "new"] = "fail"


class Accepted(Shape, omit_defaults=True):
    """The prompt's turn, `queued` if it waits for another one. During an outage of the database,
    `delayed` says why it does not start yet."""

    turn: str
    queued: bool
    delayed: str | None = None


class SteerAnswer(Shape, omit_defaults=True):
    """What became of a steer, as far as it is known at once; the event `steered` says what became
    of it in the end. `sent`: the agent has it, and takes it up at its next step. `turn` is the one
    that it becomes if the running turn does not take it."""

    steer: str
    outcome: SteerOutcome | Literal["sent"]
    way: SteerWay
    reason: str = ""
    turn: str | None = None
    delayed: str | None = None


class CancelBody(Shape, forbid_unknown_fields=True):
    """The tool call, terminal or subagent to stop alone, if the agent supports that; empty for the
    whole turn. Unknown fields are refused: a typo must not stop the turn instead."""

    tool_call_id: str | None = None
    terminal_id: str | None = None
    subagent_id: str | None = None


class Cancelled(Shape, omit_defaults=True):
    """Whether there was something to cancel: a turn, or a part of one that still ran."""

    cancelled: bool
    delayed: str | None = None


class KillBody(Shape, forbid_unknown_fields=True):
    """`force` ends the agent's process although other sessions lose their turns with it."""

    force: bool = False


class Nothing(Shape, omit_defaults=True):
    """Done. During an outage of the database, `delayed` says why it is not visible yet."""

    delayed: str | None = None


class ModeBody(Shape):
    mode_id: str


class ConfigBody(Shape):
    config_id: str
    value: str | bool


class PermissionBody(Shape):
    option_id: str
    confirmed: bool = False


class ElicitationBody(Shape):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Choices: TypeAlias = dict[str, Literal["keep", "restore"]]
"""For each file that someone changed since: leave it as it is, or put the earlier content back."""


class RevertBody(Shape, forbid_unknown_fields=True):
    """What to revert: one turn (or restore) or all, these `paths` or `hunks` or all. `choices` says
    what becomes of files that someone else has changed since; `force` reverts all of them. Unknown
    fields are refused: a typo must not revert everything."""

    turn_id: str | None = None
    force: bool = False
    paths: list[str] | None = None
    hunks: list[str] | None = None
    choices: Choices = msgspec.field(default_factory=dict[str, Literal["keep", "restore"]])


class RevertAnswer(Shape, omit_defaults=True):
    """What was put back, and what was `kept` by choice; `restoreId` undoes it. With `waits`, it is
    going to happen when the turn has ended."""

    paths: list[str]
    kept: list[str] | None = None
    restore_id: str | None = None
    waits: bool = False
    delayed: str | None = None


class RewindBody(Shape, forbid_unknown_fields=True):
    """Back to before this turn: the files, the conversation or both. A new conversation starts with
    a `summary` of what came before if asked."""

    turn_id: str
    files: bool = True
    conversation: bool = True
    summary: bool = False
    force: bool = False
    choices: Choices = msgspec.field(default_factory=dict[str, Literal["keep", "restore"]])


class RewindAnswer(Rewound, Shape):
    """The session to continue with: the `same`, or another one that was `reset`. `prompt` is what
    the turn was asked."""


class Queue(Shape, omit_defaults=True):
    """The queue as it is now, or with `delayed`, as it will be when the outage is over."""

    queue: list[QueuedPrompt]
    delayed: str | None = None


class QueueBody(PromptBody):
    """With an `id`, the new content of that queued prompt; otherwise another prompt."""

    id: str | None = None


class HandoffBody(Shape, forbid_unknown_fields=True):
    """The agent that continues the session, and what it is to do; else it continues."""

    agent: str
    text: str = ""


class HandoffAnswer(Shape):
    """The new session."""

    session: str


class ParkedBody(Shape, forbid_unknown_fields=True):
    """What to do with a prompt that waits for the end of a limit: `continue` sends it now, `wait`
    when the limit is said to end, `hand_over` gives it to another `agent`, in a new session."""

    action: Literal["continue", "wait", "drop", "hand_over"]
    agent: str | None = None


class ParkedAnswer(Shape, omit_defaults=True):
    """The turn that sends it, or the session that it was handed over to."""

    turn: str | None = None
    session: str | None = None
    delayed: str | None = None


class EventsQuery(Shape):
    """`coalesce` joins pieces of one text: true always, false never, else for a slow reader.
    `types` are those of the events that are wanted as JSON, with commas between; else all."""

    after: Cursor = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=5_000)] = 1_000
    coalesce: bool | None = None
    types: Annotated[str, msgspec.Meta(max_length=500)] = ""


class AllEventsQuery(Shape):
    """Without `after`, from now on."""

    after: Cursor | None = None
    coalesce: bool | None = None


class EventPage(Shape):
    """`last` is the number of the session's last event: there is more while it was not reached."""

    events: list[Event]
    last: int


class SearchQuery(Shape):
    q: str
    limit: Count = 50


class HitShape(Shape):
    """In `snippet`, matching words are between U+0001 and U+0002."""

    session_id: str
    title: str | None
    seq: int
    kind: str
    snippet: str


class Hits(Shape):
    hits: list[HitShape]


class CostsQuery(Shape):
    """`since` is a moment, in seconds since 1970."""

    since: Annotated[float, msgspec.Meta(ge=0, le=1e11)]


class CostAmount(Shape):
    amount: float
    currency: str


class CostList(Shape):
    """The costs in each currency, of agents that report them."""

    costs: list[CostAmount]


class UsageQuery(CostsQuery):
    """`since` is a moment, in seconds since 1970; `by` says what each row is about."""

    by: Grouping = "day"


class UsageList(Shape):
    rows: list[UsageRow]
    total: Spending


class FilesQuery(Shape):
    q: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class FoundFile(Shape):
    """`path` as it can be mentioned: beneath the session's folder, or whole."""

    path: str
    kind: Literal["file", "folder"]


class Files(Shape):
    """Not `complete` if folders were left out for lack of time or space."""

    files: list[FoundFile]
    complete: bool


class FoldersQuery(Shape):
    """Without a `path`, of the folder that the server was started in."""

    path: str = ""


class Subfolders(Shape):
    """The `folders` in a folder by name; not `complete` if it has too many to look at. `branch` is
    the one that is checked out there, and `parent` None at the top. `problem` says why it cannot
    be listed."""

    path: str
    parent: str | None
    folders: list[str]
    complete: bool
    branch: str | None
    problem: str | None


class ChangesQuery(Shape):
    turn_id: str | None = None


class FileChange(FileComparison, Shape):
    """A file before and after, and who changed it: the `host` for the agent, the `agent` itself, an
    `other` between turns, someone `unknown` during one, or a `restore` of ours. Without snapshots,
    what an `agent` wrote by itself is as it reported. What is `imported` comes from a file, and may
    never have happened. Contents that are too large are left out. `source` is the one of `by` that
    matters most, `protected` the reason to look twice; `revertible` if it can be undone."""

    source: Author
    existed: bool
    diff: str
    revertible: bool = False


class FileChanges(Shape):
    """Not `complete` if files were left out for lack of space, not `tracked` without snapshots.
    `live`: a turn is running. `problems` say of which folders nothing is known, and why; `leftOut`,
    which files are not kept; `ignored`, the first of the `ignoredCount` files and folders (with a
    slash) that nobody watched because git ignores them."""

    changes: list[FileChange]
    complete: bool = True
    tracked: bool = False
    live: bool = False
    problems: list[FolderProblem] = msgspec.field(default_factory=list[FolderProblem])
    left_out: list[LeftOut] = msgspec.field(default_factory=list[LeftOut])
    ignored: list[str] = msgspec.field(default_factory=list[str])
    ignored_count: int = 0


class FramesQuery(Shape):
    after: Cursor = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = 500


class FrameShape(Shape):
    """A frame as it travelled, without secrets; of a large one only the beginning."""

    seq: int
    at: datetime
    direction: Literal["sent", "received"]
    size: int
    text: str
    cut: bool = False


class FrameList(Shape):
    """`last` is the cursor for `after`; `lost` says that older ones were not kept."""

    frames: list[FrameShape]
    last: int
    lost: bool


class UploadQuery(Shape):
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""


class Upload(Shape):
    """A file for a prompt: `{"type": "upload", "uri": …}` there, or a resource link."""

    uri: str
    name: str
    mime_type: str
    size: int
