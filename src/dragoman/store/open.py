"""Opens a store, quickly because every command does so, and checks one that is not open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import msgspec

from dragoman.data_directory import data_directory, home_id, store_address
from dragoman.errors import StoreAway, StoreError
from dragoman.store.base import Rules, Store
from dragoman.store.outage import Outbox
from dragoman.store.records import SessionFilter
from dragoman.store.sqlite import inbox
from dragoman.store.sqlite.database import FILE_NAME, Database, lost, prepare
from dragoman.store.sqlite.mirror import DIRECTORY, Mirror, all_mirrors
from dragoman.store.sqlite.rules import SqliteRules
from dragoman.store.sqlite.sessions import has_deleted
from dragoman.store.sqlite.store import STORE_ID, SqliteStore
from dragoman.store.sqlite.tables import migrate
from dragoman.store.store_limits import StoreLimits

WAIT_SECONDS = 60.0
"""How long a server waits at its start for a database that is not there yet."""
_AGAIN_SECONDS = 0.5
_POSTGRES = ("postgresql://", "postgres://")


async def open_default() -> Store:
    """The store of this user: where `--store` or `$DRAGOMAN_STORE` says, else SQLite in the data
    directory. Raises StoreError; StoreAway when the database cannot be reached."""
    address = store_address()
    if address is None:
        return await open_store(data_directory())
    _must_be_postgres(address)
    return await open_address(address)


async def open_when_there(tell: Callable[[str], None], wait_seconds: float = WAIT_SECONDS) -> Store:
    """The same for a server, which may start before its database does: that is waited for, and
    `tell` is called with a sentence. Raises StoreError."""
    deadline = time.monotonic() + wait_seconds
    is_told = False
    while True:
        try:
            return await open_default()
        except StoreAway as error:
            if store_address() is None:
                raise  # a file that cannot be opened now waits for a person
            if time.monotonic() > deadline:
                reason = f"{error.reason}; given up after {wait_seconds:.0f} s"
                raise StoreAway(error.place, reason) from error
            if not is_told:
                tell(f"{error}; retrying for up to {wait_seconds:.0f} s")
                is_told = True
            await asyncio.sleep(_AGAIN_SECONDS)


async def open_address(address: str) -> Store:
    """In PostgreSQL, or in a directory in SQLite. Raises StoreError."""
    if not is_postgres(address):
        return await open_store(Path(address))
    must_have_driver()
    from dragoman.store.postgres.store import open_postgres

    return await open_postgres(address, data_directory())


def is_postgres(address: str) -> bool:
    return address.startswith(_POSTGRES)


def _must_be_postgres(address: str) -> None:
    if not is_postgres(address):
        # It is not quoted: where a letter is wrong, a password may follow.
        reason = "expected postgresql://user@host:port/database"
        raise StoreError("the address of the store", reason)


def must_have_driver() -> None:
    """Raises StoreError."""
    try:
        import_module("psycopg")
    except ImportError as error:
        reason = "it needs a driver: pip install 'dragoman[postgres]'"
        raise StoreError("the PostgreSQL store", reason) from error


async def open_store(directory: Path | None, limits: StoreLimits | None = None) -> SqliteStore:
    """The store in a directory, or with None one in memory that is gone when it is closed.

    Raises StoreError; StoreCorrupt when the database is damaged, or lost.
    """
    if directory is None:
        return SqliteStore(_current(None, limits), None, SqliteRules(None), None)
    path = prepare(directory)
    db, rules, home = _current(path, limits), SqliteRules(path), Path(path).parent
    try:
        is_cut_short, has_left = has_deleted(db), inbox.has_left(db)
        outbox = Outbox(home, STORE_ID)
        store = SqliteStore(db, path, rules, Mirror(home / DIRECTORY, path, db.limits), outbox)
    except BaseException:
        rules.close()
        db.close()
        raise
    # One that is locked for longer is opened anyway, and this continues in the background.
    with suppress(TimeoutError):
        async with asyncio.timeout(db.limits.busy_seconds):
            await store.deliver_left()
    if is_cut_short:
        await store.purge()
    if has_left:
        await store.forget_left()
    return store


def is_there(directory: Path) -> bool:
    """Whether anything was ever stored in this directory."""
    return (directory / FILE_NAME).exists() or bool(all_mirrors(directory))


def open_rules_at(address: str) -> Rules:
    """The stored rules alone of a store in PostgreSQL. Raises StoreError."""
    _must_be_postgres(address)
    must_have_driver()
    from dragoman.store.postgres.database import Address
    from dragoman.store.postgres.rules import PostgresRules

    return PostgresRules(Address(address), home_id(data_directory()))


def open_rules(directory: Path) -> SqliteRules:
    """Only the stored rules, for callers without an event loop; close them after use."""
    path = prepare(directory)
    _current(path).close()
    return SqliteRules(path)


def _current(path: str | None, limits: StoreLimits | None = None) -> Database:
    db = Database(path, limits=limits)
    try:
        migrate(db, None if path is None else partial(_must_be_first, path))
    except BaseException:
        db.close()
        raise
    return db


def _must_be_first(path: str) -> None:
    """A mirror is written after the tables: where there are some without, the store was lost, and
    another one must not begin in its place. Raises StoreCorrupt."""
    if mirrors := all_mirrors(Path(path).parent):
        raise lost(path, len(mirrors))


_ALL = 10_000_000


class Checked(msgspec.Struct):
    """The result of a check: where the store is, what it holds, and what is wrong with it, in
    words."""

    place: str
    sessions: int = 0
    events: int = 0
    faults: list[str] = []


async def check_store(address: str | None, directory: Path) -> Checked:
    """The PostgreSQL store at an address, or the one in a directory. Raises StoreError."""
    if address is not None:
        must_have_driver()
        from dragoman.store.postgres.tables import check as check_postgres

        return Checked(*await check_postgres(address))
    from dragoman.store.sqlite.recovery import check as faults_of_sqlite

    checked = Checked(str(directory / FILE_NAME), faults=faults_of_sqlite(directory))
    if checked.faults or not is_there(directory):
        return checked
    store = await open_store(directory)
    try:
        records = await store.sessions(SessionFilter(limit=_ALL))
    finally:
        await store.aclose()
    checked.sessions, checked.events = len(records), sum(record.last_seq for record in records)
    return checked
