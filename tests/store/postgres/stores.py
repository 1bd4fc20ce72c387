"""Several stores on one database, as several hosts have them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from dragoman.store.base import Store
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.store import PostgresStore, open_postgres
from dragoman.store.store_limits import StoreLimits


@asynccontextmanager
async def opened(
    address: str, directory: Path, limits: StoreLimits | None = None
) -> AsyncGenerator[PostgresStore]:
    store = await open_postgres(address, directory, limits)
    try:
        yield store
    finally:
        await store.aclose()


async def until(happens: Callable[[], bool]) -> None:
    while not happens():  # noqa: ASYNC110 - what it asks has no event
        await asyncio.sleep(0.01)


def outboxes(directory: Path) -> list[Path]:
    return list((directory / "outbox").rglob("*.db"))


def kept(directory: Path) -> int:
    """How many batches wait there, in the outbox of another process that is still at it: in one of
    ours two different SQLites would undo each other's locks."""
    total = 0
    for path in outboxes(directory):
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path)) as db:
            total += db.execute("SELECT count(*) FROM waiting").fetchone()[0]
    return total


async def alive(store: Store, session_id: str = "s") -> bool:
    """Whether the owner of a session is, by the database's clock."""
    owner = await store.owner(session_id)
    assert owner is not None
    return owner.alive


class Noting(Database):
    """Notes what it is asked."""

    def __init__(self, db: Database, address: Address) -> None:
        super().__init__(db.connection, address)
        self.asked: list[tuple[str, Sequence[Any]]] = []

    async def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.asked.append((statement, values))
        return await super().rows(statement, values)

    async def ask(
        self, statement: str, values: Sequence[Any] = ()
    ) -> psycopg.AsyncCursor[TupleRow]:
        self.asked.append((statement, values))
        return await super().ask(statement, values)


def rows_read(plan: dict[str, Any]) -> int:
    """By the step that reads most, also what it leaves out again."""
    left_out = sum(plan.get(f"Rows Removed by {step}", 0) for step in ("Filter", "Index Recheck"))
    read = (plan["Actual Rows"] + left_out) * plan["Actual Loops"]
    return max([read, *map(rows_read, plan.get("Plans", ()))])
