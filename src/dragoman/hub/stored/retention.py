"""Deletes sessions that have been idle for a long time; the agents' copies are kept.

One that runs, waits for a person or is archived is kept, whatever its age; so is one that someone
begins to use meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.agents.settings.settings_file import Retention
from dragoman.errors import DragomanError
from dragoman.store.base import Store, session_pages
from dragoman.store.records import SessionFilter, SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

logger = logging.getLogger("dragoman.hub")

PRUNE_SECONDS = 3600.0
_PAGE = 500
_BETWEEN_SECONDS = 0.05
"""Left to others after each session."""
_DAY = 86400.0


class Pruned(msgspec.Struct):
    """What was pruned, or would be, and how much disk space was freed so far."""

    sessions: int = 0
    bytes: int = 0
    reclaimed: int = 0


async def unused(
    store: Store, retention: Retention, *, project: str | None = None, agent: str | None = None
) -> list[SessionRecord]:
    """The sessions that were kept for long enough, in a folder and beneath it, of an agent."""
    now, shortest = time.time(), retention.shortest
    if shortest is None:
        return []
    wanted = SessionFilter(
        agent=agent, archived=False, unused_since=now - shortest * _DAY, limit=_PAGE
    )
    return [
        each
        async for page in session_pages(store, wanted)
        for each in page
        if is_unused(each, retention, now) and _is_in(each, project)
    ]


def is_unused(record: SessionRecord, retention: Retention, now: float) -> bool:
    days = retention.days_in(record.cwd)
    if days is None or record.archived or record.status in ("running", "waiting"):
        return False
    return record.updated_at < now - days * _DAY


def _is_in(record: SessionRecord, project: str | None) -> bool:
    return project is None or record.cwd == project or record.cwd.startswith(_beneath(project))


def _beneath(folder: str) -> str:
    return folder.rstrip(os.sep) + os.sep


async def weigh(store: Store, records: list[SessionRecord]) -> Pruned:
    """What forgetting them would bring."""
    pruned = Pruned()
    for record in records:
        pruned.sessions += 1
        pruned.bytes += await store.size_of(record.id)
    return pruned


async def prune(hub: Hub, records: list[SessionRecord], retention: Retention) -> Pruned:
    """Forget them one by one, each as long as it still may be."""
    pruned = Pruned()
    for record in records:
        size = await hub.deletion.forget(
            record.id, lambda now: is_unused(now, retention, time.time())
        )
        if size is not None:
            pruned.sessions += 1
            pruned.bytes += size
        await asyncio.sleep(_BETWEEN_SECONDS)
    if pruned.sessions:
        pruned.reclaimed = await hub.store.reclaim()
    return pruned


async def keep_pruning(
    hub: Hub,
    retention: Callable[[], Retention],
    tell: Callable[[Pruned], None],
    *,
    pause: float = PRUNE_SECONDS,
) -> None:
    """Prune regularly what belongs to this host, as the settings say at that time."""
    while True:
        try:
            kept = retention()
            records = [each for each in await unused(hub.store, kept) if hub.hosts.has(each)]
            pruned = await prune(hub, records, kept)
            if pruned.sessions:
                tell(pruned)
            await hub.folders.maintain()
        except DragomanError as error:
            logger.warning("old sessions could not be pruned: %s", error)
        except Exception:
            logger.exception("old sessions could not be pruned")
        await asyncio.sleep(pause)


def in_words(pruned: Pruned) -> str:
    """`3 sessions, 1.2 MB`."""
    plural = "" if pruned.sessions == 1 else "s"
    return f"{pruned.sessions} session{plural}, {pruned.bytes / 1e6:.1f} MB"
