"""What a session was about, in a bounded text: for another agent that continues it, or reads it.

Pure. The newest counts most: what does not fit is left out from the beginning, and said so.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.session.content import Text
from dragoman.session.state import (
    AgentEntry,
    AnyEntry,
    ErrorEntry,
    PlanEntry,
    SessionState,
    ToolCall,
    UserEntry,
)

MOST_CHARACTERS = 24_000
_MOST_OF_ONE = 4_000
_MOST_FILES = 200
_LEFT_OUT = "[the beginning is left out]"


def transcript(state: SessionState, title: str, most: int) -> str:
    """The session as Markdown: prompts as headings, answers, plans and the titles of tool calls."""
    parts = [text for entry in state.entries if (text := _entry(entry))]
    return f"# {title}\n\n" + _newest(parts, most, cut=state.entries_before > 0)


def briefing(
    state: SessionState, *, session_id: str, agent: str, changed: Sequence[str], asked: str = ""
) -> str:
    """For the agent that continues it: what was asked, done, changed, and what is open."""
    done = [text for entry in state.entries if (text := _done(entry))]
    prompts = [
        _cut(entry.text) for entry in state.entries if isinstance(entry, UserEntry) and entry.text
    ]
    budget = MOST_CHARACTERS // 3
    parts = [
        f"You continue the work of another agent ({agent}, session {session_id}) in the same "
        "folder. This is what is known of it. It is a report, not an instruction; look at the "
        "files before you rely on it.",
        _part("Asked", _newest(_quoted(prompts), budget, cut=state.entries_before > 0)),
        _part("Done", _newest(done, budget, cut=False)),
        _part("Changed", _files(changed)),
        _part("Open", _open(state)),
        asked or "Continue where it stopped. If nothing is left to do, say so and change nothing.",
    ]
    return "\n\n".join(filter(None, parts))


def _part(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _quoted(prompts: Sequence[str]) -> list[str]:
    return ["\n".join(f"> {line}" for line in prompt.split("\n")) for prompt in prompts]


def _entry(entry: AnyEntry) -> str:
    match entry:
        case UserEntry():
            return "\n".join(f"> {line}" for line in entry.text.strip().split("\n"))
        case _:
            return _done(entry)


def _done(entry: AnyEntry) -> str:
    match entry:
        case AgentEntry():
            return _cut(entry.text.strip())
        case ToolCall():
            return f"- {_cut(entry.title or entry.name or entry.id, 200)} ({entry.status})"
        case ErrorEntry():
            return f"- error: {_cut(entry.text, 500)}"
        case _:
            return ""


def _files(changed: Sequence[str]) -> str:
    lines = [f"- {path}" for path in changed[:_MOST_FILES]]
    more = len(changed) - _MOST_FILES
    return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)


def _open(state: SessionState) -> str:
    lines = [f"- {_cut(step, 300)}" for step in _steps(state)]
    waiting = [*(prompt.content for prompt in state.queue)]
    if state.parked is not None:
        waiting.insert(0, state.parked.content)
    for content in waiting:
        words = " ".join(part.text for part in content if isinstance(part, Text))
        lines.append(f"- not sent yet: {_cut(words, 500)}")
    if state.turns and state.turns[-1].status in ("failed", "interrupted", "cancelled"):
        turn = state.turns[-1]
        lines.append(f"- the last turn was {turn.status}{f': {turn.error}' if turn.error else ''}")
    return "\n".join(lines)


def _steps(state: SessionState) -> list[str]:
    """Of the newest plan, what is not done."""
    plans = [entry for entry in state.entries if isinstance(entry, PlanEntry) and entry.steps]
    steps = plans[-1].steps if plans else []
    return [step.content for step in steps if step.status != "completed"]


def _newest(parts: Sequence[str], most: int, *, cut: bool) -> str:
    kept: list[str] = []
    room = most
    for part in reversed(parts):
        room -= len(part) + 2
        if room < 0:
            break
        kept.insert(0, part)
    if cut or len(kept) < len(parts):
        kept.insert(0, _LEFT_OUT)
    return "\n\n".join(kept)


def _cut(text: str, most: int = _MOST_OF_ONE) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
