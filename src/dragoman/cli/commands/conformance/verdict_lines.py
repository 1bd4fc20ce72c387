"""What both examinations print: the table of checks, one of them explained, and the verdicts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.render.style import BOLD, DIM, GREEN, RED, YELLOW, Style, wants_colour
from dragoman.conformance.catalogue import UnknownCheck, find, select, table
from dragoman.conformance.check import LEVELS, Check, Side
from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport
from dragoman.conformance.reports import FORMATS, report_json, written
from dragoman.safe_text import sanitise

_MARKS = {"pass": ("pass", GREEN), "fail": ("FAIL", RED), "skip": ("skip", DIM)}


def chosen(options: argparse.Namespace, side: Side) -> list[Check[Any]]:
    """The checks to make. Raises UsageError, also for a report that cannot be written."""
    for path in options.report:
        if PurePath(path).suffix not in FORMATS:
            raise UsageError(f"--report {path}: the name must end in {', '.join(FORMATS)}")
    try:
        return select(table(side), options.only, options.skip)
    except UnknownCheck as error:
        raise UsageError(f"{error}; --list lists them") from error


def only_told(options: argparse.Namespace, side: Side) -> bool:
    """Whether nothing but the table, or a row of it, was asked for; it has been printed."""
    if options.explain is not None:
        _explain(options.explain, side)
    elif options.list:
        _list(options, chosen(options, side))
    else:
        return False
    return True


def _explain(key: str, side: Side) -> None:
    try:
        check = find(key, side)
    except UnknownCheck as error:
        raise UsageError(f"{error}; --list lists them") from error
    print(f"{check.id} ({check.level}, version {check.version} of the protocol)\n")
    for name, text in _rows(check):
        print(f"{name:<10}{text}")


def _rows(check: Check[Any]) -> list[tuple[str, str]]:
    return [
        ("requires", check.says),
        ("by", check.page),
        ("does", check.does),
        ("expects", check.expects),
    ]


def _list(options: argparse.Namespace, checks: Sequence[Check[Any]]) -> None:
    if options.json:
        names = ("id", "level", "version", "says", "page", "does", "expects")
        print(indented_json([{name: getattr(each, name) for name in names} for each in checks]))
        return
    width = max((len(each.id) for each in checks), default=0)
    for each in checks:
        print(f"{each.id:<{width}}  {each.level:<6}  {each.says}")


class VerdictPrinter:
    """Prints each verdict as it is reached."""

    def __init__(self, checks: Sequence[Check[Any]], *, quiet: bool) -> None:
        self._style = Style(colour=wants_colour(sys.stdout))
        self._width = max((len(each.id) for each in checks), default=0)
        self._quiet = quiet

    def begin(self, name: str) -> None:
        if not self._quiet:
            print(self._style(sanitise(name, newlines=False), BOLD), flush=True)

    def tell(self, verdict: CheckVerdict) -> None:
        if self._quiet:
            return
        mark, colour = _MARKS[verdict.outcome]
        if verdict.outcome == "fail" and verdict.level != "must":
            colour = YELLOW
        line = f"{verdict.id:<{self._width}}  {verdict.level:<6}  {verdict.text}"
        shown = sanitise(line.rstrip(), newlines=False)
        print(f"  {self._style(mark, colour)}  {shown}", flush=True)
        for frame in verdict.frames:
            print(self._style(f"          {sanitise(frame, newlines=False)}", DIM), flush=True)

    def end(self, report: ConformanceReport) -> None:
        if self._quiet:
            return
        counts = f"{report.count('pass')} passed, {report.count('fail')} failed"
        failed = [f"{report.count('fail', level)} {level}" for level in LEVELS]
        by_level = f" ({', '.join(failed)})" if report.count("fail") else ""
        colour = RED if report.fails_at("must") else YELLOW if report.count("fail") else GREEN
        print(self._style(f"{counts}{by_level}, {report.count('skip')} skipped", colour))


def finished(report: ConformanceReport, options: argparse.Namespace) -> int:
    """Write the reports; the exit code."""
    for path in options.report:
        try:
            Path(path).write_text(written(report, path), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--report {path}: {error.strerror}") from error
    if options.json:
        sys.stdout.write(report_json(report))
    return Exit.FAILED if report.fails_at(options.fail_on) else Exit.DONE
