"""What a change would overwrite without showing it: an agent may call an existing file new.

A question shows the existing text, or says that it cannot be shown. Knows nothing of rules and
answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from dragoman.session.content import Diff, ToolContent

Look: TypeAlias = Callable[[str], Awaitable[tuple[str | None, str]]]
"""The text of a file, None for one that is not there, and why one that is cannot be shown."""

# An agent names as many files as it likes, and each is read, shown and recorded.
MOST_FILES = 32
MOST_CHARACTERS = 1 << 20


async def with_losses(
    content: Sequence[ToolContent], inside: Callable[[str], str | None], look: Look
) -> tuple[ToolContent, ...]:
    """The content, each file that is called new with what is there already.

    `inside` gives the real path of a file that may be looked at.
    """
    losses = _Losses(inside, look)
    return tuple([await losses.shown(item) if _is_called_new(item) else item for item in content])


def _is_called_new(item: ToolContent) -> bool:
    if not isinstance(item, Diff):
        return False
    return item.old_text is None if item.operation is None else item.operation == "add"


class _Losses:
    def __init__(self, inside: Callable[[str], str | None], look: Look) -> None:
        self._inside = inside
        self._look = look
        self._files = MOST_FILES
        self._characters = MOST_CHARACTERS

    async def shown(self, item: ToolContent) -> ToolContent:
        assert isinstance(item, Diff)
        self._files -= 1
        if self._files < 0:
            return _replacing(item, "whatever is there: there are too many files to check")
        path = self._inside(item.path)
        if path is None:
            return _replacing(item, "whatever is there: this place was not checked")
        text, reason = await self._look(path)
        if text is None:
            return item if not reason else _replacing(item, f"what cannot be shown ({reason})")
        return self._with_text(item, text)

    def _with_text(self, item: Diff, text: str) -> Diff:
        if item.operation is not None:
            return _replacing(item, f"{_lines(text)} that are not shown") if text else item
        self._characters -= len(text)
        if self._characters < 0:
            return _replacing(item, f"{_lines(text)}, too many to be shown here")
        return msgspec.structs.replace(item, old_text=text)


def _replacing(item: Diff, what: str) -> Diff:
    return msgspec.structs.replace(item, replaces=what)


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return "1 line" if count == 1 else f"{count} lines"
