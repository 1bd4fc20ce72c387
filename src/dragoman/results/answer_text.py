"""The JSON in an agent's answer: its last fenced block, or all of it if that is JSON alone."""

from __future__ import annotations

from dragoman.lazy_pattern import lazy_pattern

_FENCE = lazy_pattern(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")


def json_in(text: str) -> str | None:
    """What is meant as the result; None where nothing is. A block that was not closed ends with the
    answer."""
    block = _last_block(text)
    if block is not None:
        return block.strip()
    whole = text.strip()
    return whole if whole[:1] in _BEGINNINGS else None


_BEGINNINGS = frozenset('{["-0123456789tfn')
"""Of JSON."""


def _last_block(text: str) -> str | None:
    fence, lines, last = "", list[str](), None
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line.rstrip("\r"))
        if not fence:
            # A backtick after the fence: code within a line, not a block.
            if found is not None and not ("`" in found[1] and "`" in found[2]):
                fence, lines = found[1], []
        elif found is not None and found[1].startswith(fence) and not found[2].strip():
            fence, last = "", "\n".join(lines)
        else:
            lines.append(line)
    return "\n".join(lines) if fence else last
