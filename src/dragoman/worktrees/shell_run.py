"""Runs one shell command to its end, in time and in bounds, and keeps what it prints."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import StartError
from dragoman.host.fence.fence import Fence
from dragoman.process.child import ExitStatus
from dragoman.process.spawn import spawn

MOST_PRINTED = 64 << 20
_LOOK_SECONDS = 0.5
_LEFT_OUT = ("DRAGOMAN_", "GIT_")
"""Variables that would lead it elsewhere than to its folder."""


class ShellResult(msgspec.Struct, frozen=True, rename="camel"):
    """How a command ended; without a code, `problem` says why it was ended."""

    code: int | None
    seconds: float
    problem: str = ""


async def run_shell(
    command: str,
    folder: str,
    log: Path,
    *,
    seconds: float,
    fence: Fence | None = None,
    env: Mapping[str, str] | None = None,
) -> ShellResult:
    """Run it in `folder`; what it prints goes to `log`. With all it started, it is ended after so
    many `seconds`, or if it prints too much. Raises FenceError."""
    began = time.monotonic()
    plan = None if fence is None else await fence.open("sh")
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)
    }
    variables |= env or {}
    if fence is not None:
        variables = fence.environment(variables)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _new(log) as printed:
            process = await spawn(
                ["/bin/sh", "-c", command],
                env=variables,
                cwd=folder,
                stdin=nothing,
                stdout=printed.fileno(),
                stderr=printed.fileno(),
                fence=plan,
            )
            try:
                waiting = asyncio.ensure_future(process.wait())
                problem = await _watched(waiting, log, seconds)
            finally:
                await process.stop(exit_within=0, term_within=0)
    except StartError as error:
        return ShellResult(None, time.monotonic() - began, str(error))
    finally:
        os.close(nothing)
    took = time.monotonic() - began
    if problem:
        return ShellResult(None, took, problem)
    status = waiting.result()
    killed = "" if status.signal is None else f"it was ended by {status.signal}"
    return ShellResult(status.code, took, killed)


async def _watched(waiting: asyncio.Future[ExitStatus], log: Path, seconds: float) -> str:
    """Why it has to be ended; nothing once it has ended."""
    try:
        async with asyncio.timeout(seconds):
            while not (await asyncio.wait([waiting], timeout=_LOOK_SECONDS))[0]:
                if _size(log) > MOST_PRINTED:
                    return f"it printed more than {MOST_PRINTED >> 20} MiB"
    except TimeoutError:
        return f"it took longer than {seconds:g} s"
    return ""


def _new(log: Path) -> IO[bytes]:
    return open(log, "wb", opener=private_file)


def _size(log: Path) -> int:
    return log.stat().st_size


def end_of(log: Path, most: int = 4000) -> str:
    """The end of what a command printed."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode("utf-8", "replace")
