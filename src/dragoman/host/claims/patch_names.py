"""The files that a patch names, in every form but the one of agents. Pure.

Finding too many only makes a decision stricter: the program that applies the patch may be less
exact than `patch` and git. Names keep their quotes, and the letters that git puts before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.lazy_pattern import lazy_pattern

# Anything that `patch` can apply: a unified or a context hunk, a change in the old form; and what
# git does without one.
_patch_text_names = lazy_pattern(
    r"^[ \t]*(?:@@ -\d|\*{15}|diff --git |--- [^\n]*\n\+\+\+ |\d+(?:,\d+)?[acd](?:\d|[ \t\r]*$))",
    re.MULTILINE,
)
_pair = lazy_pattern(r"^--- ([^\n]+)\n\+\+\+ ([^\n]+)", re.MULTILINE)
_hunk = lazy_pattern(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_name = lazy_pattern(r"(?:---|\+\+\+|Index:) +(.+)")
_context_name = lazy_pattern(r"\*\*\* +(.+)")
_git_name = lazy_pattern(r"(?:rename|copy) (?:from|to) +(.+)")
_context_range = lazy_pattern(r"(?:\*\*\*|---) \d+(?:,\d+)? (?:\*{4}|-{4})\Z")
_NOTHING = "/dev/null"


class PatchNames:
    """What is found in a text; `is_clear` is off where a name cannot be distinguished from the
    others."""

    def __init__(self, text: str) -> None:
        self.is_clear = True
        self._found: dict[str, None] = {}
        if _patch_text_names.search(text):
            self._is_context = "*" * 15 in text
            for pair in _pair.finditer(text):
                self._add_dated(*pair.groups())
            self._read(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def _read(self, text: str) -> None:
        old = new = 0
        inside: list[str] = []
        for line in (*text.split("\n"), "(the end)"):
            sign = line[:1]
            if old > 0 or new > 0:
                if sign in ("", " ", "-", "+", "\\"):
                    old -= sign in ("", " ", "-")
                    new -= sign in ("", " ", "+")
                    inside.append(line)
                    continue
                # The hunk is shorter than it says: what looks like a name in it may be one.
                for unread in inside:
                    self._head(_bare_line(unread))
            old = new = 0
            inside.clear()
            bare = _bare_line(line)
            if hunk := _hunk.match(bare):
                old, new = (int(count or 1) for count in hunk.groups())
            else:
                self._head(bare)

    def _head(self, line: str) -> None:
        if line.startswith("diff --git "):
            self._git(line.removeprefix("diff --git "))
        elif _context_range.match(line):
            return
        elif found := _git_name.match(line):
            self._add(found[1])
        elif found := _name.match(line) or (self._is_context and _context_name.match(line)):
            self._add_dated(found[1])

    def _git(self, both: str) -> None:
        """Two names with a blank between them, which may be in them too."""
        middle = len(both) // 2
        halves = both[:middle], both[middle + 1 :]
        if both[middle : middle + 1] == " " and _bare(halves[0]) == _bare(halves[1]):
            self._add(*halves)
        elif len(words := both.split(" ")) == 2:
            self._add(*words)
        else:
            self.is_clear = False

    def _add_dated(self, *names: str) -> None:
        """A date may follow; without a tab between them `patch` takes the first word."""
        for name in names:
            whole, tab, _ = name.partition("\t")
            self._add(whole, whole if tab else whole.strip().split(" ")[0])

    def _add(self, *names: str) -> None:
        for name in map(str.strip, names):
            if name != _NOTHING:
                self._found[name] = None


def _bare_line(line: str) -> str:
    # `patch` takes a patch that is indented, too. A tab ends a name.
    return line.lstrip().rstrip("\r ")


def _bare(name: str) -> str:
    """Without quotes, and without the letter that git puts before a name."""
    name = name.strip('"')
    return name[2:] if name[1:2] == "/" else name
