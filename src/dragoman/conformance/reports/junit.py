"""A report as JUnit XML, which CI systems show: a suite for each subject, a case for each check."""

from __future__ import annotations

from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport


def junit(report: ConformanceReport) -> str:
    suites = groupby(report.verdicts, key=lambda each: each.subject)
    body = "".join(_suite(report, subject, list(verdicts)) for subject, verdicts in suites)
    counts = _counts(report.verdicts)
    name = quoteattr(f"ACP conformance: {report.name}")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<testsuites name={name} {counts}>\n{body}</testsuites>\n"


def _suite(report: ConformanceReport, subject: str, verdicts: list[CheckVerdict]) -> str:
    cases = "".join(_case(report, each) for each in verdicts)
    name = quoteattr(subject)
    return f"  <testsuite name={name} {_counts(verdicts)}>\n{cases}  </testsuite>\n"


def _counts(verdicts: list[CheckVerdict]) -> str:
    failed = sum(each.outcome == "fail" for each in verdicts)
    skipped = sum(each.outcome == "skip" for each in verdicts)
    seconds = sum(each.seconds for each in verdicts)
    return f'tests="{len(verdicts)}" failures="{failed}" skipped="{skipped}" time="{seconds:.3f}"'


def _case(report: ConformanceReport, verdict: CheckVerdict) -> str:
    name = quoteattr(verdict.id)
    head = f'    <testcase name={name} classname="{report.side}" time="{verdict.seconds:.3f}"'
    if verdict.outcome == "pass":
        return f"{head}/>\n"
    reason = quoteattr(verdict.text)
    if verdict.outcome == "skip":
        return f"{head}>\n      <skipped message={reason}/>\n    </testcase>\n"
    told = escape("\n".join([verdict.says, verdict.page, "", *verdict.frames]))
    failure = f'      <failure type="{verdict.level}" message={reason}>{told}</failure>\n'
    return f"{head}>\n{failure}    </testcase>\n"
