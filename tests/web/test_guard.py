"""Every route there is, and every way in that is not one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import Receive, Scope, Send
from support.raw_http import Answer, raw, request

from dragoman.web.app import page_routes
from dragoman.web.routing.route import ANY_TYPE, JSON, Route, Table
from dragoman.web.routing.table import ROUTES
from dragoman.web.server.guard import (
    FAILURE_SECONDS,
    MAX_FAILURES,
    ROUTE,
    SECURITY_HEADERS,
    AllowedHosts,
    Guard,
)
from dragoman.web.server.http_server import AsgiServer

TOKEN = "the-right-token-of-thirty-two-characters-and-more"
FRIEND = "https://front.example"
PUBLIC = {"/", "/healthz", "/readyz", "/assets/app-1234.js", "/icon.svg"}


def everything(tmp_path: Path) -> Table:
    (tmp_path / "assets").mkdir()
    for name in ("index.html", "assets/app-1234.js", "icon.svg"):
        (tmp_path / name).write_text(name)
    return Table([*ROUTES, *page_routes(tmp_path)])


@dataclass
class Behind:
    """What is behind the guard: it notes what comes through."""

    came: list[Route] = field(default_factory=list[Route])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        self.came.append(scope[ROUTE])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Fort:
    port: int
    table: Table
    behind: Behind

    def good(self, route: Route, **headers: str) -> dict[str, str]:
        """The headers of a request that is let in."""
        found = {"host": f"127.0.0.1:{self.port}", "authorization": f"Bearer {TOKEN}"}
        if route.body is not None:
            found["content-type"] = JSON if route.takes == JSON else "image/png"
        return found | {name.replace("_", "-"): value for name, value in headers.items()}

    async def send(self, method: str, target: str, headers: dict[str, str], body: bytes = b""):
        return await raw(self.port, request(method, target, headers, body))


@asynccontextmanager
async def fort(table: Table) -> AsyncGenerator[Fort]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    behind = Behind()
    hosts = AllowedHosts("127.0.0.1", port)
    guard = Guard(behind, table, token=TOKEN, hosts=hosts, origins=[FRIEND])
    server = AsgiServer(guard, asyncio.Event())
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield Fort(port, table, behind)
    finally:
        server.end()
        await serving


def target_of(route: Route) -> str:
    words = (f"some-{s[1:-1]}" if s.startswith("{") else s for s in route.segments)
    return "/" + "/".join(words)


def body_of(route: Route) -> bytes:
    return b"" if route.body is None else b"{}"


# ── the attacks ───────────────────────────────────────────────────────────────────────────────

Attack = Callable[[Fort, Route], Iterator[bytes]]


def _plain(fort: Fort, route: Route, headers: dict[str, str], target: str | None = None) -> bytes:
    return request(route.method, target or target_of(route), headers, body_of(route))


def no_token(fort: Fort, route: Route) -> Iterator[bytes]:
    headers = fort.good(route)
    del headers["authorization"]
    yield _plain(fort, route, headers)


def wrong_token(fort: Fort, route: Route) -> Iterator[bytes]:
    for token in ("Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer ", ""):
        yield _plain(fort, route, fort.good(route, authorization=token))


def token_in_query(fort: Fort, route: Route) -> Iterator[bytes]:
    headers = fort.good(route)
    del headers["authorization"]
    for name in ("token", "access_token"):
        yield _plain(fort, route, headers, f"{target_of(route)}?{name}={TOKEN}")


def token_in_cookie(fort: Fort, route: Route) -> Iterator[bytes]:
    headers = fort.good(route, cookie=f"token={TOKEN}")
    del headers["authorization"]
    yield _plain(fort, route, headers)


def foreign_host(fort: Fort, route: Route) -> Iterator[bytes]:
    for host in ("evil.example", "127.0.0.1", f"127.0.0.1:{fort.port + 1}", f"127.1:{fort.port}"):
        yield _plain(fort, route, fort.good(route, host=host))


def rebinding_host(fort: Fort, route: Route) -> Iterator[bytes]:
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0"):
        yield _plain(fort, route, fort.good(route, host=f"{name}:{fort.port}"))


def null_origin(fort: Fort, route: Route) -> Iterator[bytes]:
    yield _plain(fort, route, fort.good(route, origin="null"))


def foreign_origin(fort: Fort, route: Route) -> Iterator[bytes]:
    other = f"http://127.0.0.1:{fort.port + 1}"
    for origin in ("https://evil.example", other, f"https://127.0.0.1:{fort.port}", FRIEND + "x"):
        yield _plain(fort, route, fort.good(route, origin=origin))


def cross_site(fort: Fort, route: Route) -> Iterator[bytes]:
    for site in ("cross-site", "same-site", "whatever"):
        yield _plain(fort, route, fort.good(route, sec_fetch_site=site))
    framed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    yield _plain(fort, route, fort.good(route, **framed, sec_fetch_dest="iframe"))
    if route.path != "/":
        yield _plain(fort, route, fort.good(route, **framed, sec_fetch_dest="document"))


def wrong_method(fort: Fort, route: Route) -> Iterator[bytes]:
    found = fort.table.find(target_of(route))
    assert found is not None
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "GARBAGE"}:
        if method not in found.routes:
            yield request(method, target_of(route), fort.good(route))


def oversized_body(fort: Fort, route: Route) -> Iterator[bytes]:
    headers = fort.good(route)
    limit = route.body_limit
    if route.body is None:
        limit = len(b"{}") if route.method == "POST" else 0
    told = headers | {"content-length": str(limit + 1), "expect": "100-continue"}
    yield request(route.method, target_of(route), told)
    if limit <= 1024 * 1024:
        size = limit + 1
        chunked = headers | {"transfer-encoding": "chunked", "content-type": JSON}
        chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b" " * size)
        yield request(route.method, target_of(route), chunked) + chunk


def two_lengths(fort: Fort, route: Route) -> Iterator[bytes]:
    headers = fort.good(route) | {"content-length": "2", "transfer-encoding": "chunked"}
    yield request(route.method, target_of(route), headers) + b"2\r\n{}\r\n0\r\n\r\n"


def wrong_content_type(fort: Fort, route: Route) -> Iterator[bytes]:
    forms = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
    simple = forms if route.takes == ANY_TYPE else [*forms, "text/plain", "text/plain; a=json"]
    for kind in simple:
        yield _plain(fort, route, fort.good(route, content_type=kind))


def path_tricks(fort: Fort, route: Route) -> Iterator[bytes]:
    target = target_of(route)
    tricks = [f"/{target}", f"/x/..{target}", f"/x%2f..{target}", f"/.{target}", f"{target}%00"]
    tricks += [f"/healthz/..%2f..{target}", f"/%2e%2e{target}", target.replace("/", "\\", 1)]
    tricks += [f"http://evil.example{target}", f"{target}/"]
    if target != "/":
        tricks += [f"/{target[1:].swapcase()}", target.replace("/", "//")]
    for trick in tricks:
        yield _plain(fort, route, fort.good(route), trick)


OF_STRANGERS: list[Attack] = [no_token, wrong_token, token_in_query, token_in_cookie]
OF_ALL: list[Attack] = [
    *(foreign_host, rebinding_host, null_origin, foreign_origin, cross_site),
    *(wrong_method, oversized_body, two_lengths, wrong_content_type, path_tricks),
]


async def _attacked(fort: Fort, attack: Attack, route: Route) -> list[str]:
    """What was not refused."""
    faults: list[str] = []
    for bytes_sent in attack(fort, route):
        answer = await raw(fort.port, bytes_sent)
        what = f"{attack.__name__} on {route.method} {route.path}: {bytes_sent[:200]!r}"
        if fort.behind.came or not 400 <= answer.status < 500:
            faults.append(f"{what} was let in: {answer.status}")
        faults += [f"{what} lacks {name}" for name in _missing(answer)]
        fort.behind.came.clear()
    return faults


def _missing(answer: Answer) -> list[str]:
    told = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
    return [name for name, value in told.items() if answer.headers.get(name) != value]


async def test_no_attack_on_any_route_gets_through(tmp_path: Path) -> None:
    async with fort(everything(tmp_path)) as walls:
        faults: list[str] = []
        for route in walls.table.routes:
            for attack in [*([] if route.public else OF_STRANGERS), *OF_ALL]:
                faults += await _attacked(walls, attack, route)
        assert faults == []
        assert len([*OF_STRANGERS, *OF_ALL]) == 14
        assert len(walls.table.routes) >= 40


async def test_control_whoever_has_the_token_gets_through_to_every_route(tmp_path: Path) -> None:
    async with fort(everything(tmp_path)) as walls:
        for route in walls.table.routes:
            headers = walls.good(route, sec_fetch_site="same-origin")
            headers["origin"] = f"http://{headers['host']}"
            answer = await walls.send(route.method, target_of(route), headers, body_of(route))
            assert answer.status == 200, (route.path, answer)
            assert walls.behind.came.pop() is route
            assert _missing(answer) == []


def test_what_every_response_says() -> None:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )
    told = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
    assert told["content-security-policy"] == policy
    assert told["x-content-type-options"] == "nosniff"
    assert told["x-frame-options"] == "DENY"
    assert told["referrer-policy"] == "no-referrer"
    assert told["cache-control"] == "no-store"
    assert told["cross-origin-opener-policy"] == told["cross-origin-resource-policy"]


async def test_only_the_page_and_the_health_check_are_public(tmp_path: Path) -> None:
    table = everything(tmp_path)
    assert {route.path for route in table.routes if route.public} == PUBLIC
    assert all(route.method == "GET" for route in table.routes if route.public)


async def test_a_new_route_is_denied_without_a_mark() -> None:
    async def handler(server: object) -> None: ...

    forgotten = Route(method="GET", path="/debug", handler=handler, summary="forgotten")
    async with fort(Table([forgotten])) as walls:
        answer = await walls.send("GET", "/debug", {"host": f"localhost:{walls.port}"})
        assert (answer.status, answer.code) == (401, "unauthorized")


async def test_what_is_not_in_the_table_is_not_there(tmp_path: Path) -> None:
    async with fort(everything(tmp_path)) as walls:
        health = walls.table.find("/healthz")
        assert health is not None
        headers = walls.good(health.routes["GET"])
        assert (await walls.send("GET", "/api/nothing", headers)).status == 404
        del headers["authorization"]
        assert (await walls.send("GET", "/api/nothing", headers)).status == 401


async def test_a_link_leads_to_the_page_and_nowhere_else(tmp_path: Path) -> None:
    async with fort(everything(tmp_path)) as walls:
        visit = {
            "host": f"127.0.0.1:{walls.port}",
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        }
        assert (await walls.send("GET", "/", visit)).status == 200
        for path in ("/healthz", "/icon.svg", "/api/agents"):
            assert (await walls.send("GET", path, visit)).status == 403
        assert (await walls.send("POST", "/", visit)).status == 403
        evil = visit | {"origin": "https://evil.example"}
        assert (await walls.send("GET", "/", evil)).status == 403


# ── wrong tokens ──────────────────────────────────────────────────────────────────────────────


async def test_wrong_tokens_are_slowed_down_and_the_right_one_never_is() -> None:
    route = ROUTES[0]
    async with fort(Table([route])) as walls:
        wrong, right = walls.good(route, authorization="Bearer no"), walls.good(route)
        target = target_of(route)
        for _ in range(MAX_FAILURES):
            assert (await walls.send("GET", target, wrong)).status == 401
        none = {"host": right["host"]}
        assert (await walls.send("GET", target, none)).status == 401, "that is no guess"
        answer = await walls.send("GET", target, wrong)
        assert (await walls.send("GET", target, none)).status == 401
        assert (answer.status, answer.headers["retry-after"]) == (429, f"{FAILURE_SECONDS:.0f}")
        assert (await walls.send("GET", target, right)).status == 200


async def test_a_header_that_is_given_twice_is_refused() -> None:
    route = ROUTES[0]
    async with fort(Table([route])) as walls:
        good = request("GET", target_of(route), walls.good(route))
        for more in (b"authorization: Bearer x", b"host: evil.example", b"origin: null"):
            twice = good.replace(b"\r\n\r\n", b"\r\n" + more + b"\r\n\r\n")
            assert (await raw(walls.port, twice)).status in (400, 403)
        assert walls.behind.came == []


# ── other origins ─────────────────────────────────────────────────────────────────────────────


async def test_an_allowed_origin_may_ask_and_gets_no_credentials() -> None:
    route = ROUTES[0]
    async with fort(Table([route])) as walls:
        from_friend = walls.good(route, origin=FRIEND, sec_fetch_site="cross-site")
        answer = await walls.send("GET", target_of(route), from_friend)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == FRIEND
        assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in answer.headers
        del from_friend["authorization"]
        answer = await walls.send("GET", target_of(route), from_friend)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (401, FRIEND)


async def test_a_preflight_is_answered_for_an_allowed_origin_alone() -> None:
    route = ROUTES[0]
    async with fort(Table([route])) as walls:
        asks = {
            "host": f"127.0.0.1:{walls.port}",
            "origin": FRIEND,
            "sec-fetch-site": "cross-site",
            "access-control-request-method": "GET",
            "access-control-request-headers": "authorization",
        }
        answer = await walls.send("OPTIONS", target_of(route), asks)
        assert answer.status == 204
        assert "authorization" in answer.headers["access-control-allow-headers"]
        evil = asks | {"origin": "https://evil.example"}
        answer = await walls.send("OPTIONS", target_of(route), evil)
        assert answer.status == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
        delete = asks | {"access-control-request-method": "DELETE"}
        assert (await walls.send("OPTIONS", target_of(route), delete)).status == 403
        del asks["origin"]
        assert (await walls.send("OPTIONS", target_of(route), asks)).status == 403
        assert walls.behind.came == []


async def test_what_is_not_http_is_answered_with_our_headers_too() -> None:
    async with fort(Table(ROUTES)) as walls:
        for nonsense in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n"):
            answer = await raw(walls.port, nonsense)
            assert (answer.status, answer.code, _missing(answer)) == (400, "malformed", [])
