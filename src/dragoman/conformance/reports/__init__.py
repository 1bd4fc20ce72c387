"""Reports as files: JSON, JUnit XML, Markdown, and a badge. Pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from dragoman.conformance.examination.verdict import ConformanceReport
from dragoman.conformance.reports.badge import badge
from dragoman.conformance.reports.junit import junit
from dragoman.conformance.reports.report_json import report_json
from dragoman.conformance.reports.report_page import report_page

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
