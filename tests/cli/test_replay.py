"""`dragoman replay` and `demo-agent`: a recording on the terminal, and agents for other clients."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command import COMMAND, Dragoman
from support.screen import needs_tmux, on_screen

from dragoman import Client, Policy
from dragoman.cli.run.playback import play
from dragoman.testing import Recorder, ScriptedAgent
from dragoman.testing.recordings.recording import load_recording
from dragoman.testing.steps import run, say, write_file

PROMPT = "write it down"


async def record(folder: Path) -> Path:
    """A session with a file, a command and an answer, recorded as it happened."""
    path = folder / "session.jsonl"
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    agent = ScriptedAgent(
        [
            say("Here it comes.\n"),
            write_file(f"{workspace}/note.txt", "noted\n"),
            run("echo", "from the command"),
            say("All **done**."),
        ],
        name="recorded",
    )
    with Recorder(path) as recorder:
        async with Client.start(
            agent.connect(), policy=Policy(write=True, execute=True), tap=recorder
        ) as client:
            session = await client.new_session(workspace)
            await session.prompt(PROMPT)
            session_id = session.id
        async with Client.start(agent.connect(), tap=recorder) as client:
            await client.load_session(session_id, workspace)
            again = await client.new_session(workspace)
            agent.script = [say("Again.")]
            await again.prompt("once more")
    (workspace / "note.txt").unlink()
    return path


async def test_a_recording_is_shown_as_a_session_and_nothing_is_executed(
    dragoman: Dragoman,
) -> None:
    path = await record(dragoman.home)
    done = dragoman("replay", str(path), "--speed", "0")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.lines if line]
    assert lines[0] == f"session session-1 in {dragoman.workspace}"
    assert lines[1:4] == [f"› {PROMPT}", "Here it comes.", "[diff] --- /dev/null"]
    assert "[diff] +noted" in lines
    assert "[terminal] $ echo 'from the command'" in lines
    assert "[terminal] ended with code 0" in lines
    assert "All **done**." in done.out
    assert lines[-2:] == ["› once more", "Again."]
    # What the second connection told again is not shown again.
    assert done.out.count("Here it comes.") == 1
    assert list(dragoman.workspace.iterdir()) == []


@pytest.mark.parametrize(("speed", "pauses"), [(100.0, [0.0, 0.6]), (1.0, [0.0, 60.0]), (0.0, [])])
async def test_the_speed_is_a_factor_of_the_recorded_time(
    speed: float, pauses: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "slow.jsonl"
    asked: dict[str, Any] = {"cwd": "/w", "mcpServers": []}
    lines = (
        {"t": 0, "dir": "->", "msg": {"id": 1, "method": "session/new", "params": asked}},
        {"t": 60, "dir": "<-", "msg": {"id": 1, "result": {"sessionId": "s"}}},
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    await play(load_recording(path), speed, sleep)
    assert paused == pauses
    assert "session s in /w" in capsys.readouterr().out


def test_a_recording_is_played_at_the_speed_of_the_option(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    asked: dict[str, Any] = {"cwd": "/w", "mcpServers": []}
    frames = ({"id": 1, "method": "session/new", "params": asked}, _said("s", "an hour later"))
    lines = zip((0, 3600), ("->", "<-"), frames, strict=True)
    path.write_text(
        "".join(json.dumps({"t": at, "dir": way, "msg": it}) + "\n" for at, way, it in lines)
    )
    assert dragoman("replay", str(path), "--speed", "0").code == 0
    assert dragoman("replay", str(path), "--speed", "100000").code == 0


def test_what_a_fork_tells_again_is_not_shown_again(dragoman: Dragoman, tmp_path: Path) -> None:
    """Some agents tell the history of a fork before the reply that names it."""
    path = tmp_path / "fork.jsonl"
    asked: dict[str, Any] = {"cwd": "/w", "mcpServers": []}
    lines = (
        {"dir": "->", "msg": {"id": 1, "method": "session/new", "params": asked}},
        {"dir": "<-", "msg": {"id": 1, "result": {"sessionId": "s"}}},
        {"dir": "<-", "msg": _said("s", "told once")},
        {"dir": "->", "msg": {"id": 2, "method": "session/fork", "params": asked}},
        {"dir": "<-", "msg": _said("f", "told once")},
        {"dir": "<-", "msg": {"id": 2, "result": {"sessionId": "f"}}},
    )
    path.write_text("".join(json.dumps({"t": 0, **line}) + "\n" for line in lines))
    done = dragoman("replay", str(path), "--speed", "0")
    assert done.out.count("told once") == 1
    assert "session f in /w" in done.out


def _said(session_id: str, text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    return {"method": "session/update", "params": {"sessionId": session_id, "update": update}}


@needs_tmux
def test_a_replay_on_a_narrow_terminal_breaks_no_word(dragoman: Dragoman, tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    prompt = [{"type": "text", "text": "a prompt that is longer than the line\nand another line"}]
    asked = {"sessionId": "s", "prompt": prompt}
    lines = (
        {"dir": "->", "msg": {"id": 1, "method": "session/prompt", "params": asked}},
        {"dir": "<-", "msg": _said("s", "\n\nan answer")},
        {"dir": "<-", "msg": {"id": 1, "result": {"stopReason": "end_turn"}}},
    )
    path.write_text("".join(json.dumps({"t": 0, **line}) + "\n" for line in lines))
    command = [str(COMMAND), "replay", str(path)]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace, width=30) as shown:
        ended = shown.wait_for("exit code 0")
    assert "› a prompt that is longer\n  than the line\n  and another line\nan answer\n" in ended


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: no such file or directory"),
        ("hello\n", "line 1: expected a JSON object with t, dir and msg"),
        ("", "expected a recording with at least one frame"),
        ('{"t": 0, "dir": "note"}\n', "expected a recording with at least one frame"),
    ],
)
def test_what_is_no_recording_is_one_line(
    dragoman: Dragoman, tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "x.jsonl"
    if text is not None:
        path.write_text(text)
    done = dragoman("replay", str(path), *(("--serve",) if text == "" else ()))
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_escape_sequences_in_a_recording_do_not_reach_the_terminal(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    path = tmp_path / "evil.jsonl"
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}
    update["content"] = {"type": "text", "text": "\x1b]0;owned\x07\x1b[2Jplain"}
    frame = {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "\x1b[31ms", "update": update},
    }
    path.write_text(json.dumps({"t": 0, "dir": "<-", "msg": frame}) + "\n")
    done = dragoman("replay", str(path), "--speed", "0")
    assert "plain" in done.out
    assert "\x1b" not in done.out


async def test_a_recording_can_be_served_as_an_agent(dragoman: Dragoman) -> None:
    path = await record(dragoman.home)
    command = shlex.join([str(COMMAND), "replay", str(path), "--serve"])
    done = dragoman("--agent-command", command, "--write", "--exec", PROMPT)
    assert done.code == 0
    assert "All **done**." in done.out
    assert (dragoman.workspace / "note.txt").read_text() == "noted\n"


def test_the_demo_agent_serves_any_client(dragoman: Dragoman) -> None:
    command = shlex.join([str(COMMAND), "demo-agent"])
    done = dragoman("--agent-command", command, "--list-caps")
    assert done.code == 0
    assert done.lines[0].startswith("agent: Dragoman's demo agent")


def test_an_agent_without_a_client_ends_quietly(dragoman: Dragoman) -> None:
    with dragoman.started("demo-agent", stdin=subprocess.DEVNULL) as agent:
        out, err = agent.communicate(timeout=60)
    assert (agent.returncode, out, err) == (0, b"", b"")


@needs_tmux
def test_an_agent_on_a_terminal_ends_with_ctrl_d(dragoman: Dragoman) -> None:
    command = [str(COMMAND), "demo-agent"]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as screen:
        screen.wait_for("this agent expects an ACP client")
        screen.press("C-d")
        assert screen.exit_code() == 0
        assert "descriptor" not in screen.text()
