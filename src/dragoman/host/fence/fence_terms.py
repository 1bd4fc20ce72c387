"""What the settings and flags say about a fence."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

FenceMode: TypeAlias = Literal["off", "on", "require"]
"""`on`: fenced if the system can do it; `require`: nothing is started without."""
FENCE_MODES: tuple[FenceMode, ...] = ("off", "on", "require")


class FenceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is to be a fence, and what it leaves open in addition."""

    mode: FenceMode = "off"
    write: tuple[str, ...] = ()
    """Further folders that may be written."""
    read: tuple[str, ...] = ()
    """Paths that may be read although they are in a place that is private or covered."""


NO_FENCE = FenceTerms()
