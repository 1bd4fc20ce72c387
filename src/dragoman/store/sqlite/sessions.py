"""Session records in SQL: create, read, list, change and delete. Runs in a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.errors import NameTaken, RowDuplicate, StoreError, UnknownSession
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import EVERYTHING, Offer, SystemPrompt
from dragoman.session.limits.spending_limits import NO_LIMITS, SessionLimits
from dragoman.store.records import Imported, Kin, SessionChange, SessionFilter, SessionRecord
from dragoman.store.sqlite.database import Database, integers

_COLUMNS = (
    "id, agent, cwd, created_at, updated_at, name, agent_session_id, title, renamed, status, "
    "archived, parent, home, additional_directories, imported, offer, system_prompt, "
    "limits, last_seq, copied"
)
_NAMES = _COLUMNS.split(", ")
_CREATE = f"INSERT INTO sessions ({_COLUMNS}) VALUES ({'?, ' * 18}0, 0)"
_READ = f"SELECT {_COLUMNS} FROM sessions WHERE id = ? AND NOT deleted"
KIN = "SELECT id, parent, created_at FROM sessions WHERE NOT deleted"
_CHANGED = SessionChange.__struct_fields__
# A field that is absent stays, one that is null is cleared.
_CHANGE = f"""
UPDATE sessions SET last_seq = coalesce(value ->> 1, last_seq), {
    ", ".join(
        f"{name} = CASE WHEN json_type(value, '$[2].{name}') IS NULL THEN sessions.{name} "
        f"ELSE value ->> '$[2].{name}' END"
        for name in _CHANGED
    )
} FROM json_each(?) WHERE sessions.key = value ->> 0
"""
_ID = "SELECT id FROM sessions WHERE key = ?"
_FILTERED = ("agent", "cwd", "name", "agent_session_id", "status", "archived")
_SIZE = """
SELECT (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE session = ?1)
    + (SELECT coalesce(sum(octet_length(text)), 0) FROM said WHERE session = ?1)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM snapshots WHERE session = ?1)
"""
_PARTS = ("snapshots", "session_leases", "session_commands")
PORTION_ROWS = 2000
"""How much of a session is copied or deleted at once, so that others can write in between."""
TEXT_WEIGHT = 4
"""A text costs more than an event of its size: its words are indexed."""
_PURGE = (
    (
        f"SELECT position, octet_length(body) FROM events WHERE session = ? LIMIT {PORTION_ROWS}",
        "DELETE FROM events WHERE position IN (SELECT value FROM carray(?))",
    ),
    (
        f"SELECT id, octet_length(text) * {TEXT_WEIGHT} FROM said WHERE session = ? "
        f"LIMIT {PORTION_ROWS // TEXT_WEIGHT}",
        "DELETE FROM said WHERE id IN (SELECT value FROM carray(?))",
    ),
)

_directories = msgspec.json.Decoder(list[str])
_imported = msgspec.json.Decoder(Imported)
_offer = msgspec.json.Decoder(Offer)
_system_prompt = msgspec.json.Decoder(SystemPrompt)
_limits = msgspec.json.Decoder(SessionLimits)
_id = lazy_pattern(r"[A-Za-z0-9_-]{1,128}")


def is_id(text: str) -> bool:
    """Whether it may be the id of a session; each has a file of that name."""
    return _id.fullmatch(text) is not None


def as_json(record: SessionRecord) -> dict[str, str | None]:
    """Columns that are not single values: the additional directories, where it was imported from,
    what its agent is offered, unless that is everything, its system prompt and its limits."""
    directories = msgspec.json.encode(record.additional_directories).decode()
    offer = None if record.offer == EVERYTHING else record.offer
    return {
        "additional_directories": directories,
        "imported": _text(record.imported),
        "offer": _text(offer),
        "system_prompt": _text(record.system_prompt),
        "limits": _text(None if record.limits == NO_LIMITS else record.limits),
    }


def _text(value: Imported | Offer | SystemPrompt | SessionLimits | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def from_json(fields: dict[str, Any]) -> None:
    """The same way back."""
    fields["copied"] = (fields["copied"] or 0) if fields["parent"] is not None else 0
    fields["additional_directories"] = _directories.decode(fields["additional_directories"])
    if fields["imported"] is not None:
        fields["imported"] = _imported.decode(fields["imported"])
    offer = fields["offer"]
    fields["offer"] = EVERYTHING if offer is None else _offer.decode(offer)
    if fields["system_prompt"] is not None:
        fields["system_prompt"] = _system_prompt.decode(fields["system_prompt"])
    limits = fields["limits"]
    fields["limits"] = NO_LIMITS if limits is None else _limits.decode(limits)


def create(db: Database, record: SessionRecord) -> None:
    if not is_id(record.id):
        raise StoreError(db.place, f"{record.id!r} is not a valid session id")
    json = as_json(record)
    values = [json[name] if name in json else getattr(record, name) for name in _NAMES[:-2]]
    try:
        db.run(_CREATE, values)
    except RowDuplicate as error:
        if read(db, record.id) is not None:
            raise StoreError(db.place, f"session {record.id} already exists") from error
        raise NameTaken(record.id, record.name or "") from error


def read(db: Database, session_id: str) -> SessionRecord | None:
    row = db.row(_READ, (session_id,))
    return None if row is None else _record(row)


def read_damaged(db: Database, session_id: str) -> SessionRecord | None:
    """The same from a database that may be of an earlier format, and lack columns."""
    there = {name for (name,) in db.rows("SELECT name FROM pragma_table_info('sessions')")}
    columns = ", ".join(name if name in there else f"NULL AS {name}" for name in _NAMES)
    row = db.row(_READ.replace(_COLUMNS, columns), (session_id,))
    return None if row is None else _record(row)


def known(db: Database, session_id: str) -> SessionRecord:
    if (record := read(db, session_id)) is None:
        raise UnknownSession(session_id)
    return record


def kin(db: Database) -> list[Kin]:
    return [Kin(*row) for row in db.rows(KIN)]


def key_of(db: Database, session_id: str) -> int:
    row = db.row("SELECT key FROM sessions WHERE id = ? AND NOT deleted", (session_id,))
    if row is None:
        raise UnknownSession(session_id)
    return row[0]


def size(db: Database, session_id: str) -> int:
    """Raises UnknownSession."""
    return db.rows(_SIZE, (key_of(db, session_id),))[0][0]


def listed(db: Database, wanted: SessionFilter) -> list[SessionRecord]:
    given = {name: getattr(wanted, name) for name in _FILTERED}
    given = {name: value for name, value in given.items() if value is not None}
    clauses, values = [f"{name} = ?" for name in given], list(given.values())
    if wanted.unused_since is not None:
        clauses.append("updated_at < ?")
        values.append(wanted.unused_since)
    if wanted.before is not None:
        key_of(db, wanted.before)
        clauses.append("(updated_at, key) < (SELECT updated_at, key FROM sessions WHERE id = ?)")
        values.append(wanted.before)
    where = " AND ".join(["NOT deleted", *clauses])
    query = f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY updated_at DESC, key DESC"
    rows = db.rows(f"{query} LIMIT ?", (*values, wanted.limit))
    return [_record(row) for row in rows]


def change(db: Database, session_id: str, changes: SessionChange) -> SessionRecord:
    change_records(db, [(key_of(db, session_id), None, msgspec.to_builtins(changes))])
    return known(db, session_id)


def change_records(db: Database, changes: Sequence[tuple[int, int | None, dict[str, Any]]]) -> None:
    """By key: the last sequence, and the fields that change. Raises NameTaken."""
    try:
        db.run(_CHANGE, (msgspec.json.encode(changes).decode(),))
    except RowDuplicate as error:
        key, _, fields = next(each for each in changes if each[2].get("name") is not None)
        session_id = db.rows(_ID, (key,))[0][0]
        raise NameTaken(session_id, fields["name"]) from error


def mark_deleted(db: Database, session_id: str) -> int:
    """From now on nobody sees it; `purge` removes what it consists of. Its key."""
    key = key_of(db, session_id)
    db.run("UPDATE sessions SET deleted = 1, title = NULL, name = NULL WHERE key = ?", (key,))
    return key


def has_deleted(db: Database) -> bool:
    """Whether a deletion was cut short."""
    return db.row("SELECT 1 FROM sessions WHERE deleted LIMIT 1") is not None


def purge(db: Database) -> bool:
    """Remove some of what is left of deleted sessions; whether there is more."""
    row = db.row("SELECT key FROM sessions WHERE deleted LIMIT 1")
    if row is None:
        return False
    for weigh, delete in _PURGE:
        if some := portion(db, db.each(weigh, row)):
            db.run(delete, (integers(some),))
            return True
    for table in _PARTS:
        db.run(f"DELETE FROM {table} WHERE session = ?", row)
    db.run("DELETE FROM sessions WHERE key = ?", row)
    return True


def portion(db: Database, weighed: Iterable[tuple[Any, ...]]) -> list[int]:
    """The first of some numbers with their bytes that may be copied or deleted at once."""
    numbers, size = list[int](), 0
    for number, weight in weighed:
        size += weight
        if size > db.limits.portion_bytes and numbers:
            break
        numbers.append(number)
    return numbers


def _record(row: tuple[Any, ...]) -> SessionRecord:
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    from_json(fields)
    fields["renamed"], fields["archived"] = bool(fields["renamed"]), bool(fields["archived"])
    return SessionRecord(**fields)
