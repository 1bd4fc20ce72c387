"""The AI SDK as a judge of our streams: releases 5, 6 and 7, run by Node from `ui_stream/judge`."""

from __future__ import annotations

import atexit
import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from dragoman.ui_stream import UIMessage
from dragoman.ui_stream.chunks import DONE, Chunk, encode

FOLDER = Path(__file__).parent.parent / "ui_stream" / "judge"
RELEASES: tuple[Literal[6, 7], ...] = (6, 7)
_SECONDS = 100


class Case(msgspec.Struct, omit_defaults=True):
    """Streams of one message, and what the user answers behind each; or whole messages."""

    ai: int
    streams: list[str] = []
    answers: list[dict[str, bool]] = []
    messages: list[UIMessage] | None = None


class Verdict(msgspec.Struct):
    problems: list[str]
    message: Any = None
    chunks: list[list[str]] = []


def stream_of(chunks: Sequence[Chunk]) -> str:
    return (b"".join(map(encode, chunks)) + DONE).decode()


def judge(cases: Sequence[Case]) -> list[Verdict]:
    """What the SDK says to each; one process judges them all, for as long as tests run."""
    return [_judged(_process(), case) for case in cases]


def _judged(process: subprocess.Popen[bytes], case: Case) -> Verdict:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(case) + b"\n")
    process.stdin.flush()
    return msgspec.json.decode(process.stdout.readline(), type=Verdict)


@cache
def _process() -> subprocess.Popen[bytes]:
    command, pipe = [node(), "check.mjs", "--batch"], subprocess.PIPE
    process = subprocess.Popen(command, cwd=FOLDER, stdin=pipe, stdout=pipe)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def node() -> str:
    """Node, with the SDK installed; the test is skipped where that cannot be had."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        pytest.skip("the AI SDK's judge needs node and npm")
    with (FOLDER / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_installed():
            _install(npm)
    return found


def _is_installed() -> bool:
    """As npm leaves a mark of what it has installed, we compare with what is wanted."""
    mark = FOLDER / "node_modules" / ".package-lock.json"
    wanted = FOLDER / "package-lock.json"
    return mark.exists() and mark.stat().st_mtime >= wanted.stat().st_mtime


def _install(npm: str) -> None:
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        subprocess.run(
            [npm, "ci", *quiet], cwd=FOLDER, check=True, capture_output=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the AI SDK could not be fetched: {error}")
