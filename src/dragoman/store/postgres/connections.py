"""How many connections the database allows, and whether those we have are our own."""

from __future__ import annotations

from contextlib import suppress

from dragoman.errors import StoreError
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import Database

_LIMITS = """
SELECT current_setting('max_connections')::int,
    current_setting('superuser_reserved_connections')::int,
    (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_user::text,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
"""
_PID = "SELECT pg_backend_pid()"
_LOOKS = 3


async def limits(db: Database) -> list[str]:
    """What the server, the role and the database allow, in words."""
    [(most, reserved, used, role, of_role, of_database)] = await db.rows(_LIMITS)
    words = [f"max_connections is {most}, {reserved} of them reserved and {used} in use"]
    words += [f"the role {role} may have {of_role}"] if of_role >= 0 else []
    return words + ([f"the database allows {of_database}"] if of_database >= 0 else [])


async def must_be_ours_alone(db: Database, address: Address) -> None:
    """Behind a pooler: raises StoreError when it gives connections out by transaction. Then what
    was set on ours, what is listened for and what was prepared belongs to the next user; and
    two that we hold at once may be the same one of the server's."""
    other = await Database.connect(address)
    try:
        for _ in range(_LOOKS):
            [(one,)] = await db.rows(_PID)
            [(two,)] = await other.rows(_PID)
            if one == two or one != db.pid or two != other.pid:
                raise StoreError(db.place, _POOLED)
    finally:
        with suppress(StoreError):
            await other.close()


_POOLED = (
    "a pooler between us and the database gives its connections out by transaction (PgBouncer: "
    "pool_mode = transaction); name the database itself, or a pool with pool_mode = session"
)
