"""What of a folder goes into its snapshot, and what is left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

from dragoman.host.snapshots.git_output import FolderListing
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.session.facts import LeftOut

_EMPTY_FOLDERS = 1_000
_CLOSED = "it cannot be read"
_ODD = "an empty folder whose name is not UTF-8"


class FolderScan(msgspec.Struct):
    """What to read into the index, and what to drop from it."""

    paths: list[bytes] = []
    private: set[bytes] = set()
    """Those of them that only their owner may read."""
    dropped: list[bytes] = []
    left_out: list[LeftOut] = []
    empty_folders: list[str] = []
    is_unfinished: bool = False
    """A folder is where a file was: what is in it is listed once the file is dropped."""


def scan_of(found: FolderListing, top: bytes, limits: SnapshotLimits) -> FolderScan:
    """Of what differs from the index, in the folder `top`."""
    scan = FolderScan()
    folders = _RealFolders(top)
    for name in (*found.known, *found.new):
        path = os.path.join(top, name)
        objection, is_private = None, False
        try:
            status = os.lstat(path)
            is_private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
            is_file = _is_file(status) and folders.has(os.path.dirname(name))
            if is_file:
                objection = _objection(path, name, status, limits)
        except PermissionError:
            is_file, objection = False, LeftOut(path=shown(path), size=0, reason=_CLOSED)
        except OSError:
            is_file = False
        if objection is not None:
            scan.left_out.append(objection)
        if is_file and objection is None:
            scan.paths.append(name)
            if is_private:
                scan.private.add(name)
        elif name in found.known or not is_file:
            scan.dropped.append(name)
            scan.is_unfinished |= not is_file and os.path.isdir(path)
    emptied = _emptied(top, folders, found.known.keys() & scan.dropped)
    for folder in (*found.folders, *emptied):
        _note_empty(scan, top, folder)
    return scan


def _is_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)


def _objection(
    path: bytes, name: bytes, status: os.stat_result, limits: SnapshotLimits
) -> LeftOut | None:
    if b".git" in name.lower().split(b"/"):
        # Such as `.GIT`: git passes over it without a word that we would see.
        reason = "git keeps nothing of this name"
    elif stat.S_ISLNK(status.st_mode):
        return None
    elif status.st_size > limits.file_bytes:
        reason = f"larger than {limits.file_bytes >> 20} MiB"
    elif not os.access(path, os.R_OK):
        reason = _CLOSED
    else:
        return None
    return LeftOut(path=shown(path), size=status.st_size, reason=reason)


def shown(path: bytes) -> str:
    """For a person, and for JSON."""
    return path.decode("utf-8", "replace")


class _RealFolders:
    """Says which folders are not behind a link: git does not follow one."""

    def __init__(self, top: bytes) -> None:
        self._top = top
        self._known: dict[bytes, bool] = {b"": True}

    def has(self, folder: bytes) -> bool:
        unknown: list[bytes] = []
        while folder not in self._known:
            unknown.append(folder)
            folder = folder.rpartition(b"/")[0]  # which ends, also for a path from the root
        is_real = self._known[folder]
        for each in reversed(unknown):
            is_real = is_real and not os.path.islink(os.path.join(self._top, each))
            self._known[each] = is_real
        return is_real


def _emptied(top: bytes, folders: _RealFolders, gone: Iterable[bytes]) -> Iterator[bytes]:
    """Folders that hold nothing since these files are gone. Git lists them only once the files are
    dropped: in the next snapshot, as if they had become empty after this one."""
    looked_at: set[bytes] = set()
    for name in sorted(gone):
        while (name := os.path.dirname(name)) and name not in looked_at:
            looked_at.add(name)
            if folders.has(name) and _is_empty(os.path.join(top, name)):
                yield name


def _is_empty(folder: bytes) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _note_empty(scan: FolderScan, top: bytes, folder: bytes) -> None:
    """A folder that holds nothing, or those in it that hold nothing, however deep."""
    waiting = [folder]
    while waiting and len(scan.empty_folders) < _EMPTY_FOLDERS:
        path = os.path.join(top, waiting.pop())
        try:
            with os.scandir(path) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            scan.left_out.append(LeftOut(path=shown(path), size=0, reason=_CLOSED))
            continue
        if found:
            inner = (each for each in found if each.is_dir(follow_symlinks=False))
            waiting += [os.path.join(path, each.name) for each in inner if each.name != b".git"]
        elif os.fsencode(shown(path)) == path:
            scan.empty_folders.append(shown(path))
        else:  # it could not be made again
            scan.left_out.append(LeftOut(path=shown(path), size=0, reason=_ODD))
