"""The paths that a claim names, in any way to write them, as the one path that each means."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from urllib.parse import unquote

from dragoman.host.claims.raw_input import BRACES, path_of_address
from dragoman.host.rules.access import Sighting, normalise
from dragoman.host.rules.globs import LONGEST_PATH, MOST_COMPONENTS, is_within
from dragoman.lazy_pattern import lazy_pattern

# Each is looked up on disk by who passes `look`. What has more is a question for a person.
MOST_PATHS = 256
MOST_LETTERS = 32 << 10
# What a shell, or another program that expands paths, makes another one of: someone's home, a
# variable of the environment, the output of a command, one of several beginnings.
_expanded = lazy_pattern(r"\A~[^/]|\$(?:[A-Z_]|[{(])|`|" + BRACES)
_scheme = lazy_pattern(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class NamedPaths:
    """Turns the ways to write a path into one; `complete` is off once that failed.

    With `roots`, a text may be read in more than one way: as several files, or as a pattern. These
    are aliases of the file that has the whole text for a name.
    """

    def __init__(
        self,
        cwd: str,
        home: str,
        look: Callable[[str], Sighting | None],
        *,
        roots: Sequence[str] | None = None,
    ) -> None:
        self.complete = True
        self.too_many = False
        self._aliases: list[str] = []
        self.hazard: str | None = None
        self._cwd = cwd
        self._roots = roots
        self._home = home
        self._look = look
        self._paths = self._letters = 0

    def of(self, texts: Sequence[str]) -> tuple[str, ...]:
        found = dict.fromkeys(filter(None, map(self._path, dict.fromkeys(texts))))
        return tuple(found)

    @cached_property
    def here(self) -> Sighting:
        """The session's folder; where it cannot be looked at, by its name."""
        return self._look(self._cwd) or Sighting(self._cwd)

    def with_aliases(self, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        before = len(self._aliases)
        return self.of(texts), tuple(dict.fromkeys(self._aliases[before:]))

    def all_of(self, texts: Sequence[str]) -> tuple[str, ...]:
        """With all their names, for what only may be a path."""
        paths, aliases = self.with_aliases(texts)
        return (*paths, *aliases)

    def _path(self, text: str) -> str | None:
        seen = None if self._is_full() else self.seen(text)
        self.complete &= seen is not None
        if seen is None:
            return None
        self.hazard = self.hazard or seen.hazard
        self._aliases += seen.aliases
        if self._roots is not None and any(is_within(seen.path, root) for root in self._roots):
            self._read_otherwise(text, self._roots)
        self._paths += 1
        self._letters += len(seen.path) + sum(map(len, seen.aliases))
        return seen.path

    def _read_otherwise(self, text: str, roots: Sequence[str]) -> None:
        folders = (f"{folder}/" for folder in (self._cwd, *roots))
        base = next((folder for folder in folders if text.startswith(folder)), f"{self._cwd}/")
        rest = text.removeprefix(base)
        others = other_readings(rest)
        self.complete &= others is not None
        for each in others or ():
            path = f"{self._home}{each[1:]}" if each.startswith("~/") else each
            path = normalise(path, base)
            # What leads outside by a part of it is not surely in the workspace.
            self.complete &= any(is_within(path, root) for root in roots)
            self._aliases.append(path)
            self._letters += len(path)

    def _is_full(self) -> bool:
        self.too_many |= self._paths >= MOST_PATHS or self._letters >= MOST_LETTERS
        return self.too_many

    def seen(self, text: str) -> Sighting | None:
        """Where it is; None if it is not on this disk. This does not count as named."""
        if len(text) > LONGEST_PATH:
            return None
        path = path_of_address(text) if _scheme.match(text) else text
        if path is None or "\0" in path or "\n" in path or _expanded.search(path):
            return None
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        path = path if path.startswith("/") else f"{self._cwd}/{path}"
        fits = len(path) <= LONGEST_PATH and path.count("/") <= MOST_COMPONENTS
        return self._look(path) if fits else None


_MOST_READINGS = 64
_pattern = lazy_pattern(r"[*?]|\{[^{}]*(?:,|\.\.)[^{}]*\}|\[[!^]")
_letters = lazy_pattern(r"\[([^\[\]/]{1,32})\]")
_between = lazy_pattern(r"\s*(?:[-=]>|[,;:|])\s*|\s+")
_of_more_words = lazy_pattern(r"[\s,;:|'\"`]|[-=]>")


def other_readings(text: str) -> list[str] | None:
    """What else a text that names one file may mean, to who splits it, expands it or spells it
    otherwise; None if that may be anything."""
    if text.isascii() and not _unusual.search(text):
        return []
    if _pattern.search(text):
        return None
    spelled = [unquote(text), text.replace("\\", ""), unicodedata.normalize("NFKC", text)]
    spelled.append("".join(each for each in text if unicodedata.category(each) != "Cf"))
    for each in _letters.finditer(text):
        spelled += [text[: each.start()] + one + text[each.end() :] for one in _one_of(each[1])]
    if _of_more_words.search(text):
        words = [word.strip("'\"`") for word in _between.split(text)]
        folder = words[0].rpartition("/")[0]
        spelled += words
        spelled += [f"{folder}/{word}" for word in words[1:] if folder and word[:1] not in "/~"]
    others = [each for each in dict.fromkeys(spelled) if each and each != text]
    return others if len(others) <= _MOST_READINGS else None


_unusual = lazy_pattern(r"[^\w./+@=-]")


def _one_of(letters: str) -> Iterator[str]:
    """The letters that a pattern has in brackets, and those between two with a hyphen."""
    yield from letters
    for first, last in re.findall(r"(.)-(?=(.))", letters):
        yield from map(chr, range(ord(first) + 1, min(ord(last), ord(first) + _MOST_READINGS)))


def claimed_path(
    text: str, *, cwd: str, home: str, look: Callable[[str], Sighting | None]
) -> str | None:
    """The one path that this way to write it means; None for what is not a path on this disk."""
    paths = NamedPaths(cwd, home, look).of([text])
    return paths[0] if paths else None
