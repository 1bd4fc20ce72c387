"""A report as a badge for a README: an SVG without anything that is loaded from elsewhere."""

from __future__ import annotations

from dragoman.conformance.examination.verdict import ConformanceReport

_GREEN, _YELLOW, _RED = "#2e7d32", "#9a6700", "#b3261e"
_LETTER = 6.6
"""The width of a letter, about: nobody knows which font there is."""


def badge(report: ConformanceReport) -> str:
    label, text = f"ACP {report.side}", _said(report)
    left, right = _width(label), _width(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_colour(report)}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        f'text-anchor="middle"><text x="{left / 2:g}" y="14">{label}</text>'
        f'<text x="{left + right / 2:g}" y="14">{text}</text></g></svg>\n'
    )


def _said(report: ConformanceReport) -> str:
    passed = report.count("pass")
    return f"{passed} of {passed + report.count('fail')} checks"


def _colour(report: ConformanceReport) -> str:
    if report.fails_at("must") or not report.count("pass"):
        return _RED
    return _YELLOW if report.count("fail") else _GREEN


def _width(text: str) -> int:
    return round(len(text) * _LETTER) + 12
