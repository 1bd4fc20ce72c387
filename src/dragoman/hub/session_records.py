"""What is on record of a session when it begins, and which folders it may work in."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TypedDict, Unpack

from dragoman.errors import CommandRefused
from dragoman.session.facts import EVERYTHING, Offer, SystemPrompt
from dragoman.session.limits.spending_limits import NO_LIMITS, SessionLimits
from dragoman.store.records import SessionRecord


def workspace_of(record: SessionRecord, given: str | None = None) -> str:
    """The folder that was given, else its own. Raises CommandRefused with `no_workspace` for an
    imported session without either: a file must not choose what is opened to an agent."""
    if cwd := given or record.cwd:
        return cwd
    origin = "" if record.imported is None else record.imported.cwd
    sentence = (
        f"session {record.id} was imported{origin and f' from {origin}'} and has no directory yet"
    )
    raise CommandRefused(record.id, "no_workspace", sentence)


def must_lack_folder(record: SessionRecord) -> None:
    """Raises CommandRefused where it has one."""
    if record.cwd:
        sentence = f"session {record.id} already has a directory: {record.cwd}"
        raise CommandRefused(record.id, "conflict", sentence)


def missing_folder(folders: Sequence[str]) -> str | None:
    """The first that is not there."""
    return next((folder for folder in folders if not os.path.isdir(folder)), None)


def with_more(directories: Sequence[str], more: Sequence[str]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys((*directories, *more)))


class RecordReach(TypedDict, total=False):
    """What a new session may be given besides: folders, what its agent is offered, instructions and
    limits."""

    additional_directories: Sequence[str]
    offer: Offer
    system_prompt: SystemPrompt | None
    limits: SessionLimits


class RecordOptions(RecordReach, total=False):
    """What a new session may be given: an id, a name, and what it may use."""

    session_id: str | None
    name: str | None


def new_record(
    home: str | None, agent: str, cwd: str, **options: Unpack[RecordOptions]
) -> SessionRecord:
    """Of a session that begins now."""
    now = time.time()
    return SessionRecord(
        id=options.get("session_id") or f"s-{os.urandom(8).hex()}",
        agent=agent,
        cwd=cwd,
        created_at=now,
        updated_at=now,
        name=options.get("name"),
        additional_directories=list(options.get("additional_directories", ())),
        home=home,
        offer=options.get("offer", EVERYTHING),
        system_prompt=options.get("system_prompt"),
        limits=options.get("limits", NO_LIMITS),
    )


def fork_record(
    parent: SessionRecord, home: str | None, *, cwd: str | None = None, name: str | None = None
) -> SessionRecord:
    """Of a fork that begins now: with the folders of its parent, and all it was given."""
    record = new_record(
        home,
        parent.agent,
        cwd or parent.cwd,
        name=name,
        additional_directories=parent.additional_directories,
        offer=parent.offer,
        system_prompt=parent.system_prompt,
        limits=parent.limits,
    )
    record.parent, record.imported = parent.id, parent.imported
    return record
