"""Endpoints for files: mentions, uploads.

Within bounds, whatever the folder holds. No link is followed, so nothing outside is found, and no
program is run: what a workspace configures is not to be trusted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from dragoman.host.workspace.regular_file import open_regular
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.session_shapes import (
    Files,
    FilesQuery,
    FoundFile,
    Upload,
    UploadQuery,
)

_OCTETS = "application/octet-stream"


# ── for mentions ──────────────────────────────────────────────────────────────────────────────


async def complete(server: Server, session_id: str, query: FilesQuery) -> Files:
    record = await server.hub.record(session_id)
    if not server.hub.hosts.has(record):
        return Files(files=[], complete=False)  # they are on another machine
    roots = [record.cwd, *record.additional_directories] if record.cwd else []
    return await asyncio.to_thread(_complete, roots, query)


def _complete(roots: list[str], query: FilesQuery) -> Files:
    files: list[FoundFile] = []
    complete = True
    for root in roots:
        search = Search(root)
        # What is beneath the session's own folder is mentioned by its short name.
        prefix = "" if root == roots[0] else f"{root.rstrip('/')}/"
        for match in search.find(query.q, query.limit):
            kind = "folder" if match.is_folder else "file"
            files.append(FoundFile(path=f"{prefix}{match.path}", kind=kind))
        complete = complete and search.complete
    return Files(files=files[: query.limit], complete=complete)


async def upload(server: Server, query: UploadQuery, body: bytes, request: Request) -> Upload:
    if not body:
        raise RequestFailed(400, "invalid", "the file is empty")
    kind = request.headers.get("content-type", _OCTETS).partition(";")[0].strip().lower()
    kept = await asyncio.to_thread(server.uploads.keep, body, query.name, kind)
    return Upload(
        uri=kept.path.as_uri(), name=kept.path.name, mime_type=kept.mime_type, size=kept.size
    )


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


class Search:
    """One look through a folder; `complete` when there was time and room for all of it."""

    def __init__(self, root: str, *, seconds: float = MAX_SECONDS) -> None:
        self.complete = True
        self._root = root
        self._ends = time.monotonic() + seconds
        self._left = MAX_ENTRIES

    def find(self, wanted: str, limit: int) -> list[Match]:
        """The best matches, best first."""
        found: list[Match] = []
        for path, is_folder in self._paths():
            rank = rank_of(path, wanted)
            if rank is not None:
                found.append(Match(path, is_folder, rank))
        return sorted(found, key=lambda match: match.rank)[:limit]

    def _paths(self) -> Iterator[tuple[str, bool]]:
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
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return []
        self._left -= len(found)
        return [entry for entry in found if entry.name.isprintable()]


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
