"""By which other names a file is there: a file system may be mounted in several places.

Of the kernel's table of mounts. Some systems have the same folders twice: `/sysroot` where the
system is an image, a whole btrfs volume next to its parts, `/mnt/wslg/distro` on WSL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """A part of a file system, and where it is."""

    device: str
    root: str
    place: str


def mount_table() -> list[Mount]:
    """The mounts that we see."""
    try:
        return parsed(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    except OSError:
        return []


def parsed(text: str) -> list[Mount]:
    """The kernel's table (`/proc/PID/mountinfo`)."""
    rows = (line.split(" ") for line in text.splitlines())
    return [Mount(row[2], _plain(row[3]), _plain(row[4])) for row in rows if len(row) > 4]


def names_elsewhere(path: str, mounts: Sequence[Mount]) -> Iterator[str]:
    """The other names of a file or folder, and of what is in it. `path` is its real name."""
    own = max(
        (each for each in mounts if _beneath(path, each.place) is not None),
        key=lambda each: len(each.place),
        default=None,
    )
    if own is None:
        return
    inner = _joined(own.root, _beneath(path, own.place) or "")
    for other in mounts:
        if other.device != own.device:
            continue
        if (rest := _beneath(inner, other.root)) is not None:
            name, same = _joined(other.place, rest), path
        elif (rest := _beneath(other.root, inner)) is not None:
            name, same = other.place, _joined(path, rest)
        else:
            continue
        if _beneath(name, path) is None and _is_same(name, same):
            yield name


def _beneath(path: str, folder: str) -> str | None:
    """What follows the folder in the path, if it is in there."""
    if path == folder:
        return ""
    start = f"{folder.rstrip('/')}/"
    return path.removeprefix(start) if path.startswith(start) else None


def _joined(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest}" if rest else folder


def _is_same(path: str, other: str) -> bool:
    """Another mount may lie above either of them."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _plain(word: str) -> str:
    """Blanks and the like are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)
