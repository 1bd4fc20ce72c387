"""Long texts that are pasted: a mark stands for each while the prompt is being typed.

What is sent, kept in the history and left above the prompt is the whole text.
"""

from __future__ import annotations

_LINES = 8
_CHARACTERS = 1000


class PastedBlocks:
    """The texts by their marks."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """What to put into the line: the text itself unless it is long."""
        lines = text.count("\n") + 1
        if lines <= _LINES and len(text) <= _CHARACTERS:
            return text
        size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
        mark = f"[pasted {len(self._texts) + 1}: {size}]"
        self._texts[mark] = text
        return mark

    def expand(self, typed: str) -> str:
        """The same with the texts in place of their marks; text in a text stays as it is."""
        for mark, text in self._texts.items():
            before, found, after = typed.partition(mark)
            if found:
                typed = f"{before}{text}{after}"
        return typed

    def mark_before(self, text: str) -> int:
        """The length of the mark that the text ends with; 0 if it ends with none."""
        return max((len(mark) for mark in self._texts if text.endswith(mark)), default=0)
