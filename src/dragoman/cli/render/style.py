"""Colours and marks for a terminal, or none if colour is off."""

from __future__ import annotations

import os
from typing import TextIO, TypeAlias

Codes: TypeAlias = tuple[str, ...]

BOLD, DIM, ITALIC, UNDERLINE, STRUCK = "1", "2", "3", "4", "9"
RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN = "31", "32", "33", "34", "35", "36"
RESET = "\x1b[0m"


class Style:
    """Paints text, or leaves it alone when `colour` is off."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, *codes: str) -> str:
        if not self.colour or not text or not codes:
            return text
        return f"\x1b[{';'.join(codes)}m{text}{RESET}"


def wants_colour(out: TextIO) -> bool:
    """On a terminal that can, unless `NO_COLOR` is set to anything."""
    return can_draw(out) and not os.environ.get("NO_COLOR")


def can_draw(out: TextIO) -> bool:
    """Whether it is a terminal on which the cursor can be moved."""
    return out.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
