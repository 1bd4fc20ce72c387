"""What was stored before keys were in camelCase is read, wherever it is.

`earlier/format_1.tar.gz` was made by the last version that wrote snake_case: a data directory, and
an exported session with every kind of event, each field filled. `earlier/format_2.jsonl` has those
events as they are written now.
"""

from __future__ import annotations

import asyncio
import tarfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import LiteralString

import msgspec
import psycopg
import pytest
from store.stores import ME, acquire, on_disk
from support.postgres import bare_database

from dragoman.errors import StoreAway, StoreError
from dragoman.host.rules.rule import Rule, RuleFields
from dragoman.hub.cluster.commands import Prompt, decode_command
from dragoman.session.content import Image, Text
from dragoman.session.events import AccessDecided, ToolCallUpdated
from dragoman.store.archive import exported, import_session, read_archive
from dragoman.store.base import Store
from dragoman.store.earlier_format import current_event
from dragoman.store.mirror_lines import VERSION, is_header, read_header
from dragoman.store.postgres import tables as postgres_tables
from dragoman.store.postgres.database import Address
from dragoman.store.postgres.database import Database as PostgresDatabase
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import decode_event
from dragoman.store.sqlite import tables
from dragoman.store.sqlite.database import FILE_NAME, Database
from dragoman.store.sqlite.recovery import recover

FOLDER = Path(__file__).parent / "earlier"
NOW = (FOLDER / "format_2.jsonl").read_bytes().splitlines()
THEIRS = {"tool_call_id": {"mime_type": ["old_text", 12345678901234567890123, 1.5]}}
"""What an agent sent: its keys are its own."""
LATER = b'{"type":"of_a_later_version","seq":2,"at":1.0,"tool_call_id":"x"}'
STEP = 5
"""The steps that the database had taken."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(FOLDER / "format_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "home"


async def bodies(store: Store, session_id: str) -> list[bytes]:
    return [event.body for event in await store.events(session_id)]


def rows(home: Path) -> list[bytes]:
    with closing(Database(str(home / FILE_NAME))) as db:
        return [row[0] for row in db.rows("SELECT body FROM events ORDER BY position")]


def mirrored(home: Path, session_id: str) -> list[bytes]:
    return (home / "sessions" / f"{session_id}.jsonl").read_bytes().splitlines()


# ── the database ──────────────────────────────────────────────────────────────────────────────


async def test_a_database_is_brought_up_to_date_and_nothing_is_lost(home: Path) -> None:
    async with on_disk(home) as store:
        assert await bodies(store, "s-rich") == NOW
        assert await store.snapshot("s-rich") is None
        assert [hit.session_id for hit in await store.search("done")] == ["s-rich"]
        found = await store.session("s-rich")
        assert found is not None
        assert (found.agent_session_id, found.additional_directories) == ("agent_1", ["/more_here"])
        lines = [line async for line in exported(store, "s-rich")]
    assert read_header(lines[0]).dragoman == VERSION
    assert b"_at" not in lines[0]


async def test_what_an_agent_sent_keeps_its_keys(home: Path) -> None:
    async with on_disk(home) as store:
        found = [decode_event(body) for body in await bodies(store, "s-rich")]
    call = next(event for event in found if isinstance(event, ToolCallUpdated))
    assert (call.raw_input, call.raw_output, call.meta) == (THEIRS, THEIRS, THEIRS)
    decided = next(event for event in found if isinstance(event, AccessDecided))
    assert decided.decision.rule == {
        "effect": "allow",
        "operation": "execute",
        "argvPrefix": ["git", "log"],
        "expiresAt": 2e9,
    }


async def test_an_event_that_this_version_does_not_know_stays_as_it_is(home: Path) -> None:
    async with on_disk(home) as store:
        assert (await bodies(store, "s-waits"))[1] == LATER


async def test_a_prompt_that_waits_for_its_session_keeps_its_attachment(home: Path) -> None:
    with closing(Database(str(home / FILE_NAME))) as db:
        # Nobody waits for an answer to one that is old, and it is dropped.
        db.run("UPDATE commands SET sent_at = ?", (time.time(),))
    async with on_disk(home) as store:
        [command] = await store.take([await acquire(store, "s-waits")])
    assert decode_command(command.body) == Prompt([Text("look"), Image("AA==", "image/png")])


async def test_a_stored_rule_keeps_its_conditions(home: Path) -> None:
    """They are stored as before: without its words, a rule would cover every command."""
    async with on_disk(home) as store:
        [stored] = store.rules.load()
    assert (stored.rule.argv_prefix, stored.rule.expires_at) == (("git", "log"), 2e9)
    assert b"argv_prefix" in msgspec.json.encode(stored.rule)
    assert b"argvPrefix" in msgspec.json.encode(RuleFields.of(stored.rule))


async def test_more_than_a_portion_is_brought_up_to_date(home: Path) -> None:
    old = b'{"type":"turn_cancelling","turn_id":"t","seq":%d,"at":1.0}'
    with closing(Database(str(home / FILE_NAME))) as db:
        db.run("BEGIN")
        for seq in range(1, 5001):
            db.run("INSERT INTO events (session, seq, body) VALUES (99, ?, ?)", (seq, old % seq))
        db.run("COMMIT")
    async with on_disk(home):
        pass
    assert rows(home)[-5001:-1] == [
        b'{"type":"turn_cancelling","turnId":"t","seq":%d,"at":1.0}' % seq for seq in range(1, 5001)
    ]


async def test_an_upgrade_that_fails_has_changed_nothing_and_is_done_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, done = rows(home), list[bytes]()

    def torn(body: bytes) -> bytes:
        done.append(body)
        if len(done) == 20:
            raise StoreError("here", "no space left")
        return current_event(body)

    with monkeypatch.context() as patched:
        patched.setattr(tables, "current_event", torn)
        with pytest.raises(StoreError, match="no space left"):
            async with on_disk(home):
                pass
    assert rows(home) == before
    async with on_disk(home) as store:
        assert await bodies(store, "s-rich") == NOW


def test_blanks_before_an_event_do_not_matter() -> None:
    event = b'{"type":"turn_cancelling","turn_id":"t","seq":1,"at":1.0}'
    assert b'"turnId"' in current_event(b" \t" + event)


@pytest.mark.parametrize(
    "at_work",
    [
        "UPDATE leases SET owner_id = 'x', owner = '{}', expires_at = ?",
        "INSERT INTO hosts (id, body, seen_at, expires_at) VALUES ('x', '{}', 0, ?)",
    ],
)
async def test_a_database_that_an_earlier_version_uses_is_left_alone(
    home: Path, at_work: str
) -> None:
    before = rows(home)
    with closing(Database(str(home / FILE_NAME))) as db:
        db.run(at_work, (time.time() + 600,))
    with pytest.raises(StoreAway, match="another process is using it"):
        async with on_disk(home):
            pass
    assert rows(home) == before
    with closing(Database(str(home / FILE_NAME))) as db:
        assert db.rows("PRAGMA user_version") == [(STEP,)]


async def test_copies_below_the_first_position_are_converted_too(home: Path) -> None:
    with closing(Database(str(home / FILE_NAME))) as db:
        db.run("UPDATE events SET position = -position")
    async with on_disk(home) as store:
        assert await bodies(store, "s-rich") == NOW


async def test_the_same_in_postgresql(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await _in_postgresql(home, monkeypatch)
    store = await open_postgres(address, tmp_path / "data")
    try:
        assert await bodies(store, "s-rich") == NOW
        assert (await bodies(store, "s-waits"))[1] == LATER
        assert await store.snapshot("s-rich") is None
        [command] = await store.take([await acquire(store, "s-waits")])
        assert b'"mimeType":"image/png"' in command.body
    finally:
        await store.aclose()


# The second could not renew while the database was away.
@pytest.mark.parametrize(
    "owner", ["now() + interval '1 hour', 15", "now() - interval '1 minute', 1e9"]
)
async def test_a_postgresql_database_that_an_earlier_version_uses_is_left_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: LiteralString
) -> None:
    address = await _in_postgresql(home, monkeypatch)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"INSERT INTO dragoman.owners VALUES ('x', '{{}}', {owner})")
        connection.execute("INSERT INTO dragoman.leases SELECT key, 1, 'x' FROM dragoman.sessions")
    with pytest.raises(StoreAway, match="another process is using it"):
        await open_postgres(address, tmp_path / "data")
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute("SELECT body FROM dragoman.events ORDER BY position").fetchall()
        assert [body for (body,) in found] == rows(home)
        connection.execute("DELETE FROM dragoman.owners")
    await (await open_postgres(address, tmp_path / "data")).aclose()


async def test_whoever_uses_a_postgresql_database_does_not_wait_for_a_start_that_fails(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that waits for a lock holds up everyone who comes after it, readers too."""
    address = await _in_postgresql(home, monkeypatch)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET search_path = dragoman")
        connection.execute("INSERT INTO owners VALUES ('x', '', now() + interval '1 hour', 15)")
        connection.execute("INSERT INTO leases SELECT key, 1, 'x' FROM sessions")
        with connection.transaction():
            connection.execute("SELECT count(*) FROM events, sessions, leases, commands, hosts")
            async with asyncio.timeout(30):
                with pytest.raises(StoreAway, match="another process is using it"):
                    await open_postgres(address, tmp_path / "data")


# ── processes that have it open since before ──────────────────────────────────────────────────

# What version 1 ran before it appended events, and when it took a session or sent a command.
WRITES = (
    "SELECT s.last_seq, l.epoch FROM sessions s LEFT JOIN leases l ON l.session = s.key",
    "UPDATE leases SET epoch = epoch + 1",
    "UPDATE commands SET state = 'waiting'",
)


@pytest.mark.parametrize("write", WRITES)
async def test_a_process_that_was_suspended_meanwhile_can_no_longer_write(
    home: Path, write: str
) -> None:
    with closing(Database(str(home / FILE_NAME))) as suspended:
        suspended.run(write)
        async with on_disk(home):
            with pytest.raises(StoreError, match="no such table"):
                suspended.run(write)


@pytest.mark.parametrize("write", WRITES)
async def test_nor_can_it_in_postgresql(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: LiteralString
) -> None:
    address = await _in_postgresql(home, monkeypatch)
    with psycopg.connect(address, autocommit=True) as suspended:
        suspended.execute("SET search_path = dragoman")
        suspended.execute(write, prepare=True)
        await (await open_postgres(address, tmp_path / "data")).aclose()
        with pytest.raises(psycopg.errors.UndefinedTable):
            suspended.execute(write, prepare=True)


# They were the last steps for a while.
CONVERTED, CONVERTED_IN_POSTGRESQL = 7, 6


async def test_a_database_that_was_converted_before_is_shut_to_it_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Database(str(home / FILE_NAME))) as db:
        with monkeypatch.context() as before:
            before.setattr(tables, "STEPS", tables.STEPS[:CONVERTED])
            tables.migrate(db)
        db.run("UPDATE leases SET owner_id = 'x', owner = '{}', expires_at = ?", (2e9,))
        with pytest.raises(StoreAway, match="another process is using it"):
            async with on_disk(home):
                pass
        db.run("UPDATE leases SET owner_id = NULL, owner = NULL")
        async with on_disk(home) as store:
            assert await bodies(store, "s-rich") == NOW
            await acquire(store, "s-rich")
        assert not db.rows("SELECT name FROM sqlite_schema WHERE name = 'leases'")


async def test_so_is_one_in_postgresql(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await _in_postgresql(home, monkeypatch)
    await _migrated(address, CONVERTED_IN_POSTGRESQL, monkeypatch)
    store = await open_postgres(address, tmp_path / "data")
    try:
        assert await bodies(store, "s-rich") == NOW
        await acquire(store, "s-rich")
    finally:
        await store.aclose()
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT to_regclass('dragoman.leases')").fetchone() == (None,)


async def _in_postgresql(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with what the one in SQLite has, before the step."""
    address = bare_database()
    await _migrated(address, 4, monkeypatch)
    with (
        psycopg.connect(address, autocommit=True) as connection,
        closing(Database(str(home / FILE_NAME))) as db,
    ):
        connection.execute("SET search_path = dragoman")
        _copy(connection, db)
    return address


async def _migrated(address: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a version did that knew only so many steps."""
    db = await PostgresDatabase.connect(Address(address))
    with monkeypatch.context() as before:
        before.setattr(postgres_tables, "STEPS", postgres_tables.STEPS[:steps])
        await postgres_tables.migrate(db)
    await db.close()


def _copy(connection: psycopg.Connection[tuple[object, ...]], db: Database) -> None:
    def insert(statement: str, found: Sequence[tuple[object, ...]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(statement.encode(), found)

    insert(
        "INSERT INTO sessions (key, id, agent, cwd, created_at, updated_at, renamed, status, "
        "archived, additional_directories, last_seq) OVERRIDING SYSTEM VALUE "
        "VALUES (%s, %s, 'demo', '/', 1, 1, false, 'idle', false, '[]', %s)",
        db.rows("SELECT key, id, last_seq FROM sessions"),
    )
    for table, columns in (
        ("events", "session, seq, position, body"),
        ("snapshots", "session, seq, body"),
        ("commands", "session, body"),
    ):
        places = ", ".join("%s" for _ in columns.split(","))
        found = db.rows(f"SELECT {columns} FROM {table}")
        insert(f"INSERT INTO {table} ({columns}) VALUES ({places})", found)


# ── files ─────────────────────────────────────────────────────────────────────────────────────


async def test_an_exported_session_is_imported(home: Path, tmp_path: Path) -> None:
    lines = (home.parent / "export.jsonl").read_bytes().splitlines(keepends=True)
    archive = read_archive(lines)
    assert archive.events == NOW
    assert archive.record.agent_session_id == "agent_1"
    async with on_disk(tmp_path / "other") as store:
        await import_session(store, archive, "new", ME, cwd="/project")
        found = [decode_event(body) for body in await bodies(store, "new")]
    calls = [event for event in found if isinstance(event, ToolCallUpdated)]
    assert calls[0].tool_call_id == "a tool_call_id_text"


async def test_a_database_is_rebuilt_from_earlier_mirrors(home: Path) -> None:
    (home / FILE_NAME).unlink()
    report = recover(home)
    assert (report.sessions, report.remarks) == (2, [])
    async with on_disk(home) as store:
        assert await bodies(store, "s-rich") == NOW
        found = await store.session("s-rich")
        assert found is not None
        assert found.agent_session_id == "agent_1"


async def test_a_database_is_rebuilt_from_an_earlier_one(home: Path) -> None:
    for name in ("s-rich", "s-waits"):
        (home / "sessions" / f"{name}.jsonl").unlink()
    assert recover(home).remarks == []
    async with on_disk(home) as store:
        assert await bodies(store, "s-rich") == NOW
        [stored] = store.rules.load()
        assert stored.rule.argv_prefix == ("git", "log")


async def test_a_mirror_of_a_later_version_is_not_taken_for_one_of_this(home: Path) -> None:
    file = home / "sessions" / "s-rich.jsonl"
    file.write_bytes(file.read_bytes().replace(b'{"dragoman":1,', b'{"dragoman":3,'))
    (home / FILE_NAME).unlink()
    report = recover(home)
    assert "session s-rich: its mirror was written by a later version of Dragoman" in report.remarks
    assert file.exists()


async def test_an_earlier_mirror_is_written_again_when_its_session_continues(home: Path) -> None:
    """Though its last line is the same in both formats."""
    assert mirrored(home, "s-rich")[-1] == NOW[-1]
    async with on_disk(home) as store:
        await acquire(store, "s-rich")
    header, *lines = mirrored(home, "s-rich")
    assert read_header(header).dragoman == VERSION
    assert [line for line in lines if not is_header(line)] == NOW
    assert not (home / "sessions" / "s-rich.jsonl.old").exists()


async def test_an_earlier_mirror_that_has_more_than_the_rows_is_kept(home: Path) -> None:
    file = home / "sessions" / "s-rich.jsonl"
    more = file.read_bytes() + b'{"type":"turn_cancelling","turn_id":"t","seq":45,"at":1.0}\n'
    file.write_bytes(more)
    async with on_disk(home) as store:
        await acquire(store, "s-rich")
    assert (home / "sessions" / "s-rich.jsonl.old").read_bytes() == more
    assert mirrored(home, "s-rich")[1:] == NOW


async def test_what_waited_in_an_outbox_is_delivered_as_it_would_be_written_now(home: Path) -> None:
    async with on_disk(home) as store:
        found = await bodies(store, "s-waits")
    assert len(found) == 3
    event = decode_event(found[2])
    assert isinstance(event, ToolCallUpdated)
    assert (event.tool_call_id, event.raw_input) == ("a tool_call_id_text", THEIRS)
    assert not list((home / "outbox").rglob("*.db"))


# ── the renaming itself ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("body", NOW)
def test_what_is_up_to_date_stays_as_it_is(body: bytes) -> None:
    assert current_event(body) == body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not JSON",
        b"\xff",
        b"[]",
        b'"turn_id"',
        b'{"turn_id":"t"}',
        b'{"type":7,"turn_id":"t"}',
        b'{"type":"surprise","turn_id":"t"}',
        b'{"type":"turn_ended","turn_id":',
        b'{"type":"turn_started","turn_id":' + b"[" * 100_000,
    ],
)
def test_what_is_no_event_stays_as_it_is(body: bytes) -> None:
    assert current_event(body) == body


def test_control_a_rule_in_the_present_spelling_is_the_same_rule() -> None:
    rule = Rule(effect="deny", argv_prefix=("git",), operation="execute", expires_at=1.0)
    assert msgspec.structs.asdict(RuleFields.of(rule)) == msgspec.structs.asdict(rule)
