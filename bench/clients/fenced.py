"""Programs in a fence: how long they take to start, and to write many files, in each kind of fence.

`fenced.py PLACE FILES STARTS` prints milliseconds of a start and seconds of an installation, for
each mode. An installation does what a package manager does: it unpacks files, checks their hashes
and writes them into folders of twenty.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

from dragoman.fence.plan import FencePlan
from dragoman.host.fence.fence import Fence
from dragoman.host.fence.fence_terms import FenceMode
from dragoman.host.fence.floor import floor_for
from dragoman.process.spawn import spawn

PLACE, FILES, STARTS = Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3])
ROUNDS = 3
MODES: tuple[FenceMode, ...] = ("off", "on", "ask")
INSTALL = """
import hashlib, os, sys, zlib
hashes = (hashlib.sha512(str(number).encode()).hexdigest() for number in range(64))
packed = zlib.compress("".join(hashes).encode())
for number in range(int(sys.argv[1])):
    folder = f"installed/{number // 20}"
    if number % 20 == 0:
        os.makedirs(folder)
    content = zlib.decompress(packed)
    hashlib.sha512(content).digest()
    file = os.open(f"{folder}/{number}.js", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, content)
    os.close(file)
"""


async def main() -> None:
    fences = {mode: Fence(mode, [str(PLACE / "ws")], floor_for) for mode in MODES}
    plans = {mode: await fence.open("bench") for mode, fence in fences.items()}
    if any(plans[mode] is None or fences[mode].gate is None for mode in MODES[1:]):
        sys.exit("this system cannot build a fence with a gate")
    figures: dict[str, float] = {}
    starts: dict[FenceMode, list[float]] = {mode: [] for mode in MODES}
    for _ in range(STARTS):
        for mode in MODES:
            starts[mode].append(await timed(["/bin/true"], plans[mode]))
    installs: dict[FenceMode, list[float]] = {mode: [] for mode in MODES}
    for _ in range(ROUNDS):
        for mode in MODES:
            shutil.rmtree(PLACE / "ws" / "installed", ignore_errors=True)
            words = [sys.executable, "-S", "-c", INSTALL, str(FILES)]
            installs[mode].append(await timed(words, plans[mode]))
    for mode in MODES:
        figures[f"start_{mode}"] = 1000 * statistics.median(starts[mode])
        figures[f"install_{mode}"] = min(installs[mode])
        await fences[mode].aclose()
    print(json.dumps(figures))


async def timed(words: list[str], plan: FencePlan | None) -> float:
    """Until the program has ended."""
    nothing = os.open(os.devnull, os.O_RDWR)
    began = time.perf_counter()
    try:
        process = await spawn(
            words,
            env=dict(os.environ),
            cwd=str(PLACE / "ws"),
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            fence=plan,
        )
        if (await process.wait()).code != 0:
            sys.exit(f"{words[0]} failed")
        took = time.perf_counter() - began
        await process.stop(exit_within=0, term_within=0)
        return took
    finally:
        os.close(nothing)


if __name__ == "__main__":
    (PLACE / "ws").mkdir(parents=True)
    os.environ["DRAGOMAN_HOME"] = str(PLACE / "data")
    asyncio.run(main())
