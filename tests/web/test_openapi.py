"""The document says what the table says, and the table what the handlers take."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path

import jsonschema
import pytest
from support.serving import served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.routing.openapi import document
from dragoman.web.routing.route import JSON, Route, Table
from dragoman.web.routing.table import ROUTES

CONTRACT = """
GET /api/agents
GET POST /api/sessions
GET PATCH DELETE /api/sessions/{}
POST /api/sessions/{}/prompt
POST /api/sessions/{}/cancel
POST /api/sessions/{}/mode
POST /api/sessions/{}/config
POST /api/sessions/{}/fork
POST /api/sessions/{}/close
POST /api/sessions/{}/permissions/{}
POST /api/sessions/{}/elicitations/{}
GET /api/sessions/{}/events
GET /api/events
GET /api/sessions/{}/export
GET /api/search
GET POST /api/agents/{}/sessions
POST /api/chat
GET /api/chat/{}/stream
POST /api/chat/{}/stop
GET POST DELETE /api/sessions/{}/queue
GET /api/sessions/{}/changes
POST /api/sessions/{}/revert
POST /api/sessions/{}/kill
GET /api/sessions/{}/frames
GET /api/sessions/{}/files
POST /api/uploads
GET POST DELETE /api/policies
POST /api/policies/explain
POST /api/agents/{}/auth
POST /api/agents/{}/doctor
GET /api/openapi.json
GET /healthz
"""


def promised() -> set[tuple[str, str]]:
    lines = (line.split() for line in CONTRACT.strip().split("\n"))
    return {(method, path) for *methods, path in lines for method in methods}


def test_every_path_that_was_promised_is_there() -> None:
    there = {(route.method, re.sub(r"{\w+}", "{}", route.path)) for route in ROUTES}
    assert promised() - there == set()


def _id(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.mark.parametrize("route", ROUTES, ids=_id)
def test_a_handler_takes_what_its_route_says(route: Route) -> None:
    hints = typing.get_type_hints(route.handler)
    given = {"server", *route.parameters}
    given |= {"query"} if route.query is not None else set()
    given |= {"body"} if route.body is not None else set()
    given |= {"request"} if route.wants_request else set()
    assert set(hints) - {"return"} == given
    assert hints.get("query") is route.query
    assert hints.get("body") is route.body
    if route.gives == (JSON,) and route.answer is not dict:
        assert hints["return"] is (type(None) if route.answer is None else route.answer)


def test_no_two_routes_are_the_same() -> None:
    keys = [(route.method, route.path) for route in ROUTES]
    assert len(keys) == len(set(keys))


def test_every_operation_is_described() -> None:
    found = document(ROUTES)
    operations = [op for path in found["paths"].values() for op in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({op["operationId"] for op in operations}) == len(ROUTES)
    for route in ROUTES:
        operation = found["paths"][route.path][route.method.lower()]
        assert ("requestBody" in operation) is (route.body is not None)
        assert ("security" in operation) is route.public
        names = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert names == set(route.parameters)


def test_every_reference_leads_somewhere() -> None:
    found = document(ROUTES)
    names = set(found["components"]["schemas"])
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(found)))
    assert references <= {f"#/components/schemas/{name}" for name in names}
    assert len(references) > 50


async def test_answers_are_what_the_document_says(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        found = await web.call("GET", "/api/openapi.json")
        for path in ("", f"/{session_id}", f"/{session_id}/queue", f"/{session_id}/events"):
            template = f"/api/sessions{path.replace(session_id, '{session_id}')}"
            answer = await web.call("GET", f"/api/sessions{path}")
            good = found["paths"][template]["get"]["responses"]["200"]
            schema = good["content"]["application/json"]["schema"]
            whole = {**schema, "components": found["components"]}
            jsonschema.validate(answer, whole)
        error = (await web.http.get("/api/sessions/none")).json()
        reference = {"$ref": "#/components/schemas/ErrorBody", "components": found["components"]}
        jsonschema.validate(error, reference)


def test_a_literal_path_is_found_before_one_with_parameters() -> None:
    async def handler(server: object) -> None: ...

    def route(path: str) -> Route:
        return Route(method="GET", path=path, handler=handler, summary="")

    table = Table([route("/a/{x}"), route("/a/b"), route("/a")])
    for path, expected in [("/a/b", "/a/b"), ("/a/c", "/a/{x}"), ("/a", "/a")]:
        found = table.find(path)
        assert found is not None
        assert found.routes["GET"].path == expected
    assert table.find("/a/") is None
    assert table.find("/a/b/c") is None
