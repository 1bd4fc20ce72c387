"""Where a session that goes on works: in its own folders, and in what is added to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Done, Dragoman


def made(user: Dragoman, *words: str) -> str:
    """A new session in the workspace; its id."""
    saved = user.home / "id"
    done = user("--save-session", str(saved), "-o", "simple", *words, "one")
    assert (done.code, done.err) == (0, "")
    return saved.read_text().strip()


CONTINUED = ("session/load", "session/resume")


def asked(done: Done, *methods: str) -> dict[str, Any]:
    """The params of the only request of those methods in `-o jsonl`."""
    frames = [json.loads(line) for line in done.out.splitlines()]
    [found] = [frame["params"] for frame in frames if frame.get("method") in methods]
    return found


def refused(done: Done, code: int, *words: str) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    for word in words:
        assert word in done.err


@pytest.fixture
def extra(user: Dragoman) -> Path:
    folder = user.home / "extra"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("option", ["--resume", "--fork", "--session"])
def test_an_id_that_is_empty_begins_no_session(user: Dragoman, option: str) -> None:
    refused(user(option, "", "hello"), 2, option, "the name must not be empty")
    assert user("sessions", "list").out == "no sessions\n"


@pytest.mark.parametrize(
    ("option", "methods"), [("--resume", CONTINUED), ("--fork", ("session/fork",))]
)
@pytest.mark.parametrize("known_here", [True, False])
def test_a_folder_is_added_to_a_session_that_goes_on(
    user: Dragoman, extra: Path, option: str, methods: tuple[str, ...], known_here: bool
) -> None:
    session = made(user) if known_here else made(user, "--no-store")
    done = user(option, session, "--add-dir", str(extra), "-o", "jsonl", "two")
    assert done.code == 0
    assert asked(done, *methods)["additionalDirectories"] == [str(extra)]


def test_what_was_added_stays_and_is_there_once(user: Dragoman, extra: Path) -> None:
    more = user.home / "more"
    more.mkdir()
    session = made(user, "--add-dir", str(extra))
    both = ("--add-dir", str(more), "--add-dir", str(extra))
    assert user("--resume", session, *both, "-o", "simple", "two").code == 0
    done = user("--resume", session, "-o", "jsonl", "three")
    assert asked(done, *CONTINUED)["additionalDirectories"] == [str(extra), str(more)]


def test_a_folder_that_a_failed_start_brought_is_not_kept(user: Dragoman, extra: Path) -> None:
    saved = user.home / "id"
    user("-a", "lethe", "--save-session", str(saved), "one")
    session = saved.read_text().strip()
    assert user("--resume", session, "--add-dir", str(extra), "two").code == 4
    done = user("--resume", session, "--on-reset", "new", "-o", "jsonl", "three")
    assert not asked(done, "session/new").get("additionalDirectories")


def test_another_folder_than_the_session_s_own_is_refused(user: Dragoman, extra: Path) -> None:
    session = made(user)
    for option in ("--resume", "--fork"):
        done = user("--cwd", str(extra), "--write", option, session, "two")
        refused(done, 2, f"session {session} belongs to {user.workspace}, not to --cwd {extra}")
    link = user.home / "link"
    link.symlink_to(user.workspace)
    done = user("--cwd", str(link), "--resume", session, "-o", "simple", "two")
    assert (done.code, done.out) == (0, "2. two\n")


def test_mentions_are_of_the_session_s_folder(user: Dragoman, extra: Path) -> None:
    session = made(user)
    (user.workspace / "here.md").touch()
    (extra / "there.md").touch()
    words = ("--resume", session, "-o", "jsonl", "@here.md @there.md")
    done = user(*words, cwd=extra)
    links = [part for part in asked(done, "session/prompt")["prompt"] if "uri" in part]
    assert [link["uri"] for link in links] == [
        (user.workspace / "here.md").as_uri(),
        (user.workspace / "there.md").as_uri(),
    ]
    assert done.err == "dragoman: @there.md: no such file; sent as a link anyway\n"


@pytest.mark.parametrize("place", ["no/such/folder", "."])
def test_where_an_id_cannot_be_written_no_session_is_made(user: Dragoman, place: str) -> None:
    path = user.home / place
    refused(user("--save-session", str(path), "hello"), 2, f"--save-session {path}: ")
    assert user("sessions", "list").out == "no sessions\n"


# ── imported ──────────────────────────────────────────────────────────────────────────────────


def imported(user: Dragoman, cwd: str) -> str:
    """A session whose file claims that folder, and another one; its id."""
    header, _, events = user("sessions", "export", made(user)).out.partition("\n")
    claimed = json.loads(header)
    claimed["session"] |= {"cwd": cwd, "additionalDirectories": ["/etc"]}
    assert user("sessions", "delete", "--local", claimed["session"]["id"]).code == 0
    done = user("sessions", "import", "-", stdin=f"{json.dumps(claimed)}\n{events}")
    assert (done.code, done.err) == (0, "")
    return done.out.strip()


@pytest.mark.parametrize("option", ["--resume", "--fork"])
def test_an_imported_session_runs_in_no_folder_that_nobody_named(
    user: Dragoman, option: str
) -> None:
    session = imported(user, "/")
    refused(user(option, session, "--write", "two"), 2, "imported from /", "--cwd DIR")
    refused(user("sessions", "fork", session), 2, "imported from /", "--cwd DIR")
    assert "one" in user("sessions", "show", session).out
    assert "(imported)" in user("sessions", "list").out


def test_nothing_that_an_imported_file_says_of_programs_drives_the_terminal(
    user: Dragoman,
) -> None:
    header, *events = user("sessions", "export", made(user)).out.splitlines()
    wild = "\x1b]0;title\x07\n"
    program = {"id": wild, "argv": [wild], "cwd": wild, "parents": [wild], "signal": wild}
    last = json.loads(events[-1])
    ran = {"type": "programs_ran", "seq": last["seq"] + 1, "at": last["at"], "programs": [program]}
    assert user("sessions", "delete", "--local", json.loads(header)["session"]["id"]).code == 0
    lines = "\n".join([header, *events, json.dumps(ran)])
    session = user("sessions", "import", "-", stdin=lines).out.strip()
    shown = user("sessions", "show", session, "--programs").out
    assert shown.count("\u241b]0;title\u2407\u240a") == 4
    assert shown.splitlines() == [shown.rstrip("\n")]
    assert "\x1b" not in shown


def test_an_imported_session_works_in_the_folder_it_was_given(user: Dragoman, extra: Path) -> None:
    session = imported(user, "/")
    done = user("--resume", session, "--cwd", str(extra), "-o", "jsonl", "two")
    given = asked(done, *CONTINUED)
    assert (given["cwd"], given.get("additionalDirectories")) == (str(extra), None)
    # From then on it is its own.
    again = asked(user("--resume", session, "-o", "jsonl", "three"), *CONTINUED)
    assert again["cwd"] == str(extra)
    refused(user("--resume", session, "--cwd", "/", "four"), 2, f"belongs to {extra}")


def test_a_folder_is_given_with_the_import(user: Dragoman, extra: Path) -> None:
    file = user.home / "session.jsonl"
    mine = made(user)
    file.write_text(user("sessions", "export", mine).out)
    assert user("sessions", "delete", "--local", mine).code == 0
    session = user("sessions", "import", str(file), "--cwd", str(extra)).out.strip()
    done = user("--resume", session, "-o", "jsonl", "two")
    assert asked(done, *CONTINUED)["cwd"] == str(extra)
    missing = str(extra / "missing")
    refused(user("sessions", "import", str(file), "--cwd", missing), 2, "no such directory")
