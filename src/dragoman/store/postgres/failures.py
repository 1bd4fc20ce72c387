"""What PostgreSQL says when it fails, in our words. Knows no tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import psycopg
from psycopg import errors

from dragoman.errors import (
    RowDuplicate,
    RowRefused,
    StoreAway,
    StoreCorrupt,
    StoreCrowded,
    StoreError,
    StoreFull,
)

Meaning: TypeAlias = Literal[
    "away", "full", "data", "duplicate", "again", "slow", "damaged", "statement"
]

MEANINGS: dict[str, tuple[Meaning, str]] = {
    "": ("away", "no word of the server at all: the driver's own error, and nobody knows the rest"),
    "0A": ("away", "a plan made before the tables changed; a new connection makes a new one"),
    "08": ("away", "the line, or what is spoken on it, is broken"),
    "22": ("data", "a value that does not fit its type"),
    "23": ("data", "a row that breaks a constraint"),
    "23505": ("duplicate", "a row that there is already, such as the name of a session"),
    "25": ("away", "its transaction is not what we believe, or it can only be read"),
    "26": ("away", "a prepared statement that only the driver knows of"),
    "27": ("data", "a trigger refused the row"),
    "3F": ("statement", "the schema is not there"),
    "40": ("again", "two transactions got in each other's way; the one that lost did nothing"),
    "40002": ("data", "a constraint that is checked at the commit"),
    "40003": ("away", "it does not know itself what became of the statement"),
    "42": ("statement", "no such table, no such right: true of the statement, whatever its values"),
    "44": ("data", "a view refused the row"),
    "53": ("away", "short of memory or connections"),
    "53100": ("full", "no room on its disk"),
    "54": ("data", "a value that is larger than it can take"),
    "55": ("away", "something is not in the state for it yet"),
    "55P03": ("again", "a lock that somebody else has held for too long"),
    "57": ("away", "an operator: shutting down, starting, dropping the database"),
    "57014": ("slow", "given up after the time that it had"),
    "58": ("away", "its disk or its system failed"),
    "P0": ("data", "a trigger raised an exception about the row"),
    "XX": ("away", "a fault inside the server"),
    "XX001": ("damaged", "a page that cannot be read"),
    "XX002": ("damaged", "an index that cannot be trusted"),
}
"""What an error means, by its SQLSTATE or the beginning of that: the longest that fits counts. Any
other is an outage: whatever is not the database's word on one statement does not justify giving up
what should be written, but the connection."""

_NEVER = (
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)
BLOCKED = errors.LockNotAvailable


def meaning(error: psycopg.Error | OSError) -> Meaning:
    state = getattr(error, "sqlstate", None) or ""
    if not state and isinstance(error, psycopg.DataError):
        return "data"  # the driver cannot put a value into a statement, and has sent nothing
    known = (MEANINGS[state[:end]] for end in (5, 2) if state[:end] in MEANINGS)
    return next(known, ("away", ""))[0]


def is_worth_another_try(error: StoreError) -> bool:
    return isinstance(error.__cause__, psycopg.Error) and meaning(error.__cause__) == "again"


def took_too_long(error: StoreError) -> bool:
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and meaning(cause) in ("again", "slow")


def store_error(place: str, error: psycopg.Error | OSError) -> StoreError:
    """The exception for callers; `place` is the address without its password."""
    kind, reason = _SENTENCES[meaning(error)]
    return kind(place, reason.format(_words(error)))


_SENTENCES: dict[Meaning, tuple[Callable[[str, str], StoreError], str]] = {
    "away": (StoreAway, "the database is unavailable: {}"),
    "full": (StoreFull, "no space left to store events"),
    "data": (RowRefused, "the database rejected a row: {}"),
    "duplicate": (RowDuplicate, "the database rejected a row: {}"),
    "again": (StoreError, "the database took too long"),
    "slow": (StoreError, "the database took too long"),
    "damaged": (StoreCorrupt, "the database is damaged: {}"),
    "statement": (StoreError, "the database does not allow it: {}"),
}


def connect_error(place: str, error: psycopg.Error | OSError) -> StoreError:
    if any(word in str(error) for word in _FULL):
        return StoreCrowded(place, f"the database has no free connections: {_words(error)}")
    if isinstance(error, _NEVER) or any(word in str(error) for word in _REFUSALS):
        return StoreError(place, f"the database refused the login: {_words(error)}")
    return StoreAway(place, f"the database cannot be reached: {_words(error)}")


# Before a connection is there, the driver has words for a refusal but no code.
_FULL = ("too many clients", "too many connections", "remaining connection slots")
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password")


def lost(place: str, error: psycopg.Error | OSError) -> StoreAway:
    return StoreAway(place, f"the connection to the database was lost: {_words(error)}")


def _words(error: psycopg.Error | OSError) -> str:
    """Its first line; what the server adds may quote what should be stored."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else error.strerror
    return (said or str(error)).strip().partition("\n")[0] or type(error).__name__
