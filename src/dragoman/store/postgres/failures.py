"""What PostgreSQL says when it fails, in our words. Knows no tables."""

from __future__ import annotations

import psycopg
from psycopg import errors

from dragoman.errors import StoreAway, StoreCorrupt, StoreError, StoreFull
from dragoman.store.failures import Refused

# The server is going, coming, full of others, or only a copy: it will do, later or elsewhere.
_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
_NEVER = (
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)
BLOCKED = errors.LockNotAvailable
TOO_LONG = (errors.QueryCanceled, BLOCKED)
AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, BLOCKED)
"""Two transactions got in each other's way: the one that lost has done nothing, and tries again."""


def store_error(place: str, error: psycopg.Error) -> StoreError:
    """The exception for callers; `place` is the address without its password."""
    match error:
        case errors.UniqueViolation():
            return Refused(place, f"the database refused a row: {_words(error)}")
        case errors.DiskFull():
            return StoreFull(place, "there is no room left for what should be stored")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreCorrupt(place, f"the database is damaged: {_words(error)}")
        case _ if isinstance(error, TOO_LONG):
            return StoreError(place, "the database took too long")
        case errors.InsufficientPrivilege():
            return StoreError(place, f"the database does not allow it: {_words(error)}")
        case _ if isinstance(error, _AWAY):
            return StoreAway(place, f"the database cannot be used now: {_words(error)}")
        case _:
            return StoreError(place, f"the database failed: {_words(error)}")


def connect_error(place: str, error: psycopg.Error) -> StoreError:
    if isinstance(error, _NEVER) or any(word in str(error) for word in _REFUSALS):
        return StoreError(place, f"the database does not let us in: {_words(error)}")
    return StoreAway(place, f"the database cannot be reached: {_words(error)}")


# Before a connection is there, the driver has words for a refusal but no code.
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password")


def lost(place: str, error: psycopg.Error) -> StoreAway:
    return StoreAway(place, f"the connection to the database was lost: {_words(error)}")


def _words(error: psycopg.Error) -> str:
    """Its first line; what the server adds may quote what should be stored."""
    message = error.diag.message_primary or str(error)
    return message.strip().partition("\n")[0] or type(error).__name__
