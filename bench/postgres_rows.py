"""What is measured of a PostgreSQL store that several hosts share, each a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from bench.measure import Figures, interleave
from bench.prepare import HERE, Missing
from bench.report import OURS, Cells, Row, at_least, at_most, at_most_times
from tests.support.postgres import own_server

if TYPE_CHECKING:
    from bench.rows import Bench

_HOSTS = 8
_LIVE = 1000
_SECONDS = 10
_SESSIONS = 500
_TIMEOUT_SECONDS = 1200.0
_LONG = 100_000
_FIRST = "the first mark"
_LAST = "the last 1,000"
_NOTE = (
    "PostgreSQL: the distribution's, with its own settings but 64 MB of buffers, on the same cores "
    "as the eight hosts that write and the one that reads; every commit is on the disk."
)
_GROWTH_NOTE = (
    f"Growth: the events are spread over {_SESSIONS} sessions, and one in a hundred has a text "
    "that goes into search; a figure is the best of ten samples at its mark, and flat means "
    "that the last is at most 1.5 times the first."
)


def postgres(bench: Bench) -> list[Row]:
    """How much eight hosts store, and how late a ninth sees what a thousand sessions do."""
    rounds = min(bench.counts.rounds, 3)
    flood = interleave({OURS: lambda: _together("flood", 20)}, rounds)[OURS]
    pace = interleave({OURS: lambda: _together("pace", _LIVE // _HOSTS)}, rounds)[OURS]
    rate, lag = at_least(10_000, "/s"), at_most(250, "ms")
    seen = f"event of one of {_LIVE:,} live sessions seen on another host"
    what = f"stored in one PostgreSQL by {_HOSTS} hosts"
    return [
        Row(
            f"events {what}, rate",
            "{:,.0f}/s",
            _cells(flood, "rate"),
            rate,
            _NOTE,
            more_is_better=True,
        ),
        Row(f"event {what}, CPU of a host", "{:.1f} µs", _cells(flood, "cpu_us")),
        Row(f"{seen}, median", "{:.0f} ms", _cells(pace, "p50_ms")),
        Row(f"{seen}, p99", "{:.0f} ms", _cells(pace, "p99_ms"), lag),
        _first_page(),
    ]


def _first_page() -> Row:
    """A long session is read for the cost of its pages, not for that of all the rest."""
    samples = interleave({OURS: lambda: _alone("pages", _SESSIONS, _LONG)}, 1)[OURS]
    cells = {**_cells(samples, "first"), _LAST: _cells(samples, "last")[OURS]}
    what = f"first 1,000 of {_LONG:,} events of a session read from PostgreSQL, wall"
    return Row(what, "{:.1f} ms", cells, at_most_times(2, _LAST))


def postgres_growth(bench: Bench) -> list[Row]:
    """The curve: what an event takes does not depend on how many there are."""
    most = bench.counts.updates_for_memory * 5
    marks = [mark for mark in (1_000, 100_000, 1_000_000, 5_000_000) if mark <= most]
    samples = interleave({OURS: lambda: _alone("growth", _SESSIONS, *marks)}, 1)[OURS]
    return [row for mark in marks for row in _at_mark(samples, mark, marks)]


def _at_mark(samples: list[Figures] | Missing, mark: int, marks: Sequence[int]) -> list[Row]:
    """Behind the most, both must be what they were behind the fewest."""
    flat = at_most_times(1.5, _FIRST) if mark == marks[-1] else None
    rows: list[Row] = []
    for work, figure, shown in (
        ("event stored in PostgreSQL", "write", "{:.1f} µs"),
        ("1,000 events read from PostgreSQL", "read", "{:.1f} ms"),
    ):
        cells = dict(_cells(samples, f"{figure}_{mark}"))
        if flat is not None:
            cells[_FIRST] = _cells(samples, f"{figure}_{marks[0]}")[OURS]
        rows.append(Row(f"{work} behind {mark:,} others, wall", shown, cells, flat, _GROWTH_NOTE))
    return rows


def _together(work: str, sessions: int) -> Figures:
    with _database() as address:
        writers = [_client(address, work, _SECONDS, sessions) for _ in range(_HOSTS)]
        reader = _client(address, "follow", _SECONDS + 2)
        *wrote, read = _outcomes([*writers, reader])
    events = sum(figures["events"] for figures in wrote)
    cpu = sum(figures.get("cpu_us", 0) * figures["events"] for figures in wrote) / events
    return read | {"rate": events / _SECONDS, "cpu_us": cpu}


def _alone(*words: object) -> Figures:
    with _database() as address:
        return _outcomes([_client(address, *words)])[0]


@contextmanager
def _database() -> Generator[str]:
    try:
        server = own_server()
    except pytest.skip.Exception as skipped:
        raise Missing(str(skipped)) from None
    try:
        yield server.address()
    finally:
        server.remove()


def _client(address: str, *words: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "bench.clients.postgres", address, *map(str, words)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=HERE.parent)


def _outcomes(clients: Sequence[subprocess.Popen[str]]) -> list[Figures]:
    """What each found that began at the same moment."""
    try:
        for client in clients:
            if client.stdout is None or client.stdout.readline() != "ready\n":
                raise Missing("a host did not start")
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        printed = [client.communicate(timeout=_TIMEOUT_SECONDS)[0] for client in clients]
    finally:
        for client in clients:
            client.kill()
            client.wait()
    return [json.loads(line) for line in printed]


def _cells(samples: list[Figures] | Missing, figure: str) -> Cells:
    found = samples if isinstance(samples, Missing) else [one[figure] for one in samples]
    return {OURS: found}
