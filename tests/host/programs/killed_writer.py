"""Kills a writer in mid-write, again and again, and prints what it left behind as JSON.

Arguments: a directory, how often, a seed, and "atomic" or "plain" (the control).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.host.workspace.files import LocalFiles
from dragoman.host.workspace.roots import Workspace

SIZE = 2 << 20
CONTENTS = ("A" * SIZE, "B" * SIZE)


def atomic_writer(path: Path) -> None:
    async def write_for_ever() -> None:
        files, workspace = LocalFiles(), Workspace("s", str(path.parent))
        while True:
            for content in CONTENTS:
                await files.write_text_file(workspace, str(path), content)

    asyncio.run(write_for_ever())


def plain_writer(path: Path) -> None:
    while True:
        for content in CONTENTS:
            path.write_text(content)


def kill_once(write_for_ever: Callable[[Path], None], path: Path, delay: float) -> None:
    before = path.stat().st_mtime_ns
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(path)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 60
    while path.stat().st_mtime_ns == before and time.monotonic() < deadline:
        time.sleep(0.0005)  # until it has begun
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    directory, times, seed, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    path, chosen = directory / "file.txt", random.Random(int(seed))
    path.write_text(CONTENTS[0])
    writer = atomic_writer if kind == "atomic" else plain_writer
    torn, left_over, visible = 0, list[int](), list[str]()
    for _ in range(times):
        kill_once(writer, path, chosen.uniform(0, 0.06))
        torn += path.read_text() not in CONTENTS
        found = [entry for entry in directory.iterdir() if entry != path]
        left_over.append(len(found))
        visible += [entry.name for entry in found if not entry.name.startswith(".")]
        for entry in found:
            entry.unlink()
    os.write(1, json.dumps({"torn": torn, "left": left_over, "visible": visible}).encode())


main()
