"""What was said in a session before some turn, in brief. Pure text: no agent is asked."""

from __future__ import annotations

from collections.abc import AsyncIterable

import msgspec

from dragoman.session.state import AgentEntry, AnyEntry, UserEntry

_SAID = 600
"""Characters of a prompt, and of the end of an answer."""
_MOST = 12_000
_INTRODUCTION = (
    "This conversation starts again at an earlier point. The files are as they were then. "
    "This was said before, in brief; it is only for your information, so do nothing yet:\n\n"
)


class Before(msgspec.Struct):
    """What came before a turn, and what the turn was asked; `is_found` if there is such a turn."""

    is_found: bool = False
    prompt: str = ""
    exchanges: list[tuple[str, str]] = []
    """What the person said, and the last that the agent answered."""

    @property
    def summary(self) -> str:
        """The newest exchanges that have room; empty if there were none."""
        parts: list[str] = []
        room = _MOST
        for said, answered in reversed(self.exchanges):
            part = f"The user: {_first(said)}\nYou: {_last(answered) or '(no answer)'}\n"
            room -= len(part)
            if room < 0:
                parts.append("(Earlier exchanges are left out.)\n")
                break
            parts.append(part)
        return _INTRODUCTION + "\n".join(reversed(parts)) if parts else ""


async def said_before(thread: AsyncIterable[AnyEntry], turn_id: str) -> Before:
    found = Before()
    async for entry in thread:
        if entry.turn_id == turn_id:
            if isinstance(entry, UserEntry):
                found.is_found, found.prompt = True, entry.text
                return found
        elif isinstance(entry, UserEntry):
            found.exchanges.append((entry.text, ""))
        elif isinstance(entry, AgentEntry) and found.exchanges:
            found.exchanges[-1] = (found.exchanges[-1][0], entry.text)
    return found


def _first(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SAID else f"{text[:_SAID]} …"


def _last(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SAID else f"… {text[-_SAID:]}"
