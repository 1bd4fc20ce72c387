"""What processes have for each other, in SQL: commands to a session's owner, and small records.

Times are those of the database's clock.

What a command says is kept until it is taken and no longer: it may hold what a person typed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import UnknownSession
from dragoman.store.postgres.database import Database, Plan, Rows, Statement
from dragoman.store.postgres.events import LOCKED
from dragoman.store.postgres.owners import RUN_OUT
from dragoman.store.postgres.search import storable
from dragoman.store.records import Lease, Outcome, StoredCommand
from dragoman.store.store_limits import StoreLimits

_SEND = """
INSERT INTO session_commands (session, body, host)
SELECT key, %s, %s FROM sessions WHERE id = %s AND NOT deleted RETURNING id
"""
_COMMAND = "c.id, s.id, c.body, extract(epoch FROM c.sent_at)::float8"
_CALLS = f"""
SELECT {_COMMAND} FROM session_commands c JOIN sessions s ON s.key = c.session
LEFT JOIN session_leases l ON l.session = c.session LEFT JOIN owners o ON o.id = l.owner_id
WHERE c.state = 'waiting' AND c.host = %s AND coalesce({RUN_OUT}, true) AND NOT s.deleted
ORDER BY c.id
"""
_ANY_WAITING = """
SELECT DISTINCT s.id FROM session_commands c JOIN sessions s ON s.key = c.session
WHERE c.state = 'waiting'
"""
_TAKE = f"""
WITH taken AS (
    UPDATE session_commands SET state = 'taken', body = NULL, epoch = l.epoch
    FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS held (id, epoch, owner_id)
    JOIN sessions s ON s.id = held.id AND NOT s.deleted
    JOIN session_leases l
        ON l.session = s.key AND l.epoch = held.epoch AND l.owner_id = held.owner_id
    JOIN LATERAL (SELECT id, session, body FROM session_commands
          WHERE state = 'waiting' AND session = s.key FOR UPDATE) AS c ON true
    WHERE session_commands.id = c.id RETURNING c.id, c.session, c.body, session_commands.sent_at
)
SELECT {_COMMAND} FROM taken c JOIN sessions s ON s.key = c.session ORDER BY c.id
"""
_SETTLE = """
WITH forgotten AS (
    DELETE FROM session_commands WHERE settled_at < clock_timestamp() - make_interval(secs => %s)
)
UPDATE session_commands SET state = 'done', body = NULL, outcome = %s, settled_at = now()
WHERE id = %s
"""
_FORGET_WAITING = """
DELETE FROM session_commands
WHERE state = 'waiting' AND sent_at < clock_timestamp() - make_interval(secs => %s)
"""
# Its taker ended before it reported the outcome, or nobody ever took it.
_LEFT = """
FROM session_commands
WHERE (state = 'taken' AND sent_at < clock_timestamp() - make_interval(secs => %s))
    OR (state = 'waiting' AND sent_at < clock_timestamp() - make_interval(secs => %s))
"""
_WITHDRAW = "DELETE FROM session_commands WHERE state = 'waiting' AND id = %s RETURNING id"
# Taken by a process that no longer owns the session: it may or may not have been carried out.
_OUTCOME = """
SELECT CASE WHEN c.state = 'taken' AND (l.owner_id IS NULL OR l.epoch <> c.epoch) THEN 'lost'
    ELSE c.state END, c.outcome
FROM session_commands c LEFT JOIN session_leases l ON l.session = c.session WHERE c.id = %s
"""


def send(session_id: str, body: bytes, host_id: str | None) -> Plan[int]:
    def sent(answers: list[Rows]) -> tuple[int, tuple[()]]:
        if not answers[0]:
            raise UnknownSession(session_id)
        return answers[0][0][0], ()

    return Plan([(_SEND, (body, host_id, storable(session_id)))], sent)


async def calls(db: Database, host_id: str) -> list[StoredCommand]:
    return [StoredCommand(*row) for row in await db.rows(_CALLS, (host_id,))]


async def waiting_for(db: Database, leases: Sequence[Lease]) -> list[Lease]:
    """The leases for whose sessions something waits; cheap, since mostly nothing does."""
    waiting = {row[0] for row in await db.rows(_ANY_WAITING)}
    return [lease for lease in leases if lease.session_id in waiting] if waiting else []


def take(leases: Sequence[Lease], limits: StoreLimits) -> Plan[list[StoredCommand]]:
    """An expired lease gets nothing: that is for the later owner. Sessions are
    locked first, so that none of them changes hands meanwhile."""
    ids = [storable(lease.session_id) for lease in leases]
    held = (ids, [lease.epoch for lease in leases], [lease.owner_id for lease in leases])
    first = [
        (_FORGET_WAITING, (limits.command_seconds,)),
        (LOCKED, (ids,)),
        (_TAKE, held),
    ]
    return Plan(first, lambda answers: ([StoredCommand(*row) for row in answers[2]], ()))


def withdraw(command_id: int) -> Plan[bool]:
    return Plan([(_WITHDRAW, (command_id,))], lambda answers: (bool(answers[0]), ()))


def settle(command_id: int, body: bytes, limits: StoreLimits) -> Plan[None]:
    values = (limits.outcome_seconds, body, command_id)
    return Plan([(_SETTLE, values)], lambda _: (None, ()), repeatable=True)


async def has_left(db: Database) -> bool:
    """Whether there are commands that nobody waits for, and nobody will settle."""
    return await db.row(f"SELECT 1 {_LEFT} LIMIT 1", _long_ago(db)) is not None


async def forget_left(db: Database) -> None:
    await db.run(f"DELETE {_LEFT}", _long_ago(db))


def _long_ago(db: Database) -> tuple[float, float]:
    return db.limits.outcome_seconds, db.limits.command_seconds


async def outcome(db: Database, command_id: int) -> Outcome:
    row = await db.row(_OUTCOME, (command_id,))
    return Outcome("unknown") if row is None else Outcome(*row)


# ── records that all share ───────────────────────────────────────────────────────────────────

_ALIVE = "(ends_at IS NULL OR ends_at > clock_timestamp())"
_SHARED = f"SELECT id, body FROM shared_records WHERE kind = %s AND {_ALIVE} ORDER BY id"
_SHARED_ONE = f"SELECT body FROM shared_records WHERE kind = %s AND id = %s AND {_ALIVE}"
_FORGET_ENDED = f"DELETE FROM shared_records WHERE NOT {_ALIVE}"
_ENDS = "clock_timestamp() + make_interval(secs => %s)"  # NULL stays NULL: it never ends
_SHARE_NEW = f"""
INSERT INTO shared_records (kind, id, body, ends_at) VALUES (%s, %s, %s, {_ENDS})
ON CONFLICT (kind, id) DO NOTHING RETURNING id
"""
_SHARE_CHANGED = f"""
UPDATE shared_records SET body = %s, ends_at = {_ENDS}
WHERE kind = %s AND id = %s AND body = %s RETURNING id
"""
_SHARE_NOTHING = "DELETE FROM shared_records WHERE kind = %s AND id = %s AND body = %s RETURNING id"


async def shared(db: Database, kind: str) -> dict[str, bytes]:
    return {record_id: bytes(body) for record_id, body in await db.rows(_SHARED, (kind,))}


async def shared_one(db: Database, kind: str, record_id: str) -> bytes | None:
    row = await db.row(_SHARED_ONE, (kind, storable(record_id)))
    return None if row is None else bytes(row[0])


def share(
    kind: str, record_id: str, before: bytes | None, after: bytes | None, seconds: float | None
) -> Plan[bool]:
    key = (kind, storable(record_id))
    if after is None:
        statement: Statement = (_SHARE_NOTHING, (*key, before))
    elif before is None:
        statement = (_SHARE_NEW, (*key, after, seconds))
    else:
        statement = (_SHARE_CHANGED, (after, seconds, *key, before))
    return Plan([(_FORGET_ENDED, ()), statement], lambda answers: (bool(answers[1]), ()))
