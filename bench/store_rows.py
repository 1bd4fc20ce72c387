"""What is measured of the store. There is no other column: no client beside ours has one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.measure import Figures, interleave, run
from bench.prepare import BUILD, HERE, Missing
from bench.report import OURS, Cells, Row, at_least, at_most

if TYPE_CHECKING:
    from bench.rows import Bench

_LONG = 100_000
_NOTE = (
    "Store: SQLite with `synchronous=FULL`, with mirror and the session's record; CPU is that of "
    "all threads. Events are those of a lively session, about 100 bytes each, encoded beforehand."
)


def store(bench: Bench) -> list[Row]:
    """One batch after the other: what waits meanwhile would only make the batches larger."""
    rows: list[Row] = []
    for size in (1, 100, 1000):
        count = bench.counts.updates // 50 if size == 1 else bench.counts.updates
        samples = _samples(bench.counts.rounds, "append", str(size), str(count))
        cpu, rate = _cells(samples, "cpu_us"), _cells(samples, "per_second")
        many = size == 1000
        goal, fast = (at_most(8, "µs"), at_least(50_000, "/s")) if many else (None, None)
        what = f"stored in batches of {size:,}"
        rows += [
            Row(f"event {what}, CPU", "{:.1f} µs", cpu, goal, _NOTE),
            Row(f"events {what}, rate", "{:,.0f}/s", rate, fast, more_is_better=True),
        ]
    return rows


def store_growth(bench: Bench) -> list[Row]:
    """The curve: what an event costs does not depend on how many there are."""
    marks = [
        mark
        for mark in (1_000, 10_000, 100_000, 1_000_000)
        if mark <= bench.counts.updates_for_memory
    ]
    samples = _samples(min(bench.counts.rounds, 3), "growth", *map(str, marks))
    goal = at_most(8, "µs")
    return [
        Row(
            f"event stored behind {mark:,} others, CPU",
            "{:.1f} µs",
            _cells(samples, f"at_{mark}"),
            goal,
        )
        for mark in marks
    ]


def open_100k(bench: Bench) -> list[Row]:
    """From nothing to the whole state, without a snapshot."""
    with _directory() as directory:
        fill = {OURS: lambda: run([*_COMMAND, directory, "fill", str(_LONG)])}
        opening = {OURS: lambda: run([*_COMMAND, directory, "open"])}
        samples = interleave(fill, 1)[OURS]
        if not isinstance(samples, Missing):
            samples = interleave(opening, bench.counts.rounds)[OURS]
    what = f"a stored session of {_LONG:,} events, read, decoded and folded"
    opened = "an existing store opened"
    return [
        Row(f"{what}, wall", "{:.2f} s", _cells(samples, "wall_s"), at_most(1, "s")),
        Row(f"{what}, CPU", "{:.2f} s", _cells(samples, "cpu_s")),
        Row(f"{opened}, wall", "{:.1f} ms", _cells(samples, "open_ms"), at_most(15, "ms")),
    ]


_COMMAND = [sys.executable, str(HERE / "clients" / "store.py")]


def _samples(rounds: int, *work: str) -> list[Figures] | Missing:
    return interleave({OURS: lambda: _in_a_new_store(*work)}, rounds)[OURS]


def _in_a_new_store(*work: str) -> Figures:
    with _directory() as directory:
        return run([*_COMMAND, directory, *work])


def _cells(samples: list[Figures] | Missing, figure: str) -> Cells:
    found = samples if isinstance(samples, Missing) else [one[figure] for one in samples]
    return {OURS: found}


@contextmanager
def _directory() -> Generator[str]:
    """On the disk of the repository: elsewhere there may be none behind it."""
    BUILD.mkdir(exist_ok=True)
    directory = tempfile.mkdtemp(dir=BUILD, prefix="store-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
