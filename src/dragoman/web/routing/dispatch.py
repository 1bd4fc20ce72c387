"""Between the guard and the handlers: decodes requests as the table says, encodes responses.

The route is in the scope already; nothing here decides who may do what.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed, failure_of, response_for
from dragoman.web.routing.route import JSON, Route
from dragoman.web.server.guard import PARAMETERS, ROUTE
from dragoman.web.streams.stream_response import StreamedResponse

logger = logging.getLogger("dragoman.web")

BODY_SECONDS = 60.0
"""How long a body may take to arrive."""


class Dispatch:
    """The application behind the guard."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route = scope[ROUTE]
        request = Request(scope, receive)
        response = await self._answered(route, request)
        await response(scope, receive, send)

    async def _answered(self, route: Route, request: Request) -> ASGIApp:
        try:
            given = await _given(route, request)
            return _response(route, await route.handler(self._server, **given))
        except ClientDisconnect:
            # Only for the log: the client does not read it.
            return response_for(
                RequestFailed(499, "left", "the client left before sending its body")
            )
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                logger.exception("%s %s failed", route.method, route.path)
                failure = RequestFailed(500, "internal", "internal error")
            return response_for(failure)


async def _given(route: Route, request: Request) -> dict[str, Any]:
    """What the handler is called with."""
    given: dict[str, Any] = dict(request.scope[PARAMETERS])
    if route.query is not None:
        given["query"] = msgspec.convert(dict(request.query_params), route.query, strict=False)
    if route.body is not None:
        given["body"] = _decoded(route, await _body(request))
    if route.wants_request:
        given["request"] = request
    return given


async def _body(request: Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.body()
    except TimeoutError:
        raise RequestFailed(408, "too_slow", "the body did not arrive in time") from None


def _decoded(route: Route, body: bytes) -> Any:
    if route.body is bytes:
        return body
    if not body and route.body_optional:
        return route.body()
    try:
        return msgspec.json.decode(body, type=route.body)
    except (UnicodeDecodeError, RecursionError) as error:
        raise RequestFailed(400, "malformed", f"the body is not JSON: {error}") from None


def _response(route: Route, answer: Any) -> ASGIApp:
    if isinstance(answer, (Response, StreamedResponse)):
        return answer
    if answer is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(answer), route.status, media_type=JSON)
