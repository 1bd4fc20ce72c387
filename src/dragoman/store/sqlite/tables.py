"""The tables, created and migrated step by step. Never edit a released step: add another.

`user_version` counts the steps that a database has seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dragoman.errors import StoreAway, StoreError
from dragoman.store.earlier_format import IN_USE, current_command, current_event
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.sessions import PORTION_ROWS, portion

_FIRST = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    cwd TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    name TEXT,
    agent_session_id TEXT,
    title TEXT,
    renamed INTEGER NOT NULL,
    status TEXT NOT NULL,
    archived INTEGER NOT NULL,
    parent TEXT,
    additional_directories TEXT NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX session_ids ON sessions (id) WHERE NOT deleted;
CREATE UNIQUE INDEX session_names ON sessions (cwd, name) WHERE name IS NOT NULL AND NOT deleted;
CREATE INDEX deleted_sessions ON sessions (key) WHERE deleted;

-- Positions only grow, even when the newest events are deleted: readers rely on it.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE UNIQUE INDEX event_numbers ON events (session, seq);

CREATE TABLE snapshots (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL);

-- The epoch outlives the owner, so that it only grows.
CREATE TABLE leases (
    session INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    owner_id TEXT,
    owner BLOB,
    expires_at REAL NOT NULL
);
CREATE INDEX leases_of_owners ON leases (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE commands (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    body BLOB,
    sent_at REAL NOT NULL,
    outcome BLOB NOT NULL DEFAULT x'',
    settled_at REAL
);
CREATE INDEX waiting_commands ON commands (session, id) WHERE state = 'waiting';
CREATE INDEX settled_commands ON commands (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX commands_of_sessions ON commands (session);

CREATE TABLE rules (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL,
    created_at REAL NOT NULL,
    used_at REAL
);

CREATE TABLE said (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX said_in_sessions ON said (session);
CREATE VIRTUAL TABLE said_words USING fts5 (
    text, content = 'said', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TRIGGER said_is_added AFTER INSERT ON said BEGIN
    INSERT INTO said_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER said_is_deleted AFTER DELETE ON said BEGIN
    INSERT INTO said_words (said_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
"""

_WHO_TOOK_A_COMMAND = """
ALTER TABLE commands ADD COLUMN epoch INTEGER;
"""

_HOSTS = """
ALTER TABLE sessions ADD COLUMN home TEXT;
ALTER TABLE commands ADD COLUMN host TEXT;
CREATE INDEX calls ON commands (host) WHERE state = 'waiting' AND host IS NOT NULL;
CREATE TABLE hosts (
    id TEXT PRIMARY KEY,
    home TEXT,
    body BLOB NOT NULL,
    seen_at REAL NOT NULL,
    expires_at REAL NOT NULL
);
"""

_IMPORTS = """
ALTER TABLE sessions ADD COLUMN imported TEXT;
"""

_OFFERS = """
ALTER TABLE sessions ADD COLUMN offer TEXT;
"""

# How many of its first events came as a copy, and the position before them: those that stand with
# them are hidden ones.
_COPIES = """
ALTER TABLE sessions ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN copied_at INTEGER;
CREATE INDEX copies ON sessions (copied_at + copied) WHERE copied > 0 AND NOT deleted;
"""

_SYSTEM_PROMPTS = """
ALTER TABLE sessions ADD COLUMN system_prompt TEXT;
"""

_LIMITS = """
ALTER TABLE sessions ADD COLUMN limits TEXT;
"""

_SHARED_RECORDS = """
CREATE TABLE shared_records (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    ends_at REAL NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
"""

_AT_WORK = """
SELECT 1 FROM {leases} WHERE owner_id IS NOT NULL AND expires_at > ?1
UNION ALL SELECT 1 FROM hosts WHERE expires_at > ?1 LIMIT 1
"""
_WEIGH = f"""
SELECT position, octet_length(body) FROM events WHERE position > ?
ORDER BY position LIMIT {PORTION_ROWS}
"""
_BODIES = "SELECT position, body FROM events WHERE position BETWEEN ? AND ?"
_COMMANDS = "SELECT id, body FROM commands WHERE body IS NOT NULL"
_RENAMED = """
ALTER TABLE leases RENAME TO session_leases;
ALTER TABLE commands RENAME TO session_commands;
"""


def _camel_case(db: Database) -> None:
    """Rename the keys in events and waiting commands, a portion at a time. Snapshots are made from
    events, so they are only dropped."""
    _must_be_alone(db)
    db.run("DELETE FROM snapshots")
    after = -(2**63)  # copies may be below zero
    while some := portion(db, db.each(_WEIGH, (after,))):
        for position, body in db.rows(_BODIES, (some[0], some[-1])):
            if (now := current_event(body)) != body:
                db.run("UPDATE events SET body = ? WHERE position = ?", (now, position))
        after = some[-1]
    for number, body in db.rows(_COMMANDS):
        db.run("UPDATE commands SET body = ? WHERE id = ?", (current_command(body), number))


def _shut_out(db: Database) -> None:
    """A process that has had the database open since before would write the former keys. Without
    these tables it neither takes a session, nor appends events, nor sends a command."""
    _must_be_alone(db)
    db.run(_RENAMED)


def _system_prompts(db: Database) -> None:
    """A process of an earlier version would continue a session without its system prompt."""
    _must_be_alone(db, "session_leases")
    db.run(_SYSTEM_PROMPTS)


def _limits(db: Database) -> None:
    """A process of an earlier version would continue a session without its limits."""
    _must_be_alone(db, "session_leases")
    db.run(_LIMITS)


def _must_be_alone(db: Database, leases: str = "leases") -> None:
    """What a process of an earlier version is doing must not fail: it has to be gone."""
    if db.row(_AT_WORK.format(leases=leases), (time.time(),)) is not None:
        raise StoreAway(db.place, IN_USE)


STEPS = (
    _FIRST,
    _WHO_TOOK_A_COMMAND,
    _HOSTS,
    _IMPORTS,
    _OFFERS,
    _COPIES,
    _camel_case,
    _shut_out,
    _system_prompts,
    _limits,
    _SHARED_RECORDS,
)
_CAMEL_CASE = STEPS.index(_camel_case) + 1


def migrate(db: Database, before_first: Callable[[], None] | None = None) -> None:
    """Bring the tables up to date; two processes that start at once wait for each other.

    `before_first` is called where there is no table yet, while nobody else can make one; it may
    raise.
    """
    if _version(db) == len(STEPS):
        return
    db.run("BEGIN IMMEDIATE")
    try:
        if before_first is not None and not has_tables(db):
            before_first()
        _take_steps(db)
        db.run("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.run("ROLLBACK")
        raise


def has_tables(db: Database) -> bool:
    """Whether anything was ever stored there."""
    return db.row("SELECT 1 FROM sqlite_schema LIMIT 1") is not None


def is_earlier(db: Database) -> bool:
    """Whether its events are in the format before this one."""
    return _version(db) < _CAMEL_CASE


def _take_steps(db: Database) -> None:
    must_not_be_later(db)
    for step in STEPS[_version(db) :]:
        db.run(step) if isinstance(step, str) else step(db)
    db.run(f"PRAGMA user_version = {len(STEPS)}")


def must_not_be_later(db: Database) -> None:
    """Before each write too: another process may have brought it up to date since it was opened,
    and what we would write is of an earlier format. Raises StoreError."""
    if (seen := _version(db)) > len(STEPS):
        raise StoreError(db.place, f"it was written by a later version of Dragoman (step {seen})")


def _version(db: Database) -> int:
    return db.rows("PRAGMA user_version")[0][0]
