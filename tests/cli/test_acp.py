"""`dragoman acp` as a process: what it prints for editors, and a whole turn over its pipes."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
from collections.abc import Generator

import pytest
from support.command import COMMAND, Dragoman
from support.peers import soon
from support.staying import Staying, staying

from dragoman import AgentCommand, Client
from dragoman.cli.commands import acp
from dragoman.session.state import AgentEntry

SECONDS = 60
AS_AGENT = shlex.join([str(COMMAND), "acp", "-a", "demo"])


@pytest.mark.parametrize("editor", ["zed", "jetbrains"])
def test_the_entry_for_an_editor_has_the_command_and_its_options(
    dragoman: Dragoman, editor: str
) -> None:
    done = dragoman("acp", "-a", "demo", "--on-close", "cancel", "--print-config", editor)
    [(name, entry)] = json.loads(done.out)["agent_servers"].items()
    assert name == "Dragoman"
    assert entry["args"][-5:] == ["acp", "-a", "demo", "--on-close", "cancel"]
    assert entry.get("type") == ("custom" if editor == "zed" else None)


def test_the_entry_has_every_option(dragoman: Dragoman) -> None:
    parser = argparse.ArgumentParser()
    acp.add_arguments(parser)
    flags = ["--no-files", "--no-terminals", "--write", "--exec", "--yolo"]
    files = {name: str(dragoman.workspace / name) for name in ("settings.json", "rules.toml")}
    typed = ["-a", "demo", "--settings", files["settings.json"], "--on-close", "cancel", *flags]
    typed += ["--policy", files["rules.toml"], "--fence=require", "--fence-network=none"]
    given = vars(parser.parse_args(typed))
    assert [name for name, value in given.items() if not value] == ["print_config"]
    relative = [word.replace(f"{dragoman.workspace}/", "") for word in typed]
    done = dragoman("acp", *relative, "--print-config", "jetbrains")
    entry = json.loads(done.out)["agent_servers"]["Dragoman"]
    assert entry["args"][-len(typed) :] == typed


@pytest.mark.parametrize("editor", ["neovim", "emacs"])
def test_the_entry_is_code_where_an_editor_is_configured_in_code(
    dragoman: Dragoman, editor: str
) -> None:
    done = dragoman("acp", "--print-config", editor)
    assert done.code == 0
    assert '"acp"' in done.out
    pairs = [("(", ")"), ("{", "}"), ("[", "]")]
    assert all(done.out.count(opening) == done.out.count(closing) for opening, closing in pairs)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--print-config", "ed"], "'ed'"),
        (["-a", "nobody"], "there is no agent 'nobody'"),
        (["--on-close", "whatever"], "'whatever'"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    dragoman: Dragoman, words: list[str], sentence: str
) -> None:
    done = dragoman("acp", *words)
    assert done.code == 2
    assert sentence in done.err


def test_a_whole_turn_goes_through_it(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", AS_AGENT, "--no-store", "--yolo", "do something")
    assert done.code == 0, done.err
    assert "[plan] 4/4" in done.out
    assert "What I did" in done.out
    [session] = json.loads(dragoman("sessions", "list", "--json").out)
    assert (session["agent"], session["cwd"]) == ("demo", str(dragoman.workspace))


@pytest.mark.parametrize("scheme", ["ws", "http"])
def test_a_bridge_offers_it_over_a_network(dragoman: Dragoman, scheme: str) -> None:
    bridge = subprocess.Popen(
        [COMMAND, "bridge", "--agent-command", AS_AGENT],
        env=dragoman.env,
        cwd=dragoman.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert bridge.stdout is not None
        address = f"{scheme}:{bridge.stdout.readline().strip().partition(':')[2]}"
        done = dragoman("--agent-command", address, "--files", "there", "--no-store", "/plan")
        assert done.code == 0, done.err
        assert "[plan]" in done.out
        bridge.send_signal(signal.SIGTERM)
        bridge.communicate(timeout=SECONDS)
    finally:
        bridge.kill()
        bridge.wait()


# ── sessions that another process runs ────────────────────────────────────────────────────────


@pytest.fixture
def stays(user: Dragoman) -> Generator[Staying]:
    words = shlex.split(user.agent("moody", "moody.py"))
    user.write_settings({"agent_servers": {"moody": {"command": words[0], "args": words[1:]}}})
    with staying(user) as it:
        yield it


async def test_an_agent_that_was_kept_warm_starts_again_under_the_options(stays: Staying) -> None:
    assert stays("-a", "moody", "--session", "s", "-o", "simple", "hi").code == 0
    kept, words = stays.only(), ("acp", "-a", "moody", "--no-terminals")
    command = AgentCommand(str(COMMAND), words, dict(stays.user.env))
    async with Client.start(command) as editor:
        session = await editor.load_session(kept["id"], stays.user.workspace)
        await soon(session.prompt("hi"))
        entries = (each for each in session.state.entries if isinstance(each, AgentEntry))
        assert "".join(each.text for each in entries).count("code small") == 2
    stays.wait_until_gone()
