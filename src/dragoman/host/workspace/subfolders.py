"""The folders in a folder, and the branch that is checked out there: to choose where to work."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from dragoman.host.workspace.regular_file import read_regular

_MOST = 2_000
"""Names that are looked at: a folder may have millions."""
_HEAD_BYTES = 4_096
_REFERENCE = "ref: refs/heads/"
_POINTER = "gitdir: "


def folders_in(path: str) -> tuple[list[str], bool]:
    """The names of folders in it, sorted, and whether all were looked at. Raises OSError."""
    with os.scandir(path) as entries:
        looked_at = list(islice(entries, _MOST + 1))
    names = [entry.name for entry in looked_at[:_MOST] if _is_folder(entry)]
    names.sort(key=lambda name: (name.startswith("."), name.lower()))
    return names, len(looked_at) <= _MOST


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and entry.name.isprintable()
    except OSError:
        return False


def branch_of(path: str) -> str | None:
    """The branch of the repository around it; None without one, or with none checked out."""
    for folder in (Path(path), *Path(path).parents):
        head = _head(folder / ".git")
        if head is not None:
            is_branch = head.startswith(_REFERENCE)
            return head.removeprefix(_REFERENCE).strip() if is_branch else None
    return None


def _head(git: Path) -> str | None:
    """What its HEAD says; in a worktree, `.git` is a file that says where that is."""
    try:
        if not git.is_dir():
            pointer = read_regular(git, _HEAD_BYTES).decode()
            git = git.parent / pointer.removeprefix(_POINTER).strip()
        return read_regular(git / "HEAD", _HEAD_BYTES).decode()
    except (OSError, ValueError):
        return None
