"""Opens files and directories beneath the roots of a workspace, and nowhere else.

A path is opened, never checked first: beneath a root by its letters, with no link allowed on
the way, so that it is where its letters say. When a link is in the way the path is resolved again
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

from dragoman.errors import InternalError, InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.rules.globs import LONGEST_PATH, MOST_COMPONENTS
from dragoman.host.workspace.held_directory import SUPPORTED, open_child, open_unlinked
from dragoman.host.workspace.regular_file import SAFELY
from dragoman.host.workspace.roots import Root, Workspace

T = TypeVar("T")

MAX_LINKS = 40
# Of a path and of all the links in it together.
MAX_STEPS = 1024
MAX_DEPTH = 1_000

# Its links lead where names cannot: to what a process has open, and to other roots.
_KERNEL = "/proc"

# What an opening says when a link, a `..` or another name of a root is in the way.
_NAME_ANEW = frozenset({errno.EXDEV, errno.ELOOP, errno.ENOTDIR})


class Resolved(str):
    """A path without links and `..`; a link that turns up in it later is refused."""

    __slots__ = ()


class Known(Resolved):
    """One that was found on the disk, not asked for: it may be very deep, and no text."""

    __slots__ = ()


class Target(msgspec.Struct, frozen=True):
    """A name in a directory that is held open: what a write works on."""

    directory: int
    name: str
    path: Resolved
    made: tuple[str, ...] = ()


class Jail:
    """Everything beneath `roots`, as they were found or as they are now, except what is in
    `forbidden`: each of these by whatever name, also once it was moved."""

    def __init__(self, roots: Sequence[Root | str], *, forbidden: Sequence[str] = ()) -> None:
        if not SUPPORTED:
            raise InternalError("file access is unsupported: paths cannot be confined on this OS")
        self._roots = tuple(find(root) if isinstance(root, str) else root for root in roots)
        self._forbidden = (_KERNEL, *forbidden)
        recognise(self._forbidden)

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
        parent = self._open(root, parts[:-1])
        try:
            return _open_regular(parent, parts[-1])
        finally:
            os.close(parent)

    def _open_directory(self, path: str) -> int:
        return self._open(*self._split(path, or_root=True))

    def _target(self, path: Resolved, create: bool) -> Target:
        root, (*parts, name) = self._split(path)
        self._keep_free(path)
        try:
            return Target(self._open(root, parts), name, path)
        except FileNotFoundError:
            if not create:
                raise
        made: list[str] = []
        try:
            return Target(self._make(root, parts, made), name, path, tuple(made))
        except BaseException:
            self.remove_directories(made)
            raise

    def _split(self, path: str, *, or_root: bool = False) -> tuple[Root, list[str]]:
        """The root that `path` is beneath by its letters, and the way from there."""
        for root in self._roots:
            for name in (root.path, root.real):
                if f"{path}/".startswith(prefix := f"{name.rstrip('/')}/"):
                    parts = _parts(path[len(prefix) :])
                    if not parts and not or_root:
                        raise os_error(errno.EISDIR)
                    return root, parts
        raise os_error(errno.EXDEV)

    def _open(self, root: Root, parts: list[str]) -> int:
        path = _joined(root.real, parts)
        try:
            directory = open_unlinked(path)
        except OSError:
            # A link in /proc is not a link that changed, and no reason to look for one.
            if _is_beneath(path, _KERNEL):
                raise Closed(path) from None
            must_be_there(root)
            raise
        try:
            # No link is in the path: that many steps up is the root it was opened beneath.
            above = "/".join((".", *(".." for _ in parts)))
            _must_be(root, os.stat(above, dir_fd=directory))
            self._keep_out(directory, path)
        except BaseException:
            os.close(directory)
            raise
        return directory

    def _make(self, root: Root, parts: list[str], made: list[str]) -> int:
        """As `_open`, making each directory that is missing, one at a time."""
        current = self._open(root, [])
        for depth in range(1, len(parts) + 1):
            try:
                path = _joined(root.real, parts[:depth])
                following = self._open_or_make(current, path, made)
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

    def _keep_out(self, directory: int, path: str) -> None:
        """Refuse what is in a forbidden directory, by whatever name or mount it was reached."""
        closed, unmade = recognise(self._forbidden)
        if not closed.isdisjoint(_ancestors(directory)):
            raise Closed(path)
        if any(_is_beneath(path.casefold(), name) for name in unmade):
            raise Closed(path)

    def _keep_free(self, path: str) -> None:
        """Refuse a file in the place of a forbidden directory, or of one on the way to it, that
        is still to be made."""
        name = path.casefold()
        for place in recognise(self._forbidden)[1]:
            if _is_beneath(name, place) or _is_beneath(place, name):
                raise Closed(path)


_identities: dict[str, set[tuple[int, int]]] = {}
"""Of each forbidden directory all that stood there while this process ran: one may be moved."""


def recognise(forbidden: Sequence[str]) -> tuple[set[tuple[int, int]], list[str]]:
    """The identities of these directories, now and ever since they were first asked for; and of
    those that are not there, which have none yet, the name, in whatever case."""
    closed: set[tuple[int, int]] = set()
    unmade: list[str] = []
    for path in forbidden:
        known = _identities.setdefault(path, set())
        try:
            status = os.stat(path)
        except OSError:
            unmade.append(resolve(path).casefold())
        else:
            known.add(_identity(status))
            if not stat.S_ISDIR(status.st_mode):
                unmade.append(resolve(path).casefold())
        closed |= known
    return closed, unmade


def find(path: str) -> Root:
    """The folder of that name as it is now."""
    return msgspec.structs.replace(at(resolve(path)), path=path)


def at(real: str) -> Root:
    """The folder at a path without links, as it is now; no link in it is followed, also later."""
    try:
        return Root(real, real, _identity(os.lstat(real)))
    except OSError:
        return Root(real, real)


def found(workspace: Workspace) -> Workspace:
    """The workspace with its folders as they are now; see `Workspace.found`."""
    return msgspec.structs.replace(workspace, found=tuple(map(find, workspace.roots)))


def real_roots(workspace: Workspace) -> tuple[str, ...]:
    """Where its folders really were when they were found, or are."""
    return tuple(
        resolve(place) if isinstance(place, str) else place.real for place in workspace.places
    )


def check_roots(workspace: Workspace) -> None:
    """Refuse everything once a folder of the session was replaced."""
    for root in workspace.found:
        with refusing(root.path):
            must_be_there(root)
            if root.identity is not None and resolve(root.path) != root.real:
                raise Replaced(root.path)


def must_be_there(root: Root) -> None:
    """Raises Replaced if the folder is not the one that was found."""
    if root.identity is None:
        return
    try:
        status = os.lstat(root.real)
    except OSError:
        raise Replaced(root.path) from None
    _must_be(root, status)


def _must_be(root: Root, status: os.stat_result) -> None:
    if root.identity not in (None, _identity(status)):
        raise Replaced(root.path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def resolve(path: str, met: list[str] | None = None) -> Resolved:
    """`path` as the kernel would read it now, every link followed. Only a name: what is there
    when it is opened may be something else. Links in /proc lead where names cannot: kept.

    `met` gets the whole name at each link, before that was followed.
    """
    todo, done, links = path.split("/")[::-1], "", 0
    left = MAX_STEPS - len(todo)
    while todo and left >= 0:
        part = todo.pop()
        if part == "..":
            done = done.rpartition("/")[0]
        elif part and part != ".":
            here = f"{done}/{part}"
            is_kept = here.startswith(_KERNEL) and _is_beneath(here, _KERNEL)
            target = "" if is_kept else _link_target(here)
            if not target:
                done = here
                continue
            links += 1
            if met is not None:
                met.append("/".join((here, *todo[::-1])))
            done = "" if target.startswith("/") else done
            more = target.split("/")[::-1]
            todo += more
            left = -1 if links > MAX_LINKS else left - len(more)
    if left < 0:
        raise os_error(errno.ELOOP)
    return Resolved(done or "/")


def real_path(path: str, met: list[str] | None = None) -> Resolved:
    """The name to judge a request by before it is opened; an unusable path is refused. Opening
    it by this name later opens that very place, or refuses. `met` as in `resolve`."""
    with refusing(path):
        return resolve(path, met)


def real_file(path: str, met: list[str] | None = None) -> Resolved:
    """The same for a file, which has no slash behind its name."""
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


def _ancestors(directory: int) -> Iterator[tuple[int, int]]:
    """The identity of an open directory and of all that it is in, up to the top."""
    here = _identity(os.fstat(directory))
    above = ".."
    for _ in range(MAX_DEPTH):
        yield here
        below, here = here, _identity(os.stat(above, dir_fd=directory))
        if here == below:
            return
        above += "/.."
    raise os_error(errno.ENAMETOOLONG)


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
        # Most are none, and a failure takes longer than another look.
        return os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else ""
    except OSError:
        return ""


# ── refusals ────────────────────────────────────────────────────────────────────────────────────

# Why a path could not be opened, after consent: the error reply an agent gets, in plain words.
#
# Outside the workspace, too large, not text, not a file: invalid params. Missing: not found.
# Whatever else the operating system says: internal error, with its reason.


_REFUSALS: dict[int | None, tuple[type[RemoteError], str]] = {
    errno.ENOENT: (ResourceNotFound, "no such file or directory"),
    errno.ENOTDIR: (ResourceNotFound, "a part of the path is not a directory"),
    errno.EXDEV: (InvalidParams, "outside the workspace"),
    errno.EISDIR: (InvalidParams, "a directory, not a file"),
    errno.ENXIO: (InvalidParams, "not a regular file"),
    errno.ELOOP: (InvalidParams, "too many symbolic links, or one that changed just now"),
}


class Closed(OSError):
    """The place is Dragoman's own or the kernel's, wherever it was found."""


class Replaced(OSError):
    """A root is gone, or something else is in its place."""

    def __init__(self, root: str) -> None:
        super().__init__(f"{root} was moved or replaced after the session started")


@contextmanager
def refusing(path: str) -> Generator[None, None, None]:
    """Turn an unusable path, and any `OSError` of the body, into a refusal that names it."""
    if not path.startswith("/"):
        raise refusal(InvalidParams, path, "not an absolute path")
    if len(path) > LONGEST_PATH:
        raise refusal(InvalidParams, path, f"longer than {LONGEST_PATH} characters")
    # A walk would take more than one system call does, and make every directory on the way.
    is_odd = path.count("/") > MOST_COMPONENTS or not _is_text(path)
    if "\0" in path or (is_odd and not isinstance(path, Known)):
        raise refusal(InvalidParams, path, "not a valid path")
    try:
        yield
    except Closed:
        raise refusal(InvalidParams, path, "closed to agents") from None
    except Replaced as error:
        raise refusal(InvalidParams, path, str(error)) from None
    except OSError as error:
        said = (error.strerror or "unknown error").lower()
        kind, reason = _REFUSALS.get(error.errno, (InternalError, said))
        raise refusal(kind, path, reason) from error


def refusal(kind: type[RemoteError], path: str, reason: str, **data: int) -> RemoteError:
    """The error that says why `path` was refused."""
    # A reply must be valid text, whatever the path was; and no longer for one that nobody can use.
    shown = path[:LONGEST_PATH].encode("utf-8", "backslashreplace").decode()
    shown += "…" if len(path) > LONGEST_PATH else ""
    return kind(f"{shown}: {reason}", {"path": shown, "reason": reason, **data})


def reason_of(error: RemoteError) -> str:
    """For one who names the path as well."""
    match error.data:
        case {"reason": str(reason)}:
            return reason
        case _:
            return error.message


def _is_text(path: str) -> bool:
    return path.isascii() or path.encode("utf-8", "ignore").decode() == path
