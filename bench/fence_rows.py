"""What is measured of the fence. There is no other column: no client beside ours has one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from bench.measure import Figures, interleave, run
from bench.prepare import BUILD, HERE, Missing
from bench.report import OURS, Cells, Goal, Row, at_most

if TYPE_CHECKING:
    from bench.rows import Bench

_STARTS = 50
_NOTE = (
    "Fence: programs of this machine, with a fence around them and without one. An installation "
    "unpacks, checks and writes 20,000 files of 8 kB in folders of twenty (2,000 in a quick run)."
)
_ROWS: tuple[tuple[str, str, str, Goal], ...] = (
    ("start_on", "a start in a fence, more than without", "{:.1f} ms", at_most(3, "ms")),
    ("install_on", "an installation in a fence, to one without", "{:.2f}×", at_most(1.05, "×")),
    ("install_ask", "the same with `ask`", "{:.2f}×", at_most(1.6, "×")),
)


def fence(bench: Bench) -> list[Row]:
    files = max(2_000, bench.counts.updates // 5)
    samples = interleave({OURS: lambda: _measured(files)}, min(bench.counts.rounds, 3))[OURS]
    return [
        Row(work, shown, _cells(samples, figure), goal, _NOTE)
        for figure, work, shown, goal in _ROWS
    ]


def _measured(files: int) -> Figures:
    """On the disk of the repository, which is not private inside a fence as /tmp is."""
    BUILD.mkdir(exist_ok=True)
    place = tempfile.mkdtemp(dir=BUILD, prefix="fence-")
    program = [sys.executable, str(HERE / "clients" / "fenced.py"), place, str(files), str(_STARTS)]
    try:
        found = run(program)
    finally:
        shutil.rmtree(place)
    return {
        "start_on": found["start_on"] - found["start_off"],
        "install_on": found["install_on"] / found["install_off"],
        "install_ask": found["install_ask"] / found["install_off"],
    }


def _cells(samples: list[Figures] | Missing, figure: str) -> Cells:
    return {OURS: samples if isinstance(samples, Missing) else [one[figure] for one in samples]}
