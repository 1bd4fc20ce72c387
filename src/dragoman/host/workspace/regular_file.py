"""Opens files that others may have created, and only regular files.

In a workspace, any name may belong to something else: a FIFO would block a thread, a device has no
end, and a link may lead anywhere.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

# A FIFO must not block us, nor a terminal become ours, before we can see what was opened.
_OPEN: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
SAFELY: int = _OPEN | getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | os.PathLike[str], *, links: bool = False) -> BinaryIO:
    """For reading, without waiting; `links` are followed where a person chose the path. Raises
    OSError, also if it is not a regular file."""
    descriptor = os.open(path, os.O_RDONLY | (_OPEN if links else SAFELY))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def read_regular(path: str | os.PathLike[str], limit: int, *, links: bool = False) -> bytes:
    """The same file's content. Raises OSError, also for more than `limit` bytes."""
    with open_regular(path, links=links) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        reason = f"larger than {limit} bytes"
        raise OSError(errno.EFBIG, reason, os.fspath(path))
    return content
