"""What we send to an editor: updates of its sessions, and questions."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.rpc import Peer
from dragoman.schema import codec
from dragoman.transport.transport import Transport


class EditorOffers(msgspec.Struct, kw_only=True, frozen=True):
    """What an editor does for agents."""

    reads: bool = False
    writes: bool = False
    terminals: bool = False


class EditorLink:
    """The connection to one editor, as those see it who have something to say to it."""

    def __init__(self, peer: Peer, transport: Transport) -> None:
        self.offers = EditorOffers()
        """Known once it has said so in `initialize`."""
        self.terminals: dict[str, None] = {}
        """Those that it runs for agents; it shows them by itself."""
        self._peer = peer
        self._transport = transport

    @property
    def is_open(self) -> bool:
        return self._peer.error is None

    def tell(self, session_id: str, update: Any) -> None:
        """Send an update of a session. Raises what ended the connection."""
        params = {"sessionId": session_id, "update": update}
        self._peer.notify("session/update", codec.encode(params))

    async def keep_pace(self) -> None:
        """Wait while the editor is far behind with reading."""
        if self._transport.pending:
            await self._transport.drain()

    async def call(self, method: str, params: Any) -> msgspec.Raw:
        """Ask the editor; when the caller is cancelled, the request is withdrawn. Raises what
        `Peer.call` raises."""
        return await self._peer.call(method, codec.encode(params))

    def notify(self, method: str, params: Any) -> None:
        """Raises what ended the connection."""
        self._peer.notify(method, codec.encode(params))
