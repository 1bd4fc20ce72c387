"""`dragoman bridge` as a process: over sockets, and over pipes as through ssh."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.command import COMMAND, Dragoman
from support.unread_output import fill, unread_fifo

SECONDS = 60


@pytest.mark.parametrize("scheme", ["ws", "http"])
def test_another_dragoman_talks_through_it(dragoman: Dragoman, scheme: str) -> None:
    bridge = subprocess.Popen(
        [COMMAND, "bridge", "demo"],
        env=dragoman.env,
        cwd=dragoman.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert bridge.stdout is not None
        address = bridge.stdout.readline().strip()
        assert address.startswith("ws://127.0.0.1:")
        token = address.partition("#token=")[2]
        done = dragoman("--agent-command", address.replace("ws", scheme, 1), "--no-store", "/plan")
        assert done.code == 0, done.err
        assert "[plan]" in done.out
        assert token not in done.out + done.err
        bridge.send_signal(signal.SIGTERM)
        _, log = bridge.communicate(timeout=SECONDS)
    finally:
        bridge.kill()
        bridge.wait()
    assert bridge.returncode == 0
    assert "GET /acp" in log
    assert token not in log


@pytest.mark.parametrize("debug", [False, True])
def test_it_answers_and_ends_while_nobody_reads_its_log(
    dragoman: Dragoman, tmp_path: Path, debug: bool
) -> None:
    words = ["--debug"] if debug else []
    with unread_fifo(tmp_path / "log") as fifo, open(tmp_path / "log", "wb") as log:
        bridge = subprocess.Popen(
            [COMMAND, "bridge", "demo", *words],
            env=dragoman.env,
            cwd=dragoman.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert bridge.stdout is not None
            place = bridge.stdout.readline().removeprefix("ws://").partition("/")[0]
            fill(fifo)
            for _ in range(3):
                assert httpx.get(f"http://{place}/", timeout=SECONDS, trust_env=False).is_error
            bridge.send_signal(signal.SIGTERM)
            assert bridge.wait(SECONDS) == 0
        finally:
            bridge.kill()
            bridge.communicate()


def test_pipes_are_enough(dragoman: Dragoman) -> None:
    line = f"{COMMAND} bridge demo --stdio"
    done = dragoman("--agent-command", line, "--files", "there", "--no-store", "/plan")
    assert done.code == 0, done.err
    assert "[plan]" in done.out


def test_an_agent_that_dies_behind_the_pipes_is_told(dragoman: Dragoman) -> None:
    inner = shlex.join([sys.executable, "-c", "import sys; sys.exit('no key')"])
    outer = shlex.join([str(COMMAND), "bridge", "--agent-command", inner, "--stdio"])
    done = dragoman("--agent-command", outer, "--no-store", "hi")
    assert done.code == 1
    assert "exited with code 1" in done.err
    assert "no key" in done.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody",), "there is no agent 'nobody'"),
        (("--agent-command", "wss://example.com"), "example.com is remote"),
        (("demo", "--host", "0.0.0.0"), "add --allow-remote to listen there anyway"),
        (("demo", "--max-connections", "0"), "expected a whole number of at least 1"),
    ],
)
def test_what_cannot_be_bridged_is_a_usage_error(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman("bridge", *words)
    assert done.code == 2
    assert complaint in done.err
