"""What a run gets from an agent that stays is what it would get from one of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from support.command import SECONDS, Dragoman, refused
from support.staying import Staying, staying, until

from dragoman.cli.warm.start_terms import environment, surroundings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks around in /proc")

MOODY = ("-a", "moody", "--session", "s", "-o", "simple")


@pytest.fixture
def stays(user: Dragoman) -> Generator[Staying]:
    words = shlex.split(user.agent("moody", "moody.py"))
    user.write_settings({"agent_servers": {"moody": {"command": words[0], "args": words[1:]}}})
    with staying(user) as it:
        yield it


def said(stays: Staying, *words: str) -> tuple[str, int]:
    """The answer, and the process that keeps the agent."""
    done = stays(*MOODY, *words)
    assert done.code == 0, done
    return done.out.strip(), stays.only()["pid"]


# ── mode, model, options ──────────────────────────────────────────────────────────────────────


def test_a_run_does_not_inherit_the_mode_of_the_one_before(stays: Staying) -> None:
    assert said(stays, "--mode", "ask", "hi")[0] == "ask small"
    assert said(stays, "hi")[0] == "code small"
    assert said(stays, "--model", "large", "hi")[0] == "code large"
    assert said(stays, "--set", "brain=small", "hi")[0] == "code small"
    assert said(stays, "hi")[0] == "code small"


def test_the_same_choice_again_finds_the_agent(stays: Staying) -> None:
    chosen = ("--mode", "ask", "--model", "large")
    first, second = said(stays, *chosen, "hi"), said(stays, *chosen, "hi")
    assert first == second == ("ask large", first[1])
    plain = said(stays, "hi")
    assert plain[0] == "code small"
    assert said(stays, "--mode", "ask", "hi") == ("ask small", plain[1])


def test_a_mode_that_the_agent_took_by_itself_ends_with_it(stays: Staying) -> None:
    assert said(stays, "change")[0] == "changed"
    assert said(stays, "hi")[0] == "code small"


def test_an_unknown_mode_is_refused_as_ever_and_changes_nothing(stays: Staying) -> None:
    _, pid = said(stays, "hi")
    refused(stays(*MOODY, "--mode", "deep", "hi"), "deep", "code", "ask")
    assert said(stays, "hi") == ("code small", pid)


# ── what was allowed ──────────────────────────────────────────────────────────────────────────


async def test_an_agent_that_was_allowed_something_for_always_does_not_stay(
    stays: Staying,
) -> None:
    """It may not ask the next time, and the next run did not allow it."""
    said(stays, "hi")
    assert (await stays.answered("ask", "never")).endswith("chosen=never")
    assert stays.only()["state"] == "warm"
    assert (await stays.answered("ask", "always")).endswith("chosen=always")
    stays.wait_until_gone()


def test_commands_end_with_the_run_that_allowed_them(stays: Staying) -> None:
    for _ in range(2):  # of the run that started the agent, and of one that found it
        assert said(stays, "--exec", "leave a command")[0] == "it runs"
        until(lambda: not _commands(stays), lambda: f"still there: {_commands(stays)}")


def _commands(stays: Staying) -> list[int]:
    lines = {pid: Path(f"/proc/{pid}/cmdline") for pid in stays.processes()}
    return [pid for pid, line in lines.items() if b"sleep\x00600" in _read(line)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has ended


# ── the process ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "by",
    [
        ("unshare", "--user", "--map-root-user", "--net"),
        ("unshare", "--user", "--map-root-user", "--mount"),
        ("unshare", "--user"),
        ("sh", "-c", 'umask 0111; exec "$0" "$@"'),
        ("sh", "-c", 'ulimit -S -f 1000000; exec "$0" "$@"'),
        ("nice", "-n", "1"),
        ("env", "-C", "/"),
        ("setpriv", "--no-new-privs"),
    ],
    ids=lambda by: " ".join(by[:4]),
)
def test_a_process_elsewhere_is_not_where_we_are(by: tuple[str, ...]) -> None:
    with _sleeping() as same, _sleeping(*by) as other:
        here = surroundings(same.pid)
        assert here == surroundings(same.pid)
        assert here != surroundings(other.pid)


def test_two_processes_of_one_shell_are_in_the_same_place() -> None:
    with _sleeping() as one, _sleeping("env", "X=1") as two:
        assert surroundings(one.pid) == surroundings(two.pid)


def _sleeping(*by: str) -> subprocess.Popen[bytes]:
    """A process that was started by this command; it waits for its input, which ends with it."""
    words = [*by, "sh", "-c", "echo ready; read line"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        process.wait(SECONDS)
        pytest.skip(f"{by[0]} does not work here")
    return process


def test_what_a_variable_holds_counts_but_not_the_terminal() -> None:
    assert environment({"A": "1", "TERM": "xterm", "TMUX_PANE": "%1"}) == environment({"A": "1"})
    assert environment({"A": "1"}) != environment({"A": "2"})
    assert environment({"A": os.fsdecode(b"\xff")}) != environment({"A": "?"})


def test_another_umask_gets_another_agent(stays: Staying, tmp_path: Path) -> None:
    _, pid = said(stays, "hi")
    before = os.umask(0o022)
    try:
        with stays.user.started(*MOODY, "hi") as run:
            assert run.communicate(timeout=SECONDS)[0] == b"code small\n"
        assert stays.only()["pid"] == pid
        os.umask(0o027)
        with stays.user.started(*MOODY, "hi") as run:
            assert run.communicate(timeout=SECONDS)[0] == b"code small\n"
        assert stays.only()["pid"] != pid
    finally:
        os.umask(before)
