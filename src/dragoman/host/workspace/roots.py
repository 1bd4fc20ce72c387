"""The folders a session may work in. Pure data: nothing here looks at the disk."""

from __future__ import annotations

import msgspec


class Root(msgspec.Struct, frozen=True):
    """A folder as it was found: name, real path, and device and inode if it existed."""

    path: str
    real: str
    identity: tuple[int, int] | None = None


class Workspace(msgspec.Struct, frozen=True):
    """A session's working directory and the directories added to it, as absolute paths.

    `found` has them as they were when the session started: a folder that replaces one later is not
    the session's.
    """

    session_id: str
    cwd: str
    additional_directories: tuple[str, ...] = ()
    found: tuple[Root, ...] = ()

    def __post_init__(self) -> None:
        for directory in self.roots:
            if not directory.startswith("/") or "\0" in directory:
                raise ValueError(f"a workspace needs absolute paths, not {directory!r}")

    @property
    def roots(self) -> tuple[str, ...]:
        """Every directory of the session, the working directory first."""
        return (self.cwd, *self.additional_directories)

    @property
    def places(self) -> tuple[Root | str, ...]:
        """The roots as they were when the session started, or their names if that is unknown."""
        found = {root.path: root for root in self.found}
        return tuple(found.get(path, path) for path in self.roots)
