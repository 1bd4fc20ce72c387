"""What processes have for each other, in SQL: commands to a session's owner, and small records.

Runs in a transaction.

What a command says is kept until it is taken and no longer: it may hold what a person typed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from dragoman.store.records import Lease, Outcome, StoredCommand
from dragoman.store.sqlite.database import Database, integers
from dragoman.store.sqlite.events import standings
from dragoman.store.sqlite.sessions import key_of

_SEND = "INSERT INTO session_commands (session, body, sent_at, host) VALUES (?, ?, ?, ?)"
_CALLS = """
SELECT c.id, s.id, c.body, c.sent_at FROM session_commands c JOIN sessions s ON s.key = c.session
LEFT JOIN session_leases l ON l.session = c.session
WHERE c.state = 'waiting' AND c.host = ? AND coalesce(l.expires_at, 0) <= ? AND NOT s.deleted
ORDER BY c.id
"""
_ANY_WAITING = """
SELECT DISTINCT s.id FROM session_commands c JOIN sessions s ON s.key = c.session
WHERE c.state = 'waiting'
"""
_WAITING = """
SELECT c.id, s.id, c.body, c.sent_at FROM session_commands c JOIN sessions s ON s.key = c.session
WHERE c.state = 'waiting' AND c.session IN (SELECT value FROM carray(?)) ORDER BY c.id
"""
_TAKEN = """
UPDATE session_commands SET state = 'taken', body = NULL,
    epoch = (SELECT epoch FROM session_leases WHERE session = session_commands.session)
WHERE id IN (SELECT value FROM carray(?))
"""
_SETTLE = """
UPDATE session_commands SET state = 'done', body = NULL, outcome = ?, settled_at = ? WHERE id = ?
"""
_FORGET = "DELETE FROM session_commands WHERE settled_at < ?"
_FORGET_WAITING = "DELETE FROM session_commands WHERE state = 'waiting' AND sent_at < ?"
# Its taker ended before it reported the outcome, or nobody ever took it.
_LEFT = """
FROM session_commands
WHERE (state = 'taken' AND sent_at < ?) OR (state = 'waiting' AND sent_at < ?)
"""
_WITHDRAW = "DELETE FROM session_commands WHERE state = 'waiting' AND id = ?"
# Taken by a process that no longer owns the session: it may or may not have been carried out.
_OUTCOME = """
SELECT CASE WHEN c.state = 'taken' AND (l.owner_id IS NULL OR l.epoch <> c.epoch) THEN 'lost'
    ELSE c.state END, c.outcome
FROM session_commands c LEFT JOIN session_leases l ON l.session = c.session WHERE c.id = ?
"""


def send(db: Database, session_id: str, body: bytes, host_id: str | None) -> int:
    db.run(_SEND, (key_of(db, session_id), body, time.time(), host_id))
    return db.last_rowid


def calls(db: Database, host_id: str) -> list[StoredCommand]:
    return [StoredCommand(*row) for row in db.rows(_CALLS, (host_id, time.time()))]


def waiting_for(db: Database, leases: Sequence[Lease]) -> list[Lease]:
    """The leases for whose sessions something waits; cheap, since mostly nothing does."""
    waiting = {row[0] for row in db.rows(_ANY_WAITING)}
    return [lease for lease in leases if lease.session_id in waiting] if waiting else []


def take(db: Database, leases: Sequence[Lease]) -> list[StoredCommand]:
    """An expired lease gets nothing: that is for the later owner."""
    db.run(_FORGET_WAITING, (time.time() - db.limits.command_seconds,))
    found = standings(db, [lease.session_id for lease in leases])
    held = {(each.id, each.epoch, each.owner_id): each.key for each in found.values()}
    asked = ((lease.session_id, lease.epoch, lease.owner_id) for lease in leases)
    keys = [key for each in asked if (key := held.get(each)) is not None]
    if not keys:
        return []
    commands = [StoredCommand(*row) for row in db.rows(_WAITING, (integers(keys),))]
    if commands:
        db.run(_TAKEN, (integers(command.id for command in commands),))
    return commands


def withdraw(db: Database, command_id: int) -> bool:
    db.run(_WITHDRAW, (command_id,))
    return db.changes > 0


def settle(db: Database, command_id: int, body: bytes) -> None:
    now = time.time()
    db.run(_SETTLE, (body, now, command_id))
    db.run(_FORGET, (now - db.limits.outcome_seconds,))


def has_left(db: Database) -> bool:
    """Whether there are commands that nobody waits for, and nobody will settle."""
    return db.row(f"SELECT 1 {_LEFT} LIMIT 1", _long_ago(db)) is not None


def forget_left(db: Database) -> None:
    db.run(f"DELETE {_LEFT}", _long_ago(db))


def _long_ago(db: Database) -> tuple[float, float]:
    now = time.time()
    return now - db.limits.outcome_seconds, now - db.limits.command_seconds


def outcome(db: Database, command_id: int) -> Outcome:
    row = db.row(_OUTCOME, (command_id,))
    return Outcome("unknown") if row is None else Outcome(*row)


# ── records that all share ───────────────────────────────────────────────────────────────────

_SHARED = "SELECT id, body FROM shared_records WHERE kind = ? AND ends_at > ? ORDER BY id"
_SHARED_ONE = "SELECT body FROM shared_records WHERE kind = ? AND id = ? AND ends_at > ?"
_FORGET_ENDED = "DELETE FROM shared_records WHERE ends_at <= ?"
_SHARE_NEW = """
INSERT INTO shared_records (kind, id, body, ends_at) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, id) DO NOTHING
"""
_SHARE_CHANGED = (
    "UPDATE shared_records SET body = ?, ends_at = ? WHERE kind = ? AND id = ? AND body = ?"
)
_SHARE_NOTHING = "DELETE FROM shared_records WHERE kind = ? AND id = ? AND body = ?"
_NEVER = 9e18


def shared(db: Database, kind: str) -> dict[str, bytes]:
    return dict(db.rows(_SHARED, (kind, time.time())))


def shared_one(db: Database, kind: str, record_id: str) -> bytes | None:
    row = db.row(_SHARED_ONE, (kind, record_id, time.time()))
    return None if row is None else row[0]


def share(
    db: Database,
    kind: str,
    record_id: str,
    before: bytes | None,
    after: bytes | None,
    seconds: float | None,
) -> bool:
    now = time.time()
    db.run(_FORGET_ENDED, (now,))
    ends_at = _NEVER if seconds is None else now + seconds
    if after is None:
        db.run(_SHARE_NOTHING, (kind, record_id, before))
    elif before is None:
        db.run(_SHARE_NEW, (kind, record_id, after, ends_at))
    else:
        db.run(_SHARE_CHANGED, (after, ends_at, kind, record_id, before))
    return db.changes > 0
