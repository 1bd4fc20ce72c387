"""Lines that say what comes below them: who asked what, and in which session."""

from __future__ import annotations

import sys

from dragoman.cli.style import Style, can_draw
from dragoman.cli.wrap import folded


def heading(prefix: str, text: str, style: Style, *codes: str) -> str:
    """Lines of their own, with room above them."""
    first, *more = text.split("\n")
    lines = _laid_out(first, prefix)
    lines += [line for each in more for line in _laid_out(each, " " * len(prefix))]
    return "\n".join(["", *(style(line, *codes) for line in lines), ""])


def _laid_out(line: str, prefix: str) -> list[str]:
    return folded(line, prefix) if can_draw(sys.stdout) else [f"{prefix}{line}"]
