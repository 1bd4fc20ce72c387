"""Sessions: in a list, whole, and how they are made and changed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.session.events import Continuity
from dragoman.session.facts import (
    BackgroundWork,
    Command,
    ConfigOption,
    ContextUsage,
    Modes,
    Offer,
)
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
from dragoman.store.records import SessionRecord, Status
from dragoman.web.last_turn import Ended
from dragoman.web.shapes.base import Count, Cursor, Shape, utc
from dragoman.web.shapes.hosts import SessionHost


class OwnerShape(Shape):
    """The process that runs a session; `here` is this server."""

    label: str
    pid: int
    here: bool


class Summary(Shape):
    """A session as it stands in a list."""

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
    """What the agent of a session that runs here says of itself."""

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
    continuity: Continuity
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
    activity: str
    """What the agent does outside of turns: `idle`, unless it works on its own."""
    background: list[BackgroundWork]
    """What the agent says runs on, as it names it."""
    plan: PlanEntry | None
    terminals: list[Terminal]
    subagents: list[Subagent]
    entries: list[AnyEntry]
    first_entry: int
    entry_count: int


class SessionPage(Shape):
    """`next` is the cursor for `before`, null on the last page; `position` is where the stream of
    all events stood before this was read."""

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
    """What of its host a session's agent is offered; settings and flags there may offer less."""

    files: bool = True
    terminals: bool = True


class NewSession(Shape):
    """Without an agent or a folder, the server's own; without a host, the least busy one that has
    both. The session keeps its `offer`, wherever it goes on."""

    agent: str | None = None
    cwd: str | None = None
    host: str | None = None
    name: str | None = None
    mode: str | None = None
    config: dict[str, str | bool] = msgspec.field(default_factory=dict[str, str | bool])
    additional_directories: list[str] = msgspec.field(default_factory=list[str])
    offer: OfferShape = msgspec.field(default_factory=OfferShape)


class DetailQuery(Shape):
    """`entries` of them at most: the last, or the last before the one numbered `before`."""

    entries: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    before: Cursor | None = None


class SessionEdit(Shape):
    """`cwd` is the workspace of an imported session that has none yet."""

    title: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    archived: bool | None = None
    cwd: str | None = None


class ForkBody(Shape, forbid_unknown_fields=True):
    """`cwd` is the workspace of the fork where the session has none."""

    name: str | None = None
    cwd: str | None = None


class DeleteQuery(Shape):
    """`local` leaves what the agent itself keeps."""

    local: bool = False


def summary_fields(
    record: SessionRecord, owner: OwnerShape | None, host: SessionHost | None, ended: Ended | None
) -> dict[str, Any]:
    """The fields of a `Summary`, which a `Detail` has too."""
    return {
        "id": record.id,
        "name": record.name,
        "title": record.title,
        "agent": record.agent,
        "agent_session_id": record.agent_session_id,
        "cwd": record.cwd,
        "imported_from": None if record.imported is None else record.imported.cwd,
        "status": record.status,
        "failed": ended is not None and ended.failed,
        "last_ending": None if ended is None else ended.ending,
        "created_at": utc(record.created_at),
        "updated_at": utc(record.updated_at),
        "archived": record.archived,
        "parent": record.parent,
        "last_seq": record.last_seq,
        "owner": owner,
        "host": host,
    }
