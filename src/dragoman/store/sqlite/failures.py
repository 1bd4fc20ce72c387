"""What SQLite says when it fails, in our words. Knows no tables."""

from __future__ import annotations

import apsw

from dragoman.errors import RowDuplicate, RowRefused, StoreAway, StoreCorrupt, StoreError, StoreFull


def store_error(place: str, error: apsw.Error) -> StoreError:
    """The exception for callers; `place` is the database's file."""
    match error:
        case apsw.ConstraintError():
            return RowDuplicate(place, f"the database rejected a row: {error}")
        case apsw.TooBigError() | apsw.MismatchError() | apsw.RangeError():
            return RowRefused(place, f"the database rejected a row: {error}")
        case apsw.FullError():
            return StoreFull(place, "no space left to store events")
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(place, str(error))
        case apsw.BusyError() | apsw.LockedError():
            return StoreAway(place, "another process has locked the database for too long")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreAway(place, "the database cannot be written")
        case apsw.CantOpenError():
            return StoreAway(place, "the database cannot be opened")
        case apsw.IOError():
            return StoreAway(place, f"the disk failed: {error}")
        case apsw.NoMemError():
            return StoreAway(place, "there is not enough memory")
        case _:
            return StoreError(place, f"the database failed: {error}")


def is_locked(error: StoreError) -> bool:
    return isinstance(error.__cause__, apsw.BusyError | apsw.LockedError)


def lost(place: str, mirrors: int) -> StoreCorrupt:
    """There is nothing in the database, and so many mirrors of what was."""
    count = f"{mirrors} session{'' if mirrors == 1 else 's'}"
    sentence = (
        f"the database is missing or empty, and there are mirrors of {count}; "
        "`dragoman sessions recover` rebuilds it from them"
    )
    return StoreCorrupt(place, sentence)


def damaged(place: str, reason: str) -> StoreCorrupt:
    """Says what to do about it."""
    sentence = (
        f"the database is damaged ({reason}); "
        "`dragoman sessions recover` rebuilds it from the mirrors"
    )
    return StoreCorrupt(place, sentence)
