"""Takes a snapshot of a folder, and is killed while git holds the index.

python killed_snapshot.py FOLDER DATA
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.folders import Watched

from dragoman.host.snapshots.git_program import Git


def be_killed(repository: str) -> None:
    """As git would leave it."""
    Path(repository, "index.lock").write_bytes(b"half an index")
    os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path, data: Path) -> None:
    watched = Watched(folder, data)
    call = Git.__call__

    async def called(git: Git, *words: str | bytes, **options: object) -> bytes:
        if "write-tree" in words:
            be_killed(git.directory)
        return await call(git, *words, **options)  # pyright: ignore

    Git.__call__ = called  # pyright: ignore
    await watched.take()


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
