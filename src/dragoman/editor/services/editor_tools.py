"""MCP servers that an editor serves over ACP, as servers for the agents of its sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any

import msgspec

from dragoman.client.dialects.translation import Schema
from dragoman.client.mcp import InProcessServer
from dragoman.editor.link import EditorLink
from dragoman.errors import InvalidMessage
from dragoman.schema import codec
from dragoman.wire.error_replies import remote_error


class EditorTools:
    """Those of one editor. They end with it: then what an agent asks of them fails."""

    def __init__(self, link: EditorLink, schema: Schema) -> None:
        self._link = link
        self._schema: Any = schema
        self._numbers = count(1)
        self._telling: dict[str, Callable[[str, dict[str, Any] | None], None]] = {}
        """By request, how to pass on what its server notifies meanwhile."""

    def server(self, wire: Any) -> InProcessServer:
        """For one that the editor names when it opens a session."""

        async def handle(method: str, params: dict[str, Any] | None) -> Any:
            return await self._ask(own, wire.server_id, method, params)

        own = InProcessServer(name=wire.name, id=f"editor-{os.urandom(8).hex()}", handle=handle)
        return own

    async def _ask(
        self, own: InProcessServer, server_id: str, method: str, params: dict[str, Any] | None
    ) -> Any:
        """Raises what the server answers, and what ended the connection."""
        key = f"mcp-{next(self._numbers)}"
        self._telling[key] = partial(copy_context().run, own.notify)
        try:
            request = self._schema.MessageMcpRequest(
                server_id=server_id, request_id=key, method=method, params=params
            )
            raw = await self._link.call("mcp/message", request)
        finally:
            del self._telling[key]
        answer = codec.decode(raw, self._schema.MessageMcpResponse)
        if (error := answer.error) is not None:
            data = None if error.data is msgspec.UNSET else error.data
            raise remote_error(error.code, error.message, data)
        return None if answer.result is msgspec.UNSET else answer.result

    def hear(self, params: msgspec.Raw) -> None:
        """A notification of a server, about a request that it is answering."""
        try:
            told = codec.decode(params, self._schema.MessageMcpNotification)
        except InvalidMessage:
            return
        if (tell := self._telling.get(str(told.request_id))) is not None:
            tell(told.method, told.params)
