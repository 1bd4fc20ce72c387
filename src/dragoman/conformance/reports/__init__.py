"""Reports as files: JSON, JUnit XML, Markdown, and a badge. Pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

import msgspec

from dragoman.conformance.check import LEVELS
from dragoman.conformance.examination.verdict import ConformanceReport, Outcome
from dragoman.conformance.reports.badge import badge
from dragoman.conformance.reports.junit import junit
from dragoman.conformance.reports.report_page import report_page

_OUTCOMES: Final[tuple[Outcome, ...]] = ("pass", "fail", "skip")


def report_json(report: ConformanceReport) -> str:
    """One object: what was examined, the counts by level, and a verdict on each check."""
    counts = {
        level: {outcome: report.count(outcome, level) for outcome in _OUTCOMES} for level in LEVELS
    }
    fields = {"side": report.side, "name": report.name, "version": report.version}
    whole = {**fields, "counts": counts, "verdicts": report.verdicts}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


FORMATS: Final[dict[str, Callable[[ConformanceReport], str]]] = {
    ".json": report_json,
    ".xml": junit,
    ".md": report_page,
    ".svg": badge,
}
"""What a report is written as, by the ending of the file's name."""


def written(report: ConformanceReport, path: str) -> str:
    """The text of a file. Raises KeyError for an ending that stands for nothing."""
    return FORMATS[PurePath(path).suffix](report)
