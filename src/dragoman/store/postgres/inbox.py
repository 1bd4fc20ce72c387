"""Commands to a session's owner, in SQL, by the database's clock.

What a command says is kept until it is taken and no longer: it may hold what a person typed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.store import inbox as limits
from dragoman.store.postgres.appending import standings
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.owners import RUN_OUT
from dragoman.store.postgres.sessions import key_of
from dragoman.store.records import Command, Lease, Outcome

_SEND = "INSERT INTO commands (session, body, host) VALUES (%s, %s, %s) RETURNING id"
_COMMAND = "c.id, s.id, c.body, extract(epoch FROM c.sent_at)::float8"
_CALLS = f"""
SELECT {_COMMAND} FROM commands c JOIN sessions s ON s.key = c.session
LEFT JOIN leases l ON l.session = c.session LEFT JOIN owners o ON o.id = l.owner_id
WHERE c.state = 'waiting' AND c.host = %s AND coalesce({RUN_OUT}, true) AND NOT s.deleted
ORDER BY c.id
"""
_ANY_WAITING = """
SELECT DISTINCT s.id FROM commands c JOIN sessions s ON s.key = c.session WHERE c.state = 'waiting'
"""
_TAKE = f"""
WITH taken AS (
    UPDATE commands SET state = 'taken', body = NULL, epoch = l.epoch
    FROM (SELECT id, session, body FROM commands
          WHERE state = 'waiting' AND session = ANY(%s) FOR UPDATE) AS c
    JOIN leases l ON l.session = c.session
    WHERE commands.id = c.id RETURNING c.id, c.session, c.body, commands.sent_at
)
SELECT {_COMMAND} FROM taken c JOIN sessions s ON s.key = c.session ORDER BY c.id
"""
_SETTLE = """
UPDATE commands SET state = 'done', body = NULL, outcome = %s, settled_at = now() WHERE id = %s
"""
_FORGET = "DELETE FROM commands WHERE settled_at < clock_timestamp() - make_interval(secs => %s)"
_FORGET_WAITING = """
DELETE FROM commands
WHERE state = 'waiting' AND sent_at < clock_timestamp() - make_interval(secs => %s)
"""
# Whoever took it ended before it said what came of it, or nobody ever did.
_LEFT = """
FROM commands WHERE (state = 'taken' AND sent_at < clock_timestamp() - make_interval(secs => %s))
    OR (state = 'waiting' AND sent_at < clock_timestamp() - make_interval(secs => %s))
"""
_WITHDRAW = "DELETE FROM commands WHERE state = 'waiting' AND id = %s"
# Taken by one who does not own the session any more: it may have been carried out, or not.
_OUTCOME = """
SELECT CASE WHEN c.state = 'taken' AND (l.owner_id IS NULL OR l.epoch <> c.epoch) THEN 'lost'
    ELSE c.state END, c.outcome
FROM commands c LEFT JOIN leases l ON l.session = c.session WHERE c.id = %s
"""


async def send(db: Database, session_id: str, body: bytes, host_id: str | None) -> int:
    key = await key_of(db, session_id)
    [(command_id,)] = await db.rows(_SEND, (key, body, host_id))
    return command_id


async def calls(db: Database, host_id: str) -> list[Command]:
    return [Command(*row) for row in await db.rows(_CALLS, (host_id,))]


async def waiting_for(db: Database, leases: Sequence[Lease]) -> list[Lease]:
    """The leases for whose sessions something waits; cheap, since mostly nothing does."""
    waiting = {row[0] for row in await db.rows(_ANY_WAITING)}
    return [lease for lease in leases if lease.session_id in waiting] if waiting else []


async def take(db: Database, leases: Sequence[Lease]) -> list[Command]:
    """A lease that does not count any more gets nothing: that is for the later owner."""
    await db.run(_FORGET_WAITING, (limits.KEEP_WAITING_SECONDS,))
    async with db.together():
        found = await standings(db, [lease.session_id for lease in leases])
    held = {(each.id, each.epoch, each.owner_id): each.key for each in found.values()}
    asked = ((lease.session_id, lease.epoch, lease.owner_id) for lease in leases)
    keys = [key for each in asked if (key := held.get(each)) is not None]
    return [Command(*row) for row in await db.rows(_TAKE, (keys,))] if keys else []


async def withdraw(db: Database, command_id: int) -> bool:
    return await db.run(_WITHDRAW, (command_id,)) > 0


async def settle(db: Database, command_id: int, body: bytes) -> None:
    await db.run(_SETTLE, (body, command_id))
    await db.run(_FORGET, (limits.KEEP_OUTCOMES_SECONDS,))


async def has_left(db: Database) -> bool:
    """Whether there are commands that nobody asks for any more, and nobody will settle."""
    return await db.row(f"SELECT 1 {_LEFT} LIMIT 1", _long_ago()) is not None


async def forget_left(db: Database) -> None:
    await db.run(f"DELETE {_LEFT}", _long_ago())


def _long_ago() -> tuple[float, float]:
    return limits.KEEP_OUTCOMES_SECONDS, limits.KEEP_WAITING_SECONDS


async def outcome(db: Database, command_id: int) -> Outcome:
    row = await db.row(_OUTCOME, (command_id,))
    return Outcome("unknown") if row is None else Outcome(*row)
