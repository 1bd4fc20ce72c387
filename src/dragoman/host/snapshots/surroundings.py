"""The user's repository that a folder belongs to, and what is ignored there.

It is only asked, by questions that write nothing and run nothing. What git would answer from plain
files is read from them: starting a program costs more than all the rest of a snapshot.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from dragoman.host.snapshots.git_program import ask_users_git
from dragoman.host.workspace.regular_file import open_regular, read_regular

_MOST = 1 << 20
_ODD_PARTS = frozenset((b"", b".", b"..", b".git"))
_NOT_PLAIN = re.compile(rb"excludesfile|include|extensions|worktree", re.IGNORECASE)
"""Words of a git configuration by which another file may be meant than the usual one."""
_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}")


class Surroundings(msgspec.Struct, frozen=True):
    """`top` is the repository that a folder belongs to, `inside` where the folder is in it; the
    folder itself where there is none, or where the repository ignores the folder."""

    top: str
    inside: bytes = b""
    index: str | None = None
    excludes: bytes = b""
    general_excludes: str = ""


async def surroundings(
    root: str, closed: Sequence[str], apart_from: Collection[str] = ()
) -> Surroundings:
    """Of the folder `root`; the `closed` folders are never looked into. No program is run from
    those of `apart_from`."""
    ask = functools.partial(ask_users_git, apart_from=apart_from)
    top = _enclosing(root)
    is_plain = _has_plain_settings() and (top is None or _is_plain_repository(top, root))
    excludes = _general_excludes()
    if not is_plain:
        general = await ask(root, "config", "--type=path", "--get", "core.excludesFile")
        excludes = excludes if general is None else os.fsdecode(general.rstrip(b"\n"))
    ignored = ("check-ignore", "-q", "--", root)
    if top is None or (top != root and await ask(top, *ignored) is not None):
        return Surroundings(root, excludes=_patterns(root, closed), general_excludes=excludes)
    index, listed = b".git/index", b".git/info/exclude"
    if not is_plain:
        paths = await ask(top, *_git_paths("index", "info/exclude")) or b""
        index, _, listed = paths.rstrip(b"\n").partition(b"\n")
    return Surroundings(
        top,
        _inside(root, top),
        index=_joined(top, index),
        excludes=_read(_joined(top, listed)) + _patterns(top, closed),
        general_excludes=excludes,
    )


def _git_paths(*names: str) -> list[str]:
    return ["rev-parse", *(word for name in names for word in ("--git-path", name))]


# ── what can be read without git ──────────────────────────────────────────────────────────────


def _has_plain_settings() -> bool:
    """Whether the user's own settings of git say nothing about what is ignored."""
    home, chosen = os.environ.get("HOME"), os.environ.get("GIT_CONFIG_GLOBAL")
    if not home:
        return False
    general = os.path.join(_settings_folder(), "git", "config")
    files = (general, os.path.join(home, ".gitconfig")) if chosen is None else (chosen,)
    return all(_is_plain_file(each) for each in files)


def _is_plain_repository(top: str, root: str) -> bool:
    """Whether git would take what is in the `.git` of `top` for the repository of `root`, with its
    index and its list of ignored files in their usual places."""
    inner = os.path.join(top, ".git")
    try:
        own = os.lstat(inner)
        is_ours = own.st_uid == os.lstat(top).st_uid == os.geteuid()
        is_here = own.st_dev == os.lstat(top).st_dev == os.lstat(root).st_dev
        head = read_regular(os.path.join(inner, "HEAD"), _MOST)
    except OSError:
        return False
    has_folders = all(_is_folder(os.path.join(inner, each)) for each in ("", "objects", "refs"))
    return (
        is_ours
        and is_here
        and has_folders
        and _HEAD.match(head) is not None
        and not os.path.lexists(os.path.join(inner, "commondir"))
        and _is_plain_file(os.path.join(inner, "config"))
    )


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_plain_file(path: str) -> bool:
    try:
        return _NOT_PLAIN.search(read_regular(path, _MOST, links=True)) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False


async def tracked_though_ignored(root: str, apart_from: Collection[str] = ()) -> list[bytes]:
    """What the user's repository has beneath a folder although its rules would leave it out.

    Its index is a file that an agent can write: a name there may be of a file anywhere."""
    words = ("ls-files", "-z", "-c", "-i", "--exclude-standard", "--full-name", ".")
    listed = await ask_users_git(root, *words, apart_from=apart_from)
    return [each for each in (listed or b"").split(b"\0") if each and _is_plain(each)]


def _is_plain(name: bytes) -> bool:
    """As git itself would let it into an index."""
    return _ODD_PARTS.isdisjoint(name.lower().split(b"/"))


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


def _joined(top: str, said: bytes) -> str | None:
    return os.path.join(top, os.fsdecode(said)) if said else None


def _read(path: str | None) -> bytes:
    with suppress(OSError):
        if path is not None:
            with open_regular(path, links=True) as file:
                return file.read(_MOST) + b"\n"
    return b""


def _general_excludes() -> str:
    return os.path.join(_settings_folder(), "git", "ignore")


def _settings_folder() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _patterns(top: str, closed: Sequence[str]) -> bytes:
    """For the folders that are not to be looked into."""
    above = top.rstrip("/") + "/"
    beneath = (os.path.realpath(each) for each in closed)
    names = (os.fsencode(each[len(above) :]) for each in beneath if each.startswith(above))
    return b"".join(b"/%b/\n" % _literally(name) for name in names)


def _literally(path: bytes) -> bytes:
    return b"".join(b"\\%c" % each if each in b"*?[]\\! #" else b"%c" % each for each in path)
