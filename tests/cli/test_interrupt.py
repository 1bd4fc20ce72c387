"""Ctrl-C, a real signal to the real process; and `cancel`, which comes from another one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import command
from support.command import Dragoman

SECONDS = 60


@contextmanager
def in_a_turn(dragoman: Dragoman, agent: str, *words: str) -> Generator[subprocess.Popen[bytes]]:
    """Started, and the agent has begun to answer."""
    with dragoman.started(*words, "go", agent=agent, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b"started" in line:
                break
        yield process


def descendants(pid: int) -> list[int]:
    """The processes below this one, however deep."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    ahead = [pid]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def gone_within(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_cancels_the_turn_and_is_130(dragoman: Dragoman) -> None:
    with in_a_turn(dragoman, "cancellable") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert out == b"stopped in order\n"
    assert err == b"dragoman: cancelling; Ctrl-C again ends the agent at once\n"


def test_another_process_stops_one_tool_call_and_the_turn_goes_on(dragoman: Dragoman) -> None:
    words = ("--session", "s", "--protocol", "2")
    with in_a_turn(dragoman, "stoppable", *words) as process:
        unknown = dragoman("cancel", "s", "--tool-call", "x")
        assert (unknown.code, unknown.out) == (1, "")
        assert unknown.err == "dragoman: no tool call x in this session\n"
        stopped = dragoman("cancel", "s", "--tool-call", "c")
        assert (stopped.code, stopped.out) == (0, "cancelled\n")
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert out.endswith(b"went on\n")
    late = dragoman("cancel", "s", "--tool-call", "c")
    assert (late.code, late.out) == (0, "c is not running\n")


def test_the_agent_is_told_with_session_cancel(dragoman: Dragoman) -> None:
    with in_a_turn(dragoman, "cancellable", "-j") as process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=SECONDS)
    frames = [json.loads(line) for line in out.split(b"\n")[:-1]]
    methods = [frame.get("method") for frame in frames]
    assert methods.count("session/cancel") == 1
    assert frames[-1]["result"]["stopReason"] == "cancelled"
    assert process.returncode == 130


_PATIENT = f"""#!{sys.executable}
import sys
from dragoman.cli.main import main
from dragoman.transport.stdio import StdioTransport
StdioTransport.aclose.__kwdefaults__.update(exit_within=3600.0, term_within=3600.0)
sys.exit(main())
"""


def test_a_second_ctrl_c_ends_an_agent_that_will_not_stop_at_once(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ignores TERM and stays when its input ends: in order, this would take two hours.
    program = tmp_path / "dragoman"
    program.write_text(_PATIENT)
    program.chmod(0o755)
    monkeypatch.setattr(command, "COMMAND", program)
    with in_a_turn(dragoman, "stubborn") as process:
        below = descendants(process.pid)
        assert below
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"cancelling" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert gone_within(below, SECONDS)
        assert process.stderr.read() == b""


def test_ctrl_c_while_the_agent_starts_is_130_too(dragoman: Dragoman) -> None:
    with dragoman.started("-j", "x", agent="deaf", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert b"selected_agent" in process.stdout.readline()
        assert b"initialize" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 130
        assert err == b""


def test_ctrl_c_while_the_prompt_is_read_is_130(dragoman: Dragoman) -> None:
    reader, writer = os.pipe()
    with dragoman.started(agent="quiet", stdin=reader) as process:
        os.close(reader)
        _until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    os.close(writer)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.15])
def test_ctrl_c_at_any_moment_leaves_no_traceback(dragoman: Dragoman, delay: float) -> None:
    with dragoman.started("x", agent="cancellable", stdin=subprocess.DEVNULL) as process:
        _until_python_runs(process.pid)
        time.sleep(delay)  # wherever that is: every moment has to do
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert b"Traceback" not in err


def _until_it_reads(pid: int) -> None:
    """Until the main thread sleeps in read(0, …)."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        call = Path(f"/proc/{pid}/syscall").read_text().split()
        if call[:2] == ["0", "0x0"]:
            return
        time.sleep(0.01)
    raise AssertionError("it does not read its input")


def _until_python_runs(pid: int) -> None:
    """Until our own modules are being imported: before that, an interrupt is Python's affair."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if "/dragoman" in Path(f"/proc/{pid}/maps").read_text() or descendants(pid):
            return
        time.sleep(0.002)


@pytest.mark.parametrize(
    "module", ["argparse", "dragoman.cli.commands.run", "dragoman.client.client"]
)
def test_ctrl_c_while_modules_are_imported_is_no_traceback(
    dragoman: Dragoman, tmp_path: Path, module: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    done = dragoman("x", agent="quiet", env={"PYTHONPATH": str(tmp_path)})
    assert (done.code, done.out, done.err) == (130, "", "")
