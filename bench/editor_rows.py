"""What is measured of `dragoman acp`: what it adds to an agent that an editor could start."""

from __future__ import annotations

import sys
from statistics import median
from typing import TYPE_CHECKING

from bench.measure import Column, Samples, interleave, run
from bench.prepare import HERE, Missing
from bench.report import OURS, Cells, Row, at_most

if TYPE_CHECKING:
    from bench.rows import Bench

_DIRECT = "direct"
_SNAPSHOTS = "snapshots"
_PROMPTS = 100
_NOTE = (
    "Editor: our own client as the editor, with the native agent behind `dragoman acp`, which "
    "records in SQLite: a turn is on the disk before its prompt is sent, and an update before the "
    "editor gets it. CPU is that of the `dragoman acp` process. The wait is the median of "
    f"{_PROMPTS} prompts, less that of the same client with the agent itself in the same rounds. "
    "Snapshots hold a prompt until git has read the folder, here of one file; "
    '`"snapshots": {"enabled": false}` switches them off.'
)


def editor(bench: Bench) -> list[Row]:
    samples = interleave(
        {
            _DIRECT: _column(bench, "direct"),
            OURS: _column(bench, "plain"),
            _SNAPSHOTS: _column(bench, "snapshots"),
        },
        bench.counts.rounds,
    )
    cpu: Cells = {OURS: _each(samples, OURS, "update_us")}
    return [
        Row("an update through `dragoman acp`, CPU", "{:.1f} µs", cpu, at_most(60, "µs"), _NOTE),
        Row(
            "first update through `dragoman acp`, more than direct, without snapshots",
            "{:.2f} ms",
            {OURS: _more(samples, OURS)},
            at_most(2, "ms"),
        ),
        Row("the same with snapshots", "{:.2f} ms", {OURS: _more(samples, _SNAPSHOTS)}),
    ]


def _column(bench: Bench, way: str) -> Column | Missing:
    if isinstance(bench.agent, Missing):
        return bench.agent
    client = (sys.executable, str(HERE / "clients" / "editor.py"))
    command = [*client, str(bench.agent), str(bench.counts.updates), str(_PROMPTS), way]
    return lambda: run(command)


def _each(samples: Samples, column: str, figure: str) -> list[float] | Missing:
    found = samples[column]
    return found if isinstance(found, Missing) else [one[figure] for one in found]


def _more(samples: Samples, column: str) -> list[float] | Missing:
    """Than without Dragoman in between."""
    ours, direct = (_each(samples, each, "first_ms") for each in (column, _DIRECT))
    if isinstance(ours, Missing):
        return ours
    if isinstance(direct, Missing):
        return direct
    return [one - median(direct) for one in ours]
