"""How what stays of a run ends, who may end it, and what it must never take along."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.command import SECONDS, Dragoman, refused
from support.staying import Staying, staying, until

from dragoman.hub.cluster import commands as c
from dragoman.store.records import Owner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks around in /proc")

MEMO = ("-a", "memo", "--session", "s", "-o", "simple")
WAIT = (*MEMO, "--", "wait")


@pytest.fixture
def stays(user: Dragoman) -> Generator[Staying]:
    with staying(user) as it:
        yield it


def warm(stays: Staying) -> dict[str, Any]:
    assert stays(*MEMO, "one").code == 0
    return stays.only()


def ended_turns(stays: Staying) -> list[str]:
    shown = json.loads(stays("sessions", "show", "s", "--json").out)
    return [turn["status"] for turn in shown["turns"]]


# ── the run that found it ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_turn_ends_with_the_run_that_asked_for_it(stays: Staying, number: signal.Signals) -> None:
    """As if it had started the agent itself. The agent is there for the next one."""
    before = warm(stays)
    with stays.user.started(*WAIT) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"started\n"
        run.send_signal(number)
        assert run.wait(SECONDS) == -number
    until(lambda: ended_turns(stays)[-1] == "cancelled", lambda: str(ended_turns(stays)))
    assert stays.only()["pid"] == before["pid"]
    assert stays(*MEMO, "two").code == 0


def test_a_prompt_that_waits_is_dropped_with_its_run(stays: Staying) -> None:
    warm(stays)
    with stays.user.started(*WAIT) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"started\n"
        with stays.user.started(*MEMO, "never sent", stdin=subprocess.DEVNULL) as second:
            assert second.stderr is not None
            assert b"queued" in second.stderr.readline()
            second.kill()
            second.wait(SECONDS)
        until(lambda: "never sent" not in _queue(stays), lambda: _queue(stays))
        first.send_signal(signal.SIGINT)
        assert first.wait(SECONDS) == 130
    assert "never sent" not in stays("sessions", "show", "s", "--json").out


def _queue(stays: Staying) -> str:
    return json.dumps(json.loads(stays("sessions", "show", "s", "--json").out).get("queue", []))


def test_a_run_that_does_not_wait_is_not_cut_short(stays: Staying) -> None:
    before = warm(stays)
    assert stays("-a", "memo", "--session", "s", "--no-wait", "work").code == 0
    (stays.user.workspace / "go").touch()
    done = stays("wait", "s")
    assert (done.code, done.out) == (0, "working\nworked\n")
    assert stays.only()["pid"] == before["pid"]


async def test_a_turn_of_a_run_on_another_machine_is_left_alone(stays: Staying) -> None:
    """Whether that has ended cannot be seen here."""
    warm(stays)
    elsewhere = Owner(id="x", machine="another", pid=1, started="never")
    assert await stays.told(c.Prompt("two", sender=elsewhere)) == "2. two"
    assert ended_turns(stays) == ["completed", "completed"]


def test_a_run_says_how_long_the_agent_stays_that_it_found(stays: Staying) -> None:
    before = warm(stays)
    assert stays(*MEMO, "--keep-warm", "1h", "two").code == 0
    after = stays.only()
    assert after["pid"] == before["pid"]
    assert after["endsAt"] > before["endsAt"]
    [note] = stays.notes()
    assert json.loads(note.read_text())["seconds"] == 3600
    done = stays(*MEMO, "--keep-warm", "0", "three")
    assert (done.code, done.out) == (0, "3. three\n")
    assert stays.processes() == []


# ── one that is stopped ───────────────────────────────────────────────────────────────────────


def test_one_that_is_paused_is_woken_by_the_next_run(stays: Staying) -> None:
    pid = warm(stays)["pid"]
    os.kill(pid, signal.SIGSTOP)
    done = stays(*MEMO, "two")
    assert (done.code, done.out) == (0, "2. two\n")
    assert stays.only()["pid"] == pid


@pytest.mark.parametrize("words", [(), ("--force",)])
def test_one_that_is_paused_is_stopped(stays: Staying, words: tuple[str, ...]) -> None:
    os.kill(warm(stays)["pid"], signal.SIGSTOP)
    done = stays("stop", *words)
    assert (done.code, done.out.split()[0], done.err) == (0, "stopped", "")
    assert stays.processes() == []


# ── whom `stop` may end ───────────────────────────────────────────────────────────────────────


@contextmanager
def bystander() -> Generator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with it."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(SECONDS)


def changed_note(stays: Staying, **owner: object) -> Path:
    """The note of the process that stays, with another owner."""
    [note] = stays.notes()
    fields = json.loads(note.read_text())
    fields["owner"] |= owner
    note.write_text(json.dumps(fields))
    return note


@pytest.mark.parametrize("words", [(), ("--force",), ("s",), ("s", "--force")])
def test_no_process_of_the_same_number_is_stopped(stays: Staying, words: tuple[str, ...]) -> None:
    """That of another machine, whose notes are in the same directory, or one that came later."""
    warm(stays)
    [note] = stays.notes()
    machine = json.loads(note.read_text())["owner"]["machine"]
    with bystander() as other:
        changed_note(stays, machine="another", pid=other.pid)
        assert "stopped" not in stays("stop", *words).out
        assert note.exists()  # who can see the process may remove it
        changed_note(stays, machine=machine, started="another boot-1")
        assert "stopped" not in stays("stop", *words).out
        assert not note.exists()


def test_a_note_of_another_machine_is_not_believed(stays: Staying) -> None:
    """The session is then one that another process runs."""
    pid = warm(stays)["pid"]
    changed_note(stays, machine="another")
    done = stays(*MEMO, "two")
    assert (done.code, done.out) == (0, "2. two\n")
    assert stays.only()["pid"] == pid
    refused(stays(*MEMO, "--add-dir", "/", "three"), "another process is running", "--add-dir")


def test_a_note_of_another_store_is_not_ours(stays: Staying) -> None:
    warm(stays)
    [note] = stays.notes()
    fields = json.loads(note.read_text())
    note.write_text(json.dumps(fields | {"store": "another"}))
    assert stays("stop").out == "no agent is kept warm\n"
    assert note.exists()


# ── a program that calls `main` ───────────────────────────────────────────────────────────────

_CALLER = """
import os, signal
from dragoman.cli.main import main
me, handler = os.getpid(), signal.getsignal(signal.SIGINT)
code = main(["-a", "memo", "--session", "s", "-o", "simple", "one"])
assert os.getpid() == me and signal.getsignal(signal.SIGINT) is handler
print("code", code, "after it")
"""


def test_a_program_that_calls_main_goes_on_after_it(stays: Staying) -> None:
    """It is neither parted in two, nor left behind, nor ended."""
    done = subprocess.run(
        [sys.executable, "-c", _CALLER],
        env=stays.user.env,
        cwd=stays.user.workspace,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1. one\ncode 0 after it\n"), done.stderr
    assert stays.processes() == []
    assert stays.notes() == []
