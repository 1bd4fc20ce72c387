"""What is looked at together, in one round trip: a session or a list of them, and who has them."""

from __future__ import annotations

from dragoman.store.postgres import hosts, owners, sessions
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.events import HEAD
from dragoman.store.postgres.search_words import storable
from dragoman.store.records import Overview, SessionFilter, Standing


async def standing(db: Database, session_id: str) -> Standing:
    one = (storable(session_id),)
    async with db.together():
        records = await db.ask(sessions.READ, one)
        holders = await db.ask(owners.OWNER_OF, one)
        known = await db.ask(hosts.HOSTS)
    found = owners.seen(await holders.fetchall())
    return Standing(
        sessions.first(await records.fetchall()),
        found[0][1] if found else None,
        hosts.known(await known.fetchall()),
    )


async def overview(db: Database, wanted: SessionFilter) -> Overview:
    """Raises UnknownSession for a cursor that is gone."""
    async with db.together():
        head = await db.ask(HEAD)
        listed = await db.ask(*sessions.list_query(wanted))
        holders = await db.ask(owners.OWNED)
        known = await db.ask(hosts.HOSTS)
    [(position,)] = await head.fetchall()
    page = await sessions.page(db, wanted, await listed.fetchall())
    held = dict(owners.seen(await holders.fetchall()))
    return Overview(position, page, held, hosts.known(await known.fetchall()))
