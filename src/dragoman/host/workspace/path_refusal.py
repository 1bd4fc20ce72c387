"""Why a path could not be opened, after consent: the error reply an agent gets, in plain words.

Outside the workspace, too large, not text, not a file: invalid params. Missing: not found.
Whatever else the operating system says: internal error, with its reason.
"""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.errors import InternalError, InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.rules.globs import LONGEST_PATH, MOST_COMPONENTS

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
    if "\0" in path or path.count("/") > MOST_COMPONENTS or not _is_text(path):
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


def _is_text(path: str) -> bool:
    return path.isascii() or path.encode("utf-8", "ignore").decode() == path
