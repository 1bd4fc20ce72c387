"""The session that continues one that was rewound.

A fork that ends at that point, where the agent can do that; else a new one, whose agent may be
given a summary.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from dragoman.errors import AuthRequired, RemoteError
from dragoman.hub.cluster import commands as c
from dragoman.hub.opener import ForkPoint, Opener
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.session_records import fork_record
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, AnyEntry, ToolCall, UserEntry
from dragoman.session.thread import whole_id
from dragoman.store.records import SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

_SAID = 600
"""Characters of a prompt, and of the end of an answer."""
_MOST = 12_000
_INTRODUCTION = (
    "This conversation starts again at an earlier point. The files are as they were then. "
    "This was said before, in brief; it is only for your information, so do nothing yet:\n\n"
)
_NOTHING_SAID = "nothing was said before"
_NO_POINT = "the agent cannot fork a conversation at an earlier point"
_NO_MESSAGE = "the last message of the agent before has no id to fork at"


Continuity: TypeAlias = Literal["same", "continued", "reset"]


class Rewound(msgspec.Struct, kw_only=True, rename="camel"):
    """The session to continue with: the `same`; a fork, where the agent remembers what was said
    before (`continued`); or a new one, where it remembers nothing (`reset`), and why. `prompt` is
    what the turn was asked."""

    session: str
    continuity: Continuity = "same"
    reason: str | None = None
    paths: list[str] = []
    kept: list[str] = []
    restore_id: str | None = None
    prompt: str


async def forked(
    hub: Hub, opener: Opener, record: SessionRecord, before: Before
) -> RunningSession | str:
    """A fork of this session that ends before a turn; or why there is none."""
    if not before.exchanges:
        return _NOTHING_SAID
    if (at := before.fork_point) is None:
        return _NO_MESSAGE
    known = await opener.conversation_of(record)
    if known is None:
        return "the session has no conversation with an agent"
    async with hub.using(record.agent, record.cwd, record.offer) as client:
        if not client.openings.forks_at_messages:
            return _NO_POINT
        new = fork_record(record, record.home)
        try:
            live = await hub.running.begin(new.id, lambda: opener.fork(known, new, record, at))
        except AuthRequired:
            raise
        except RemoteError as error:
            return f"the agent did not fork the conversation there: {error}"
    told = f"session {record.id} was rewound; the agent remembers what was said before"
    live.session.log.record(e.Notice(told, source="client"))
    return live


async def begun_again(hub: Hub, record: SessionRecord, summary: str) -> RunningSession:
    """A session in the same folders, which says that it was reset; with a `summary`, that is its
    first prompt."""
    new = await hub.create(
        record.agent,
        record.cwd,
        continuity="reset",
        additional_directories=record.additional_directories,
        offer=record.offer,
        system_prompt=record.system_prompt,
        limits=record.limits,
    )
    told = f"session {record.id} was rewound; the agent remembers nothing of it"
    new.session.log.record(e.Notice(told, source="client"))
    if summary:
        await hub.send(new.id, c.Prompt(summary))
    return new


# What was said in a session before some turn, in brief. Pure text: no agent is asked.


class Before(msgspec.Struct):
    """What came before a turn, and what the turn was asked; `seq` is its first event, 0 if there
    is no such turn."""

    seq: int = 0
    prompt: str = ""
    exchanges: list[tuple[str, str]] = []
    """What the person said, and the last that the agent answered."""
    message_id: str | None = None
    """The message of the agent that was the last of all, if it has an id."""

    @property
    def fork_point(self) -> ForkPoint | None:
        """Where a fork would have to leave the session."""
        return None if self.message_id is None else ForkPoint(self.seq - 1, self.message_id)

    @property
    def summary(self) -> str:
        """The newest exchanges that have room; empty if there were none."""
        parts: list[str] = []
        room = _MOST
        for said, answered in reversed(self.exchanges):
            part = f"The user: {_first(said)}\nYou: {_last(answered) or '(no answer)'}\n"
            room -= len(part)
            if room < 0:
                parts.append("(Earlier exchanges are left out.)\n")
                break
            parts.append(part)
        return _INTRODUCTION + "\n".join(reversed(parts)) if parts else ""


async def said_before(thread: AsyncIterable[AnyEntry], turn_id: str) -> Before:
    found = Before()
    async for entry in thread:
        if entry.turn_id == turn_id:
            if isinstance(entry, UserEntry):
                found.seq, found.prompt = entry.seq, entry.text
                return found
        elif isinstance(entry, UserEntry):
            found.exchanges.append((entry.text, ""))
            found.message_id = None
        elif isinstance(entry, AgentEntry):
            found.message_id = whole_id(entry.message_id)
            if found.exchanges:
                found.exchanges[-1] = (found.exchanges[-1][0], entry.text)
        elif isinstance(entry, ToolCall):
            found.message_id = None
    return found


def _first(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SAID else f"{text[:_SAID]} …"


def _last(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SAID else f"… {text[-_SAID:]}"
