"""The hosts that take sessions from each other, in SQL. Runs in a transaction.

A host says again and again that it is there; one that has not for too long is not alive, but still
known: its sessions are named after it.
"""

from __future__ import annotations

import time

import msgspec

from dragoman.store.records import HostRecord
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.owners import there_until

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
SELECT h.body, h.seen_at, h.expires_at, (SELECT count(*) FROM leases l WHERE l.owner_id = h.id)
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
