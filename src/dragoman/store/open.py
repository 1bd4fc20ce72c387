"""Opens the store: quickly, since every command pays for it. No mirror is read here."""

from __future__ import annotations

from pathlib import Path

from dragoman.store.database import FILE_NAME, Database, prepare
from dragoman.store.migrations import migrate
from dragoman.store.mirror import Mirror
from dragoman.store.rules import SqliteRules
from dragoman.store.sessions import has_deleted
from dragoman.store.sqlite import SqliteStore


async def open_store(directory: Path | None) -> SqliteStore:
    """The store in a directory, or with None one in memory that is gone when it is closed.

    Raises StoreError; StoreCorrupt when the database is damaged.
    """
    if directory is None:
        return SqliteStore(_current(None), None, SqliteRules(None), None)
    path = prepare(directory)
    db, rules, home = _current(path), SqliteRules(path), Path(path).parent
    try:
        is_cut_short = has_deleted(db)
        store = SqliteStore(db, path, rules, Mirror(home / "sessions", path))
    except BaseException:
        rules.close()
        db.close()
        raise
    if is_cut_short:
        await store.purge()
    return store


def is_there(directory: Path) -> bool:
    """Whether anything was ever stored in this directory."""
    return (directory / FILE_NAME).exists()


def open_rules(directory: Path) -> SqliteRules:
    """The stored rules alone, for whoever has no loop; close them after use."""
    path = prepare(directory)
    _current(path).close()
    return SqliteRules(path)


def _current(path: str | None) -> Database:
    db = Database(path)
    try:
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db
