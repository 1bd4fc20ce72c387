"""The tables, created and migrated step by step. Never edit a released step: add another.

One process takes the steps, the others wait for it. Whether the data is consistent is checked here
too, by reading alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from dragoman.errors import StoreAway, StoreError
from dragoman.store.earlier_format import IN_USE, current_command, current_event
from dragoman.store.postgres.database import SCHEMA, Address, Database
from dragoman.store.postgres.owners import RUN_OUT

_FIRST = """
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    agent text NOT NULL,
    cwd text NOT NULL,
    created_at float8 NOT NULL,
    updated_at float8 NOT NULL,
    name text,
    agent_session_id text,
    title text,
    renamed boolean NOT NULL,
    status text NOT NULL,
    archived boolean NOT NULL,
    parent text,
    home text,
    additional_directories text NOT NULL,
    last_seq bigint NOT NULL DEFAULT 0,
    deleted boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE UNIQUE INDEX session_ids ON sessions (id) WHERE NOT deleted;
-- By their digests: a path may be longer than an entry of an index.
CREATE UNIQUE INDEX session_names ON sessions (md5(cwd), md5(name))
    WHERE name IS NOT NULL AND NOT deleted;
CREATE INDEX newest_sessions ON sessions (updated_at DESC, key DESC) WHERE NOT deleted;
CREATE INDEX deleted_sessions ON sessions (key) WHERE deleted;

-- One row: the position of the newest event of all. A writer holds it until the commit, so
-- positions become visible in their order, and a reader's cursor passes over none.
CREATE TABLE head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO head DEFAULT VALUES;

CREATE TABLE events (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    position bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05);
CREATE UNIQUE INDEX event_positions ON events (position);

CREATE TABLE snapshots (session bigint PRIMARY KEY, seq bigint NOT NULL, body bytea NOT NULL);

-- One row a process, so that it renews all its leases at once.
CREATE TABLE owners (
    id text PRIMARY KEY,
    body bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    seconds float8 NOT NULL
) WITH (fillfactor = 50);
-- The epoch outlives the owner, so that it only grows.
CREATE TABLE leases (session bigint PRIMARY KEY, epoch bigint NOT NULL, owner_id text);
CREATE INDEX leases_of_owners ON leases (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE commands (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    body bytea,
    sent_at timestamptz NOT NULL DEFAULT now(),
    outcome bytea NOT NULL DEFAULT '',
    settled_at timestamptz,
    epoch bigint,
    host text
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX waiting_commands ON commands (session, id) WHERE state = 'waiting';
CREATE INDEX settled_commands ON commands (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX commands_of_sessions ON commands (session);
CREATE INDEX calls ON commands (host) WHERE state = 'waiting' AND host IS NOT NULL;

CREATE TABLE rules (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    body bytea NOT NULL,
    created_at float8 NOT NULL,
    used_at float8
);

CREATE TABLE said (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (session, seq, kind)
);
CREATE INDEX said_words ON said USING gin (words);

CREATE TABLE hosts (
    id text PRIMARY KEY,
    home text,
    body bytea NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
"""

_IMPORTS = """
ALTER TABLE sessions ADD COLUMN imported text;
"""

_OFFERS = """
ALTER TABLE sessions ADD COLUMN offer text;
"""

# Where a rule was given. Of those that are there already nobody knows, even if only one machine is
# known: another may have been forgotten. So none of them allows anything.
_HOMES_OF_RULES = """
ALTER TABLE rules ADD COLUMN home text;
"""

# How many of its first events came as a copy, and the position before them: they have none of
# their own.
_COPIES = """
ALTER TABLE events ALTER COLUMN position DROP NOT NULL;
ALTER TABLE sessions ADD COLUMN copied bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN copied_at bigint;
CREATE INDEX copies ON sessions ((copied_at + copied)) WHERE copied > 0 AND NOT deleted;
"""

_SYSTEM_PROMPTS = """
ALTER TABLE sessions ADD COLUMN system_prompt text;
"""

_LIMITS = """
ALTER TABLE sessions ADD COLUMN limits text;
"""

_SHARED_RECORDS = """
CREATE TABLE shared_records (
    kind text NOT NULL,
    id text NOT NULL,
    body bytea NOT NULL,
    ends_at timestamptz,
    PRIMARY KEY (kind, id)
);
"""

_LOCKED = "LOCK TABLE sessions, {leases}, {commands}, events, hosts IN ACCESS EXCLUSIVE MODE"
_AT_WORK = f"""
SELECT 1 FROM owners o WHERE NOT {RUN_OUT} AND (
    EXISTS (SELECT 1 FROM {{leases}} l WHERE l.owner_id = o.id)
    OR EXISTS (SELECT 1 FROM hosts h WHERE h.id = o.id AND h.expires_at > to_timestamp(0))
)
"""
_PORTION_BYTES = 4 * 1024 * 1024
_PORTION = """
SELECT session, seq, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY session, seq) AS size,
        row_number() OVER (ORDER BY session, seq) AS number
    FROM (
        SELECT session, seq, body FROM events WHERE (session, seq) > (%s, %s)
        ORDER BY session, seq LIMIT 2000
    ) AS found
) AS measured WHERE size <= %s OR number = 1 ORDER BY session, seq
"""
_REPLACE = """
UPDATE events SET body = given.body
FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[]) AS given (session, seq, body)
WHERE events.session = given.session AND events.seq = given.seq
"""
# A process that has had a connection since before would write the former keys. Without these tables
# it neither takes a session, nor appends events, nor sends a command.
_SHUT_OUT = """
ALTER TABLE leases RENAME TO session_leases;
ALTER TABLE commands RENAME TO session_commands;
"""


async def _camel_case(db: Database) -> None:
    """Rename the keys in events and waiting commands, a portion at a time. Snapshots are made from
    events, so they are only dropped."""
    await db.run("DELETE FROM snapshots")
    session, seq = -1, 0
    while some := await db.rows(_PORTION, (session, seq, _PORTION_BYTES)):
        changed = [(*at, now) for *at, body in some if (now := current_event(body)) != body]
        if changed:
            await db.run(_REPLACE, [list(column) for column in zip(*changed, strict=True)])
        session, seq, _ = some[-1]
    for number, body in await db.rows("SELECT id, body FROM commands WHERE body IS NOT NULL"):
        await db.run("UPDATE commands SET body = %s WHERE id = %s", (current_command(body), number))


Step: TypeAlias = str | Callable[[Database], Awaitable[None]]
STEPS: tuple[Step, ...] = (
    _FIRST,
    _IMPORTS,
    _OFFERS,
    _HOMES_OF_RULES,
    _COPIES,
    _camel_case,
    _SHUT_OUT,
    _SYSTEM_PROMPTS,
    _LIMITS,
    _SHARED_RECORDS,
)
_FORMER = STEPS.index(_SHUT_OUT) + 1

# A process that waits here waits for the steps of another, which may take long.
_LOCK = """
SET LOCAL lock_timeout = 0;
SELECT pg_advisory_xact_lock(hashtext('dragoman store tables'));
"""
# In the catalogue itself: by its name the server might not see what another process just made.
_IS_THERE = f"SELECT 1 FROM pg_tables WHERE schemaname = '{SCHEMA}' AND tablename = 'steps'"
_MAKE_SCHEMA = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.steps (taken int NOT NULL, store text NOT NULL);
INSERT INTO {SCHEMA}.steps VALUES (0, gen_random_uuid()::text);
"""


async def migrate(db: Database) -> str:
    """Bring the tables up to date; what tells this store from all others.

    Raises StoreError when a later version made them.
    """
    if await version(db) != len(STEPS):
        async with db.transaction():
            await db.run(_LOCK)
            await _take_steps(db, await version(db))
    return (await db.rows("SELECT store FROM steps"))[0][0]


async def _take_steps(db: Database, seen: int) -> None:
    must_not_be_later(db.place, seen)
    if not seen:
        await db.run(_MAKE_SCHEMA)
    else:
        await _alone(db, seen)
    for step in STEPS[seen:]:
        await (db.run(step) if isinstance(step, str) else step(db))
    await db.run("UPDATE steps SET taken = %s", (len(STEPS),))


async def _alone(db: Database, seen: int) -> None:
    """What a process of an earlier version is doing must not fail: it has to be gone. It is not
    even to wait, so it is looked for before the locks too."""
    before = "" if seen < _FORMER else "session_"
    names = {"leases": f"{before}leases", "commands": f"{before}commands"}
    await _nobody_is_at_work(db, names)
    await db.run(_LOCKED.format(**names))
    await _nobody_is_at_work(db, names)


async def _nobody_is_at_work(db: Database, names: dict[str, str]) -> None:
    if await db.row(_AT_WORK.format(**names)) is not None:
        raise StoreAway(db.place, IN_USE)


def must_not_be_later(place: str, seen: int) -> None:
    """Raises StoreError."""
    if seen > len(STEPS):
        raise StoreError(place, f"it was written by a later version of Dragoman (step {seen})")


async def version(db: Database) -> int:
    """How many steps were taken; 0 where there is nothing yet."""
    if await db.row(_IS_THERE) is None:
        return 0
    row = await db.row("SELECT taken FROM steps")
    return 0 if row is None else row[0]


_COUNTS = "SELECT count(*), coalesce(sum(last_seq), 0)::bigint FROM sessions WHERE NOT deleted"
_DENSE = """
SELECT s.id, s.last_seq, coalesce(e.count, 0), coalesce(e.last, 0)
FROM sessions s LEFT JOIN (
    SELECT session, count(*) AS count, max(seq) AS last FROM events GROUP BY session
) e ON e.session = s.key
WHERE NOT s.deleted AND (s.last_seq <> coalesce(e.count, 0) OR s.last_seq <> coalesce(e.last, 0))
    -- A copy that is not whole has no last one yet.
    AND (s.last_seq > 0 OR e.count <> e.last)
"""
_HEAD = """
SELECT position, greatest(
    (SELECT max(position) FROM events), (SELECT max(copied_at + copied) FROM sessions)
) FROM head
"""
_STRAY = """
SELECT DISTINCT e.session FROM events e
WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = e.session)
"""


async def check(address: str) -> tuple[str, int, int, list[str]]:
    """Where it is, how many sessions and events it has, and what is wrong with it. Raises
    StoreError."""
    where = Address(address)
    db = await Database.connect(where)
    try:
        await _must_be_ours(db)
        [(sessions, events)] = await db.rows(_COUNTS)
        return where.shown, sessions, events, await faults(db)
    finally:
        await db.close()


async def _must_be_ours(db: Database) -> None:
    seen = await version(db)
    must_not_be_later(db.place, seen)
    if not seen:
        raise StoreError(db.place, "this database contains no store")
    if seen < len(STEPS):
        raise StoreError(db.place, "it has an earlier format, and is upgraded when next opened")


async def faults(db: Database) -> list[str]:
    """In words; nothing when all is in order."""
    found = [
        f"session {session_id} should have {expected} events, has {count}, the last is {last}"
        for session_id, expected, count, last in await db.rows(_DENSE)
    ]
    head = await db.row(_HEAD)
    if head is None or head[0] < (head[1] or 0):
        found.append("there are events after the newest one")
    strays = await db.rows(_STRAY)
    if strays:
        found.append(f"{len(strays)} sessions have events but no record")
    return found
