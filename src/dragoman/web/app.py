"""Assembles the application: the route table, its handlers, the page's files, and the guard.

The page's files are listed and read once, at the start: what is not among them then is never
served. Between the guard and the handlers, requests are decoded as the table says, and responses
encoded; nothing there decides who may do what.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.client.client_options import tracing
from dragoman.web.api.metrics import count_request
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed, failure_of, response_for
from dragoman.web.routing.openapi import document
from dragoman.web.routing.route import ANY_TYPE, JSON, Route, Table
from dragoman.web.routing.table import ROUTES
from dragoman.web.server.guard import PARAMETERS, ROUTE, AllowedHosts, Guard, Log
from dragoman.web.streams.stream_response import StreamedResponse

FOLDER = Path(__file__).parent / "static"
NOT_BUILT = (
    "The page was not built. Run `npm ci && npm run build` in the folder `web` of the sources, "
    "then restart the server. The API works without the page.\n"
)
_FOREVER = "public, max-age=31536000, immutable"


def page_routes(folder: Path = FOLDER) -> Iterator[Route]:
    """A public route for each file; `/` is the page itself."""
    index = folder / "index.html"
    if not index.is_file():
        yield _route("/", Response(NOT_BUILT, 404, media_type="text/plain"), "the page")
        return
    yield _route("/", _file(index, "no-store"), "the page")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path != index and not name.startswith("."):
            # What the build puts there has a hash of its content in its name.
            is_hashed = name.startswith("assets/")
            yield _route(f"/{name}", _file(path, _FOREVER if is_hashed else "no-cache"), name)


def _file(path: Path, keep: str) -> Response:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Response(path.read_bytes(), media_type=kind, headers={"cache-control": keep})


def _route(path: str, response: Response, summary: str) -> Route:
    async def handler(server: Server) -> Response:
        return response

    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        public=True,
        gives=(ANY_TYPE,),
    )


def _quiet(method: str, path: str, status: int, seconds: float) -> None:
    pass


@cache
def _document() -> dict[str, Any]:
    """Made when it is first asked for: it takes as long as the rest of the start."""
    return document(ROUTES)


def make_app(
    server: Server,
    *,
    token: str,
    hosts: AllowedHosts,
    origins: Collection[str] = (),
    log: Log = _quiet,
    page: Path = FOLDER,
) -> Guard:
    """An ASGI application; nothing of it can be reached but through the guard."""

    def counted(method: str, path: str, status: int, seconds: float) -> None:
        count_request(server, method, status)
        log(method, path, status, seconds)

    table = Table([*ROUTES, *page_routes(page)])
    server.document = _document
    return Guard(
        Dispatch(server),
        table,
        token=token,
        hosts=hosts,
        origins=origins,
        log=counted,
        visitors=server.visitors,
    )


logger = logging.getLogger("dragoman.web")

BODY_SECONDS = 60.0
"""How long a body may take to arrive."""


class Dispatch:
    """Passes a request that the guard has let through to its endpoint."""

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
            headers = request.headers
            with tracing(headers.get("traceparent"), headers.get("tracestate")):
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
