"""Odd requests of people who have the token, and of those who do not: never an error of ours."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.raw_http import Answer, raw
from support.serving import TOKEN, Served, served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.routing.route import JSON, Route
from dragoman.web.routing.table import ROUTES

SEED = 20_250_612

WORDS = [
    *("", " ", "\t", "null", "true", "0", "-1", "1e999", "NaN", "9" * 400, "\u00e9", "\u2028"),
    *("9223372036854775807", "9223372036854775808", "9" * 20, "1.0", "0x10", "1_000"),
    *("'\"<>&;|`$(id)", "../../etc/passwd", "%00", "%ff", "{}", "[]", "\\", "*/*", "=", "a=b&a=c"),
    *("text/event-stream", "bytes=0-", "gzip", 'W/"x"', "x" * 2000, "none", "all", "on"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 2**70, 1.5, "", "x", "\0", "\u2028", "\U0001f600", [], {}),
    *([[]], [{}], {"x": {}}, "../..", "x" * 5000, {"type": "text"}, {"type": "text", "text": 5}),
    *([{"type": "text", "text": "hello"}], {"uri": None}, [None], {"": ""}, 1e308),
]
HEADERS = [
    *("accept", "accept-encoding", "range", "if-none-match", "if-modified-since", "last-event-id"),
    *("content-encoding", "x-forwarded-host", "x-forwarded-for", "forwarded", "te", "upgrade"),
    *("connection", "cookie", "referer", "user-agent", "x-http-method-override", "expect"),
]
QUERY = ["after", "limit", "before", "entries", "q", "id", "status", "archived", "sdk", "coalesce"]
FIELDS = [
    *("text", "content", "agent", "cwd", "mode", "config", "id", "title", "archived", "modeId"),
    *("configId", "value", "optionId", "action", "turnId", "force", "sessionId", "methodId"),
    *("messages", "trigger", "acp", "name", "additionalDirectories"),
]


class Oddities:
    """Requests for the routes there are, with something odd about each."""

    def __init__(self, web: Served, ids: list[str], seed: int) -> None:
        self._web = web
        self._ids = ids
        self._draw = random.Random(seed)

    def request(self) -> bytes:
        draw = self._draw
        route = draw.choice([each for each in ROUTES if not each.path.endswith("/doctor")])
        headers = [f"host: 127.0.0.1:{self._web.port}", f"authorization: Bearer {TOKEN}"]
        headers += self._headers()
        body = self._body(route)
        if body:
            kind = JSON if draw.random() < 0.9 else draw.choice(WORDS)
            headers += [f"content-type: {kind}", f"content-length: {len(body)}"]
        head = "\r\n".join([f"{route.method} {self._target(route)} HTTP/1.1", *headers, "", ""])
        return head.encode("utf-8", "replace") + body

    def _target(self, route: Route) -> str:
        words = (self._word(s) if s.startswith("{") else s for s in route.segments)
        path = "/" + "/".join(words)
        pairs = [f"{self._name(QUERY)}={_quoted(self._draw.choice(WORDS))}" for _ in range(2)]
        return f"{path}?{'&'.join(pairs)}" if self._draw.random() < 0.7 else path

    def _word(self, segment: str) -> str:
        if segment == "{session_id}" and self._draw.random() < 0.8:
            return self._draw.choice(self._ids)
        if segment == "{name}" and self._draw.random() < 0.5:
            return "scripted"
        return _quoted(self._draw.choice(WORDS)) or "x"

    def _headers(self) -> list[str]:
        draw = self._draw
        names = draw.sample(HEADERS, draw.randrange(3))
        # Without an accept header for streams, which would not end.
        values = [word for word in WORDS if "event-stream" not in word and word.isascii()]
        return [f"{name}: {draw.choice(values)}" for name in names]

    def _body(self, route: Route) -> bytes:
        draw = self._draw
        if route.body is None and draw.random() < 0.9:
            return b""
        if draw.random() < 0.2:
            return draw.choice([b"{", b"\xff\xfe", b"[" * 5000, b'"\\ud800"', b"null", b"{}{}"])
        fields = {self._name(FIELDS): draw.choice(VALUES) for _ in range(draw.randrange(5))}
        return json.dumps(fields).encode()

    def _name(self, names: list[str]) -> str:
        return self._draw.choice(names) if self._draw.random() < 0.9 else "odd"


def _quoted(word: str) -> str:
    return "".join(
        c if c.isalnum() and c.isascii() else f"%{b:02x}" for c in word for b in c.encode()
    )


async def _fuzzed(web: Served, count: int) -> list[str]:
    """The requests that were answered with an error of ours, or not at all."""
    ids = [await web.new_session() for _ in range(3)]
    await web.done(ids[0])
    odd = Oddities(web, ids, SEED)
    faults: list[str] = []
    for number in range(count):
        if number % 20 == 0:
            ids[number // 20 % 3] = await web.new_session()  # others were deleted by then
        request = odd.request()
        if b"GET /api/events" in request:
            continue  # a stream that does not end
        try:
            answer = await raw(web.port, request)
        except (EOFError, OSError, TimeoutError) as error:
            answer = Answer(0, {}, repr(error).encode())
        if not 200 <= answer.status < 500:
            faults.append(f"{answer.status} {answer.body[:300]!r} to {request[:600]!r}")
    return faults


@pytest.mark.parametrize(
    "count", [500, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.within(600)])]
)
async def test_odd_requests_are_never_an_error_of_ours(count: int, tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        faults = await _fuzzed(web, count)
        assert faults == [], f"seed {SEED}"
        session_id = await web.new_session()
        assert (await web.done(session_id))["status"] == "idle"
