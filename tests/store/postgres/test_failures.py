"""What an error of PostgreSQL, or of its driver, means; and that a full disk, a fault inside the
server and a connection that was spoiled cost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from store.postgres.stores import opened, outboxes, until
from store.stores import batch, begin, body, record, whole
from support.postgres import empty_database

from dragoman.errors import RowDuplicate, RowRefused, StoreAway, StoreCorrupt, StoreError, StoreFull
from dragoman.store.postgres.database import MEANINGS, meaning, store_error
from dragoman.store.records import Batch
from dragoman.store.store_limits import StoreLimits

BUSY = psycopg.OperationalError("cannot exit pipeline mode while busy")

ROWS: list[tuple[psycopg.Error | OSError, type[StoreError]]] = [
    (BUSY, StoreAway),
    (psycopg.OperationalError("the connection is lost"), StoreAway),
    (psycopg.InterfaceError("cannot enter pipeline mode, connection not idle"), StoreAway),
    (psycopg.InternalError("got more results than expected"), StoreAway),
    (psycopg.ProgrammingError("the last operation didn't produce records"), StoreAway),
    (psycopg.errors.ConnectionTimeout("connection timeout expired"), StoreAway),
    (errors.PipelineAborted("pipeline aborted"), StoreAway),
    (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), RowRefused),
    (TimeoutError(), StoreAway),
    (ConnectionResetError("reset"), StoreAway),
    (errors.FeatureNotSupported("cached plan must not change result type"), StoreAway),
    (errors.ConnectionFailure("x"), StoreAway),
    (errors.ProtocolViolation("x"), StoreAway),
    (errors.CharacterNotInRepertoire("x"), RowRefused),
    (errors.NotNullViolation("x"), RowRefused),
    (errors.UniqueViolation("x"), RowDuplicate),
    (errors.ReadOnlySqlTransaction("x"), StoreAway),
    (errors.InFailedSqlTransaction("x"), StoreAway),
    (errors.IdleInTransactionSessionTimeout("x"), StoreAway),
    (errors.InvalidSqlStatementName('prepared statement "_pg3_1" does not exist'), StoreAway),
    (errors.TriggeredDataChangeViolation("x"), RowRefused),
    (errors.InvalidSchemaName("x"), StoreError),
    (errors.DeadlockDetected("x"), StoreError),
    (errors.SerializationFailure("x"), StoreError),
    (errors.TransactionIntegrityConstraintViolation("x"), RowRefused),
    (errors.StatementCompletionUnknown("x"), StoreAway),
    (errors.UndefinedTable("x"), StoreError),
    (errors.InsufficientPrivilege("x"), StoreError),
    (errors.WithCheckOptionViolation("x"), RowRefused),
    (errors.OutOfMemory("x"), StoreAway),
    (errors.TooManyConnections("x"), StoreAway),
    (errors.DiskFull("x"), StoreFull),
    (errors.ProgramLimitExceeded("x"), RowRefused),
    (errors.ObjectNotInPrerequisiteState("x"), StoreAway),
    (errors.LockNotAvailable("x"), StoreError),
    (errors.AdminShutdown("x"), StoreAway),
    (errors.CrashShutdown("x"), StoreAway),
    (errors.CannotConnectNow("x"), StoreAway),
    (errors.DatabaseDropped("x"), StoreAway),
    (errors.QueryCanceled("x"), StoreError),
    (errors.IoError("x"), StoreAway),
    (errors.RaiseException("x"), RowRefused),
    (errors.InternalError_("x"), StoreAway),
    (errors.DataCorrupted("x"), StoreCorrupt),
    (errors.IndexCorrupted("x"), StoreCorrupt),
    (errors.InvalidCursorName("x"), StoreAway),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
def test_what_an_error_means(row: tuple[psycopg.Error, type[StoreError]]) -> None:
    error, expected = row
    assert type(store_error("here", error)) is expected


def test_every_line_of_the_table_has_its_row() -> None:
    states = {getattr(error, "sqlstate", None) or "" for error, _ in ROWS}
    known = {next(state[:end] for end in (5, 2, 0) if state[:end] in MEANINGS) for state in states}
    assert known == set(MEANINGS)
    assert all(reason for _, reason in MEANINGS.values())


def test_a_code_that_nobody_knows_is_an_outage() -> None:
    assert meaning(errors.lookup("HV000")("x")) == "away"


@contextmanager
def refusing(address: str, code: str, when: str = "true") -> Generator[None]:
    """The server itself says this of every event, or of some."""
    statements = [
        "CREATE OR REPLACE FUNCTION dragoman.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {when} THEN RAISE EXCEPTION 'could not do it' USING ERRCODE = '{code}'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON dragoman.events FOR EACH ROW "
        "EXECUTE FUNCTION dragoman.refuse()",
    ]
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    try:
        yield
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DROP FUNCTION dragoman.refuse() CASCADE")


@pytest.mark.parametrize("code", ["53100", "53200", "58030", "XX000", "XX001", "42501", "26000"])
async def test_what_is_not_said_of_one_event_is_an_outage_and_costs_nothing(
    tmp_path: Path, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        leases = [await begin(store, name) for name in ("a", "b")]
        for lease in leases:
            await store.append(lease, batch(1))
        with refusing(address, code):
            appends = [asyncio.create_task(store.append(lease, batch(2, 3))) for lease in leases]
            await until(lambda: store.has_kept("a", 4) and store.has_kept("b", 4))
            assert store.away is not None
            assert len(await whole(store, "a")) == 1, "what is there can be read"
            # Neither a connection that can be made nor an answer shows that it can be written.
            for _ in range(5):
                await store.last_position()
            await asyncio.sleep(0.5)
            assert store.outage.is_on
            assert not any(append.done() for append in appends)
        await asyncio.gather(*appends)
        assert store.away is None
        for name in ("a", "b"):
            assert [event.body for event in await whole(store, name)] == [
                body(seq) for seq in range(1, 5)
            ]
        await until(lambda: not outboxes(tmp_path))
    assert caplog.text.count("events are kept on this host") == 1
    assert caplog.text.count("the database is back") == 1


async def test_other_things_are_refused_while_it_is_full_with_that_reason(
    tmp_path: Path,
) -> None:
    address = empty_database()
    async with opened(address, tmp_path, StoreLimits(outage_seconds=0.3)) as store:
        lease = await begin(store)
        with refusing(address, "53100"):
            appended = asyncio.create_task(store.append(lease, batch(1)))
            await until(lambda: store.outage.is_long)
            with pytest.raises(StoreFull, match="no space left"):
                await store.create_session(record("never"))
        await appended


@pytest.mark.parametrize("code", ["22021", "23502", "54000", "P0001"])
async def test_an_event_that_is_refused_itself_costs_no_other_session_anything(
    tmp_path: Path, code: str
) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        good, bad = [await begin(store, name) for name in ("good", "bad")]
        with refusing(address, code, "NEW.body = 'bad'::bytea"):
            results = await asyncio.gather(
                store.append(good, batch(1, 2)),
                store.append(bad, Batch(first_seq=1, events=[b"bad"])),
                store.append(good, batch(3)),
                return_exceptions=True,
            )
            assert [isinstance(each, RowRefused) for each in results] == [False, True, False]
            assert not store.outage.is_on
        assert len(await whole(store, "good")) == 3
        assert await whole(store, "bad") == []
    assert (tmp_path / "undelivered" / f"bad-{bad.epoch}.jsonl").read_bytes() == b"bad\n"


@pytest.mark.parametrize("before", range(8))
async def test_no_refusal_in_a_pipeline_spoils_what_comes_later(
    tmp_path: Path, before: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the driver was about to prepare at that moment, and believes it has. The first
    refusal is on a connection that has prepared nothing yet: the driver then does not notice the
    second ROLLBACK."""
    address, bad = empty_database(), Batch(first_seq=1, events=[b"bad"])
    async with opened(address, tmp_path / "before") as store:
        lease = await begin(store)
        others = [await begin(store, f"bad{number}") for number in range(3)]
    with refusing(address, "22021", "NEW.body = 'bad'::bytea"):
        async with opened(address, tmp_path / "after") as store:
            seq = 1
            for other in others:
                with pytest.raises(StoreError):
                    await store.append(other, bad)
                for _ in range(before):
                    await store.append(lease, batch(seq))
                    seq += 1
            for _ in range(8):
                await store.append(lease, batch(seq))
                seq += 1
            assert [event.seq for event in await whole(store)] == list(range(1, seq))
    assert "is unavailable" not in caplog.text, "what was refused is no outage"
