"""A report as Markdown: the counts, a table of what was found, and the frames that show it."""

from __future__ import annotations

from dragoman.conformance.check import LEVELS
from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport

_MARKS = {"pass": "✓", "fail": "✗", "skip": "–"}


def report_page(report: ConformanceReport) -> str:
    name = " ".join(filter(None, (report.name, report.version)))
    parts = [f"# ACP conformance of {_cell(name)}", _counts(report), _table(report.verdicts)]
    parts += [_failure(each) for each in report.verdicts if each.outcome == "fail"]
    return "\n\n".join(parts) + "\n"


def _counts(report: ConformanceReport) -> str:
    rows = [
        f"| {level} | {' | '.join(str(report.count(o, level)) for o in ('pass', 'fail', 'skip'))} |"
        for level in LEVELS
    ]
    return "\n".join(["| level | passed | failed | skipped |", "|---|---:|---:|---:|", *rows])


def _table(verdicts: list[CheckVerdict]) -> str:
    rows = [
        f"| {_MARKS[each.outcome]} | `{each.id}` | {each.level} | {_cell(each.text)} |"
        for each in verdicts
    ]
    return "\n".join(["| | check | level | |", "|---|---|---|---|", *rows])


def _failure(verdict: CheckVerdict) -> str:
    frames = "\n".join(verdict.frames)
    head = f"## `{verdict.id}`\n\n{verdict.says} ([specification]({verdict.page}))"
    return f"{head}\n\n{_cell(verdict.text)}\n\n````text\n{frames}\n````"


def _cell(text: str) -> str:
    """What an agent or a client wrote is text here, not Markdown."""
    for letter in "\\`*_<>[]|":
        text = text.replace(letter, f"\\{letter}")
    return text
