"""uvicorn's HTTP, with what it lacks here: an end for connections that nobody reads, and our
headers on the answers that it gives by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.web.failures import ErrorBody, Problem
from dragoman.web.headers import secured
from dragoman.web.route import JSON
from dragoman.web.stream import ABORT


class Protocol(H11Protocol):
    """Each request finds in its scope how to end its connection at once."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        app = self.app

        async def with_abort(scope: Any, receive: Any, send: Any) -> None:
            scope[ABORT] = transport.abort
            await app(scope, receive, send)

        self.app = with_abort

    def send_400_response(self, msg: str) -> None:
        """For what is not HTTP: the guard never sees it."""
        body = msgspec.json.encode(ErrorBody(Problem("malformed", "this is not HTTP")))
        headers = secured(
            [
                (b"content-type", JSON.encode()),
                (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ]
        )
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
