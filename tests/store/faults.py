"""A disk that fails on command: between SQLite and the files of every database opened meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import apsw

# By hand, since the types of apsw are not complete.
_VFSFile: Any = apsw.VFSFile
_VFS: Any = apsw.VFS


class Disk:
    """Set `full`, or `broken` to the name of an operation, and it fails from then on."""

    def __init__(self) -> None:
        self.full = False
        self.broken = ""
        self.failed = 0
        """How often that has happened."""
        self.before: Callable[[str, str], None] = lambda operation, file: None
        """Called with each operation and the name of its file."""

    def check(self, operation: str, file: str) -> None:
        self.before(operation, file)
        if operation == self.broken:
            self.failed += 1
            raise apsw.exception_for(
                apsw.SQLITE_IOERR_FSYNC if operation == "sync" else apsw.SQLITE_IOERR_WRITE
            )
        if self.full and operation == "write":
            self.failed += 1
            raise apsw.FullError("no room")


@contextmanager
def failing_disk() -> Generator[Disk]:
    """Every database that is opened in here is on it."""
    disk = Disk()

    class File(_VFSFile):
        def __init__(self, name: Any, flags: Any) -> None:
            _VFSFile.__init__(self, "unix", name, flags)
            self.name = str(name.filename() if hasattr(name, "filename") else name)

        def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
            disk.check("write", self.name)
            _VFSFile.xWrite(self, data, offset)

        def xSync(self, flags: int) -> None:  # noqa: N802
            disk.check("sync", self.name)
            _VFSFile.xSync(self, flags)

    class Files(_VFS):
        def xOpen(self, name: Any, flags: Any) -> Any:  # noqa: N802
            return File(name, flags)

    vfs = Files("failing", base="unix", makedefault=True)
    try:
        yield disk
    finally:
        vfs.unregister()
