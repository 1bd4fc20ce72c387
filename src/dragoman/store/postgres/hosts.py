"""The hosts that take sessions from each other, in SQL, by the database's clock.

A host is alive as long as its owner is: a single row says so, so that a machine that
died is dead for everybody at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.store.postgres.database import Database, Plan
from dragoman.store.postgres.owners import RUN_OUT, THERE
from dragoman.store.records import HostRecord, Owner
from dragoman.store.sqlite import hosts as limits

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
    (SELECT count(*) FROM leases l WHERE l.owner_id = h.id)
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
