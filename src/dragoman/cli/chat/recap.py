"""What was said last in a session that goes on, short enough to be read in passing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.cli.wrap import folded
from dragoman.safe_text import sanitise, single_line
from dragoman.session.state import AgentEntry, SessionState, UserEntry

_PROMPT_COLUMNS = 200
_ANSWER_LINES = 6


def recap(state: SessionState) -> list[str]:
    """The last prompt, and how the answer to it begins; lines that fit the terminal."""
    asked = next((x for x in reversed(state.entries) if isinstance(x, UserEntry)), None)
    if asked is None:
        return []
    said = (x for x in reversed(state.entries) if isinstance(x, AgentEntry))
    answer = next((entry for entry in said if entry.seq > asked.seq), None)
    lines = folded(single_line(asked.text, _PROMPT_COLUMNS), "› ")
    return lines + ([] if answer is None else _shortened(answer.text))


def _shortened(text: str) -> list[str]:
    lines = list(_laid_out(text))
    more = ["  …"] if len(lines) > _ANSWER_LINES else []
    return lines[:_ANSWER_LINES] + more


def _laid_out(text: str) -> Iterator[str]:
    """Without blank lines: there is little room."""
    # A long answer is not laid out for the sake of its first lines.
    for line in sanitise(text[:4000]).split("\n"):
        if line.strip():
            yield from folded(line.strip(), "  ")
