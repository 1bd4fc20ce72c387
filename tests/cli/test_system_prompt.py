"""System prompts on the command line: `--system-prompt`, from a file, and from the settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command import Dragoman


@pytest.fixture
def told(dragoman: Dragoman) -> Dragoman:
    """The agent `told` says what it was told, and remembers its sessions; `deaf` accepts none."""
    _write_settings(dragoman)
    return dragoman


def _write_settings(dragoman: Dragoman, more: dict[str, Any] | None = None, **own: Any) -> None:
    servers: dict[str, dict[str, Any]] = {}
    for name, it in (("told", "instructed"), ("deaf", "forgetful")):
        command, *args = shlex.split(dragoman.agent(it, "memory.py"))
        servers[name] = {"command": command, "args": args, **own.get(name, {})}
    dragoman.write_settings({"agent_servers": servers} | (more or {}))


def test_it_reaches_the_agent_and_stays_with_the_session(told: Dragoman, tmp_path: Path) -> None:
    done = told("--system-prompt", "Be brief.", "--session", "s", "-o", "simple", "x")
    assert (done.code, done.out) == (0, "append: Be brief.\n")
    assert told("--session", "s", "-o", "simple", "x").out == "append: Be brief.\n"
    assert "system prompt: Be brief." in told("sessions", "show", "s").out
    file = tmp_path / "prompt.md"
    file.write_text("From a file.\n")
    done = told("--system-prompt-file", str(file), "--session", "s", "-o", "simple", "x")
    assert done.out == "append: From a file.\n"
    assert told("--session", "s", "-o", "simple", "x").out == "append: From a file.\n"


def test_an_agent_that_accepts_none_is_not_prompted(told: Dragoman) -> None:
    done = told("-a", "deaf", "--system-prompt", "Be brief.", "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == "dragoman: deaf does not accept a system prompt\n"
    done = told("--system-prompt", "x", "--system-prompt-mode", "override", "x")
    assert done.code == 2
    assert done.err.startswith("dragoman: told does not accept a system prompt in the place of ")
    assert told("sessions", "list", "--json").out == "[]\n"


def test_what_cannot_be_one_is_said_before_an_agent_is_started(
    told: Dragoman, tmp_path: Path
) -> None:
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_text("x" * (64 * 1024 + 1))
    binary.write_bytes(b"\xff\xfe")
    for words, sentence in (
        (["--system-prompt", " "], "--system-prompt: the system prompt is empty"),
        (["--system-prompt-file", str(large)], "has more than 64 KiB"),
        (["--system-prompt-file", str(binary)], "it is not UTF-8 text"),
        (["--system-prompt-file", "missing"], "missing: no such file or directory"),
        (["--system-prompt-mode", "append"], "needs --system-prompt or --system-prompt-file"),
        (["--system-prompt", "a", "--system-prompt-file", "b"], "not allowed with"),
    ):
        done = told("-a", "told", *words, "x")
        assert (done.code, done.out) == (2, ""), words
        assert sentence in done.err
        assert done.err.count("\n") == 1


def test_settings_have_one_for_all_agents_or_for_one(dragoman: Dragoman) -> None:
    _write_settings(dragoman, {"system_prompt": "For all."})
    assert dragoman("-o", "simple", "x").out == "append: For all.\n"
    done = dragoman("-a", "deaf", "x")  # is not broken by what is for all
    assert done.code == 0
    assert "the system prompt was not sent: the agent does not accept a system prompt" in done.err
    (dragoman.settings.parent / "own.md").write_text("Its own.")
    _write_settings(
        dragoman, {"system_prompt": "For all."}, told={"system_prompt": {"file": "own.md"}}
    )
    assert dragoman("-o", "simple", "x").out == "append: Its own.\n"
    assert dragoman("--system-prompt", "Mine.", "-o", "simple", "x").out == "append: Mine.\n"
    _write_settings(dragoman, {"system_prompt": "For all."}, told={"system_prompt": None})
    assert dragoman("-o", "simple", "x").out == "nothing\n"
    _write_settings(dragoman, deaf={"system_prompt": "Be brief."})
    done = dragoman("-a", "deaf", "x")
    assert (done.code, done.err) == (2, "dragoman: deaf does not accept a system prompt\n")
