"""How much of folders is kept, and for how long."""

from __future__ import annotations

import msgspec


class SnapshotLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of snapshots. Larger files, and folders with more files, are not kept."""

    enabled: bool = True
    """Whether folders are read at all."""
    file_bytes: int = 10 << 20
    files: int = 200_000
    seconds: float = 60.0
    """How long reading the folder may take."""
    days: float | None = 90.0
    """How long the snapshots of a session are kept after its last turn; None is for as long as the
    session is."""
    loose: int = 4_000
    """Once a repository has more loose objects than this, they are put into a pack."""
