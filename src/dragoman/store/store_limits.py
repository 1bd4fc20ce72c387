"""How long a store waits and how much it does at once; its caller may set other limits."""

from __future__ import annotations

import msgspec

READ_BYTES = 4 * 1024 * 1024
"""Of events that are read at once; a single larger one is read alone."""


class StoreLimits(msgspec.Struct, kw_only=True):
    """Of any kind of store, except where one is named. Set them before the store is opened."""

    outage_seconds: float = 5.0
    """While a database is unavailable for longer, calls that can be repeated fail at once."""
    close_seconds: float = 5.0
    """How long closing waits for a database that cannot be written."""
    read_bytes: int = READ_BYTES
    outcome_seconds: float = 3600.0
    """How long the outcome of a command is kept."""
    command_seconds: float = 600.0
    """No sender waits that long for a command: to carry it out then would surprise everyone."""

    busy_seconds: float = 10.0
    """SQLite: how long to wait for another process that is writing, …"""
    locked_seconds: float = 2.0
    """… and how long before what comes meanwhile is kept elsewhere."""
    poll_seconds: float = 0.025
    """SQLite: how often to look for what other processes wrote, while someone wants to know, …"""
    quiet_poll_seconds: float = 0.1
    """… and how often when nobody has written anything for a while."""
    portion_bytes: int = 1024 * 1024
    """SQLite: the most that one transaction of a copy or a deletion handles."""
    mirror_seconds: float = 2.0
    """SQLite: how long after a failure a mirror that is out of date is tried again, though nothing
    new happens in it."""

    news_seconds: float = 5.0
    """PostgreSQL: how often to look for what notifications may have missed."""
    answer_seconds: float = 10.0
    """PostgreSQL: after that long without an answer, a connection is taken for dead."""
    search_seconds: float = 5.0
    """PostgreSQL: after that long, a search is given up: it takes the database's time from all
    others."""
    copy_events: int = 2000
    """PostgreSQL: the most events that one transaction of a copy handles."""
