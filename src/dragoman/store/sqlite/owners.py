"""Owners of sessions, and hosts, in SQL. Runs in a transaction.

A lease that has run out still counts for its owner until someone else takes the session. The wall
clock may jump: so it only decides about owners of whom nothing else is known.

A host announces itself regularly. One that has been silent for too long is not alive, but still
known: its sessions name it.
"""

from __future__ import annotations

import time

import msgspec

from dragoman.errors import SessionOwned
from dragoman.store.records import HasEnded, HostRecord, Lease, Owner
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.events import fenced
from dragoman.store.sqlite.sessions import key_of, mark_deleted

_FIND = "SELECT epoch, owner, expires_at FROM session_leases WHERE session = ?"
_TAKE = """
INSERT INTO session_leases (session, epoch, owner_id, owner, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session) DO UPDATE SET epoch = excluded.epoch, owner_id = excluded.owner_id,
    owner = excluded.owner, expires_at = excluded.expires_at
"""
_RENEW = "UPDATE session_leases SET expires_at = ? WHERE owner_id = ?"
# One that has departed in order stays so.
_THERE = "UPDATE hosts SET expires_at = ? WHERE id = ? AND expires_at > 0"
_OF_OWNER = """
SELECT s.id FROM session_leases l JOIN sessions s ON s.key = l.session
WHERE l.owner_id = ? AND NOT s.deleted
"""
_RELEASE = """
UPDATE session_leases SET owner_id = NULL, owner = NULL, expires_at = 0
WHERE session = (SELECT key FROM sessions WHERE id = ? AND NOT deleted)
    AND epoch = ? AND owner_id = ?
"""
_OWNED = """
SELECT s.id, l.owner, l.expires_at FROM session_leases l JOIN sessions s ON s.key = l.session
WHERE l.owner_id IS NOT NULL AND NOT s.deleted
"""

_owner = msgspec.json.Decoder(Owner)


def acquire(
    db: Database,
    session_id: str,
    owner: Owner,
    seconds: float,
    gone: HasEnded,
) -> Lease:
    """Raises UnknownSession, SessionOwned."""
    key, epoch, now = key_of(db, session_id), 0, time.time()
    for last_epoch, encoded, expires_at in db.rows(_FIND, (key,)):
        epoch = last_epoch
        if encoded is None:
            continue
        holder = msgspec.structs.replace(_owner.decode(encoded), alive=expires_at > now)
        is_gone = gone(holder)
        if holder.alive if is_gone is None else not is_gone:
            raise SessionOwned(session_id, _described(holder))
    lease = Lease(session_id, owner.id, epoch + 1)
    db.run(_TAKE, (key, lease.epoch, owner.id, msgspec.json.encode(owner), now + seconds))
    there_until(db, owner.id, now + seconds)
    return lease


def renew(db: Database, owner: Owner, seconds: float) -> set[str]:
    there_until(db, owner.id, time.time() + seconds)
    return {row[0] for row in db.rows(_OF_OWNER, (owner.id,))}


def there_until(db: Database, owner_id: str, expires_at: float) -> None:
    """As an owner and as a host: a process is gone as both in the same moment."""
    db.run(_RENEW, (expires_at, owner_id))
    db.run(_THERE, (expires_at, owner_id))


def release(db: Database, lease: Lease) -> None:
    """Nothing happens when a later owner has the session."""
    db.run(_RELEASE, (lease.session_id, lease.epoch, lease.owner_id))


def owner_of(db: Database, session_id: str) -> Owner | None:
    row = db.row(f"{_OWNED} AND s.id = ?", (session_id,))
    return None if row is None else _seen(*row)[1]


def owned(db: Database) -> list[tuple[str, Owner]]:
    return [_seen(*row) for row in db.rows(_OWNED)]


def _seen(session_id: str, encoded: bytes, expires_at: float) -> tuple[str, Owner]:
    is_alive = expires_at > time.time()
    return session_id, msgspec.structs.replace(_owner.decode(encoded), alive=is_alive)


def delete(db: Database, session_id: str, lease: Lease | None) -> None:
    """Raises UnknownSession, LeaseLost, and SessionOwned while a lease has not run out."""
    key, now = key_of(db, session_id), time.time()
    if lease is not None:
        fenced(db, lease)
    else:
        for _, encoded, expires_at in db.rows(_FIND, (key,)):
            if encoded is not None and expires_at > now:
                raise SessionOwned(session_id, _described(_owner.decode(encoded)))
    mark_deleted(db, session_id)


def _described(owner: Owner) -> str:
    where = f" on {owner.label}" if owner.label else ""
    return f"process {owner.pid}{where}"


KEEP_SECONDS = 30 * 24 * 3600.0
"""How long one is remembered that does not come back."""

_ANNOUNCE = """
INSERT INTO hosts (id, home, body, seen_at, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET home = excluded.home, body = excluded.body,
    seen_at = excluded.seen_at, expires_at = excluded.expires_at
"""
_FORGET = "DELETE FROM hosts WHERE id <> ? AND expires_at <= ? AND (home IS ? OR seen_at < ?)"
_DEPART = "UPDATE hosts SET expires_at = 0 WHERE id = ?"
_HOSTS = """
SELECT h.body, h.seen_at, h.expires_at,
    (SELECT count(*) FROM session_leases l WHERE l.owner_id = h.id)
FROM hosts h
"""

_host = msgspec.json.Decoder(HostRecord)


def announce(db: Database, host: HostRecord, seconds: float) -> None:
    now = time.time()
    db.run(_ANNOUNCE, (host.id, host.home, msgspec.json.encode(host), now, now + seconds))
    there_until(db, host.id, now + seconds)
    db.run(_FORGET, (host.id, now, host.home, now - KEEP_SECONDS))


def depart(db: Database, host_id: str) -> None:
    db.run(_DEPART, (host_id,))


def hosts(db: Database) -> list[HostRecord]:
    now = time.time()
    found = [
        msgspec.structs.replace(
            _host.decode(body), seen_at=seen_at, alive=expires_at > now, sessions=sessions
        )
        for body, seen_at, expires_at, sessions in db.rows(_HOSTS)
    ]
    return sorted(found, key=lambda host: (host.name, host.id))
