"""`-o jsonl`: only JSON lines: one that names the agent, then the exact bytes of both sides."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from support.command import AGENTS, Dragoman

TEE = AGENTS.parent / "tee.py"


@pytest.mark.parametrize("agent", ["whole", "telling", "nasty"])
def test_the_frames_are_what_passed_between_client_and_agent(
    dragoman: Dragoman, tmp_path: Path, agent: str
) -> None:
    (dragoman.workspace / "notes.txt").write_text("caf\u00e9 \u2028\n")
    teed = shlex.join(
        [sys.executable, str(TEE), str(tmp_path), *shlex.split(dragoman.agent(agent))]
    )
    with dragoman.started("-o", "jsonl", "--yolo", "--agent-command", teed, "go\u2029") as process:
        out, err = process.communicate(b"", timeout=120)
    assert process.returncode == (7 if agent == "nasty" else 0)  # it ends for a reason of its own
    selected, *frames = out.split(b"\n")[:-1]
    assert json.loads(selected)["method"] == "client/selected_agent"
    sent = (tmp_path / "sent").read_bytes().split(b"\n")[:-1]
    received = (tmp_path / "received").read_bytes().split(b"\n")[:-1]
    # The two directions are interleaved as they passed; each alone is the same, byte for byte.
    assert sorted(frames) == sorted(sent + received)
    assert [frame for frame in frames if frame in set(sent)] == sent
    assert [frame for frame in frames if frame in set(received)] == received
    assert err == b"" or agent == "nasty"


def test_the_first_line_names_the_agent_and_nothing_secret(dragoman: Dragoman) -> None:
    entry = {"command": "true", "args": ["--key=hunter2"], "env": {"TOKEN": "hunter3"}}
    dragoman.write_settings({"agent_servers": {"mine": entry}})
    done = dragoman("-j", "x")
    assert done.code == 1
    assert done.lines[0] == (
        '{"jsonrpc":"2.0","method":"client/selected_agent",'
        '"params":{"name":"mine","command":"true"}}'
    )
    assert "hunter" not in done.out + done.err


@pytest.mark.parametrize("words", [("-o", "json"), ("--outputmode", "jsonl"), ("--jsonl",)])
def test_every_way_to_ask_for_it(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    done = dragoman(*words, "x", agent="early_stop")
    assert done.frames[-1]["result"]["stopReason"] == "max_tokens"
    assert "cut\n" not in done.out
    assert done.err == "dragoman: the turn ended early: max_tokens\n"


def test_each_frame_has_its_direction_where_that_is_asked_for(dragoman: Dragoman) -> None:
    done = dragoman("-j", "--directions", "x", agent="early_stop")
    selected, *lines = [json.loads(line) for line in done.lines]
    assert selected["method"] == "client/selected_agent"
    methods = {"->": list[str](), "<-": list[str]()}
    for line in lines:
        assert set(line) == {"t", "dir", "msg"}
        methods[line["dir"]].append(line["msg"].get("method", "reply"))
    assert methods["->"] == ["initialize", "session/new", "session/prompt"]
    assert set(methods["<-"]) == {"reply", "session/update"}


def test_directions_are_for_frames_alone(dragoman: Dragoman) -> None:
    done = dragoman("-o", "events", "--directions", "x", agent="early_stop")
    assert (done.code, done.out) == (2, "")
    assert done.err == "dragoman: --directions is for -o jsonl\n"


def test_noise_of_the_agent_stays_out(dragoman: Dragoman) -> None:
    done = dragoman("-j", "x", agent="bannered")
    assert "Welcome" not in done.out
    assert len(done.frames) == len(done.lines)


def test_the_answer_can_be_put_together_from_the_frames(dragoman: Dragoman) -> None:
    done = dragoman("-j", agent="two_messages", stdin="List available commands")
    chunks = [
        frame["params"]["update"]["content"]["text"]
        for frame in done.frames
        if frame.get("method") == "session/update"
        and frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    ]
    assert chunks == ["one", "two", " words\n"]
