"""The frames of an examination, kept to show what went wrong.

What differs from one run to the next (folders, ids, times) is shown by a name that does not, so
that two reports can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from dragoman.safe_text import single_line

Direction: TypeAlias = Literal["→", "←"]
"""To the one that is examined, and from it."""

_SHOWN_FRAMES = 12
_SHOWN_CHARACTERS = 400
_KEPT_BYTES = 2 * _SHOWN_CHARACTERS
_UNIQUE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{16,}\b", re.IGNORECASE
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")


class Seen(msgspec.Struct, frozen=True):
    """A frame that went one way or the other."""

    direction: Direction
    frame: bytes


class Evidence:
    """What was sent and received, in order."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._names: dict[str, str] = {}

    def note(self, direction: Direction, frame: bytes) -> None:
        """Keep a frame, or enough of a long one to know it by."""
        self._seen.append(Seen(direction, frame[:_KEPT_BYTES]))

    def call(self, text: str, name: str) -> None:
        """Show `text` as `name`."""
        if text:
            self._names.setdefault(text, name)

    @property
    def mark(self) -> int:
        """A place to look back to."""
        return len(self._seen)

    def since(self, mark: int) -> list[str]:
        """What has been seen since then, as lines to show: the last few."""
        return self.shown(self._seen[mark:])

    def shown(self, seen: Iterable[Seen]) -> list[str]:
        """Frames as lines of text. A long conversation is cut at its beginning."""
        frames = list(seen)
        left_out = len(frames) - _SHOWN_FRAMES
        lines = [f"{each.direction} {self.text(each.frame)}" for each in frames[-_SHOWN_FRAMES:]]
        return [f"… {left_out} earlier frames", *lines] if left_out > 0 else lines

    def text(self, frame: bytes | str) -> str:
        """A frame, or a sentence about one, without what differs from run to run."""
        text = frame.decode("utf-8", "replace") if isinstance(frame, bytes) else frame
        for place, name in sorted(self._names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(place, name)
        text = _TIME.sub("<time>", text)
        return single_line(_UNIQUE.sub(self._unique, text), _SHOWN_CHARACTERS)

    def _unique(self, match: re.Match[str]) -> str:
        number = sum(name.startswith("<id ") for name in self._names.values()) + 1
        return self._names.setdefault(match[0], f"<id {number}>")
