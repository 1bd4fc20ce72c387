"""A report as JSON."""

from __future__ import annotations

import msgspec

from dragoman.conformance.check import LEVELS
from dragoman.conformance.examination.verdict import ConformanceReport, Outcome

_OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "skip")


def report_json(report: ConformanceReport) -> str:
    """One object: what was examined, the counts by level, and a verdict on each check."""
    counts = {
        level: {outcome: report.count(outcome, level) for outcome in _OUTCOMES} for level in LEVELS
    }
    fields = {"side": report.side, "name": report.name, "version": report.version}
    whole = {**fields, "counts": counts, "verdicts": report.verdicts}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
