"""What was said last in a session that goes on, short enough to be read in passing. Pure."""

from __future__ import annotations

from dragoman.cli.markdown import MarkdownStream
from dragoman.cli.streams import terminal_width
from dragoman.cli.style import DIM, Style
from dragoman.cli.wrap import folded
from dragoman.safe_text import sanitise, single_line
from dragoman.session.state import AgentEntry, SessionState, UserEntry

_PROMPT_COLUMNS = 200
_ANSWER_LINES = 6


def recap(state: SessionState, style: Style) -> list[str]:
    """The last prompt, and how the answer to it begins; painted lines that fit the terminal."""
    asked = next((x for x in reversed(state.entries) if isinstance(x, UserEntry)), None)
    if asked is None:
        return []
    said = (x for x in reversed(state.entries) if isinstance(x, AgentEntry))
    answer = next((entry for entry in said if entry.seq > asked.seq), None)
    prompt = folded(single_line(asked.text, _PROMPT_COLUMNS), "› ")
    lines = [style(line, DIM) for line in prompt]
    return lines + ([] if answer is None else _shortened(answer.text, style))


def _shortened(text: str, style: Style) -> list[str]:
    """Without blank lines: there is little room."""
    markdown = MarkdownStream(style, lambda: terminal_width() - 2, (DIM,))
    # A long answer is not laid out for the sake of its first lines.
    painted = markdown.feed(sanitise(text[:4000])) + markdown.flush()
    lines = [f"  {line}" for line in painted.split("\n") if line.strip()]
    more = [style("  …", DIM)] if len(lines) > _ANSWER_LINES else []
    return lines[:_ANSWER_LINES] + more
