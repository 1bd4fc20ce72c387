"""Endpoints about the server itself: its health, and the document that describes its API."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman._version import __version__
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.server_shapes import Health, Readiness


async def health(server: Server) -> Health:
    return Health(version=__version__)


async def readiness(server: Server) -> Readiness:
    """Raises RequestFailed with the names of what is not well, and no more: anyone may ask."""
    hub = server.hub
    checks = {
        "store": hub.store.away is not None,
        "outbox": hub.store.holds_undelivered,
        "chores": bool(hub.maintenance.failing),
    }
    failing = [name for name, fails in checks.items() if fails]
    if failing:
        sentence = f"failing: {', '.join(failing)} (see the log)"
        raise RequestFailed(503, "not_ready", sentence, {"failing": failing})
    return Readiness()


async def document(server: Server) -> dict[str, Any]:
    return await asyncio.to_thread(server.document)
