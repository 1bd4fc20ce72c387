"""The OpenAPI document, generated from the route table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from dragoman._version import __version__
from dragoman.web.failures import ErrorBody
from dragoman.web.routing.route import EVENT_STREAM, JSON, JSON_LINES, Route

Json: TypeAlias = dict[str, Any]

_REF = "#/components/schemas/{name}"
_ID = "^[A-Za-z0-9_-]{1,128}$"
_NAME: Json = {"type": "string", "minLength": 1}
_CHAT: Json = {
    "type": "object",
    "description": "What `useChat` sends, with `acp` added for what only an agent needs.",
    "required": ["id", "messages"],
    "properties": {
        "id": {"type": "string", "pattern": _ID},
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "trigger": {"type": "string"},
        "messageId": {"type": "string"},
        "acp": {"type": "object"},
    },
}
"""The one body that is JSON and is not decoded by the table."""
_DESCRIPTION = (
    "Sessions with coding agents that speak ACP. Keys are in camelCase; what an agent sends is "
    "passed on as it is."
)


def document(routes: Iterable[Route]) -> Json:
    """The page's files are not part of the API, and not among these routes."""
    described = list(routes)
    types = list(dict.fromkeys([ErrorBody, *_types(described)]))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Json] = {}
    for route in described:
        operation = _operation(route, by_type, components)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dragoman", "version": __version__, "description": _DESCRIPTION},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(routes: Iterable[Route]) -> Iterator[Any]:
    for route in routes:
        yield from (each for each in (route.query, route.answer) if each is not None)
        if route.body is not None and route.body is not bytes:
            yield route.body


def _operation(route: Route, by_type: dict[Any, Json], components: dict[str, Json]) -> Json:
    operation: Json = {
        "operationId": _name(route),
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route, by_type, components)],
        "responses": _responses(route, by_type),
    }
    if route.public:
        operation["security"] = []
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {route.takes: {"schema": _body_schema(route, by_type)}},
        }
    return operation


def _name(route: Route) -> str:
    words = [word.strip("{}") for word in route.path.replace(".", "/").split("/") if word]
    return "_".join([route.method.lower(), *words])


def _path_parameters(route: Route) -> Iterator[Json]:
    for name in route.parameters:
        is_ours = name in ("session_id", "chat_id", "request_id")
        schema = {"type": "string", "pattern": _ID} if is_ours else _NAME
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(
    route: Route, by_type: dict[Any, Json], components: dict[str, Json]
) -> Iterator[Json]:
    if route.query is None:
        return
    schema = components[by_type[route.query]["$ref"].rpartition("/")[2]]
    for name, field in schema["properties"].items():
        required = name in schema["required"]
        yield {"name": name, "in": "query", "required": required, "schema": field}


def _body_schema(route: Route, by_type: dict[Any, Json]) -> Json:
    if route.body is not bytes:
        return by_type[route.body]
    return _CHAT if route.takes == JSON else {"type": "string", "format": "binary", "minLength": 1}


def _responses(route: Route, by_type: dict[Any, Json]) -> Json:
    error = {JSON: {"schema": by_type[ErrorBody]}}
    good: Json = {"description": "done"}
    if route.gives and (route.answer is not None or route.gives != (JSON,)):
        good["content"] = {kind: {"schema": _schema(route, kind, by_type)} for kind in route.gives}
    status = "204" if route.answer is None and route.gives == (JSON,) else str(route.status)
    responses: Json = {status: good, "default": {"description": "an error", "content": error}}
    if route.may_be_empty:
        responses["204"] = {"description": "there is nothing"}
    return responses


def _schema(route: Route, kind: str, by_type: dict[Any, Json]) -> Json:
    if kind in (EVENT_STREAM, JSON_LINES) or route.answer is None:
        return {"type": "string"} if kind != JSON else {"type": "object"}
    return by_type[route.answer]
