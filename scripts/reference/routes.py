"""docs/reference/http-routes.md, from the route table of the server."""

from __future__ import annotations

import msgspec

from dragoman.web.routing.route import Route
from dragoman.web.routing.table import ROUTES

HEAD = """\
# HTTP routes

Generated from `src/dragoman/web/routing/table.py` by `scripts/gen_reference.py`. [The HTTP
API](http.md) explains them; `GET /api/openapi.json` has the types of every request and response.

| method | path | | query | body |
|---|---|---|---|---|
"""


def routes_page() -> str:
    return HEAD + "".join(_row(route) for route in ROUTES)


def _row(route: Route) -> str:
    cells = [route.method, f"`{route.path}`", route.summary, _fields(route.query), _body(route)]
    return f"| {' | '.join(cells)} |\n"


def _body(route: Route) -> str:
    found = _fields(route.body)
    return f"body optional: {found}" if found and route.body_optional else found


def _fields(of: object) -> str:
    if not (isinstance(of, type) and issubclass(of, msgspec.Struct)):
        return "" if of is None else "any"
    return ", ".join(f"`{name}`" for name in of.__struct_encode_fields__)
