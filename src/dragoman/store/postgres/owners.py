"""Owners of sessions, and hosts, in SQL, by the database's clock alone.

A lease that has run out still counts for its owner until someone else takes the session. And none
has run out before the server was up for as long as it lasts: nobody could renew while it was away.

A host is alive as long as its owner is. A single row says so, so all see at once that a machine has
died.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import SessionOwned, UnknownSession
from dragoman.store.postgres.database import Database, Plan, Rows, Statement
from dragoman.store.postgres.events import fenced
from dragoman.store.postgres.search import storable
from dragoman.store.postgres.sessions import LOCKED_KEY, create, key_of, mark_deleted
from dragoman.store.records import HasEnded, HostRecord, Lease, Owner, SessionRecord
from dragoman.store.sqlite import owners as limits

RUN_OUT = (
    "(o.expires_at <= now() AND "
    "pg_postmaster_start_time() + make_interval(secs => o.seconds) <= now())"
)
"""Of an owner `o`: whether it is gone, as far as the database can tell."""
_FIND = f"""
SELECT l.epoch, o.body, coalesce({RUN_OUT}, true)
FROM session_leases l LEFT JOIN owners o ON o.id = l.owner_id
WHERE l.session = (SELECT key FROM sessions WHERE id = %s AND NOT deleted)
"""
THERE = """
INSERT INTO owners (id, body, expires_at, seconds)
VALUES (%s, %s, now() + make_interval(secs => %s), %s)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, seconds = excluded.seconds
"""
_TAKE = """
INSERT INTO session_leases (session, epoch, owner_id) VALUES (%s, %s, %s)
ON CONFLICT (session) DO UPDATE SET epoch = excluded.epoch, owner_id = excluded.owner_id
"""
_OF_OWNER = """
SELECT s.id FROM session_leases l JOIN sessions s ON s.key = l.session
WHERE l.owner_id = %s AND NOT s.deleted
"""
_RENEW = """
UPDATE owners SET expires_at = now() + make_interval(secs => %s), seconds = %s WHERE id = %s
"""
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
_RELEASE = """
UPDATE session_leases SET owner_id = NULL
WHERE session = (SELECT key FROM sessions WHERE id = %s AND NOT deleted)
    AND epoch = %s AND owner_id = %s
"""
OWNED = f"""
SELECT s.id, o.body, {RUN_OUT} FROM session_leases l JOIN sessions s ON s.key = l.session
JOIN owners o ON o.id = l.owner_id WHERE NOT s.deleted
"""
OWNER_OF = f"{OWNED} AND s.id = %s"
_FORGETTABLE = """
FROM owners o WHERE o.expires_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM session_leases l WHERE l.owner_id = o.id)
"""

_owner = msgspec.json.Decoder(Owner)


def acquire(session_id: str, owner: Owner, seconds: float, gone: HasEnded) -> Plan[Lease]:
    """Raises UnknownSession, SessionOwned."""
    one = (storable(session_id),)

    def taken(answers: list[Rows]) -> tuple[Lease, list[Statement]]:
        if not answers[0]:
            raise UnknownSession(session_id)
        epoch = 0
        for last_epoch, encoded, has_run_out in answers[1]:
            epoch = last_epoch
            if encoded is None:
                continue
            holder = msgspec.structs.replace(_owner.decode(encoded), alive=not has_run_out)
            is_gone = gone(holder)
            if not (has_run_out if is_gone is None else is_gone):
                raise SessionOwned(session_id, _described(holder))
        lease = Lease(session_id, owner.id, epoch + 1)
        return lease, [there(owner, seconds), (_TAKE, (answers[0][0][0], lease.epoch, owner.id))]

    # Behind the lock, and by a statement of its own: see `appending`.
    return Plan([(LOCKED_KEY, one), (_FIND, one)], taken)


def begin(place: str, record: SessionRecord, owner: Owner, seconds: float) -> Plan[Lease]:
    """A new session, which is its owner's from the first moment on. Raises as `create` does."""
    creating = create(place, record)

    def taken(answers: list[Rows]) -> tuple[Lease, list[Statement]]:
        key, _ = creating.decide(answers)
        return Lease(record.id, owner.id, 1), [there(owner, seconds), (_TAKE, (key, 1, owner.id))]

    return Plan(creating.first, taken)


def there(owner: Owner, seconds: float) -> Statement:
    return THERE, (owner.id, msgspec.json.encode(owner), seconds, seconds)


def renew(owner: Owner, seconds: float) -> Plan[tuple[set[str], float]]:
    """What it still has, and the time by the database's clock."""
    statements = [
        (_RENEW, (seconds, seconds, owner.id)),
        (_OF_OWNER, (owner.id,)),
        (_CLOCK, ()),
    ]
    return Plan(
        statements,
        lambda answers: (({row[0] for row in answers[1]}, answers[2][0][0]), ()),
        repeatable=True,
    )


async def renew_now(db: Database, owner: Owner, seconds: float) -> None:
    await db.run(_RENEW, (seconds, seconds, owner.id))


def release(lease: Lease) -> Plan[None]:
    """Nothing happens when a later owner has the session."""
    values = (storable(lease.session_id), lease.epoch, lease.owner_id)
    return Plan([(_RELEASE, values)], lambda _: (None, ()), repeatable=True)


async def owner_of(db: Database, session_id: str) -> Owner | None:
    found = seen(await db.rows(OWNER_OF, (storable(session_id),)))
    return found[0][1] if found else None


async def owned(db: Database) -> list[tuple[str, Owner]]:
    return seen(await db.rows(OWNED))


def seen(rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, Owner]]:
    return [
        (session_id, msgspec.structs.replace(_owner.decode(body), alive=not has_run_out))
        for session_id, body, has_run_out in rows
    ]


async def has_forgettable(db: Database) -> bool:
    return await db.row(f"SELECT 1 {_FORGETTABLE} LIMIT 1") is not None


async def forget(db: Database) -> None:
    """Those that are long gone and own nothing."""
    await db.run(f"DELETE {_FORGETTABLE}")


async def delete(db: Database, session_id: str, lease: Lease | None) -> None:
    """Raises UnknownSession, LeaseLost, and SessionOwned while a lease has not run out."""
    key = await key_of(db, session_id, lock=True)
    if lease is not None:
        await fenced(db, lease)
    else:
        for _, encoded, has_run_out in await db.rows(_FIND, (storable(session_id),)):
            if encoded is not None and not has_run_out:
                raise SessionOwned(session_id, _described(_owner.decode(encoded)))
    await mark_deleted(db, key)


def _described(owner: Owner) -> str:
    where = f" on {owner.label}" if owner.label else ""
    return f"process {owner.pid}{where}"


_ANNOUNCE = """
INSERT INTO hosts (id, home, body, seen_at, expires_at)
VALUES (%s, %s, %s, now(), now() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET home = excluded.home, body = excluded.body,
    seen_at = excluded.seen_at, expires_at = excluded.expires_at
"""
_FORGET = """
DELETE FROM hosts WHERE id <> %s AND expires_at <= now()
    AND (home IS NOT DISTINCT FROM %s OR seen_at < now() - make_interval(secs => %s))
"""
_DEPART = "UPDATE hosts SET expires_at = to_timestamp(0) WHERE id = %s"
# One that has departed, in order, is no longer called, though it still ends what it runs.
HOSTS = f"""
SELECT h.body, extract(epoch FROM h.seen_at)::float8,
    h.expires_at > to_timestamp(0) AND NOT coalesce({RUN_OUT}, true),
    (SELECT count(*) FROM session_leases l WHERE l.owner_id = h.id)
FROM hosts h LEFT JOIN owners o ON o.id = h.id
"""

_host = msgspec.json.Decoder(HostRecord)


def announce(host: HostRecord, seconds: float) -> Plan[None]:
    owner = host.owner or Owner(host.id, "", 0, "", host.name)
    statements = [
        (_ANNOUNCE, (host.id, host.home, msgspec.json.encode(host), seconds)),
        (THERE, (host.id, msgspec.json.encode(owner), seconds, seconds)),
        (_FORGET, (host.id, host.home, limits.KEEP_SECONDS)),
    ]
    return Plan(statements, lambda _: (None, ()), repeatable=True)


def depart(host_id: str) -> Plan[None]:
    return Plan([(_DEPART, (host_id,))], lambda _: (None, ()), repeatable=True)


async def hosts(db: Database) -> list[HostRecord]:
    return known(await db.rows(HOSTS))


def known(rows: Sequence[tuple[Any, ...]]) -> list[HostRecord]:
    found = [
        msgspec.structs.replace(_host.decode(body), seen_at=seen_at, alive=alive, sessions=sessions)
        for body, seen_at, alive, sessions in rows
    ]
    return sorted(found, key=lambda host: (host.name, host.id))
