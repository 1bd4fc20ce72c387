"""The folders a session may work in. Pure data: nothing here looks at the disk."""

from __future__ import annotations

import msgspec


class Workspace(msgspec.Struct, frozen=True):
    """A session's working directory and the directories added to it, as absolute paths."""

    session_id: str
    cwd: str
    additional_directories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for directory in self.roots:
            if not directory.startswith("/") or "\0" in directory:
                raise ValueError(f"a workspace needs absolute paths, not {directory!r}")

    @property
    def roots(self) -> tuple[str, ...]:
        """Every directory beneath which the session's files are, the working directory first."""
        return (self.cwd, *self.additional_directories)
