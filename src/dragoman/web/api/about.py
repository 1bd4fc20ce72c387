"""What the server says about itself."""

from __future__ import annotations

from typing import Any

from dragoman._version import __version__
from dragoman.web.server import Server
from dragoman.web.shapes.chats import Health


async def health(server: Server) -> Health:
    return Health(version=__version__)


async def document(server: Server) -> dict[str, Any]:
    return server.document
