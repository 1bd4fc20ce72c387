"""Runs an agent over a folder of tasks, and prints who passed.

    python examples/evaluate_folder.py claude tasks/

Each task is a folder with `TASK.md` (the prompt), `CHECK` (a shell command; 0 is a pass) and the
files to work on. Nothing in it is changed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import dragoman


async def attempt(agent: str | dragoman.AgentCommand, folder: Path) -> dragoman.Solution:
    task, check = ((folder / name).read_text().strip() for name in ("TASK.md", "CHECK"))
    # Without a fence where this system cannot build one; `require` insists.
    return await dragoman.solve(task, agent, check, cwd=folder, max_seconds=900, fence="on")


async def evaluate(agent: str | dragoman.AgentCommand, folders: list[Path]) -> float:
    """Try all tasks at once; the share that passed."""
    solutions = await asyncio.gather(*(attempt(agent, folder) for folder in folders))
    for folder, solution in zip(folders, solutions, strict=True):
        mark = "passed" if solution.passed else "failed"
        print(f"{mark}  {folder.name}  {solution.entrant.seconds:.1f} s  {solution.reason}")
    return sum(each.passed for each in solutions) / max(1, len(solutions))


if __name__ == "__main__":
    found = sorted(path.parent for path in Path(sys.argv[2]).glob("*/TASK.md"))
    share = asyncio.run(evaluate(sys.argv[1], found))
    print(f"{share:.0%} passed")
