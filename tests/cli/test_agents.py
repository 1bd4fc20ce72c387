"""`dragoman agents list`: what can be started, and nothing that should stay secret."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from support.command import Dragoman


def test_known_agents_are_listed_with_how_to_get_them(dragoman: Dragoman) -> None:
    done = dragoman("agents", "list", env={"PATH": "/nowhere"})
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "known agents:"
    demo, claude = done.lines[1:3]
    assert demo.split()[:4] == ["*", "demo", "built", "in"]
    assert claude.split()[:2] == ["claude", "missing"]
    assert "npm install -g @agentclientprotocol/claude-agent-acp" in claude


def test_agents_of_the_settings_come_first_and_the_first_is_the_default(
    dragoman: Dragoman,
) -> None:
    dragoman.write_settings(
        {"agent_servers": {"mine": {"command": "sh"}, "far": {"url": "wss://example.com"}}}
    )
    done = dragoman("agents", "list")
    assert done.lines[0] == "in your settings:"
    assert done.lines[1].split()[:3] == ["*", "mine", "installed"]
    assert done.lines[2].split()[:2] == ["far", "remote"]
    assert done.lines[4] == "known agents:"
    assert "* demo" not in done.out


def test_a_name_in_the_settings_hides_the_known_agent_of_that_name(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"goose": {"command": "sh"}}})
    names = dragoman("agents", "list", "--names").lines
    assert names[0] == "goose"
    assert names.count("goose") == 1
    assert {"demo", "claude", "codex", "gemini", "opencode", "kimi", "qwen"} <= set(names)


def test_a_command_on_the_path_is_installed(dragoman: Dragoman, tmp_path: Path) -> None:
    program = tmp_path / "goose"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = dragoman("agents", "list", "--json", env={"PATH": str(tmp_path)})
    agents = {agent["name"]: agent for agent in json.loads(done.out)}
    assert agents["goose"]["state"] == "installed"
    assert agents["goose"]["path"] == str(program)
    assert agents["kimi"]["state"] == "missing"


def test_json_is_an_array_of_objects(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"gone": {"command": "/no/such/agent"}}})
    agents = json.loads(dragoman("agents", "list", "--json").out)
    assert agents[0] == {
        "name": "gone",
        "title": "gone",
        "source": "settings",
        "state": "missing",
        "isDefault": True,
        "command": "/no/such/agent",
        "path": None,
        "install": "",
        "needs": "",
        "variable": "",
        "signIn": "",
        "homepage": "",
        "signedIn": None,
        "account": None,
    }


def test_agents_are_listed_with_what_they_last_said_of_their_sign_in(dragoman: Dragoman) -> None:
    said = {"status": {"state": "authenticated", "account": "Ada"}, "at": 1}
    dragoman.state.mkdir(parents=True, exist_ok=True)
    noted = {"demo": said, "gone": {"status": {"state": "unauthenticated"}, "at": 1}}
    (dragoman.state / "sign_ins.json").write_text(json.dumps(noted))
    dragoman.write_settings({"agent_servers": {"gone": {"command": "/no/such/agent"}}})
    lines = dragoman("agents", "list").out.splitlines()
    assert next(line for line in lines if "gone" in line).endswith("; not signed in")
    assert next(line for line in lines if "demo" in line).endswith("; signed in (Ada)")


@pytest.mark.parametrize("shape", [(), ("--json",)])
def test_neither_arguments_nor_environment_are_shown(
    dragoman: Dragoman, shape: tuple[str, ...]
) -> None:
    secret = {"command": "sh", "args": ["--key=CANARY"], "env": {"TOKEN": "CANARY"}}
    dragoman.write_settings({"agent_servers": {"mine": secret}})
    done = dragoman("agents", "list", *shape)
    assert "mine" in done.out
    assert "CANARY" not in done.out + done.err


def test_settings_that_are_wrong_are_one_line_and_code_2(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"x": {"command": 7}}})
    done = dragoman("agents", "list")
    assert (done.code, done.out) == (2, "")
    assert "agent_servers.x.command: expected a non-empty string" in done.err
    assert done.err.count("\n") == 1


def test_an_action_is_needed(dragoman: Dragoman) -> None:
    done = dragoman("store")
    assert done.code == 2
    assert "ACTION" in done.err
