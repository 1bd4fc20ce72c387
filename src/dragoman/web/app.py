"""Puts the server together: the table, the handlers behind it, and the guard around them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dragoman.web.context import Server
from dragoman.web.page import FOLDER, page_routes
from dragoman.web.routing.dispatch import Dispatch
from dragoman.web.routing.openapi import document
from dragoman.web.routing.route import Table
from dragoman.web.routing.table import ROUTES
from dragoman.web.server.guard import Guard, Log
from dragoman.web.server.host_header import AllowedHosts


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
