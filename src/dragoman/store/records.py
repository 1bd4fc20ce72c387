"""The types a store keeps. Pure: times, ids and encoded events come in from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import LeaseLost
from dragoman.session.events import Event
from dragoman.session.facts import EVERYTHING, Offer, SystemPrompt
from dragoman.session.limits.spending_limits import NO_LIMITS, SessionLimits
from dragoman.session.state import SessionState

Status: TypeAlias = Literal["idle", "running", "waiting", "parked", "interrupted", "closed"]
"""What a session does now: `waiting` is for a person, `interrupted` was cut by a crash."""


LAST_MOMENT = 253_402_300_799.0
"""The end of the year 9999: no later one can be written as a date."""


def utc(seconds: float) -> datetime:
    """The nearest moment that has a date: one odd record must not take a whole list away."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_MOMENT), UTC)


class Imported(msgspec.Struct, frozen=True, rename="camel"):
    """Where an imported session came from: the folder that the file names, and its number of
    events."""

    cwd: str
    events: int


class SessionRecord(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """One session as it is listed. `id` is ours; the agent has its own."""

    id: str
    agent: str
    cwd: str
    """Its workspace; empty until a person gives one to a session that was imported."""
    created_at: float
    updated_at: float
    name: str | None = None
    """What the user calls it; unique within `cwd`."""
    agent_session_id: str | None = None
    title: str | None = None
    renamed: bool = False
    """The title is the user's: the agent's does not replace it."""
    status: Status = "idle"
    archived: bool = False
    parent: str | None = None
    """The session this one was forked from."""
    additional_directories: list[str] = []
    last_seq: int = 0
    home: str | None = None
    """Where its workspace and its agent's memory are: the `home` of a host. None while every
    process that has the store has those too."""
    imported: Imported | None = None
    offer: Offer = EVERYTHING
    """What its agent is offered, wherever it runs; settings and flags there may offer less."""
    system_prompt: SystemPrompt | None = None
    """Sent to its agent whenever that opens the session."""
    limits: SessionLimits = NO_LIMITS
    """What it was given when it began, wherever it runs; settings and flags there add theirs."""
    copied: int = 0
    """Of a fork: how many of its first events it has from its parent. The store says so, unless it
    is itself a copy of another, or was rebuilt."""


class Kin(msgspec.Struct, frozen=True):
    """A session, and which one it was forked from: that one may be gone."""

    id: str
    parent: str | None
    created_at: float
    """By the clock of the host that made it."""


class SessionChange(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What changes about a record; fields left UNSET stay as they are."""

    name: str | UnsetType | None = UNSET
    agent_session_id: str | UnsetType | None = UNSET
    title: str | UnsetType | None = UNSET
    renamed: bool | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    updated_at: float | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    additional_directories: list[str] | UnsetType = UNSET
    home: str | UnsetType | None = UNSET
    system_prompt: SystemPrompt | UnsetType | None = UNSET


class SessionFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Which sessions to list, newest first; `before` is the cursor of the last page, and nothing
    has happened since `unused_since` in those listed."""

    agent: str | None = None
    cwd: str | None = None
    name: str | None = None
    agent_session_id: str | None = None
    status: Status | None = None
    archived: bool | None = None
    unused_since: float | None = None
    limit: int = 100
    before: str | None = None


SaidKind: TypeAlias = Literal["user", "agent", "title", "subagent"]
"""Who said it; `subagent` is also what was said to one."""


class Said(msgspec.Struct, frozen=True):
    """A text that search finds: what a person wrote or an agent said, in the event `seq`."""

    seq: int
    kind: SaidKind
    text: str


class Batch(msgspec.Struct, kw_only=True):
    """Events of one session that become durable together, with what they change around it."""

    first_seq: int
    events: list[bytes]
    """Encoded, in order; the sequence is dense from `first_seq` on."""
    change: SessionChange = SessionChange()
    said: list[Said] = []
    size: int = 0
    """Bytes of the events, counted here: many want to know."""

    def __post_init__(self) -> None:
        self.size = sum(map(len, self.events))


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """An event as it is stored. `position` orders the events of all sessions."""

    position: int
    session_id: str
    seq: int
    body: bytes

    def decode(self) -> Event:
        """Raises msgspec.DecodeError where the body is not one of our events."""
        try:
            return _decoder().decode(self.body)  # not by `decode_event`: this is every event
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from error


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a session after `seq`, encoded."""

    seq: int
    body: bytes | bytearray


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process that runs sessions. `started` tells it from a later one with the same pid."""

    id: str
    machine: str
    pid: int
    started: str
    label: str = ""
    """The machine's name in messages to people."""
    alive: bool = True
    """By the store: whether it renewed its leases in time, on the store's clock."""
    home: str | None = None
    """Where it keeps what it cannot deliver; None if that is next to the store."""


HasEnded: TypeAlias = Callable[[Owner], bool | None]
"""Says whether an owner has ended; None if that cannot be seen from here."""


class HostRecord(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A process that runs sessions for others, as it announces itself, and what the store adds."""

    id: str
    """That of its `Owner`: another one after each start."""
    home: str | None = None
    """The same after each start: see `SessionRecord.home`."""
    name: str
    address: str = ""
    """Where its page is, without a token; empty when other machines do not reach one."""
    cwd: str = ""
    """The workspace of sessions that name none."""
    agents: list[str] = []
    turns: int = 0
    """How many run there."""
    version: str = ""
    owner: Owner | None = None
    """The process itself, for those on its machine."""
    sessions: int = 0
    """By the store: how many it owns."""
    seen_at: float = 0.0
    """By the store: when it was last heard of, on the store's clock."""
    alive: bool = False
    """By the store: whether it was heard of in time."""


class Standing(msgspec.Struct, frozen=True):
    """A session, its owner, and all hosts, read at the same time."""

    record: SessionRecord | None
    owner: Owner | None
    """Whether alive or not."""
    hosts: list[HostRecord]


class Overview(msgspec.Struct, frozen=True):
    """Some sessions with their owners, if any, and all hosts."""

    position: int
    """Read first: of the newest event of all. A reader that continues from there misses none."""
    sessions: list[SessionRecord]
    owners: dict[str, Owner]
    hosts: list[HostRecord]


class Lease(msgspec.Struct, frozen=True):
    """The right to write a session. A later owner has a higher epoch, and shuts this one out."""

    session_id: str
    owner_id: str
    epoch: int


class SessionTip(msgspec.Struct, array_like=True):
    """What a write to a session needs to know: its key in the database, its last event, its
    owner."""

    id: str
    key: int
    last_seq: int
    epoch: int | None
    owner_id: str | None

    def check(self, lease: Lease) -> None:
        """Raises LeaseLost when the lease no longer owns the session."""
        if (self.epoch, self.owner_id) != (lease.epoch, lease.owner_id):
            raise LeaseLost(self.id)


class StoredCommand(msgspec.Struct, frozen=True):
    """A command from another process to a session's owner."""

    id: int
    session_id: str
    body: bytes
    sent_at: float


class Outcome(msgspec.Struct, frozen=True):
    """What became of a command: `waiting`, then `taken` by an owner, then `done` with a body; or
    `lost`, since its taker no longer owns the session."""

    state: Literal["waiting", "taken", "lost", "done", "unknown"]
    body: bytes = b""


class Hit(msgspec.Struct, frozen=True):
    """A search result; in `snippet`, matching words are between U+0001 and U+0002."""

    session_id: str
    seq: int
    kind: str
    snippet: str


_ENCODER = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[Event]:
    """Made when it is first needed: it takes some milliseconds, which a start does not have."""
    return msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """One line of JSON, without its line feed."""
    return _ENCODER.encode(event)


def public_fields(record: SessionRecord) -> dict[str, Any]:
    """A session as other programs see it, over HTTP and on the command line."""
    return {
        "id": record.id,
        "name": record.name,
        "title": record.title,
        "agent": record.agent,
        "agent_session_id": record.agent_session_id,
        "cwd": record.cwd,
        "imported_from": None if record.imported is None else record.imported.cwd,
        "status": record.status,
        "created_at": utc(record.created_at),
        "updated_at": utc(record.updated_at),
        "archived": record.archived,
        "parent": record.parent,
        "last_seq": record.last_seq,
    }


def encode_events(events: Sequence[Event]) -> list[bytes]:
    """The same for a batch, in half the time."""
    bodies = _ENCODER.encode_lines(events).split(b"\n")
    bodies.pop()  # a line feed ends each
    return bodies


def decode_event(body: bytes) -> Event:
    """Raises msgspec.DecodeError where the body is not one of our events."""
    try:
        return _decoder().decode(body)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error


def decode_events(events: Iterable[StoredEvent]) -> list[Event]:
    """The same for a page, in two thirds of the time."""
    bodies = [event.body for event in events]
    try:
        decoded: list[Event] = _decoder().decode_lines(b"\n".join(bodies))
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    # A damaged one may hold more than one value, or none.
    return decoded if len(decoded) == len(bodies) else [decode_event(body) for body in bodies]


def readable_events(bodies: Iterable[bytes]) -> Iterator[Event]:
    """Those that this version understands; a store keeps the others too."""
    for body in bodies:
        with suppress(msgspec.DecodeError, RecursionError):
            yield decode_event(body)


def status_at_rest(recorded: Status, state: SessionState) -> Status:
    """`recorded` counts for one that is closed: that may be done without an event. A turn that has
    no end is one that was interrupted."""
    if recorded == "closed":
        return "closed"
    if state.parked is not None and state.turn is None:
        return "waiting" if state.parked.resumes_at is None else "parked"
    is_cut = state.turn is not None or (state.turns and state.turns[-1].interrupted)
    return "interrupted" if is_cut else "idle"
