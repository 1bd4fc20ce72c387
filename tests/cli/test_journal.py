"""What `serve` and `bridge` say to whoever runs them: lines, and nothing of what sessions hold."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from support.server_process import ServerProcess, server_process
from support.unread_output import fill, unread_fifo

from dragoman.cli.server_log import Journal, Lines
from dragoman.errors import InternalError, StoreFull

Written: TypeAlias = Callable[..., list[str]]
SECRET = "the prompt that nobody may read"


@pytest.fixture
def written() -> Written:
    """What the lines of these records are, without their times."""
    told: list[str] = []
    journal = Journal(told.append)

    def lines(*records: logging.LogRecord) -> list[str]:
        for record in records:
            journal.handle(record)
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+ ", line) for line in told)
        return [line.split(" ", 2)[2] for line in told]

    return lines


def record(
    name: str, level: int, message: str, *arguments: object, error: bool = False
) -> logging.LogRecord:
    caught = None
    if error:
        try:
            raise KeyError(SECRET)
        except KeyError:
            caught = sys.exc_info()
    return logging.LogRecord(name, level, "", 0, message, arguments, caught)


def test_an_error_is_named_without_what_it_holds(written: Written) -> None:
    [line] = written(record("dragoman.web", logging.ERROR, "a request failed", error=True))
    assert line == "ERROR a request failed: KeyError (--debug shows where)"


def test_our_own_sentences_are_told_in_full_and_in_one_line(written: Written) -> None:
    error = StoreFull("/place", "there is no room\nfor it")
    [line] = written(record("dragoman.hub", logging.WARNING, "session %s: %s", "s-1", error))
    assert line.startswith("WARNING session s-1: ")


def test_what_an_agent_said_is_not_told(written: Written) -> None:
    error = InternalError(SECRET)
    [line] = written(record("dragoman.hub", logging.WARNING, "closing %s: %s", "s-1", error))
    assert line == "WARNING closing s-1: InternalError"


def test_of_other_libraries_only_the_sentence_is_told(written: Written) -> None:
    lines = written(
        record("websockets", logging.WARNING, "error in %r: %s", object(), SECRET),
        record("uvicorn.error", logging.ERROR, "Cancel %s tasks", 3),
        record("asyncio", logging.ERROR, f"Task failed\nfuture: <Task {SECRET}>", error=True),
    )
    assert lines == [
        "WARNING websockets: error in %r: %s",
        "ERROR uvicorn.error: Cancel 3 tasks",
        "ERROR asyncio: Task failed: KeyError (--debug shows where)",
    ]


def test_what_we_say_of_a_lost_connection_is_not_said_by_its_library_too(written: Written) -> None:
    lost = "error ignored terminating %r: %s"
    assert written(record("psycopg", logging.WARNING, lost, object(), SECRET)) == []


def test_the_same_line_is_told_once_in_a_while_and_escapes_are_shown(written: Written) -> None:
    again = [record("dragoman", logging.WARNING, "again \x1b[31m") for _ in range(5)]
    [line] = written(*again)
    assert "\x1b" not in line


# ── a reader that stops ───────────────────────────────────────────────────────────────────────


def test_what_nobody_reads_is_dropped_and_counted(tmp_path: Path) -> None:
    with unread_fifo(tmp_path / "log") as fifo:
        descriptor = os.open(tmp_path / "log", os.O_WRONLY)
        fill(fifo)
        with Lines(descriptor, room=1000) as log:
            for number in range(1000):
                log(f"line {number:04}")
            log("x" * 1001)
            os.set_blocking(fifo, True)
            read = b""
            while b"dropped" not in read:
                read += os.read(fifo, 65536)
            log("it flows")
            while b"it flows\n" not in read:
                read += os.read(fifo, 65536)
        os.close(descriptor)
    *kept, told, last = filter(None, read.decode().splitlines())
    # Room for 100, and for one more as soon as the first is being written, whenever that is.
    assert kept[:100] == [f"line {number:04}" for number in range(100)]
    assert kept[100:] in ([], *([f"line {number:04}"] for number in range(100, 1000)))
    assert told.endswith(f"{1001 - len(kept)} lines were dropped: the log was not being read")
    assert last == "it flows"


def test_what_is_left_is_written_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with open(path, "wb") as file, Lines(file.fileno()) as log:
        for number in range(1000):
            log(f"{number}")
    assert path.read_text().split() == [f"{number}" for number in range(1000)]


# ── the server ────────────────────────────────────────────────────────────────────────────────


def garbage(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(b"no HTTP at all\r\n\r\n")
        while connection.recv(1000):
            pass


def test_a_server_logs_warnings_without_being_asked(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        garbage(server)
        mirrors = tmp_path / "state" / "sessions"
        with server.http as http:
            body = {"agent": "steady", "cwd": str(server.workspace)}
            session_id = http.post("/api/sessions", json=body).json()["id"]
            shutil.rmtree(mirrors)
            mirrors.touch()
            http.post(f"/api/sessions/{session_id}/prompt", json={"text": "3 100"})
        assert server.end() == 0
    log = server.errors.read_text()
    assert re.search(r"WARNING uvicorn.error: Invalid HTTP request received\.$", log, re.MULTILINE)
    assert re.search(rf"WARNING the mirror of session {session_id} is out of date: ", log)
    assert "3 100" not in log
    assert server.token not in log
    assert "Traceback" not in log
