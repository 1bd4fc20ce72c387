"""A command that is forked for a test is not different from one that is started."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest
from support.command import SECONDS, Done, Dragoman
from support.warm_command import warm_command


def started(dragoman: Dragoman, *words: str, agent: str | None = None, stdin: bytes = b"") -> Done:
    with dragoman.started(*words, agent=agent) as process:
        out, err = process.communicate(stdin, timeout=SECONDS)
    return Done(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("sessions", "list"),
        ("sessions", "show", "no-such-session"),
        ("agents", "list"),
        ("policy", "list"),
        ("--no-such-option",),
        ("chat",),
    ],
    ids=" ".join,
)
def test_it_prints_and_returns_the_same(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    assert dragoman(*words) == started(dragoman, *words)


@pytest.mark.parametrize("said", ["", "héllo\r\n", "x" * 200_000])
def test_it_reads_the_same(dragoman: Dragoman, said: str) -> None:
    words = ("--no-store", "--file", "-")
    done = dragoman(*words, agent="telling", stdin=said)
    assert done == started(dragoman, *words, agent="telling", stdin=said.encode())


def test_it_has_a_folder_and_variables_of_its_own(dragoman: Dragoman) -> None:
    folder = dragoman.home / "folder"
    folder.mkdir()
    done = dragoman("x", agent="looking", env={"SPOKEN": "yes"}, cwd=folder)
    assert done.out == f"folder {folder}\nvariable yes\n"
    assert dragoman("x", agent="looking").out == f"folder {dragoman.workspace}\nvariable None\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_it_gets_signals(dragoman: Dragoman, number: int, code: int) -> None:
    reader, writer = os.pipe()
    command = dragoman.command("x", agent="cancellable")
    with open(os.devnull) as nothing, open(reader, "rb") as said:
        streams = (nothing.fileno(), writer, writer)
        running = warm_command().start(command, dragoman.env, dragoman.workspace, streams)
        with closing(running) as process:
            os.close(writer)
            assert said.readline() == b"started\n"
            process.send_signal(number)
            assert process.wait(SECONDS) == code
