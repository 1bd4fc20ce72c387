"""`--list-caps`, `--list-modes`, `--list-commands`: alone, stacked, and before a prompt."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import pytest
from support.command import Dragoman

from dragoman import Client
from dragoman.cli.run import agent_lists
from dragoman.testing import ScriptedAgent

ALL = ("--list-caps", "--list-modes", "--list-commands")
MODES = """\
modes:
  * code: Code
    ask: Ask - answers only
"""
COMMANDS = """\
commands:
  /test: run the tests
  /explain <what>: explain something
"""


def test_lists_stack_in_order_with_a_blank_line_between(dragoman: Dragoman) -> None:
    done = dragoman(*reversed(ALL), agent="telling")
    caps, modes, commands = done.out.split("\n\n")
    assert caps.startswith(
        "agent: The Teller 1.2\nprotocol version: 1\nauth methods: key (agent): A key\n"
        'capabilities: {\n  "loadSession": true,\n'
    )
    assert f"{modes}\n" == MODES
    assert commands == COMMANDS
    assert done.code == 0


def test_models_and_options_are_listed_with_what_can_be_chosen(dragoman: Dragoman) -> None:
    done = dragoman("--list-options", "--list-models", "-a", "demo")
    models, options = done.out.split("\n\n")
    assert models == (
        "models:\n"
        "    demo-swift: Demo Swift - Says everything at once\n"
        "  * demo-steady: Demo Steady - Speaks word by word\n"
        "    demo-slow: Demo Slow - Takes its time"
    )
    assert options.startswith("options:\n  model: Model - There is none")
    assert "    * short: Short - One thought before it acts\n" in options
    assert options.endswith("the session\n      true\n    * false\n")
    assert dragoman("--list-models", agent="modeless").out == "models: none\n"
    assert dragoman("--list-options", agent="modeless").out == "options: none\n"


def test_lists_alone_do_not_read_standard_input(dragoman: Dragoman) -> None:
    with dragoman.started("--list-modes", agent="telling") as process:
        # Its input is never closed: whoever reads it would wait for ever.
        assert process.wait(120) == 0
        assert process.stdout is not None
        assert process.stdout.read().decode() == MODES


def test_a_prompt_behind_the_lists_uses_the_same_session(dragoman: Dragoman) -> None:
    done = dragoman("--list-modes", "-o", "simple", "go", agent="telling")
    assert done.out.startswith(f"{MODES}\nmode=code options=")
    frames = dragoman("--list-modes", "-j", "go", agent="telling").frames
    assert [f["method"] for f in frames if "method" in f].count("session/new") == 1


def test_in_jsonl_the_frames_are_the_lists(dragoman: Dragoman) -> None:
    done = dragoman(*ALL, "-j", agent="telling")
    updates = [f["params"]["update"] for f in done.frames if f.get("method") == "session/update"]
    assert [update["sessionUpdate"] for update in updates] == ["available_commands_update"]
    assert done.code == 0


def test_an_agent_without_modes_says_none(dragoman: Dragoman) -> None:
    assert dragoman("--list-modes", agent="modeless").out == "modes: none\n"


async def test_an_agent_without_commands_says_none_when_there_was_time_for_them(
    tmp_path: Path,
) -> None:
    assert agent_lists.WAIT_FOR_COMMANDS == 5
    async with Client.start(ScriptedAgent([]).connect()) as client:
        session = await client.new_session(tmp_path)
        never = asyncio.Event()
        assert await agent_lists.commands(session, never.wait, within=0.01) == ["commands: none"]


@pytest.mark.soak  # it is given its five seconds
def test_commands_are_waited_for(dragoman: Dragoman) -> None:
    before = time.monotonic()
    assert dragoman("--list-commands", agent="modeless").out == "commands: none\n"
    assert time.monotonic() - before >= 5


def test_capabilities_need_no_session(dragoman: Dragoman) -> None:
    done = dragoman("--list-caps", agent="signed_out")
    assert done.code == 0
    assert "auth methods: oauth (agent): Log in, term (terminal): Log in here" in done.out


def test_lists_end_when_nobody_reads_them(dragoman: Dragoman) -> None:
    with dragoman.started(*ALL, agent="telling", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"agent:")
        process.stdout.close()
        assert process.wait(120) == 0
        assert process.stderr.read() == b""


def test_modes_that_are_an_option_are_listed_and_set_as_modes(dragoman: Dragoman) -> None:
    command = dragoman.agent("agent", "mode_option.py")
    done = dragoman("--agent-command", command, "--mode", "plan", "--list-modes")
    assert done.code == 0
    assert done.lines == ["modes:", "    build: Build", "  * plan: Plan - changes nothing"]
