"""`python -m bench [--quick] [NAME …]`: measure, print, and write RESULTS.md after a full run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TypeVar

from bench import prepare, report
from bench.measure import adopt_orphans, use_two_cores
from bench.prepare import Missing
from bench.rows import FULL, MEASUREMENTS, QUICK, Bench

T = TypeVar("T")


def main() -> int:
    options = _options()
    load_before = os.getloadavg()[0]
    use_two_cores()
    adopt_orphans()
    counts = QUICK if options.quick else FULL
    bench = Bench(
        agent=_try(prepare.build_agent),
        typescript=_try(prepare.install_typescript_client),
        acpx=_try(prepare.install_acpx),
        counts=counts,
    )
    bench.warm_up()
    rows: list[report.Row] = []
    for measurement in MEASUREMENTS:
        if not options.names or measurement.__name__ in options.names:
            print(f"measuring {measurement.__name__} …", file=sys.stderr, flush=True)
            rows += measurement(bench)
    text = report.document(rows, counts.rounds, (load_before, os.getloadavg()[0]))
    print(text)
    if not options.quick and not options.names:
        (prepare.HERE / "RESULTS.md").write_text(text)
    return int(any(row.figure(report.OURS) is None for row in rows))


def _options() -> argparse.Namespace:
    known = [measurement.__name__ for measurement in MEASUREMENTS]
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, side by side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="smaller counts; RESULTS.md stays")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"there is no {', '.join(unknown)}")
    return options


def _try(build: Callable[[], T]) -> T | Missing:
    try:
        return build()
    except Missing as missing:
        return missing


if __name__ == "__main__":
    sys.exit(main())
