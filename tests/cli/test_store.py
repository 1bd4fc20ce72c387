"""`--store`, `$DRAGOMAN_STORE` and `dragoman store`: recorded in PostgreSQL, and moved."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from store.postgres.stores import opened
from support.command import Dragoman
from support.database_role import least_role
from support.postgres import bare_database, empty_database

from dragoman.store.records import HostRecord

SECRET = "not-for-you"


def test_a_turn_is_recorded_where_the_option_or_the_variable_says(user: Dragoman) -> None:
    address = empty_database()
    env, words = {"DRAGOMAN_STORE": address}, ("-a", "memo", "--session", "one")
    assert user(*words, "--store", address, "hello").code == 0
    assert user(*words, "again", env=env).code == 0
    listed = user("sessions", "list", "--json", env=env)
    assert '"one"' in listed.out
    assert listed.out == user("sessions", "--store", address, "list", "--json").out
    assert listed.out == user("sessions", "list", "--json", "--store", address).out
    assert "hello" in user("sessions", "search", "hello", env=env).out
    assert not (user.state / "dragoman.db").exists()


def test_a_store_is_checked_and_copied(user: Dragoman, tmp_path: Path) -> None:
    address = empty_database()
    assert user("-a", "memo", "hello").code == 0
    copied = user("store", "copy", address)
    assert copied.code == 0
    assert copied.out.startswith("copied 1 session, ")
    assert "copied 0 sessions" in user("store", "copy", address).out
    checked = user("store", "check", env={"DRAGOMAN_STORE": address})
    assert checked.lines[0] == "postgresql://dragoman@/postgres"
    assert checked.lines[1].startswith("1 session, ")
    assert checked.lines[2] == "the store is intact"
    back = user("store", "copy", str(tmp_path / "back"), "--store", address)
    assert back.code == 0
    here = user("store", "check", env={"DRAGOMAN_HOME": str(tmp_path / "back")})
    assert here.lines[1:] == checked.lines[1:]


def test_the_owner_makes_the_tables_by_listing_sessions_as_the_guide_says(user: Dragoman) -> None:
    owner = bare_database()
    assert "this database contains no store" in user("store", "check", "--store", owner).err
    assert user("sessions", "list", "--store", owner).code == 0
    with least_role(owner) as host:
        assert user("-a", "memo", "hello", "--store", host).code == 0
        assert user("store", "check", "--store", host).lines[-1] == "the store is intact"


def test_old_sessions_are_pruned(user: Dragoman) -> None:
    assert user("-a", "memo", "--session", "old", "hello").code == 0
    prune = ("store", "prune", "--older-than")
    assert user(*prune, "1h").out == "pruned 0 sessions, 0.0 MB\n"
    foreseen = user(*prune, "0.0000001h", "--project", ".", "--dry-run")
    assert foreseen.lines[-1] == "would prune 1 session, 0.0 MB"
    assert "hello" in foreseen.lines[0]
    assert user(*prune, "0.0000001h", "--project", "/elsewhere").out.startswith("pruned 0 ")
    assert user(*prune, "0.0000001h", "-a", "another").out.startswith("pruned 0 ")
    assert user(*prune, "0.0000001h").out == "pruned 1 session, 0.0 MB\n"
    assert user("sessions", "list", "--json").out.strip() == "[]"
    for wrong in ("0d", "90", "x", "-3d"):
        refused = user(*prune[:2], f"--older-than={wrong}")
        assert (refused.code, "expected a time such as 90d" in refused.err) == (2, True)


def test_the_host_of_a_session_is_listed_where_several_machines_look(
    user: Dragoman, tmp_path: Path
) -> None:
    address = empty_database()
    env = {"DRAGOMAN_STORE": address}
    assert user("-a", "memo", "hello", env=env).code == 0
    home = (user.state / "home-id").read_text()
    assert json.loads(user("sessions", "list", "--json", env=env).out)[0]["host"] is None
    asyncio.run(announced(address, tmp_path, HostRecord(id="h", home=home, name="build-1")))
    header, line = user("sessions", "list", env=env).lines
    assert "AGENT  HOST     FOLDER" in header
    assert "memo   build-1  " in line
    assert json.loads(user("sessions", "list", "--json", env=env).out)[0]["host"] == "build-1"
    assert user("-a", "memo", "hello").code == 0
    assert "HOST" not in user("sessions", "list").out


async def announced(address: str, directory: Path, host: HostRecord) -> None:
    async with opened(address, directory) as store:
        await store.announce(host, seconds=60)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1/x", "postgresql://me@127.0.0.1:1/x: the database"),
        (f"postgresql://me:{SECRET}%zz@h/x", "is not valid"),
        (f"postgress://me:{SECRET}@h/x", "expected postgresql://user@host:port/database"),
    ],
)
def test_what_cannot_be_opened_is_one_line_without_the_password(
    dragoman: Dragoman, address: str, sentence: str
) -> None:
    for words in (["sessions", "list"], ["policy", "list"], ["hello"]):
        done = dragoman(*words, env={"DRAGOMAN_STORE": address})
        assert done.code == 1
        assert sentence in done.err
        assert done.err.count("\n") == 1
        assert SECRET not in done.out + done.err


def test_agents_do_not_inherit_the_address(dragoman: Dragoman) -> None:
    address = empty_database()
    # Of what an agent prints only so much is shown: a line for each variable, ours last.
    script = (
        "import os, sys; told = [f'{name}={os.environ[name]}' for name in os.environ]; "
        "sys.stderr.write(chr(10).join(sorted(told, key=lambda line: 'DRAGOMAN' in line))); "
        "sys.exit(3)"
    )
    words = f'{sys.executable} -c "{script}"'
    done = dragoman(
        "--agent-command", words, "hello", env={"DRAGOMAN_STORE": f"{address}&password={SECRET}"}
    )
    assert "DRAGOMAN_HOME" in done.err
    assert "DRAGOMAN_STORE" not in done.err
    assert SECRET not in done.err


def test_without_the_driver_it_is_said_how_to_get_it(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('no libpq')")
    env = {"DRAGOMAN_STORE": "postgresql://h/x", "PYTHONPATH": str(tmp_path)}
    for words in (["sessions", "list"], ["store", "check"], ["policy", "list"]):
        done = dragoman(*words, env=env)
        assert done.code == 1
        assert "pip install 'dragoman[postgres]'" in done.err
