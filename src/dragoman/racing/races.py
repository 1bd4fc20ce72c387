"""The races on record: one file each, in the data directory."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import data_directory, make_private, private_file
from dragoman.errors import RaceError
from dragoman.hub.cluster.owner import has_stopped
from dragoman.racing.race_record import RaceRecord
from dragoman.store.records import Owner


class Races:
    """Saved whole, so that a reader sees a moment of the race."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or data_directory() / "races"

    def save(self, race: RaceRecord) -> None:
        make_private(self.directory)
        path = self._path(race.id)
        new = path.with_suffix(".new")
        with open(new, "wb", opener=private_file) as file:
            file.write(msgspec.json.format(msgspec.json.encode(race), indent=1))
        new.replace(path)

    def all(self) -> list[RaceRecord]:
        """The newest first."""
        with suppress(FileNotFoundError):
            names = [each.stem for each in self.directory.glob("*.json")]
            found = (self._read(name) for name in names)
            return sorted((each for each in found if each), key=lambda each: -each.created_at)
        return []

    def find(self, word: str) -> RaceRecord:
        """By its id or a prefix of it; `last` is the newest. Raises RaceError."""
        everything = self.all()
        found = everything[:1] if word == "last" else []
        found = found or [each for each in everything if each.id.startswith(word)]
        if len(found) == 1 or (found and found[0].id == word):
            return found[0]
        if found:
            raise RaceError(f"several races begin with {word}: {', '.join(r.id for r in found)}")
        raise RaceError(f"there is no race {word}; `dragoman races list` shows all")

    def delete(self, race_id: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path(race_id))

    def _read(self, race_id: str) -> RaceRecord | None:
        with suppress(OSError, msgspec.MsgspecError):
            race = msgspec.json.decode(self._path(race_id).read_bytes(), type=RaceRecord)
            return _as_it_is(race)
        return None

    def _path(self, race_id: str) -> Path:
        return self.directory / f"{race_id}.json"


def read_race(document: bytes) -> RaceRecord:
    """An exported race. Raises RaceError."""
    try:
        return msgspec.json.decode(document, type=RaceRecord)
    except msgspec.MsgspecError as error:
        raise RaceError(f"this is not the record of a race: {error}") from error


def _as_it_is(race: RaceRecord) -> RaceRecord:
    """The process that ran it may have been killed."""
    if race.ended_at is None and _is_left(race):
        race.ended_at = time.time()
        race.problem = "its process ended before it was over"
    return race


def _is_left(race: RaceRecord) -> bool:
    if race.owner is None:
        return False
    with suppress(msgspec.MsgspecError):
        return has_stopped(msgspec.convert(race.owner, Owner))
    return False
