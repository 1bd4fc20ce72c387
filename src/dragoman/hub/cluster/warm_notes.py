"""The notes of processes that keep an agent warm: a file each in the data directory.

Its note tells every process that meets it as the owner of a session that it only waits for the next
prompt, and with what its agent was started. A note holds no value of the environment or of
the settings: only a keyed hash of them.

The data directory may be shared with other machines, and with containers. A note counts only where
its process can be seen, and is removed only where that is known to have ended.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from dragoman.data_directory import data_directory, make_private, private_file, store_address
from dragoman.hub.cluster.owner import has_stopped, is_here
from dragoman.store.records import Owner

_MOST_LOGGED = 1 << 20


class WarmNote(msgspec.Struct, kw_only=True, frozen=True):
    """What stays of one run. The owner has the machine, the boot, the number and the start of the
    process."""

    owner: Owner
    session: str
    since: float
    """When its run ended."""
    seconds: float
    """How long it stays without a prompt."""
    salt: str
    start: str
    """The hash of what the agent was started with, by that salt."""
    store: str
    """The hash of the store's address, by that salt: a session is known in one store only."""
    settled: dict[str, str | bool]
    """The mode and the options with which the agent opened the session."""
    choices: list[str]
    """What the run set of them."""
    chosen: dict[str, str | bool]
    """What they were then."""

    @property
    def is_of_this_store(self) -> bool:
        return self.store == keyed_hash((store_address() or "").encode(), self.salt)


class WarmOwner(Protocol):
    """What a hub asks of a process that keeps an agent warm, or will after its run."""

    def check(self) -> None:
        """Before a prompt is taken. Raises CommandRefused if none is taken now."""
        ...

    def took(self, turn_id: str, sender: Owner | None) -> None:
        """A prompt was taken, which ends with the run that sent it."""
        ...

    def give_up(self) -> bool:
        """End, since another process wants the session; False while that cannot be."""
        ...

    def stay(self, seconds: float) -> None:
        """From now on, end after so long without a prompt."""
        ...


def keyed_hash(data: bytes, salt: str) -> str:
    """It says nothing about the data to someone who does not know what it may be."""
    from _blake2 import blake2b  # hashlib would load OpenSSL for it

    return blake2b(data, key=salt.encode(), digest_size=16).hexdigest()


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
    """That of the owner of a session, if it is a process here that only keeps its agent warm."""
    if owner is None or not owner.id.isalnum() or not is_here(owner) or has_stopped(owner):
        return None
    note = _read(_path(owner.id))
    return note if note is not None and _who(note.owner) == _who(owner) else None


def _who(owner: Owner) -> tuple[str, str, int, str]:
    return owner.id, owner.machine, owner.pid, owner.started


def notes() -> list[WarmNote]:
    """Those of the processes here that keep agents for sessions of this store, the oldest first.
    The notes of processes that were killed are removed."""
    found: list[WarmNote] = []
    for path in sorted(warm_directory().glob("*.json")):
        note = _read(path)
        if note is None or not is_here(note.owner):
            continue  # of a later version, or of another machine
        if has_stopped(note.owner):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        elif note.is_of_this_store:
            found.append(note)
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
