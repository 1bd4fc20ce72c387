"""Child processes for tests, and what they print."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from process.survivors import exists

from dragoman.fence.plan import FencePlan
from dragoman.process.child import Process
from dragoman.process.spawn import spawn

ENV = {"PATH": os.environ["PATH"]}
FENCED: list[FencePlan] = []
"""The fence around what is run here, if a test has set one."""


def fence() -> FencePlan | None:
    return FENCED[0] if FENCED else None


@asynccontextmanager
async def running(
    *argv: str, env: Mapping[str, str] = ENV, cwd: str | None = None
) -> AsyncGenerator[tuple[Process, asyncio.StreamReader]]:
    """A process with nothing on its input, and what it prints."""
    reader, writer = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.fdopen(reader, "rb")
    try:
        process = await spawn(
            argv,
            env=env,
            cwd=cwd,
            stdin=nothing,
            stdout=writer,
            stderr=writer,
            fence=fence(),
        )
    except BaseException:
        output.close()
        raise
    finally:
        os.close(writer)
        os.close(nothing)
    stream = asyncio.StreamReader(limit=1 << 24)
    try:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), output
        )
        try:
            yield process, stream
        finally:
            transport.close()
    finally:
        await process.stop(exit_within=0, term_within=0)


async def output_of(*argv: str, env: Mapping[str, str] = ENV, cwd: str | None = None) -> str:
    async with running(*argv, env=env, cwd=cwd) as (_, output):
        return (await output.read()).decode()


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


async def gone(*pids: int) -> None:
    async with asyncio.timeout(60):
        while any(map(exists, pids)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def keeper_of(pid: int) -> int:
    """In a fence there is one more process between the two."""
    above = parent(pid)
    return parent(above) if FENCED else above
