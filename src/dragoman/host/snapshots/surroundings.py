"""What is around a folder: the user's repository it belongs to, and what is ignored there.

The user's repository is only asked, by questions that write nothing and run nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from dragoman.host.snapshots.git_program import ask_users_git

_MOST = 1 << 20


class Surroundings(msgspec.Struct, frozen=True):
    """`top` is the repository that a folder belongs to, `inside` where the folder is in it; the
    folder itself where there is none, or where the repository ignores the folder."""

    top: str
    inside: bytes = b""
    index: str | None = None
    excludes: bytes = b""
    general_excludes: str = ""


async def surroundings(root: str, closed: Sequence[str]) -> Surroundings:
    """Of the folder `root`; the `closed` folders are never looked into."""
    general = await ask_users_git(root, "config", "--type=path", "--get", "core.excludesFile")
    excludes = _general_excludes() if general is None else os.fsdecode(general.rstrip(b"\n"))
    top = _enclosing(root)
    if top is None or (top != root and await _is_ignored(top, root)):
        return Surroundings(root, excludes=_patterns(root, closed), general_excludes=excludes)
    index = await ask_users_git(top, "rev-parse", "--git-path", "index")
    listed = await ask_users_git(top, "rev-parse", "--git-path", "info/exclude")
    return Surroundings(
        top,
        _inside(root, top),
        index=_joined(top, index),
        excludes=_read(_joined(top, listed)) + _patterns(top, closed),
        general_excludes=excludes,
    )


async def tracked_though_ignored(root: str) -> list[bytes]:
    """What the user's repository has beneath a folder although its rules would leave it out."""
    words = ("ls-files", "-z", "-c", "-i", "--exclude-standard", "--full-name", ".")
    return [each for each in (await ask_users_git(root, *words) or b"").split(b"\0") if each]


async def _is_ignored(top: str, root: str) -> bool:
    return await ask_users_git(top, "check-ignore", "-q", "--", root) is not None


def _enclosing(root: str) -> str | None:
    """The top of the repository that a folder is in."""
    folder = root
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _inside(root: str, top: str) -> bytes:
    return b"" if top == root else os.fsencode(os.path.relpath(root, top))


def _joined(top: str, said: bytes | None) -> str | None:
    return None if said is None else os.path.join(top, os.fsdecode(said.rstrip(b"\n")))


def _read(path: str | None) -> bytes:
    with suppress(OSError):
        if path is not None:
            with open(path, "rb") as file:
                return file.read(_MOST) + b"\n"
    return b""


def _general_excludes() -> str:
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(settings, "git", "ignore")


def _patterns(top: str, closed: Sequence[str]) -> bytes:
    """For the folders that are not to be looked into."""
    above = top.rstrip("/") + "/"
    beneath = (os.path.realpath(each) for each in closed)
    names = (os.fsencode(each[len(above) :]) for each in beneath if each.startswith(above))
    return b"".join(b"/%b/\n" % _literally(name) for name in names)


def _literally(path: bytes) -> bytes:
    return b"".join(b"\\%c" % each if each in b"*?[]\\! #" else b"%c" % each for each in path)
