"""Reverts a turn in a folder, and is killed after so many files.

python killed_restore.py FOLDER DATA COUNT
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.folders import Watched

from dragoman.host.snapshots import journal


def write_all(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_text("agent\n")


async def main(folder: Path, data: Path, most: int) -> None:
    watched = Watched(folder, data)
    await watched.turn("t", write_all)
    done, really = count(1), journal.place

    def place(*arguments: object) -> None:
        really(*arguments)  # pyright: ignore
        if next(done) == most:
            os.kill(os.getpid(), signal.SIGKILL)

    journal.place = place
    await watched.revert()


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
