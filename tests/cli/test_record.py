"""`--record`: a recording made on the command line, and what takes it."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

import pytest
from support.command import COMMAND, Dragoman, refused
from support.screen import needs_tmux, on_screen

HOW = 'dragoman --record recording.jsonl "…" makes a recording'


@pytest.fixture
def recording(dragoman: Dragoman) -> Path:
    return dragoman.home / "recording.jsonl"


def test_a_recording_is_shown_served_and_explained(dragoman: Dragoman, recording: Path) -> None:
    said = dragoman("--record", str(recording), "-o", "simple", "--yolo", "write something")
    assert said.code == 0
    shown = dragoman("replay", str(recording), "--speed", "0")
    assert "› write something" in shown.lines
    (dragoman.workspace / "dragoman-demo.txt").unlink()
    command = shlex.join([str(COMMAND), "replay", str(recording), "--serve"])
    again = dragoman("--agent-command", command, "--yolo", "-o", "simple", "write something")
    assert again.out == said.out
    assert (dragoman.workspace / "dragoman-demo.txt").exists()
    explained = json.loads(
        dragoman("policy", "explain", "--recording", str(recording), "--json").out
    )
    assert {"write", "execute"} <= {each["operation"] for each in explained}


def test_a_recording_has_every_frame_that_jsonl_prints(dragoman: Dragoman, recording: Path) -> None:
    done = dragoman("--record", str(recording), "-j", "/think of it")
    kept = [json.loads(line) for line in recording.read_text().splitlines()]
    assert [line["msg"] for line in kept] == done.frames[1:]
    assert {line["dir"] for line in kept} == {"->", "<-"}


def test_a_recording_is_for_its_owner_and_replaces_an_older_one(
    dragoman: Dragoman, recording: Path
) -> None:
    recording.write_text("older\n")
    recording.chmod(0o644)
    assert dragoman("--record", str(recording), "/think").code == 0
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600
    assert "older" not in recording.read_text()


def test_a_run_without_an_agent_leaves_an_older_recording(
    dragoman: Dragoman, recording: Path
) -> None:
    recording.write_text("older\n")
    assert dragoman("--record", str(recording), "  ").code == 2
    assert dragoman("--record", str(recording), "--resume", "s-none", "-a", "no", "x").code == 2
    assert recording.read_text() == "older\n"


def test_a_recording_that_cannot_be_written_is_one_line(dragoman: Dragoman) -> None:
    refused(dragoman("--record", "/no/such/x", "hi"), "--record /no/such/x: no such file or dir")
    refused(dragoman("--record", "/", "hi"), "--record /: is a directory")


def test_what_is_no_file_is_written_to_and_stays_as_open_as_it_was(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    path.chmod(0o644)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert dragoman("--record", str(path), "/think of it").code == 0
        assert b'"session/prompt"' in os.read(reading, 1 << 20)
    finally:
        os.close(reading)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_full_disk_ends_the_recording_and_not_the_run(dragoman: Dragoman) -> None:
    done = dragoman("--record", "/dev/full", "-o", "simple", "/think of it")
    assert (done.code, done.out) == (0, "I have thought about of it.\n")
    assert done.err.count("--record /dev/full: no space left") == 1


def test_a_session_of_another_folder_is_recorded_too(user: Dragoman, tmp_path: Path) -> None:
    user("--session", "fix", "one")
    path = tmp_path / "recording.jsonl"
    (made,) = json.loads(user("sessions", "list", "--json").out)
    done = user("--record", str(path), "--resume", made["id"], "two", cwd=tmp_path)
    assert (done.code, done.out) == (0, "2. two\n")
    assert "two" in user("replay", str(path), "--speed", "0").out


def test_frames_of_another_process_cannot_be_recorded(user: Dragoman, recording: Path) -> None:
    with user.started("--session", "fix", "--", "wait") as runs:
        assert runs.stdout is not None
        assert runs.stdout.readline() == b"started\n"
        done = user("--session", "fix", "--record", str(recording), "more")
    refused(done, "only it has the frames; remove --record")
    assert not recording.exists()


@needs_tmux
def test_a_chat_is_recorded(dragoman: Dragoman, recording: Path) -> None:
    command = [str(COMMAND), "chat", "--record", str(recording)]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as screen:
        screen.wait_for("/help lists")
        screen.enter("/think of it")
        screen.wait_for("I have thought about of it.")
        screen.press("C-d")
        assert screen.exit_code() == 0
    assert "› /think of it" in dragoman("replay", str(recording), "--speed", "0").lines


# ── what is no recording ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [("replay", "--serve"), ("policy", "explain", "--recording")])
def test_an_export_is_refused_with_how_to_make_a_recording(
    dragoman: Dragoman, words: tuple[str, ...]
) -> None:
    dragoman("--session", "fix", "/think")
    export = str(dragoman.home / "session.jsonl")
    assert dragoman("sessions", "export", "fix", "-o", export).code == 0
    done = dragoman(*words, export)
    refused(done, "an exported session has no frames; ")
    assert HOW in done.err


@pytest.mark.parametrize("words", [("replay",), ("policy", "explain", "--recording")])
def test_printed_frames_are_refused_with_how_to_make_a_recording(
    dragoman: Dragoman, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = tmp_path / "frames.jsonl"
    path.write_text(dragoman("-j", "/think").out)
    done = dragoman(*words, str(path))
    refused(done, "these are frames as -o jsonl prints them, without their times and directions")
    assert HOW in done.err
