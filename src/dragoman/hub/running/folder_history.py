"""What is stored about the folders of a session: its snapshots, and what was written for it."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from dragoman.host.snapshots import timeline as t
from dragoman.hub.running.written_files import TYPES, Written
from dragoman.store.base import Store, events_of_types
from dragoman.store.records import SessionRecord


class FolderHistory(msgspec.Struct):
    """`timeline` has only what this session did on this machine: what an import tells of
    snapshots is someone else's."""

    timeline: t.Timeline
    written: Written


async def read_history(store: Store, record: SessionRecord) -> FolderHistory:
    opened_as = None if record.parent is None else record.agent_session_id
    found = FolderHistory(t.Timeline(opened_as), Written())
    imported = 0 if record.imported is None else record.imported.events
    kinds = tuple(dict.fromkeys((*TYPES, *t.TYPES)))
    async for stored in events_of_types(store, record.id, kinds):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            event = stored.decode()
            found.written.feed(event)
            if stored.seq > imported:
                found.timeline.feed(event)
    return found
