"""Text that drives terminals, hides, turns around and forges, and whether any of it got through."""

from __future__ import annotations

import re

NASTY = (
    "\x1b[31mred\x1b]0;title\x07\x1b]8;;http://evil\x1b\\ \u202eevil\u2066 \x9b5m\x00\x08\x7f"
    "\u200b\ufeff\u2028 \U000e0041\r\nforged line"
)

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U000e0000-\U000e007f]"
)
_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def is_safe(text: str, *, painted: bool = False) -> bool:
    """Whether it holds nothing forbidden; colours count as safe where it is `painted`."""
    return not _FORBIDDEN.search(_PAINT.sub("", text) if painted else text)
