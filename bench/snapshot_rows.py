"""What is measured of snapshots. There is no other column: no client beside ours takes any."""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING

from bench.measure import Figures, interleave, run
from bench.prepare import HERE, Missing
from bench.report import OURS, Cells, Row, at_most

if TYPE_CHECKING:
    from bench.rows import Bench

_COMMAND = [sys.executable, str(HERE / "clients" / "snapshot.py")]
_TIMES = 10
_NOTE = (
    "Snapshots: of a folder in which one file was changed since the last, with git and everything "
    "else that runs for it. A prompt is held back for as long as the snapshot before it takes."
)


def snapshots(bench: Bench) -> list[Row]:
    """The folder was read before, by another process."""
    rows: list[Row] = []
    for files, most in ((10_000, 100), (100_000, 1_000)):
        with tempfile.TemporaryDirectory() as directory:
            samples = _samples(directory, files, bench.counts.rounds)
        rows += [
            Row(
                f"snapshot of {files:,} files, CPU",
                "{:.0f} ms",
                _cells(samples, "cpu_ms"),
                at_most(most, "ms"),
                _NOTE,
            ),
            Row(f"prompt held for {files:,} files", "{:.0f} ms", _cells(samples, "held_ms")),
        ]
    return rows


def _samples(directory: str, files: int, rounds: int) -> list[Figures] | Missing:
    try:
        run([*_COMMAND, "fill", directory, str(files)])
    except Missing as missing:
        return missing

    def one() -> Figures:
        many = run([*_COMMAND, "take", directory, str(_TIMES + 1)])
        single = run([*_COMMAND, "take", directory, "1"])
        cpu = (many["process_cpu_s"] - single["process_cpu_s"]) / _TIMES * 1000
        return {"cpu_ms": cpu, "held_ms": many["held_ms"]}

    return interleave({OURS: one}, rounds)[OURS]


def _cells(samples: list[Figures] | Missing, figure: str) -> Cells:
    return {OURS: samples if isinstance(samples, Missing) else [one[figure] for one in samples]}
