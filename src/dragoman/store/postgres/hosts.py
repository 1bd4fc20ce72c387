"""The hosts that take sessions from each other, in SQL, by the database's clock.

None is gone before the server was up for as long as its word lasts: nobody could give it while the
server was away.
"""

from __future__ import annotations

import msgspec

from dragoman.store import hosts as limits
from dragoman.store.postgres.database import Database
from dragoman.store.records import HostRecord

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
_HOSTS = """
SELECT h.body, extract(epoch FROM h.seen_at)::float8,
    h.expires_at > now() OR pg_postmaster_start_time() + (h.expires_at - h.seen_at) > now(),
    (SELECT count(*) FROM leases l WHERE l.owner_id = h.id)
FROM hosts h
"""

_host = msgspec.json.Decoder(HostRecord)


async def announce(db: Database, host: HostRecord, seconds: float) -> None:
    await db.run(_ANNOUNCE, (host.id, host.home, msgspec.json.encode(host), seconds))
    await db.run(_FORGET, (host.id, host.home, limits.KEEP_SECONDS))


async def depart(db: Database, host_id: str) -> None:
    await db.run(_DEPART, (host_id,))


async def hosts(db: Database) -> list[HostRecord]:
    found = [
        msgspec.structs.replace(_host.decode(body), seen_at=seen_at, alive=alive, sessions=sessions)
        for body, seen_at, alive, sessions in await db.rows(_HOSTS)
    ]
    return sorted(found, key=lambda host: (host.name, host.id))
