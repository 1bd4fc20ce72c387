"""Whether a store is in order, wherever it is; for a program that has it not open."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dragoman.store.open import is_there, must_have_driver, open_store
from dragoman.store.records import SessionFilter
from dragoman.store.sqlite.database import FILE_NAME
from dragoman.store.sqlite.recovery import check as faults_of_sqlite

_ALL = 10_000_000


class Checked(msgspec.Struct):
    """Where it is, what it holds, and in words what is wrong with it."""

    place: str
    sessions: int = 0
    events: int = 0
    faults: list[str] = []


async def check(address: str | None, directory: Path) -> Checked:
    """The PostgreSQL store at an address, or the one in a directory. Raises StoreError."""
    if address is not None:
        must_have_driver()
        from dragoman.store.postgres.integrity import check as check_postgres

        return Checked(*await check_postgres(address))
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
