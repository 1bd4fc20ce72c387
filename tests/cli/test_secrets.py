"""Secrets of the settings reach who they are for, and no file and no log of ours."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from support.command import COMMAND, Done, Dragoman
from support.screen import needs_tmux, on_screen

CANARIES = [f"canary-{number}-{word}" for number, word in enumerate("abcdefghijklmn")]
SAID = "the words that should be there"


def settings(user: Dragoman) -> dict[str, object]:
    """Three secrets for two agents, and ten for the servers that their sessions bring along; the
    last one is in the environment."""
    secret = iter(CANARIES)
    script = f'printf %s "$KEY" >> {user.home}/key; exec {COMMAND} demo-agent'
    command, *args = shlex.split(user.agent("remembering", "memory.py"))
    agents = {
        "noted": {
            "command": "sh",
            "args": ["-c", script],
            "env": {"KEY": next(secret), "OTHER": next(secret)},
        },
        "memo": {"command": command, "args": args, "env": {"KEY": next(secret)}},
    }
    servers = [
        {"name": "tool", "command": "true", "env": {"A": next(secret), "B": next(secret)}},
        {"name": "listed", "command": "true", "env": [{"name": "C", "value": next(secret)}]},
        {
            "name": "far",
            "type": "http",
            "url": f"https://me:{next(secret)}@x/mcp?key={next(secret)}",
            "headers": {"D": next(secret)},
        },
        {
            "name": "auth",
            "type": "http",
            "url": "https://y",
            "headers": {"Authorization": f"Bearer {next(secret)}"},
        },
        {
            "name": "old",
            "type": "sse",
            "url": "https://z",
            "headers": [{"name": "E", "value": next(secret)}, {"name": "F", "value": next(secret)}],
        },
        {"name": "last", "command": "true", "env": {"G": next(secret)}},
    ]
    return {"agent_servers": agents, "mcp_servers": servers}


def everything(user: Dragoman, agent: str) -> Iterator[Done]:
    """Every way in which something is written."""
    env = {"API_TOKEN": CANARIES[-1]}

    def run(*words: str) -> Done:
        return user("--debug", *words, env=env) if words[0] != "sessions" else user(*words, env=env)

    yield run("-a", agent, "--yolo", "--session", agent, SAID)
    yield run("-a", agent, "--session", agent, "again")
    yield run("-a", agent, "--fork", agent, "in a fork")
    yield run("-a", agent, "--record", str(user.state / "recording.jsonl"), SAID)
    yield run("-a", agent, "--list-caps", "--list-modes")
    # One that has commands, so that nobody waits for the message that there are some.
    yield run("-a", "noted", "--list-commands")
    yield run("sessions", "show", agent)
    yield run("sessions", "show", agent, "--json")
    yield run("sessions", "list", "--json")
    yield run("sessions", "export", agent)
    yield run("sessions", "export", agent, "-o", str(user.state / f"{agent}.jsonl"))
    yield run("sessions", "import", str(user.state / f"{agent}.jsonl"))
    yield run("sessions", "list", "--known", "-a", agent, "--json")
    yield run("sessions", "search", "words")
    yield run("sessions", "rename", agent, "another title")
    yield run("sessions", "fork", agent)


def found_in(data: bytes) -> list[str]:
    return [canary for canary in CANARIES if canary.encode() in data]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs_tmux
def test_no_secret_is_in_any_file_or_log(user: Dragoman) -> None:
    user.write_settings(settings(user))
    for done in chain(islice(everything(user, "noted"), 2), everything(user, "memo")):
        assert done.code in (0, 5), done
        assert found_in(done.out.encode() + done.err.encode()) == [], done
    chat = [str(COMMAND), "chat", "--session", "memo"]
    with on_screen(chat, env=user.env, cwd=user.workspace) as terminal:
        terminal.wait_for("/help lists")
        terminal.enter("in the chat")
        terminal.wait_for("3. in the chat")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
    # They did reach the agents and, in the frames, the servers.
    assert CANARIES[0] in (user.home / "key").read_text()
    frames = user("-a", "memo", "--no-store", "-j", "x").out.encode()
    assert found_in(frames) == CANARIES[3:-1]
    kept = files(user.state)
    assert {path for path, data in kept.items() if found_in(data)} == set()
    holding = [path for path, data in kept.items() if SAID.encode() in data]
    assert {f"{user.state}/dragoman.db", f"{user.state}/recording.jsonl"} <= set(holding)
    assert any(path.startswith(f"{user.state}/sessions/") for path in holding)


ASKING = """
import os
from pathlib import Path
from dragoman.schema import v1
from dragoman.testing import ScriptedAgent

FORM = {"type": "object", "properties": {"key": {"type": "string"}}}

async def ask(turn):
    answer = await turn.elicit("Which key?", FORM)
    Path("typed").write_text(answer["content"]["key"])
    variables = [v1.EnvVariable(name="KEY", value=os.environ["PASSED"])]
    run = await turn.create_terminal("sh", "-c", 'printf %s "$KEY" > passed', env=variables)
    await turn.terminal("wait_for_exit", run)
    await turn.terminal("release", run)
    turn.say("thank you")

agent = ScriptedAgent(ask)
"""


@needs_tmux
def test_what_is_typed_into_a_form_and_passed_to_a_command_is_in_no_file(user: Dragoman) -> None:
    typed, passed = CANARIES[:2]
    (user.home / "asking.py").write_text(ASKING)
    agent = shlex.join([sys.executable, "-m", "dragoman.testing.serve", "../asking.py:agent"])
    recording = str(user.state / "recording.jsonl")
    run = [str(COMMAND), "--agent-command", agent, "--record", recording, "--yolo", SAID]
    with on_screen(run, env=user.env | {"PASSED": passed}, cwd=user.workspace) as terminal:
        terminal.wait_for("key (optional):")
        terminal.enter(typed)
        terminal.wait_for("thank you")
        assert terminal.exit_code() == 0
    reached = [(user.workspace / name).read_text() for name in ("typed", "passed")]
    assert reached == [typed, passed]
    kept = files(user.state)
    assert {path for path, data in kept.items() if found_in(data)} == set()
    assert SAID.encode() in kept[recording]
    # What is left can be played and explained: the names of variables are there.
    explained = user("policy", "explain", "--recording", recording, "--json")
    assert [each["operation"] for each in json.loads(explained.out)] == ["execute"]
    replay = shlex.join([str(COMMAND), "replay", recording, "--serve"])
    again = user("--agent-command", replay, "--yolo", "-o", "simple", SAID)
    assert (again.code, again.out) == (0, "thank you\n")
    assert (user.workspace / "passed").read_text() == "•••"


def test_everything_is_for_its_owner_alone(user: Dragoman) -> None:
    user("--session", "fix", "one")
    user("-a", "demo", "--session", "demo", "/think")
    user("sessions", "import", "-", stdin=user("sessions", "export", "fix").out)
    for path in (user.state, *user.state.rglob("*")):
        # What git keeps is read-only.
        wanted = (0o700,) if path.is_dir() else (0o600, 0o400)
        assert stat.S_IMODE(path.stat().st_mode) in wanted, path
    assert json.loads(user("sessions", "list", "--json").out)
