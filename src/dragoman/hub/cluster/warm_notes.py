"""The notes of processes that keep an agent warm: a file each in the data directory.

Anyone who meets such a process as the owner of a session knows by its note that it only waits for
the next prompt, and with what its agent was started. A note holds no value of the environment or of
the settings: only a keyed hash of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import data_directory, make_private, private_file
from dragoman.hub.cluster.owner import is_gone
from dragoman.store.records import Owner

_MOST_LOGGED = 1 << 20


class WarmNote(msgspec.Struct, kw_only=True, frozen=True):
    """What stays of one run."""

    owner: Owner
    session: str
    since: float
    """When its run ended."""
    seconds: float
    """How long it stays without a prompt."""
    salt: str
    start: str
    """The hash of what the agent was started with, by that salt."""
    writes: bool
    """Whether the agent may ask us to write."""
    person: bool
    """Whether it may ask a person to fill in a form."""


def warm_directory() -> Path:
    return data_directory() / "warm"


def write_note(note: WarmNote) -> None:
    """Raises OSError."""
    path = _path(note.owner.id)
    make_private(path.parent)
    fresh = path.with_suffix(".new")
    with open(fresh, "wb", opener=private_file) as file:
        file.write(msgspec.json.encode(note))
    fresh.replace(path)


def remove_note(owner_id: str) -> None:
    with suppress(OSError):
        _path(owner_id).unlink(missing_ok=True)


def note_of(owner: Owner | None) -> WarmNote | None:
    """That of the owner of a session, if it only keeps its agent warm."""
    if owner is None or not owner.id.isalnum() or is_gone(owner):
        return None
    return _read(_path(owner.id))


def notes() -> list[WarmNote]:
    """Those of all that are there now; those of processes that were killed are removed."""
    found: list[WarmNote] = []
    for path in sorted(warm_directory().glob("*.json")):
        note = _read(path)
        if note is not None and not is_gone(note.owner):
            found.append(note)
            continue
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda note: note.since)


def open_log() -> int:
    """A descriptor of the file in which such processes write what goes wrong. Raises OSError."""
    path = make_private(warm_directory()) / "log"
    with suppress(OSError):
        if path.stat().st_size > _MOST_LOGGED:
            path.unlink()
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _path(owner_id: str) -> Path:
    return warm_directory() / f"{owner_id}.json"


def _read(path: Path) -> WarmNote | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=WarmNote)
    except (OSError, msgspec.DecodeError):
        return None
