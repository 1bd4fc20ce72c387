"""What is measured of remote agents: a WebSocket on loopback, beside pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from bench.measure import Column, Figures, Samples, interleave, run
from bench.prepare import BUILD, HERE, Missing
from bench.report import OURS, Cells, Row, at_least, at_most_times

if TYPE_CHECKING:
    from bench.rows import Bench

_STDIO = "stdio"
_CLIENT = [sys.executable, str(HERE / "clients" / "websocket.py")]
_NOTE = (
    "WebSocket: on loopback, to an agent in Python that has its frames ready; *stdio* is the same "
    "client with the native agent, measured in turns with it."
)


def websocket(bench: Bench) -> list[Row]:
    return [*_updates(bench), *_round_trips(bench)]


def _updates(bench: Bench) -> list[Row]:
    count = bench.counts.updates
    samples = _samples(bench, "updates", str(count))
    rate = _cells(samples, lambda one: count / one["wall_s"])
    cpu = _cells(samples, lambda one: one["cpu_s"])
    what = f"{count:,} text chunks over WebSocket"
    goal = at_least(100_000, "/s")
    return [
        Row(f"{what}, rate", "{:,.0f}/s", rate, goal, _NOTE, more_is_better=True),
        Row(f"{what}, CPU", "{:.3f} s", cpu, at_most_times(3, _STDIO)),
    ]


def _round_trips(bench: Bench) -> list[Row]:
    times = BUILD / "round_trips.json"
    samples = _samples(bench, "roundtrips", str(bench.counts.requests), str(times))
    middle = _cells(samples, lambda one: one["median_us"])
    what = "agent's request over WebSocket, median round trip"
    return [Row(what, "{:.0f} µs", middle, at_most_times(3, _STDIO), _beside(middle))]


def _beside(cells: Cells) -> str:
    stdio = cells[_STDIO]
    if isinstance(stdio, Missing):
        return ""
    return f"Over stdio the median round trip took {median(stdio):.0f} µs in the same rounds."


def _samples(bench: Bench, *scene: str) -> Samples:
    updates = int(scene[1]) if scene[0] == "updates" else 0
    ours = [sys.executable, str(HERE / "clients" / "ours.py")]
    stdio = bench.client(ours, scene, updates)
    columns: dict[str, Column | Missing] = {
        OURS: lambda: _with_times(run([*_CLIENT, *scene]), scene),
        _STDIO: stdio if isinstance(stdio, Missing) else lambda: _with_times(stdio(), scene),
    }
    return interleave(columns, bench.counts.rounds)


def _with_times(figures: Figures, scene: tuple[str, ...]) -> Figures:
    if scene[0] == "updates":
        return figures
    with open(scene[2]) as file:
        return figures | json.load(file)


def _cells(samples: Samples, figure: Callable[[Figures], float]) -> Cells:
    return {
        name: runs if isinstance(runs, Missing) else [figure(one) for one in runs]
        for name, runs in samples.items()
    }
