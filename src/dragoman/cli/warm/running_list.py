"""The sessions that processes run now: which process, since when, and what it takes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.cli.run.hub_access import opened_store
from dragoman.hub.cluster.owner import is_gone, is_here
from dragoman.hub.cluster.warm_notes import WarmNote, notes
from dragoman.process.process_memory import ProcessTable
from dragoman.store.records import Owner, SessionRecord


class RunningNow(msgspec.Struct, kw_only=True, frozen=True):
    """A session that a process runs; `note` if that only keeps its agent warm."""

    record: SessionRecord
    owner: Owner
    note: WarmNote | None
    since: float | None
    """The start of the process; None for one on another machine, like its memory."""
    memory: int | None
    """Bytes of the process and all below it: the agent, and what that has started."""

    @property
    def state(self) -> str:
        """That of the session; `warm` if its agent only waits for the next prompt."""
        is_idle = self.record.status not in ("running", "waiting")
        return "warm" if is_idle and self.note is not None else self.record.status

    @property
    def ends_at(self) -> float | None:
        """When it ends if nothing more is asked of it."""
        if self.note is None or self.state != "warm":
            return None
        return max(self.note.since, self.record.updated_at) + self.note.seconds

    @property
    def public(self) -> dict[str, Any]:
        """For programs."""
        return {
            "id": self.record.id,
            "name": self.record.name,
            "title": self.record.title,
            "agent": self.record.agent,
            "cwd": self.record.cwd,
            "state": self.state,
            "warm": self.note is not None,
            "pid": self.owner.pid,
            "host": self.owner.label,
            "since": _moment(self.since),
            "endsAt": _moment(self.ends_at),
            "memory": self.memory,
        }


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


async def running() -> list[RunningNow]:
    """Those that run longest first. Raises StoreError."""
    async with opened_store() as store:
        owned = [(each, owner) for each, owner in await store.owned() if not is_gone(owner)]
        by_owner = {note.owner.id: note for note in await asyncio.to_thread(notes)}
        table = None
        with suppress(OSError):
            table = await asyncio.to_thread(ProcessTable)
        found = [
            _seen(record, owner, by_owner.get(owner.id), table)
            for session_id, owner in owned
            if (record := await store.session(session_id)) is not None
        ]
        return sorted(found, key=lambda each: (each.since or 0.0, each.record.id))


def _seen(
    record: SessionRecord, owner: Owner, note: WarmNote | None, table: ProcessTable | None
) -> RunningNow:
    seen = table if is_here(owner) else None
    return RunningNow(
        record=record,
        owner=owner,
        note=note,
        since=None if seen is None else seen.started_at(owner.pid),
        memory=None if seen is None else seen.memory(owner.pid),
    )
