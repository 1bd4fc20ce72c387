"""Takes snapshots of a folder, in each of which a file was changed, and prints what they cost.

python snapshot.py fill DIRECTORY FILES   makes the folder, and takes the first one
python snapshot.py take DIRECTORY TIMES
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from dragoman.host.snapshots.snapshots import Snapshots

_A_FOLDER = 100


def fill(folder: Path, files: int) -> None:
    for number in range(files):
        path = folder / str(number // _A_FOLDER) / f"{number}.txt"
        if number % _A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"line {number}\n" * 20)


async def main(what: str, directory: Path, count: int) -> None:
    folder, snapshots = directory / "folder", Snapshots(directory / "data")
    if what == "fill":
        fill(folder, count)
    await snapshots.take([str(folder)], "s")
    held: list[float] = []
    for number in range(0 if what == "fill" else count):
        begun = time.monotonic()
        (folder / "0" / "0.txt").write_text(f"{number} {begun}\n")
        [root] = await snapshots.take([str(folder)], "s")
        held.append(time.monotonic() - begun)
        assert root.tree is not None, root.problem
    print(json.dumps({"held_ms": 1000 * sorted(held or [0])[len(held) // 2]}))


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
