"""Wraps words to terminal lines as they stream; a word that fits on a line is never broken.

A word is held until it is over, so that nothing ever has to be taken back. The same text gives the
same lines however it was cut into pieces. Pure: text in, text for a terminal out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dragoman.cli.render.style import Codes, Style
from dragoman.cli.standard_streams import terminal_width
from dragoman.lazy_pattern import lazy_pattern
from dragoman.safe_text import columns

_RUNS = lazy_pattern(r"[ \t]+|[^ \t]+")


class Wrap:
    """`put` words and `end_line`; each returns what can be printed now."""

    def __init__(self, style: Style, width: Callable[[], int]) -> None:
        self._style = style
        self._width = width
        self._limit = 0
        self._column = 0
        self._start = 0
        self._hanging = ""
        self._gap = ""
        self._word: list[tuple[str, Codes]] = []
        self._length = 0

    def begin(self, prefix: str, hanging: str, taken: int) -> str:
        """Start a line with a prefix; what is broken off continues after `hanging`. Both take
        `taken` columns, and may be painted."""
        self._column = self._start = taken
        self._hanging = hanging
        return prefix

    def put(self, text: str, codes: Codes = ()) -> str:
        out: list[str] = []
        # In the last column a terminal is between two lines, and each has its own idea of it.
        self._limit = self._width() - 1
        for run in _RUNS.findall(text):
            if run[0] in " \t":
                out.append(self.rest())
                self._gap += run.replace("\t", "    ")
                continue
            for piece in _breakable(run):
                if columns(piece) > 1 and len(piece) == 1:
                    # Scripts with wide characters have no spaces: a line ends anywhere.
                    out += (self.rest(), self._held(piece, codes), self.rest())
                else:
                    out.append(self._held(piece, codes))
        return "".join(out)

    def rest(self) -> str:
        """The word that is held."""
        if not self._word:
            return ""
        gap, self._gap = self._gap, ""
        if self._column > self._start and self._column + len(gap) + self._length > self._limit:
            gap = f"\n{self._hanging}"
            self._column = self._start
        else:
            self._column += len(gap)
        self._column += self._length
        word = "".join(self._style(text, *codes) for text, codes in self._word)
        self._word.clear()
        self._length = 0
        return f"{gap}{word}"

    def end_line(self) -> str:
        out = self.rest()
        self._gap = self._hanging = ""
        self._column = self._start = 0
        return f"{out}\n"

    def _held(self, text: str, codes: Codes) -> str:
        """Add to the word; what is longer than a line is broken after all."""
        out: list[str] = []
        room = max(self._limit - self._start, 1)
        at = 0
        while (end := _fitting(text, at, room - self._length)) < len(text):
            end = max(end, at if self._word else at + 1)
            self._add(text[at:end], codes)
            out.append(self.rest())
            at = end
        self._add(text[at:], codes)
        return "".join(out)

    def _add(self, text: str, codes: Codes) -> None:
        if not text:
            return
        self._length += columns(text)
        if self._word and self._word[-1][1] == codes:
            text = self._word.pop()[0] + text
        self._word.append((text, codes))


def folded(text: str, prefix: str) -> list[str]:
    """A sentence in lines that fit the terminal, the later ones as far in as the first."""
    wrap = Wrap(Style(colour=False), terminal_width)
    taken = columns(prefix)
    laid_out = wrap.begin(prefix, " " * taken, taken) + wrap.put(text) + wrap.rest()
    return laid_out.split("\n")


def broken(text: str, room: int) -> list[str]:
    """The text in parts of at most `room` columns, cut anywhere; at least one, which may be
    empty."""
    parts: list[str] = []
    at = 0
    while at < len(text) or not parts:
        end = max(_fitting(text, at, room), at + 1)
        parts.append(text[at:end])
        at = end
    return parts


def _breakable(run: str) -> Iterator[str]:
    """The run in pieces: each wide character alone, the rest as it is."""
    if run.isascii():
        yield run
        return
    start = 0
    for at, char in enumerate(run):
        if columns(char) > 1:
            if start < at:
                yield run[start:at]
            yield char
            start = at + 1
    if start < len(run):
        yield run[start:]


def _fitting(text: str, start: int, room: int) -> int:
    """Where the text that begins at `start` has taken `room` columns; no further is looked at."""
    for at in range(start, len(text)):
        room -= columns(text[at])
        if room < 0:
            return at
    return len(text)
