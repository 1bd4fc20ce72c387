"""The official TypeScript SDK with the WebSocket package its examples use, kept in `.cache`."""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.examples_of_sdks import CACHE, TYPESCRIPT_SDK

PROGRAMS = Path(__file__).parents[1] / "bridge" / "programs"
_PACKAGES = (TYPESCRIPT_SDK, "ws@8.18.3")
_SECONDS = 100


def _beside_the_packages(program: str) -> Path:
    """A copy of the program, where Node finds the packages; skips where they cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the TypeScript SDK needs node and npm")
    folder = CACHE / "ts-remote-1.9.0"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(npm, folder)
        shutil.copy(PROGRAMS / program, folder)
    return folder / program


def _install(npm: str, folder: Path) -> None:
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(folder), *quiet, *_PACKAGES]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the TypeScript SDK could not be fetched: {error}")
    (folder / "complete").touch()


@asynccontextmanager
async def node(program: str, *words: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A program of ours on Node."""
    copy = await asyncio.to_thread(_beside_the_packages, program)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "node", "--no-warnings", str(copy), *words, stdin=pipe, stdout=pipe, limit=1 << 24
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def printed(process: asyncio.subprocess.Process) -> Any:
    """The next line it prints, which is JSON."""
    assert process.stdout is not None
    async with asyncio.timeout(_SECONDS):
        line = await process.stdout.readline()
    assert line, "the program has ended"
    return json.loads(line)
