"""A PostgreSQL server for tests: private, on a Unix socket, started when first asked for.

It runs as an ordinary user, since it refuses to run as root, and ends with this process.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
# Tests crash it, never the machine: what it has handed to the kernel is not lost.
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",
    "full_page_writes": "off",
}
_TABLES = """
SELECT tablename FROM pg_tables WHERE schemaname = 'dragoman' AND tablename NOT IN ('steps', 'head')
"""
# Should the tests be killed, nobody else would stop it.
_ENDS_WITH_US = ["setpriv", "--pdeathsig", "INT", "--"] if shutil.which("setpriv") else []


class Server:
    """One cluster in a folder of its own; `stop` and `start` are what an operator does to it."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._account = _ordinary_user()
        self._process: subprocess.Popen[Any] | None = None

    def set_up(self) -> None:
        program = str(self._programs / "initdb")
        command = [program, "-D", "data", "-U", "dragoman", "-A", "trust", "-E", "UTF8"]
        self._run([*command, "--locale=C", "--no-sync"])

    def copy(self, other: Server) -> None:
        """Be set up as another, which was never started."""
        self._run(["cp", "-R", str(other._folder / "data"), "data"])

    def _run(self, command: list[str]) -> None:
        if "user" in self._account:
            os.chown(self._folder, self._account["user"], self._account["group"])
        subprocess.run(
            command,
            cwd=self._folder,
            check=True,
            capture_output=True,
            timeout=120,
            **self._account,
        )

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://dragoman@/{database}?host={quote(str(self._folder), safe='')}"

    @property
    def socket(self) -> str:
        return str(self._folder / ".s.PGSQL.5432")

    def start(self) -> None:
        options = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        where = ["-D", str(self._folder / "data"), "-k", str(self._folder)]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*_ENDS_WITH_US, str(self._programs / "postgres"), *where, *options],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                **self._account,
            )
        self._wait_until_ready(time.monotonic() + 60)

    def _wait_until_ready(self, deadline: float) -> None:
        while True:
            try:
                psycopg.connect(self.address()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every connection at once and in order, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ordinary_user() -> dict[str, Any]:
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise LookupError("there is no ordinary user to run PostgreSQL as")


def _programs() -> Path | None:
    found = [path for place in _PLACES for path in Path("/").glob(place[1:])]
    if on_path := shutil.which("postgres"):
        found.append(Path(os.path.realpath(on_path)).parent)
    found = [path for path in found if (path / "initdb").exists()]
    return found[-1] if found else None


def _in_new_folder(programs: Path) -> Server:
    return Server(programs, Path(tempfile.mkdtemp(prefix="dragoman-pg-", dir="/tmp")))


@cache
def _empty(programs: Path) -> Server:
    """What others are copies of: to set one up takes longer than most tests."""
    server = _in_new_folder(programs)
    atexit.register(server.remove)
    server.set_up()
    return server


def _made() -> Server | str:
    """A server that runs, or why there is none."""
    programs = _programs()
    if programs is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    server = _in_new_folder(programs)
    try:
        server.copy(_empty(programs))
        server.start()
    except (OSError, LookupError, subprocess.SubprocessError, psycopg.Error) as error:
        server.remove()
        return f"PostgreSQL could not be started: {error}"
    return server


@cache
def _shared() -> Server | str:
    """The server of this process."""
    server = _made()
    if isinstance(server, Server):
        atexit.register(server.remove)
    return server


def postgres() -> Server:
    """The test is skipped where there can be none."""
    return _or_skip(_shared())


def own_server() -> Server:
    """One that nobody else uses, to be stopped and started; `remove` it."""
    return _or_skip(_made())


def _or_skip(server: Server | str) -> Server:
    if isinstance(server, str):
        pytest.skip(server)
    return server


def bare_database() -> str:
    """The address of a database with nothing of ours in it."""
    address = postgres().address()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS dragoman CASCADE")
    return address


def empty_database() -> str:
    """The address of a database whose tables are empty, if it has them: making them takes time."""
    address = postgres().address()
    with psycopg.connect(address, autocommit=True) as connection:
        tables = connection.execute(_TABLES).fetchall()
        for (name,) in tables:
            connection.execute(sql.SQL("DELETE FROM dragoman.{}").format(sql.Identifier(name)))
        if tables:
            connection.execute("UPDATE dragoman.head SET position = 0")
    return address
