"""What is measured of the page, in the system's Chromium; there is no other column."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.prepare import HERE, Missing
from bench.report import OURS, Cells, Goal, Row, at_most

if TYPE_CHECKING:
    from bench.rows import Bench

_TESTS = HERE.parent / "tests"
_NOTE = (
    "Page: the built page and a real server on this machine, which share the cores with the "
    "browser. First paint is that of a new profile. The end of a session is there when its last "
    "word can be read, from the click on; the page asks for the end first. A browser draws 60 "
    "frames a second at most, so 16.7 ms is a frame on time; each figure is the median of a fifth "
    "of the frames."
)
_ROWS: tuple[tuple[str, str, str, Goal], ...] = (
    ("size", "page, gzipped", "{:.0f} kB", at_most(450, "kB")),
    ("paint", "first paint", "{:.0f} ms", at_most(1000, "ms")),
    ("end", "end of a session of 100,000 events shown", "{:.0f} ms", at_most(300, "ms")),
    ("scrolling", "frame while scrolling in 10,000 entries", "{:.1f} ms", at_most(17, "ms")),
    ("streaming", "frame while streaming into 10,000 entries", "{:.1f} ms", at_most(17, "ms")),
)


def page(bench: Bench) -> list[Row]:
    figures = _figures(bench.counts.rounds)
    return [
        Row(work, shown, _cells(figures, name), goal, _NOTE) for name, work, shown, goal in _ROWS
    ]


def _cells(figures: dict[str, list[float]] | Missing, name: str) -> Cells:
    return {OURS: figures if isinstance(figures, Missing) else figures[name]}


def _figures(rounds: int) -> dict[str, list[float]] | Missing:
    """Measured by the tests' own means: they know how to serve and to look."""
    program = [sys.executable, str(_TESTS / "page" / "measure.py"), str(rounds)]
    environment = os.environ | {"PYTHONPATH": str(_TESTS)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return Missing(done.stderr.strip().splitlines()[-1] if done.stderr else "no browser")
    return json.loads(done.stdout)
