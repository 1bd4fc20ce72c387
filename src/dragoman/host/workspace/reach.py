"""Resolves what a path leads to on this disk, before anything is decided about it.

A path is judged by all its names: as requested, the real path, every link on the way, and what is
next to it. Only names are read, and nothing is opened. The path may lead elsewhere by the time it
is opened; the jail handles that.
"""

from __future__ import annotations

import functools
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from typing import TypeAlias

from dragoman.host.rules.access import Sighting, normalise
from dragoman.host.rules.protected import folded, usual_places
from dragoman.host.workspace.jail import Resolved, resolve

# What makes a folder a git repository, and what git runs once it is one.
_GIT = frozenset(
    ("head", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "info")
)
MOST_LISTED = 256
_FEW = 8
_Names: TypeAlias = dict[str, "_Names"]
"""Protected names, each with those in it."""

_being_written: Counter[str] = Counter()
"""Paths that this process is writing and whose names mean something to git: each counts as if it
were there already."""
_counting = threading.Lock()


@contextmanager
def being_written(real: str) -> Generator[None]:
    """While this lasts, others that look at the folder know what the write adds to it: of writes at
    the same time that make a repository together, none takes another for not there."""
    names = list(_git_names(real))
    with _counting:
        _being_written.update(names)
    try:
        yield
    finally:
        with _counting:
            _being_written.subtract(names)
            for name in names:
                if not _being_written[name]:
                    del _being_written[name]


class Reach:
    """Looks at paths for one decision. Protected names at the top of `homes` that are links are
    followed once, so that a write to where they lead is known for what it is."""

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = homes

    def look(self, path: str) -> Sighting | None:
        """None for a path that cannot be followed to its end."""
        seen = names_of(path)
        return None if seen is None else Sighting(seen.path, seen.aliases, self._hazard(seen.path))

    def sighting(self, path: str, real: Resolved, met: Sequence[str]) -> Sighting:
        """The same for a path that was resolved before, over these links."""
        seen = named(path, real, met)
        return Sighting(real, seen.aliases, self._hazard(real))

    def _hazard(self, real: str) -> str | None:
        if (repository := _repository(real)) is not None:
            return f"{real} is protected: git reads {repository} as a repository"
        if (name := self._leading_to(real)) is not None:
            return f"{real} is protected: {name} leads to it"
        return None

    def _leading_to(self, real: str) -> str | None:
        if not self._linked:
            return None
        return next((self._linked[each] for each in _lineage(real) if each in self._linked), None)

    @cached_property
    def _linked(self) -> dict[str, str]:
        """Where protected names lead that are links, or lie behind one."""
        found: dict[str, str] = {}
        for home in dict.fromkeys(self._homes):
            for name in _linked_names("" if home == "/" else home):
                with suppress(OSError, ValueError):
                    found.setdefault(resolve(name), name)
        return found


class FolderStates:
    """Folders as they were when they were added: a name that is made, moved or removed in one of
    them changes its state, and nobody can set that back."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[int, ...]] = {}
        self._names: dict[str, tuple[int, ...]] = {}
        self._is_settled = True

    def add(self, folder: str) -> None:
        """All that is in a folder."""
        state = self._folders[folder] = _state(folder)
        # File systems measure the time in steps: within one, another change would not show.
        self._is_settled &= max(state, default=0) < time.time_ns() - _STEP_NS

    def add_name(self, path: str) -> None:
        """What is called so, a link or not."""
        self._names[path] = _identity(path)

    def still_hold(self) -> bool:
        """Whether nothing was made, moved or removed there since."""
        # With every decision: a loop takes half the time of a generator.
        for folder, was in self._folders.items():
            if _state(folder) != was:
                return False
        for name, was in self._names.items():
            if _identity(name) != was:
                return False
        return self._is_settled


_STEP_NS = 100_000_000


def _state(folder: str) -> tuple[int, ...]:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return ()
    return found.st_ctime_ns, found.st_ino, found.st_dev


def _identity(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return ()
    changed = found.st_ctime_ns if stat.S_ISLNK(found.st_mode) else 0
    return found.st_mode, found.st_ino, found.st_dev, changed


_known: dict[str, tuple[FolderStates, tuple[str, ...]]] = {}
_MOST_KNOWN = 64


def _linked_names(top: str) -> tuple[str, ...]:
    """The protected names beneath a home that are links; listed again when it has changed."""
    states, names = _known.get(top, (None, ()))
    if states is None or not states.still_hold():
        states = FolderStates()
        names = tuple(_linked_places(top, "", _place_names(), states))
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        if not names:  # what is behind a link may change elsewhere
            _known[top] = states, names
    return names


def names_of(path: str) -> Sighting | None:
    """The same for what is not written."""
    met: list[str] = []
    try:
        return named(path, resolve(path, met), met)
    except (OSError, ValueError):
        return None


def named(path: str, real: Resolved, met: Sequence[str]) -> Sighting:
    """By its names alone, which is all that counts for reading it or running something in it."""
    if not met and path == real:
        return Sighting(real)
    names = dict.fromkeys(map(normalise, (path, *met)))
    names.pop(str(real), None)
    return Sighting(real, tuple(names))


def _linked_places(top: str, below: str, names: _Names, states: FolderStates) -> Iterator[str]:
    """The protected names that are links, or lie behind one."""
    states.add(f"{top}/{below}")
    for name, is_link in _entries(f"{top}/{below}", names):
        place = f"{below}{name}"
        if is_link:
            places = (p for p in usual_places() if f"{p}/".startswith(f"{place}/"))
            yield from (path for p in places if os.path.lexists(path := f"{top}/{p}"))
        elif names[name]:
            yield from _linked_places(top, f"{place}/", names[name], states)


def _entries(folder: str, names: _Names) -> list[tuple[str, bool]]:
    """Those of the names that are in the folder, and whether they are links. Each name is tried if
    there are few, or if the folder is too large to be listed, or may not be."""
    entries = _listed(folder) if len(names) > _FEW else None
    if entries is None:
        tried = ((name, _is_link(f"{folder}{name}")) for name in names)
        return [(name, is_link) for name, is_link in tried if is_link is not None]
    return [
        (name, entry.is_symlink()) for entry in entries if (name := folded(entry.name)) in names
    ]


def _is_link(path: str) -> bool | None:
    """None if nothing is there."""
    try:
        os.readlink(path)
    except FileNotFoundError:
        return None
    except OSError:
        return False
    return True


def _listed(folder: str) -> list[os.DirEntry[str]] | None:
    try:
        with os.scandir(folder) as listed:
            entries = list(islice(listed, MOST_LISTED + 1))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return None
    return entries if len(entries) <= MOST_LISTED else None


@functools.cache
def _place_names() -> _Names:
    tree: _Names = {}
    for place in usual_places():
        at = tree
        for name in place.split("/"):
            at = at.setdefault(name, {})
    return tree


def _repository(real: str) -> str | None:
    """The folder that is a bare repository, or would be one with this file in it."""
    for name in _git_names(real):
        folder, _, given = name.rpartition("/")
        if _is_git(folder, given):
            return folder
    return None


def _git_names(real: str) -> Iterator[str]:
    """Every part of the path that is called like a part of a repository, in lower case, with the
    folder it is in."""
    parts = real.split("/")
    for at, part in enumerate(parts):
        if part.casefold() in _GIT:
            yield "/".join((*parts[:at], part.casefold()))


def _is_git(folder: str, given: str) -> bool:
    def has(name: str) -> bool:
        if name.casefold() == given or f"{folder}/{name.casefold()}" in _being_written:
            return True
        return os.path.lexists(f"{folder}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _lineage(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
