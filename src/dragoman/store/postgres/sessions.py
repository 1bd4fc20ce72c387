"""Session records in SQL: create, read, list, change and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import NameTaken, RowDuplicate, StoreError, UnknownSession
from dragoman.store.postgres.database import Database, Plan, Rows
from dragoman.store.postgres.search import storable
from dragoman.store.records import Kin, SessionChange, SessionFilter, SessionRecord
from dragoman.store.sqlite.sessions import KIN, as_json, from_json, is_id

_NAMES = tuple(SessionRecord.__struct_fields__)
_COLUMNS = ", ".join(_NAMES)
_CREATE = (
    f"INSERT INTO sessions ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(_NAMES))}) "
    "ON CONFLICT DO NOTHING RETURNING key"
)
READ = f"SELECT {_COLUMNS} FROM sessions WHERE id = %s AND NOT deleted"
_KEY = "SELECT key FROM sessions WHERE id = %s AND NOT deleted"
LOCKED_KEY = f"{_KEY} FOR NO KEY UPDATE"
# A field that is absent stays, one that is null is cleared.
_TYPES = {"renamed": "::boolean", "archived": "::boolean", "updated_at": "::float8"}
_CHANGE = f"""
UPDATE sessions SET last_seq = coalesce((given ->> 1)::bigint, last_seq), {
    ", ".join(
        f"{name} = CASE WHEN given -> 2 ? '{name}' "
        f"THEN (given -> 2 ->> '{name}'){_TYPES.get(name, '')} ELSE {name} END"
        for name in SessionChange.__struct_fields__
    )
} FROM jsonb_array_elements(%s::jsonb) AS given WHERE key = (given ->> 0)::bigint
"""
_BEFORE = "(updated_at, key) < (SELECT updated_at, key FROM sessions WHERE id = %s AND NOT deleted)"
_FILTERED = ("agent", "cwd", "name", "agent_session_id", "status", "archived")
_SIZE = """
SELECT ((SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE session = s.key)
    + (SELECT coalesce(sum(octet_length(text)), 0) FROM said WHERE session = s.key)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM snapshots WHERE session = s.key))::bigint
FROM sessions s WHERE s.id = %s AND NOT s.deleted
"""
_PARTS = ("snapshots", "session_leases", "session_commands")
# How much of it at once, so that others can write in between.
_PURGE = {
    "DELETE FROM events WHERE session = %s AND seq IN "
    "(SELECT seq FROM events WHERE session = %s ORDER BY seq LIMIT %s)": 5000,
    "DELETE FROM said WHERE session = %s AND seq IN "
    "(SELECT seq FROM said WHERE session = %s ORDER BY seq LIMIT %s)": 200,
}


def create(place: str, record: SessionRecord) -> Plan[int]:
    """Its key. Raises StoreError when there is one of that id, NameTaken for the name."""
    if not is_id(record.id):
        raise StoreError(place, f"{record.id!r} is not a valid session id")
    fields = {name: storable(getattr(record, name)) for name in _NAMES}
    fields |= as_json(record)
    fields["last_seq"] = fields["copied"] = 0

    def made(answers: list[Rows]) -> tuple[int, tuple[()]]:
        if answers[0]:
            return answers[0][0][0], ()
        if answers[1]:
            raise StoreError(place, f"session {record.id} already exists")
        raise NameTaken(record.id, record.name or "")

    return Plan([(_CREATE, tuple(fields.values())), (_KEY, (record.id,))], made)


async def read(db: Database, session_id: str) -> SessionRecord | None:
    return first(await db.rows(READ, (storable(session_id),)))


async def kin(db: Database) -> list[Kin]:
    return [Kin(*row) for row in await db.rows(KIN)]


def first(rows: Sequence[tuple[Any, ...]]) -> SessionRecord | None:
    return _record(rows[0]) if rows else None


async def key_of(db: Database, session_id: str, *, lock: bool = False) -> int:
    """With `lock` nobody else changes its events or its owner until the commit."""
    statement = LOCKED_KEY if lock else _KEY
    row = await db.row(statement, (storable(session_id),))
    if row is None:
        raise UnknownSession(session_id)
    return row[0]


async def size(db: Database, session_id: str) -> int:
    """Raises UnknownSession."""
    row = await db.row(_SIZE, (storable(session_id),))
    if row is None:
        raise UnknownSession(session_id)
    return row[0]


async def listed(db: Database, wanted: SessionFilter) -> list[SessionRecord]:
    return await page(db, wanted, await db.rows(*list_query(wanted)))


def list_query(wanted: SessionFilter) -> tuple[str, tuple[Any, ...]]:
    given = {name: getattr(wanted, name) for name in _FILTERED}
    given = {name: storable(value) for name, value in given.items() if value is not None}
    clauses, values = [f"{name} = %s" for name in given], list(given.values())
    if wanted.unused_since is not None:
        clauses.append("updated_at < %s")
        values.append(wanted.unused_since)
    if wanted.before is not None:
        clauses.append(_BEFORE)
        values.append(storable(wanted.before))
    where = " AND ".join(["NOT deleted", *clauses])
    query = f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY updated_at DESC, key DESC"
    return f"{query} LIMIT %s", (*values, wanted.limit)


async def page(
    db: Database, wanted: SessionFilter, rows: Sequence[tuple[Any, ...]]
) -> list[SessionRecord]:
    """Raises UnknownSession for a cursor that is gone."""
    if not rows and wanted.before is not None:
        await key_of(db, wanted.before)
    return [_record(row) for row in rows]


async def change(db: Database, session_id: str, changes: SessionChange) -> SessionRecord:
    key = await key_of(db, session_id)
    try:
        await change_records(db, [(key, None, msgspec.to_builtins(changes))])
    except RowDuplicate as error:
        raise NameTaken(session_id, str(changes.name)) from error
    row = await db.row(READ, (session_id,))
    if row is None:
        raise UnknownSession(session_id)
    return _record(row)


async def change_records(
    db: Database, changes: Sequence[tuple[int, int | None, dict[str, Any]]]
) -> None:
    """By key: the last sequence, and the fields that change. Raises RowDuplicate for a name that is
    taken."""
    given = [(key, last, _storable(fields)) for key, last, fields in changes]
    await db.run(_CHANGE, (msgspec.json.encode(given).decode(),))


def _storable(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: storable(value) for name, value in fields.items()}


async def mark_deleted(db: Database, key: int) -> None:
    """From now on nobody sees it; `purge` removes what it consists of."""
    wiped = "UPDATE sessions SET deleted = true, title = NULL, name = NULL WHERE key = %s"
    await db.run(wiped, (key,))


async def has_deleted(db: Database) -> bool:
    """Whether a deletion was cut short."""
    return await db.row("SELECT 1 FROM sessions WHERE deleted LIMIT 1") is not None


async def purge(db: Database) -> bool:
    """Remove some of what is left of deleted sessions; whether there is more."""
    # One that another host is purging is left to it.
    row = await db.row("SELECT key FROM sessions WHERE deleted LIMIT 1 FOR UPDATE SKIP LOCKED")
    if row is None:
        return False
    for statement, most in _PURGE.items():
        if await db.run(statement, (row[0], row[0], most)) >= most:
            return True
    for table in _PARTS:
        await db.run(f"DELETE FROM {table} WHERE session = %s", row)
    await db.run("DELETE FROM sessions WHERE key = %s", row)
    return True


def _record(row: tuple[Any, ...]) -> SessionRecord:
    fields = dict(zip(_NAMES, row, strict=True))
    from_json(fields)
    return SessionRecord(**fields)
