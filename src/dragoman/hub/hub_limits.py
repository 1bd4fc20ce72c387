"""How long a hub waits and how much it holds, unless its caller sets other limits."""

from __future__ import annotations

import msgspec


class HubLimits(msgspec.Struct, kw_only=True):
    """Set them before the hub starts."""

    waiting_bytes: int = 64 * 1024 * 1024
    """Of events that the store was given and has not stored, and again of those that it was not
    given yet: with more than that the session cannot be recorded. With half of the latter, while
    the store is away, the session's owner must cancel the turn."""
    seal_seconds: float = 20.0
    """How long the end of a recording waits for a store that takes long, …"""
    seal_away_seconds: float = 5.0
    """… and for one that is away and has all of it; the closing caller has the last word."""
    queued_prompts: int = 64
    """No prompt is queued while so many wait, …"""
    queued_bytes: int = 64 << 20
    """… or so much: each is kept, and is part of every answer."""
    cancel_seconds: float = 5.0
    """How long an agent may take to stop a turn when the session is detached or cut off."""
    silence_seconds: float = 25.0
    """How long an owner that is gone, and may only be cut off, has to come back to what it runs."""
    stray_seconds: float = 10.0
    """How long a shared agent without a session may continue to send before it is ended."""
    parked_seconds: float = 5.0
    """How often to look for parked prompts that are due and that no process runs."""
    spent_seconds: float = 5.0
    """How often a running turn with a limit of a day, an agent or a project looks at what all
    sessions have used."""
    idle_seconds: float = 600.0
    """After so long without use a session is detached and an agent stopped, if it can continue."""
    trim_seconds: float = 1.0
    """How long after a session was detached its memory is given back to the system."""
