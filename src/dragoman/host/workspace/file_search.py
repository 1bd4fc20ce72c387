"""A search for files beneath a folder, by some letters of their names.

Within bounds, whatever the folder holds. No link is followed, so nothing outside is found, and no
program is run: what a workspace configures is not to be trusted.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dragoman.host.workspace.regular_file import open_regular

MAX_ENTRIES = 50_000
MAX_SECONDS = 0.5

_IGNORED = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".gradle", ".idea", ".next"),
        *("target", "dist", "build", ".terraform"),
    }
)
_MAX_IGNORE_FILE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Match:
    """`path` is relative to its root; a folder ends with a slash."""

    path: str
    is_folder: bool
    rank: tuple[int, int, str]


class FileSearch:
    """One look through a folder; `complete` when there was time and room for all of it."""

    def __init__(self, root: str, *, seconds: float = MAX_SECONDS) -> None:
        self.complete = True
        self._root = root
        self._ends = time.monotonic() + seconds
        self._left = MAX_ENTRIES

    def find(self, wanted: str, limit: int) -> list[Match]:
        """The best matches, best first."""
        return best(self.paths(), wanted, limit)

    def paths(self) -> Iterator[tuple[str, bool]]:
        """Everything beneath the root, what is near first."""
        ignored = _IGNORED | ignored_folders(self._root)
        waiting = deque([""])
        while waiting:
            folder = waiting.popleft()
            for entry in self._entries(folder):
                is_folder = entry.is_dir(follow_symlinks=False)
                path = f"{folder}{entry.name}{'/' if is_folder else ''}"
                if is_folder and entry.name in ignored:
                    continue
                yield path, is_folder
                if is_folder:
                    waiting.append(path)

    def _entries(self, folder: str) -> Sequence[os.DirEntry[str]]:
        if self._left <= 0 or time.monotonic() > self._ends:
            self.complete = False
            return []
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                found = sorted(islice(entries, self._left), key=lambda entry: entry.name)
                self.complete = self.complete and next(entries, None) is None
        except OSError:
            return []
        self._left -= len(found)
        return [entry for entry in found if entry.name.isprintable()]


def best(paths: Iterable[tuple[str, bool]], wanted: str, limit: int) -> list[Match]:
    """Those of the paths that fit best, best first."""
    found: list[Match] = []
    for path, is_folder in paths:
        rank = rank_of(path, wanted)
        if rank is not None:
            found.append(Match(path, is_folder, rank))
    return sorted(found, key=lambda match: match.rank)[:limit]


def ignored_folders(root: str) -> set[str]:
    """The plain names in the root's .gitignore; patterns are left to those who know git."""
    try:
        with open_regular(os.path.join(root, ".gitignore")) as file:
            lines = file.read(_MAX_IGNORE_FILE).decode("utf-8", "replace").split("\n")
    except OSError:
        return set()
    names = (line.strip().strip("/") for line in lines)
    return {name for name in names if name and not set(name) & set("#!*?[/\\")}


def rank_of(path: str, wanted: str) -> tuple[int, int, str] | None:
    """How well a path fits, less is better: its name begins so, has it, the path has it, or has
    its letters in that order. None for one that does not fit."""
    low, word = path.lower(), wanted.lower()
    name = low.rstrip("/").rpartition("/")[2]
    depth = low.count("/")
    if name.startswith(word) or low.startswith(word):
        return 0, depth, low
    if word in name:
        return 1, depth, low
    if word in low:
        return 2, depth, low
    return (3, len(low), low) if _in_order(word, low) else None


def _in_order(word: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in word)
