"""What is measured: one function for each piece of work, giving one row or several.

To add one, write a function that takes a `Bench` and gives rows, and name it in MEASUREMENTS.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.editor_rows import editor
from bench.fence_rows import fence
from bench.measure import (
    Column,
    Figures,
    Samples,
    end_what_stays,
    interleave,
    one_core,
    run,
    run_beside_what_stays,
)
from bench.page_rows import page
from bench.postgres_rows import postgres, postgres_growth
from bench.prepare import BUILD, HERE, TYPESCRIPT_SDK, Missing
from bench.remote_rows import websocket
from bench.report import (
    ACPX,
    BY_HAND,
    OURS,
    PYTHON,
    TYPESCRIPT,
    Cells,
    Row,
    at_least,
    at_most,
    at_most_times,
    times_less,
)
from bench.snapshot_rows import snapshots
from bench.store_rows import open_100k, store, store_growth

Columns = Mapping[str, Column | Missing]


@dataclass(frozen=True)
class Counts:
    rounds: int
    updates: int
    updates_for_memory: int
    requests: int
    megabytes: int


FULL = Counts(
    rounds=5, updates=100_000, updates_for_memory=1_000_000, requests=5_000, megabytes=200
)
QUICK = Counts(rounds=3, updates=10_000, updates_for_memory=50_000, requests=1_000, megabytes=20)


@dataclass(frozen=True)
class Bench:
    """The agent, the command that each column's client is started with, and how much to do."""

    agent: Path | Missing
    typescript: list[str] | Missing
    acpx: list[str] | Missing
    counts: Counts

    def warm_up(self) -> None:
        """Start every client once, so that none pays for compiling or for cold files."""
        interleave(self.clients("updates", "1", updates=1), rounds=1)

    def clients(self, *scene: str, updates: int) -> Columns:
        """Every client against a scene of the agent that sends so many updates."""
        return {
            name: self.client(command, scene, updates)
            for name, command in (
                (OURS, _python("ours")),
                (PYTHON, _python("python_sdk")),
                (TYPESCRIPT, self.typescript),
                (BY_HAND, _python("by_hand")),
            )
        }

    def client(
        self, client: list[str] | Missing, scene: tuple[str, ...], updates: int
    ) -> Column | Missing:
        if isinstance(client, Missing):
            return client
        if isinstance(self.agent, Missing):
            return self.agent
        command = [*client, str(self.agent), *scene]
        return lambda: _counted(run(command), updates)


def _python(client: str) -> list[str]:
    return [sys.executable, str(HERE / "clients" / f"{client}.py")]


def _counted(figures: Figures, updates: int) -> Figures:
    if figures["updates"] != updates:
        raise Missing(f"handled {figures['updates']} of {updates} updates")
    return figures


def _cells(samples: Samples, figure: Callable[[Figures], float]) -> Cells:
    return {
        name: runs if isinstance(runs, Missing) else [figure(one) for one in runs]
        for name, runs in samples.items()
    }


def updates(bench: Bench) -> list[Row]:
    return _streamed(bench, "updates", "text chunks")


def mixed_updates(bench: Bench) -> list[Row]:
    return _streamed(bench, "mix", "mixed updates")


def _streamed(bench: Bench, scene: str, what: str) -> list[Row]:
    count = bench.counts.updates
    columns = bench.clients(scene, str(count), updates=count)
    samples = interleave(columns, bench.counts.rounds)
    note = (
        "Updates: Dragoman decodes to typed structs, handles them in the order they came in, and "
        "feeds every frame to a tap; the SDKs do not wait for a handler and have no tap."
    )
    cpu = _cells(samples, lambda one: one["cpu_s"])
    rate = _cells(samples, lambda one: count / one["wall_s"])
    goal = times_less(8, PYTHON, TYPESCRIPT)
    return [
        Row(f"{count:,} {what}, CPU", "{:.3f} s", cpu, goal, note),
        Row(f"{count:,} {what}, rate", "{:,.0f}/s", rate, more_is_better=True),
    ]


def whole_client(bench: Bench) -> list[Row]:
    """The same work with everything on, as a program that uses the library sees it."""
    count = bench.counts.updates
    scene = ("updates", str(count))
    peers = bench.clients(*scene, updates=count)
    whole = bench.client(_python("whole_client"), scene, count)
    stored = bench.client(_python("stored_client"), scene, count)
    rounds = bench.counts.rounds + 4
    samples = interleave({**peers, OURS: whole, _STORED: stored}, rounds)
    recorded = samples.pop(_STORED)
    cpu = _cells(samples, lambda one: one["cpu_s"])
    with_disk = _cells({**samples, OURS: recorded}, lambda one: one["cpu_s"])
    note = (
        f"Whole client, {rounds} runs: tapped, typed, translated, folded into the state and read "
        "by a loop. Recorded: each event durable in SQLite, indexed for search and read from "
        "there as well; the other columns are those of the row above and record nothing."
    )
    goal = times_less(8, PYTHON, TYPESCRIPT)
    return [
        Row(f"{count:,} text chunks, whole client, CPU", "{:.3f} s", cpu, goal, note),
        Row(f"{count:,} text chunks, whole client, recorded, CPU", "{:.3f} s", with_disk),
    ]


_STORED = "Dragoman with its store"


def fold(bench: Bench) -> list[Row]:
    """No other client has a fold to compare with; the curve shows that its cost stays flat."""
    rows: list[Row] = []
    for count in (bench.counts.updates // 10, bench.counts.updates):
        command = [*_python("fold"), str(count)]
        samples = interleave({OURS: lambda c=command: run(c)}, bench.counts.rounds)
        cpu = _cells(samples, lambda one: one["cpu_s"])
        goal = at_most(0.5, "s") if count == FULL.updates else None
        rows.append(Row(f"{count:,} events folded, CPU", "{:.3f} s", cpu, goal))
    command = [*_python("fold"), str(bench.counts.updates), "subagent"]
    samples = interleave({OURS: lambda: run(command)}, bench.counts.rounds)
    cpu = _cells(samples, lambda one: one["cpu_s"])
    title = f"{bench.counts.updates:,} events of a subagent folded, CPU"
    rows.append(Row(title, "{:.3f} s", cpu))
    return rows


def limits(bench: Bench) -> list[Row]:
    """What a session with limits pays for each update in addition, in percent of what the whole
    client pays for it."""
    return [_watched(bench, "updates", "text chunks"), _watched(bench, "mix", "mixed updates")]


def _watched(bench: Bench, scene: str, what: str) -> Row:
    count = bench.counts.updates
    title = f"{what} watched for limits, of the CPU of a whole client"
    whole = bench.client(_python("whole_client"), (scene, str(count)), count)
    command = [*_python("limits"), str(count), scene]
    samples = interleave({_WHOLE: whole, OURS: lambda: run(command)}, bench.counts.rounds)
    cpu = _cells(samples, lambda one: one["cpu_s"])
    in_all = cpu[_WHOLE]
    if isinstance(in_all, Missing):
        return Row(title, "{:.2f} %", {OURS: in_all})
    ours = cpu[OURS]
    share: Cells = {
        OURS: ours
        if isinstance(ours, Missing)
        else [100 * one / all_ for one, all_ in zip(ours, in_all, strict=True)]
    }
    return Row(title, "{:.2f} %", share, at_most(2, "%"))


_WHOLE = "the whole client"


def decisions(bench: Bench) -> list[Row]:
    """Each asks the disk: where the folder of the line, or the file, really is, and for a write
    which protected names lead there."""
    command = [*_python("decisions"), str(bench.counts.requests)]
    samples = interleave({OURS: lambda: run(command)}, bench.counts.rounds)
    goal = at_most(100, "µs")
    return [
        Row(
            f"{what} under 500 stored rules, CPU",
            "{:.0f} µs",
            _cells(samples, lambda one, figure=figure: one[figure]),
            goal,
        )
        for what, figure in (
            ("a command decided", "command_us"),
            ("a shell line decided", "line_us"),
            ("a shell line read and decided", "new_line_us"),
            ("a read decided", "read_us"),
            ("a write decided", "write_us"),
        )
    ]


def terminal(bench: Bench) -> list[Row]:
    """Through a PTY that keeps the last mebibyte."""
    program = HERE.parent / "tests" / "host" / "programs" / "flood.py"
    command = [sys.executable, str(program), str(bench.counts.megabytes)]
    samples = interleave({OURS: lambda: run(command)}, bench.counts.rounds)
    rate = _cells(samples, lambda one: one["megabytes_per_second"])
    growth = _cells(samples, lambda one: one["peak_growth_mib"])
    size = f"{bench.counts.megabytes} MB through a terminal"
    return [
        Row(f"{size}, rate", "{:.0f} MB/s", rate, at_least(40, "MB/s"), more_is_better=True),
        Row(f"{size}, memory added", "{:.1f} MiB", growth, at_most(32, "MiB")),
    ]


def round_trips(bench: Bench) -> list[Row]:
    count = bench.counts.requests
    times = BUILD / "round_trips.json"
    clients = bench.clients("roundtrips", str(count), str(times), updates=0)
    columns = {name: _with_times(column, times) for name, column in clients.items()}
    with one_core():
        samples = interleave(columns, bench.counts.rounds)
    apart = interleave(columns, bench.counts.rounds)
    middle = _cells(samples, lambda one: one["median_us"])
    tail = _cells(samples, lambda one: one["p99_us"])
    cpu = _cells(samples, lambda one: one["cpu_s"] / (count + _WARM_UP) * 1e6)
    note = (
        f"Requests: {count:,} `fs/read_text_file`, one after the other, timed by the agent. "
        "Dragoman's handler answers at once, as a handler may that need not wait; the SDKs have "
        "coroutines only. The agent and its client share a core, so that the clients are "
        "measured: left to the scheduler they may sit on two, and to wake another core that "
        "sleeps takes this machine longer than all the work."
    )
    return [
        Row("agent's request, median round trip", "{:.0f} µs", middle, times_less(4, PYTHON), note),
        Row("agent's request, 99th percentile", "{:.0f} µs", tail),
        Row("agent's request, CPU", "{:.0f} µs", cpu),
        Row(
            "agent's request, median round trip, left to the scheduler",
            "{:.0f} µs",
            _cells(apart, lambda one: one["median_us"]),
        ),
    ]


# Requests the agent sends before it measures.
_WARM_UP = 500


def _with_times(column: Column | Missing, times: Path) -> Column | Missing:
    if isinstance(column, Missing):
        return column
    return lambda: column() | json.loads(times.read_text())


def one_shot(bench: Bench) -> list[Row]:
    samples = interleave(bench.clients("updates", "10", updates=10), bench.counts.rounds + 2)
    cpu = _cells(samples, lambda one: one["process_cpu_s"] * 1e3)
    wall = _cells(samples, lambda one: one["process_wall_s"] * 1e3)
    note = (
        "One shot: a fresh program spawns the agent, initialises, opens a session, prompts, takes "
        "10 updates and exits. Dragoman also starts the helper that keeps agents from outliving "
        "it. The column by hand stands for the prototype of the goal."
    )
    return [
        Row("one shot, CPU", "{:.0f} ms", cpu, note=note),
        Row("one shot, wall", "{:.0f} ms", wall, at_most_times(1.3, BY_HAND)),
    ]


def command_line(bench: Bench) -> list[Row]:
    """One shot with the whole command, settings and rendering on, beside the leading one."""
    columns = _command_lines(bench)
    samples = interleave(columns, bench.counts.rounds + 2)
    cpu = _cells(samples, lambda one: one["process_cpu_s"] * 1e3)
    wall = _cells(samples, lambda one: one["process_wall_s"] * 1e3)
    note = "Command line: `dragoman hello` and `acpx exec hello` with the same native agent."
    return [
        Row("command line, CPU", "{:.0f} ms", cpu, note=note),
        Row("command line, wall", "{:.0f} ms", wall, times_less(2, ACPX)),
        *_help(bench),
    ]


def warm_command_line(bench: Bench) -> list[Row]:
    """The second prompt in a session, whose agent has stayed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        samples = interleave(_warm_command_lines(bench, home), bench.counts.rounds + 2)
        end_what_stays()
    wall = _cells(samples, lambda one: one["process_wall_s"] * 1e3)
    note = (
        "Command line, warm: `dragoman --session b hello` and `acpx prompt -s b hello`, after one "
        "such run has left its agent behind."
    )
    return [Row("command line, warm, wall", "{:.0f} ms", wall, times_less(1.5, ACPX), note)]


def _warm_command_lines(bench: Bench, home: Path) -> Columns:
    if isinstance(bench.agent, Missing):
        return {OURS: bench.agent, ACPX: bench.agent}
    agent = f"{bench.agent} updates 10"
    command = str(Path(sys.executable).with_name("dragoman"))
    ours = [command, "--agent-command", agent, "--session", "b", "hello"]
    columns: dict[str, Column | Missing] = {OURS: _staying(ours, home), ACPX: Missing("no acpx")}
    if isinstance(bench.acpx, Missing):
        columns[ACPX] = bench.acpx
    else:
        theirs = [*bench.acpx, "--agent", agent]
        run_beside_what_stays([*theirs, "sessions", "ensure", "--name", "b"], home)
        columns[ACPX] = _staying([*theirs, "prompt", "-s", "b", "hello"], home)
    return columns


def _staying(command: list[str], home: Path) -> Column:
    run_beside_what_stays(command, home)
    return lambda: run_beside_what_stays(command, home)


def _command_lines(bench: Bench) -> Columns:
    if isinstance(bench.agent, Missing):
        return {OURS: bench.agent, ACPX: bench.agent}
    settings = BUILD / "settings.json"
    server = {"command": str(bench.agent), "args": ["updates", "10"]}
    settings.write_text(json.dumps({"agent_servers": {"native": server}}))
    command = Path(sys.executable).with_name("dragoman")
    columns: dict[str, Column | Missing] = {
        OURS: _printing([str(command), "--settings", str(settings), "hello"]),
        ACPX: bench.acpx
        if isinstance(bench.acpx, Missing)
        else _printing([*bench.acpx, "--agent", f"{bench.agent} updates 10", "exec", "hello"]),
    }
    return columns


def _help(bench: Bench) -> list[Row]:
    command = Path(sys.executable).with_name("dragoman")
    columns: dict[str, Column | Missing] = {
        OURS: _printing([str(command), "--help"]),
        BY_HAND: _python_code("import argparse"),
    }
    samples = interleave(columns, bench.counts.rounds + 2)
    cpu = _cells(samples, lambda one: one["process_cpu_s"] * 1e3)
    note = "Help: by hand is `import argparse` alone."
    return [Row("`--help`, CPU", "{:.0f} ms", cpu, at_most_times(2, BY_HAND), note)]


def _printing(command: list[str]) -> Column:
    """A program whose output is for people, so only its cost is read."""
    return lambda: run(command, reads=False)


def imports(bench: Bench) -> list[Row]:
    columns: dict[str, Column | Missing] = {
        OURS: _python_code(f"import {_OUR_MODULES}"),
        PYTHON: _python_code("import acp"),
        TYPESCRIPT: _node_import(bench.typescript),
        BY_HAND: _python_code("import asyncio, msgspec"),
        "bare": _python_code("pass"),
    }
    samples = interleave(columns, bench.counts.rounds + 2)
    cpu = _cells(samples, lambda one: one["process_cpu_s"] * 1e3)
    wall = _cells(samples, lambda one: one["process_wall_s"] * 1e3)
    cpu_row = Row("import, CPU", "{:.0f} ms", cpu, times_less(4, PYTHON))
    bare = cpu_row.figure("bare") or 0
    note = f"Import: a whole interpreter; one that imports nothing takes {bare:.0f} ms of CPU."
    return [
        cpu_row,
        Row("import, wall", "{:.0f} ms", wall, note=note),
    ]


# What a program that talks to an agent ends up with; the package alone imports nothing.
_OUR_MODULES = "dragoman.client.client"


def _python_code(code: str) -> Column:
    return lambda: run([sys.executable, "-c", code])


def _node_import(client: list[str] | Missing) -> Column | Missing:
    if isinstance(client, Missing):
        return client
    module = json.dumps(f"{BUILD}/node_modules/{TYPESCRIPT_SDK}/dist/v1/stable/acp.js")
    return lambda: run([client[0], "--input-type=module", "-e", f"import {module}"])


def memory(bench: Bench) -> list[Row]:
    count = bench.counts.updates_for_memory
    columns = bench.clients("updates", str(count), updates=count)
    samples = interleave(columns, bench.counts.rounds)
    peak = _cells(samples, lambda one: one["peak_mb"])
    return [Row(f"{count:,} updates not kept, peak memory", "{:.0f} MB", peak, at_most(30, "MB"))]


def frames(bench: Bench) -> list[Row]:
    return [row for megabytes in (10, 50) for row in _frame(bench, megabytes)]


def _frame(bench: Bench, megabytes: int) -> list[Row]:
    columns = bench.clients("frame", str(megabytes * 1_000_000), updates=1)
    samples = interleave(columns, bench.counts.rounds)
    cpu = _cells(samples, lambda one: one["cpu_s"])
    peak = _cells(samples, lambda one: one["peak_mb"])
    note = (
        "Frames: one text chunk, an escape every 80 bytes. The TypeScript SDK's limit of 32 MiB a "
        "message was raised; the others take 50 MB as they are."
    )
    return [
        Row(f"a frame of {megabytes} MB, CPU", "{:.3f} s", cpu, note=note),
        Row(f"a frame of {megabytes} MB, peak memory", "{:.0f} MB", peak),
    ]


MEASUREMENTS = (
    updates,
    mixed_updates,
    whole_client,
    fold,
    limits,
    decisions,
    round_trips,
    one_shot,
    command_line,
    warm_command_line,
    imports,
    memory,
    frames,
    terminal,
    websocket,
    fence,
    editor,
    store,
    store_growth,
    open_100k,
    snapshots,
    postgres,
    postgres_growth,
    page,
)
