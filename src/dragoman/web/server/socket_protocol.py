"""uvicorn's WebSockets, counted among the connections of their server."""

from __future__ import annotations

import asyncio
from asyncio.transports import BaseTransport
from typing import Any, cast

from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from dragoman.web.server.connections import open_now, told_of


class SocketProtocol(WebSocketsSansIOProtocol):
    """Takes over a connection whose request asks for a WebSocket."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._state = server_state

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.app = cast("Any", told_of(self.app, self.transport, self._state))

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # it was refused: else that would be logged as an error

    def connection_lost(self, exc: Exception | None) -> None:
        open_now(self._state).left(self.transport)
        super().connection_lost(exc)
