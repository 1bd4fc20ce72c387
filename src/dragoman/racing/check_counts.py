"""Reads how many tests ran, from JUnit XML or from TAP. Pure.

Both were written by programs that an entrant may have changed: a document that makes no sense
counts as none.
"""

from __future__ import annotations

import re

from dragoman.racing.race_record import CheckCounts

_PLAN = re.compile(r"^1\.\.(\d+)", re.MULTILINE)
_RESULT = re.compile(
    r"^(ok|not ok)\b(?:[^\n#]*)(?:#\s*(skip|todo)\b)?", re.MULTILINE | re.IGNORECASE
)
_MOST = 64 << 20


def from_junit(document: bytes) -> CheckCounts | None:
    """The sums of all test cases; None if it is not such a document."""
    if len(document) > _MOST or b"<!DOCTYPE" in document or b"<!ENTITY" in document:
        return None
    from xml.etree import ElementTree  # few programs judge anything

    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError:
        return None
    if root.tag not in ("testsuites", "testsuite"):
        return None
    total = failed = skipped = 0
    for case in root.iter("testcase"):
        kinds = {each.tag for each in case}
        total += 1
        failed += bool(kinds & {"failure", "error"})
        skipped += "skipped" in kinds and not kinds & {"failure", "error"}
    return CheckCounts(total=total, failed=failed, skipped=skipped)


def from_tap(text: str) -> CheckCounts | None:
    """Of the lines that are not indented; None without a plan. Tests that the plan has and nobody
    reported have failed."""
    plans = _PLAN.findall(text)
    if not plans:
        return None
    results = _RESULT.findall(text)
    skipped = sum(1 for _, directive in results if directive)
    failed = sum(1 for word, directive in results if word.lower() == "not ok" and not directive)
    planned = sum(map(int, plans))
    missing = max(0, planned - len(results))
    return CheckCounts(total=max(planned, len(results)), failed=failed + missing, skipped=skipped)
