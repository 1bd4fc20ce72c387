"""Opens files and directories beneath the roots of a workspace, and nowhere else.

A path is opened, never checked first: beneath a root by its letters, with no link allowed on
the way, so that it is where its letters say. When a link is in the way the path is named anew
without it and opened the same way. Naming may be fooled by a rename at the wrong moment; what
was named is then refused or is inside. Knows nothing of sessions, text or policy.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from dragoman.errors import InternalError, RemoteError
from dragoman.host.refusal import Closed, refusing
from dragoman.host.regular_file import SAFELY
from dragoman.host.unlinked import SUPPORTED, open_child, open_unlinked

T = TypeVar("T")

MAX_LINKS = 40
# Of a path and of all the links in it together.
MAX_STEPS = 4096
MAX_DEPTH = 1_000

# Its links lead where names cannot: to what a process has open, and to other roots.
_KERNEL = "/proc"

# What an opening says when a link, a `..` or another name of a root is in the way.
_NAME_ANEW = frozenset({errno.EXDEV, errno.ELOOP, errno.ENOTDIR})


class Resolved(str):
    """A path without links and `..`; a link that turns up in it later is refused."""

    __slots__ = ()


class Target(msgspec.Struct, frozen=True):
    """A name in a directory that is held open: what a write works on."""

    directory: int
    name: str
    path: Resolved
    made: tuple[str, ...] = ()


class _Root(msgspec.Struct, frozen=True):
    real: str
    prefixes: tuple[str, str]


class Jail:
    """Everything beneath `roots`, as they are named now, except what is beneath `forbidden`."""

    def __init__(self, roots: Sequence[str], *, forbidden: Sequence[str] = ()) -> None:
        if not SUPPORTED:
            raise InternalError("files are not supported on this system: it cannot confine them")
        self._roots = tuple(_root(path) for path in roots)
        self._forbidden = tuple(path for path in (_KERNEL, *forbidden) if self._can_meet(path))

    def open_file(self, path: str) -> int:
        """A regular file, for reading; the caller closes the descriptor."""
        with refusing(path):
            return _following(path, self._open_file)

    def open_directory(self, path: str) -> int:
        """A directory, to start a process in; the caller closes the descriptor."""
        with refusing(path):
            return _following(path, self._open_directory)

    @contextmanager
    def target(self, path: str, *, create: bool = False) -> Generator[Target, None, None]:
        """What a write to `path` works on. With `create` the directories it needs are made, and
        unmade if the body fails; `OSError`s of the body become refusals too."""
        with refusing(path):
            _must_name_a_file(path)
            exact = path if isinstance(path, Resolved) else resolve(path)
            target = self._target(exact, create)
            try:
                yield target
            except BaseException:
                self.remove_directories(target.made)
                raise
            finally:
                os.close(target.directory)

    def remove_directories(self, paths: Sequence[str]) -> list[str]:
        """Remove those that are empty, the last one first; the ones removed."""
        removed: list[str] = []
        for path in reversed(paths):
            with suppress(RemoteError), self.target(path) as target:
                os.rmdir(target.name, dir_fd=target.directory)
                removed.append(path)
        return removed

    def _open_file(self, path: str) -> int:
        _must_name_a_file(path)
        root, parts = self._split(path)
        parent = self._open(_joined(root, parts[:-1]))
        try:
            return _open_regular(parent, parts[-1])
        finally:
            os.close(parent)

    def _open_directory(self, path: str) -> int:
        root, parts = self._split(path, or_root=True)
        return self._open(_joined(root, parts))

    def _target(self, path: Resolved, create: bool) -> Target:
        root, (*parts, name) = self._split(path)
        try:
            return Target(self._open(_joined(root, parts)), name, path)
        except FileNotFoundError:
            if not create:
                raise
        made: list[str] = []
        try:
            return Target(self._make(root, parts, made), name, path, tuple(made))
        except BaseException:
            self.remove_directories(made)
            raise

    def _split(self, path: str, *, or_root: bool = False) -> tuple[str, list[str]]:
        """The root that `path` is beneath by its letters, and the way from there."""
        for root in self._roots:
            for prefix in root.prefixes:
                if f"{path}/".startswith(prefix):
                    parts = _parts(path[len(prefix) :])
                    if not parts and not or_root:
                        raise os_error(errno.EISDIR)
                    return root.real, parts
        raise os_error(errno.EXDEV)

    def _open(self, path: str) -> int:
        try:
            directory = open_unlinked(path)
        except OSError:
            # A link in /proc is not a link that changed, and no reason to look for one.
            if _is_beneath(path, _KERNEL):
                raise Closed(path) from None
            raise
        try:
            self._keep_out(directory, path)
        except BaseException:
            os.close(directory)
            raise
        return directory

    def _make(self, root: str, parts: list[str], made: list[str]) -> int:
        """As `_open`, making each directory that is missing, one at a time."""
        current = open_unlinked(root)
        for depth in range(1, len(parts) + 1):
            try:
                following = self._open_or_make(current, _joined(root, parts[:depth]), made)
            finally:
                os.close(current)
            current = following
        return current

    def _open_or_make(self, directory: int, path: str, made: list[str]) -> int:
        name = path.rpartition("/")[2]
        with suppress(FileNotFoundError):
            return open_child(directory, name)
        self._keep_out(directory, path)
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=directory)
            made.append(path)
        return open_child(directory, name)

    def _can_meet(self, forbidden: str) -> bool:
        """Whether it is in a root or a root in it, or that cannot be told yet. Not by name:
        the same directory may be mounted in two places."""
        try:
            lineage = _lineage(forbidden)
            others = [_lineage(root.real) for root in self._roots]
        except OSError:
            return True
        return any(lineage[0] in other or other[0] in lineage for other in others)

    def _keep_out(self, directory: int, path: str) -> None:
        """Refuse what is in a forbidden directory, by whatever name or mount it was reached."""
        closed: set[tuple[int, int]] = set()
        for forbidden in self._forbidden:
            try:
                status = os.stat(forbidden)
            except OSError:
                # What does not exist yet has no identity, only a name, in whatever case.
                if _is_beneath(path.casefold(), resolve(forbidden).casefold()):
                    raise Closed(path) from None
            else:
                closed.add((status.st_dev, status.st_ino))
        if closed and not closed.isdisjoint(_ancestors(directory)):
            raise Closed(path)


def resolve(path: str, met: list[str] | None = None) -> Resolved:
    """`path` as the kernel would read it now, every link followed. Only a name: what is there
    when it is opened may be something else. Links in /proc lead where names cannot: kept.

    `met` gets the whole name at each link, before that was followed.
    """
    todo, done, links, steps = path.split("/")[::-1], list[str](), 0, 0
    while todo:
        part = todo.pop()
        steps += 1
        if part == "..":
            del done[-1:]
        elif part not in ("", "."):
            done.append(part)
            target = "" if done[0] == "proc" else _link_target("/" + "/".join(done))
            if target:
                links += 1
                if met is not None:
                    met.append("/".join(("", *done, *todo[::-1])))
                done = [] if target.startswith("/") else done[:-1]
                todo += target.split("/")[::-1]
        if links > MAX_LINKS or steps > MAX_STEPS:
            raise os_error(errno.ELOOP)
    return Resolved("/" + "/".join(done))


def real_path(path: str) -> Resolved:
    """The name to judge a request by before it is opened; an unusable path is refused. Opening
    it by this name later opens that very place, or refuses."""
    with refusing(path):
        return resolve(path)


def real_file(path: str, met: list[str] | None = None) -> Resolved:
    """The same for a file, which has no slash behind its name; `met` as in `resolve`."""
    with refusing(path):
        _must_name_a_file(path)
        return resolve(path, met)


def os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _following(path: str, attempt: Callable[[str], T]) -> T:
    try:
        return attempt(path)
    except OSError as error:
        if isinstance(path, Resolved) or error.errno not in _NAME_ANEW:
            raise
    return attempt(resolve(path))


def _open_regular(directory: int, name: str) -> int:
    descriptor = os.open(name, os.O_RDONLY | SAFELY, dir_fd=directory)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise os_error(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO)


def _lineage(path: str) -> list[tuple[int, int]]:
    directory = open_unlinked(resolve(path))
    try:
        return list(_ancestors(directory))
    finally:
        os.close(directory)


def _ancestors(directory: int) -> Iterator[tuple[int, int]]:
    """The identity of an open directory and of all that it is in, up to the top."""
    status = os.fstat(directory)
    above = ".."
    for _ in range(MAX_DEPTH):
        yield (here := (status.st_dev, status.st_ino))
        status = os.stat(above, dir_fd=directory)
        if (status.st_dev, status.st_ino) == here:
            return
        above += "/.."
    raise os_error(errno.ENAMETOOLONG)


def _root(path: str) -> _Root:
    real = resolve(path)
    return _Root(real, (path.rstrip("/") + "/", real.rstrip("/") + "/"))


def _joined(root: str, parts: Sequence[str]) -> str:
    return "/".join((root.rstrip("/"), *parts)) or "/"


def _parts(relative: str) -> list[str]:
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if ".." in parts:  # what it means depends on the links before it
        raise os_error(errno.EXDEV)
    return parts


def _must_name_a_file(path: str) -> None:
    if path.rpartition("/")[2] in ("", ".", ".."):
        raise os_error(errno.EISDIR)


def _is_beneath(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory}/")


def _link_target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
