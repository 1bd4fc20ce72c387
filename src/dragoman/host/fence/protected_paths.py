"""Finds the protected paths inside a workspace that the kernel is to hold.

A look at names, breadth first and within a limit, since a workspace may be large. What is in a
folder that tools write all the time cannot be held: it is reported instead, and so are links.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.host.rules.protected import folded, protection
from dragoman.host.workspace.regular_file import read_regular

MOST_FOLDERS = 100
_DEEPEST = 3
_LONGEST_LINE = 4096
_NOT_ENTERED = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", "target", "dist", "build", ".tox", ".cache")
)

# Of a git folder, what makes git run something or says where it does so. The rest changes with
# every commit.
_GIT_HELD = ("config", "config.worktree", "hooks", "info", "commondir")
_GIT_MODULES = ("modules", "worktrees")
# Folders that build tools write themselves, protected as they are.
_USED_BY_TOOLS = frozenset(
    (".gradle", ".yarn", ".m2", ".nuget", ".sbt", ".devbox", ".ipython", ".jupyter", ".bundle")
)


class ProtectedPath(NamedTuple):
    """A protected path; without `held`, the kernel cannot protect it, for the `reason`."""

    path: str
    reason: str
    held: bool = True


def protected_in(root: str, most: int = MOST_FOLDERS) -> Iterator[ProtectedPath]:
    """What is protected beneath a folder, as far as this looks."""
    folders = deque([(root, 0)])
    while folders and most:
        most -= 1
        folder, depth = folders.popleft()
        for entry in _entries(folder):
            name = folded(entry.name)
            if name == ".git" or (name.endswith(".git") and _is_folder(entry)):
                yield from _in_git(entry)
            elif reason := _reason(entry, root):
                yield _as_found(entry, name, reason)
            elif depth < _DEEPEST and name not in _NOT_ENTERED and _is_folder(entry):
                folders.append((entry.path, depth + 1))


def _reason(entry: os.DirEntry[str], root: str) -> str | None:
    """Why all of it is protected; of a folder such as `.github`, only a part may be."""
    path = entry.path[len(root) :]
    return protection(f"{path}/*" if _is_folder(entry) else path)


def _as_found(entry: os.DirEntry[str], name: str, reason: str) -> ProtectedPath:
    if entry.is_symlink():
        return _link(entry.path, reason)
    if name in _USED_BY_TOOLS:
        return ProtectedPath(entry.path, f"{reason}; build tools write to it", held=False)
    return ProtectedPath(entry.path, reason)


def _link(path: str, reason: str) -> ProtectedPath:
    return ProtectedPath(path, f"{reason}; it is a link, which can be replaced", held=False)


_HOOKS = "git runs the commands in it"
_PLACE = "it says where git finds its settings and hooks"


def _in_git(entry: os.DirEntry[str]) -> Iterator[ProtectedPath]:
    if entry.is_symlink():
        yield _link(entry.path, _PLACE)
    elif entry.is_file():
        yield ProtectedPath(entry.path, _PLACE)  # of a worktree or a submodule
    else:
        yield from _held_in_git(entry.path, depth=2)


def held_in_git(folder: str) -> Iterator[ProtectedPath]:
    """What is held of a git folder, wherever it is."""
    return _held_in_git(folder, depth=2)


def _held_in_git(folder: str, depth: int) -> Iterator[ProtectedPath]:
    for name in _GIT_HELD:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            yield _link(path, _HOOKS)
        elif os.path.exists(path):
            yield ProtectedPath(path, _HOOKS)
        elif name in ("config", "hooks", "commondir") and os.path.exists(f"{folder}/HEAD"):
            reason = f"{_HOOKS}; it does not exist yet, so it can be created"
            yield ProtectedPath(path, reason, held=False)
    if depth:
        for name in _GIT_MODULES:
            for entry in _entries(os.path.join(folder, name)):
                if _is_folder(entry):
                    yield from _held_in_git(entry.path, depth - 1)


def repository_of(worktree: str) -> str | None:
    """The git folder that a worktree shares with its repository, if that says so as well: a
    file in the workspace could name any folder."""
    named = _line(os.path.join(worktree, ".git"), "gitdir: ")
    if named is None:
        return None
    own = os.path.realpath(os.path.join(worktree, named))
    back, common = _line(os.path.join(own, "gitdir")), _line(os.path.join(own, "commondir"))
    if back is None or common is None or not _is_same(back, os.path.join(worktree, ".git")):
        return None
    return os.path.realpath(os.path.join(own, common))


def _line(path: str, start: str = "") -> str | None:
    try:
        text = read_regular(Path(path), _LONGEST_LINE).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text[len(start) :].strip() if text.startswith(start) else None


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
