"""Unpacks an archive that nobody vouches for: nothing of it ends up outside its folder.

Every name and link is looked at, sizes are counted as they come, and links are made last, so that
nothing is ever written through one. Modes, owners and times of the archive are not taken over.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from dragoman.errors import UnsafeArchive

MAX_ENTRIES = 100_000
MAX_BYTES = 4 << 30
_CHUNK = 1 << 20
_LONGEST_TARGET = 4096
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
)


class _Entry(msgspec.Struct):
    """A file with `open`, a link with `target`, or a folder."""

    name: str
    executable: bool = False
    target: str | None = None
    open: Callable[[], IO[bytes] | None] | None = None


def unpack(archive: Path, name: str, folder: Path, *, most: int = MAX_BYTES) -> None:
    """Unpack into `folder`, which is new and empty; `name` says which kind of archive it is.

    What is neither a zip nor a tar is a program of that name. Raises UnsafeArchive; what was
    written until then is for the caller to remove.
    """
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                _Unpacking(name, folder, most).all(_zip_entries(zipped))
        elif name.endswith(_TARS):
            with tarfile.open(archive) as tar:
                _Unpacking(name, folder, most).all(_tar_entries(tar))
        else:
            shutil.copyfile(archive, folder / _checked(name, name))
            (folder / name).chmod(0o700)
    except _DAMAGED as error:
        raise UnsafeArchive(name, f"damaged ({error})") from error
    except OSError as error:  # a name that is both a file and a directory, a full disk, bad data
        raise UnsafeArchive(name, error.strerror or str(error)) from error


class _Unpacking:
    def __init__(self, archive: str, folder: Path, most: int) -> None:
        self._archive = archive
        self._folder = folder
        self._left = most
        self._links: list[tuple[str, str]] = []

    def all(self, entries: Iterator[_Entry]) -> None:
        for number, entry in enumerate(entries):
            if number >= MAX_ENTRIES:
                raise UnsafeArchive(self._archive, f"more than {MAX_ENTRIES} entries")
            self._one(entry)
        for name, target in self._links:
            self._link(name, target)
        root = os.path.realpath(self._folder)
        for name, _ in self._links:
            real = os.path.realpath(self._folder / name)
            if os.path.commonpath((root, real)) != root:
                raise UnsafeArchive(self._archive, f"the link {name!r} points outside it")

    def _one(self, entry: _Entry) -> None:
        name = _checked(self._archive, entry.name)
        if entry.target is not None:
            self._links.append((name, entry.target))
        elif entry.open is None:
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            self._file(name, entry)

    def _file(self, name: str, entry: _Entry) -> None:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        source = None if entry.open is None else entry.open()
        if source is None:
            raise UnsafeArchive(self._archive, f"{name!r} cannot be read")
        mode = 0o700 if entry.executable else 0o600
        try:
            with source, open(_new(path, mode), "wb") as file:
                self._copy(source, file)
        except FileExistsError as error:
            raise UnsafeArchive(self._archive, f"{name!r} appears twice") from error

    def _copy(self, source: IO[bytes], file: IO[bytes]) -> None:
        while piece := source.read(_CHUNK):
            self._left -= len(piece)
            if self._left < 0:
                raise UnsafeArchive(self._archive, "too large when unpacked")
            file.write(piece)

    def _link(self, name: str, target: str) -> None:
        """Create a link, unless its target as written is outside; `all` checks the real targets."""
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if target.startswith("/") or "\0" in target or place == ".." or place.startswith("../"):
            raise UnsafeArchive(self._archive, f"the link {name!r} points outside it")
        path = self._folder / name
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.symlink_to(target)
        except OSError as error:
            raise UnsafeArchive(self._archive, f"the link {name!r} cannot be created") from error


def _new(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def _checked(archive: str, name: str) -> str:
    """The name if it stays inside the directory, without `.` and double slashes."""
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise UnsafeArchive(archive, f"{name!r} points outside it")
    return posixpath.normpath(name)


def _tar_entries(tar: tarfile.TarFile) -> Iterator[_Entry]:
    for member in tar:
        if member.issym():
            yield _Entry(member.name, target=member.linkname)
        elif member.isdir():
            yield _Entry(member.name)
        elif member.isreg() or member.islnk():
            # A hard link becomes a copy of the file it names inside the archive.
            yield _Entry(member.name, bool(member.mode & 0o111), open=_opener(tar, member))
        else:
            raise UnsafeArchive(str(tar.name), f"{member.name!r} is neither a file nor a directory")


def _opener(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], IO[bytes] | None]:
    def opened() -> IO[bytes] | None:
        try:
            return tar.extractfile(member)
        except KeyError:  # a hard link to what is not there
            return None

    return opened


def _zip_entries(zipped: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in zipped.infolist():
        mode = info.external_attr >> 16
        if info.is_dir():
            yield _Entry(info.filename)
        elif stat.S_ISLNK(mode):
            yield _Entry(info.filename, target=_zip_target(zipped, info))
        else:
            opened = _zip_opener(zipped, info)
            yield _Entry(info.filename, bool(mode & 0o111), open=opened)


def _zip_target(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with zipped.open(info) as file:
        return file.read(_LONGEST_TARGET).decode("utf-8", "replace")


def _zip_opener(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: zipped.open(info)
