"""Assembles the application: the route table, its handlers, the page's files, and the guard.

They are listed and read once, at the start: what is not among them then is never served.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Collection, Iterator
from pathlib import Path

from starlette.responses import Response

from dragoman.web.context import Server
from dragoman.web.routing.dispatch import Dispatch
from dragoman.web.routing.openapi import document
from dragoman.web.routing.route import ANY_TYPE, Route, Table
from dragoman.web.routing.table import ROUTES
from dragoman.web.server.guard import AllowedHosts, Guard, Log

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
    table = Table([*ROUTES, *page_routes(page)])
    server.document = document(table.routes)
    return Guard(Dispatch(server), table, token=token, hosts=hosts, origins=origins, log=log)
