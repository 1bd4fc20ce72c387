"""Agents behind proxies, from the settings and from `--proxy`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest
from support.command import COMMAND, Dragoman
from support.proxies import PROGRAM

PROXY = shlex.join([sys.executable, "-I", "-S", str(PROGRAM)])


def test_those_of_the_run_stand_before_those_of_the_settings(dragoman: Dragoman) -> None:
    command, *args = shlex.split(dragoman.agent("telling"))
    own = {"command": sys.executable, "args": ["-IS", str(PROGRAM)], "env": {"SIGNED": "settings"}}
    entry = {"command": command, "args": args, "proxies": [own]}
    dragoman.write_settings({"agent_servers": {"mine": entry}})
    env = {"SIGNED": "run"}
    done = dragoman("--no-store", "--proxy", PROXY, "--proxy", f"{PROXY} noisy", "hi", env=env)
    assert done.code == 0, done.err
    told = [line for line in done.lines if line.startswith("block ")]
    assert [("run" in line, "settings" in line) for line in told] == [
        (False, False),
        (True, False),
        (True, False),
        (False, True),
    ]


def test_a_command_may_stand_behind_a_proxy_and_be_bridged(dragoman: Dragoman) -> None:
    bridge = [str(COMMAND), "bridge", "--stdio", "--agent-command", dragoman.agent("telling")]
    line = shlex.join([*bridge, "--proxy", PROXY])
    done = dragoman("--no-store", "--agent-command", line, "hi", env={"SIGNED": "bridged"})
    assert done.code == 0, done.err
    assert "(bridged)" in done.out


def test_a_relative_proxy_is_found_from_where_it_was_typed(dragoman: Dragoman) -> None:
    (dragoman.workspace / "proxy.py").write_text(PROGRAM.read_text())
    (dragoman.workspace / "deeper").mkdir()
    line = shlex.join([sys.executable, "proxy.py"])
    words = ("--no-store", "--cwd", "deeper", "--proxy", line, "hi")
    done = dragoman(*words, agent="telling", env={"SIGNED": "found"})
    assert done.code == 0, done.err
    assert "(found)" in done.out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "--proxy is empty"),
        ("'", "--proxy cannot be read: no closing quotation"),
        ("https://h/acp", "--proxy: a remote proxy needs a ws:// or wss:// address"),
        ("ws://:1", "--proxy: an address must start with"),
    ],
)
def test_a_proxy_that_cannot_be_meant_is_an_error_of_usage(
    dragoman: Dragoman, line: str, told: str
) -> None:
    done = dragoman("--no-store", "--proxy", line, "hi", agent="telling")
    assert done.code == 2
    assert done.err.startswith(f"dragoman: {told}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/no/such/proxy", "the proxy '/no/such/proxy' could not be started: no such file"),
        (f"{PROXY} agent", f"the proxy {sys.executable!r} does not know proxy/initialize: it is"),
        (f"{PROXY} crashes", f"the proxy {sys.executable!r} exited with code 3"),
    ],
)
def test_a_proxy_that_fails_is_named_in_one_sentence(
    dragoman: Dragoman, line: str, told: str
) -> None:
    done = dragoman("--no-store", "--proxy", line, "hi", agent="telling")
    assert done.code == 1
    assert done.err.count(told) == 1
    assert done.err.startswith("dragoman: the proxy ")
    assert "Traceback" not in done.err


def test_a_proxy_is_not_left_out_in_silence_when_another_process_runs_the_session(
    user: Dragoman,
) -> None:
    words = ("--session", "s", "-o", "simple")
    with user.started(*words, "--", "wait", stdin=subprocess.DEVNULL) as other:
        assert other.stdout is not None
        assert b"started" in other.stdout.readline()
        refused = user(*words, "--proxy", PROXY, "a secret")
        told = "another process is running this session without this proxy: remove --proxy, or wait"
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith(f"dragoman: {told}")
        user("cancel", "s")
        other.wait(120)
    assert "a secret" not in user("sessions", "show", "s").out
    done = user(*words, "--proxy", PROXY, "now", env={"SIGNED": "here"})
    assert done.code == 0, done.err
    assert done.out.endswith(". now(here)\n")


def test_no_value_of_a_proxy_is_printed(dragoman: Dragoman) -> None:
    command, *args = shlex.split(dragoman.agent("telling"))
    secret = {"command": "/no/such", "args": ["CANARY"], "env": {"KEY": "CANARY"}}
    far = {"url": "ws://127.0.0.1:9/acp?key=CANARY#token=CANARY", "headers": {"X": "CANARY"}}
    for proxies in ([secret], [far], [secret, far]):
        entry = {"command": command, "args": args, "proxies": proxies}
        dragoman.write_settings({"agent_servers": {"mine": entry}})
        for words in (("hi",), ("--debug", "-j", "hi"), ("agents", "list", "--json")):
            done = dragoman(*words)
            assert "CANARY" not in done.out + done.err


def test_what_is_wrong_in_the_settings_is_one_line(dragoman: Dragoman) -> None:
    text = json.dumps({"agent_servers": {"mine": {"command": "a", "proxies": ["b"]}}})
    file = dragoman.write_settings(text)
    done = dragoman("hi")
    expected = "agent_servers.mine.proxies[0]: expected an object, not a string"
    assert (done.code, done.err) == (2, f"dragoman: {file}: {expected}\n")
