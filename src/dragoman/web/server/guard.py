"""The outermost layer: rejects every request that is not allowed in.

What it is there for. Any page in the user's browser can send requests to a server on this machine:
with a form, an image or a script, without asking anyone, and with whatever cookies the browser
has. Local tool servers without authentication were taken over like that, and one forgotten route
is enough. A page may also let its own name point to 127.0.0.1 (DNS rebinding); then it is the
same origin for the browser, and may read the answers too. Another user of this machine can
connect, and look for a token in addresses that were logged. A client can send a body that never
ends, or a path that one layer reads differently than the next.

So: a route is denied unless the table has it; one that is not marked public needs the token, in
the Authorization header alone, which no page of another origin can send without a preflight. The
Host must be ours, an Origin must be ours or one that was allowed by name, and what the browser
calls cross-site is refused, the public routes too, except for someone who follows a link to the
page itself. The layers behind see the route that was found here and never look for one themselves.

Besides the token of the server, the store has tokens of paired devices, which can be revoked. When
one is revoked, the requests that use it end at once, streams included.

A page of an attacker can have its own name point to 127.0.0.1 and then read what we answer, since
for the browser it is the same site. The Host header still has the attacker's name: only our own
names count, with our own port. A bare address cannot be made to point elsewhere by a name server,
so a server that listens everywhere answers to every address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from hmac import compare_digest
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.access.access_tokens import AccessToken
from dragoman.web.failures import RequestFailed, failure_of, response_for
from dragoman.web.routing.route import ANY_TYPE, JSON, FoundRoute, Route, Table
from dragoman.web.server.visitors import Visitors
from dragoman.web.streams.stream_response import ABORT

logger = logging.getLogger("dragoman.web")

ROUTE = "dragoman.route"
PARAMETERS = "dragoman.parameters"
"""Where the guard leaves what it found, in the scope."""
ADMIT = "dragoman.admit"
"""Where the scope has what the guard calls for a request with the token: False when there are too
many of those already."""

VISITOR = "dragoman.visitor"
"""Where the scope has the access token that a request came with; None for the server's own."""

MAX_FAILURES = 20
FAILURE_SECONDS = 10.0
"""Beyond so many wrong tokens in so long, more of them get no other answer than to wait. A right
one is never kept waiting: else anyone could lock the user out."""

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_EXPOSED = b"x-vercel-ai-ui-message-stream, acp-connection-id"
_TAKEN = b"authorization, content-type, last-event-id, acp-connection-id, acp-session-id"
_MAX_AGE = b"600"
_EMPTY_LIMIT = len(b"{}")
"""Where a route takes no body, some clients still send an empty object."""
_DRAIN_SECONDS = 1.0
_DRAIN_BYTES = 64 * 1024 * 1024

Log: TypeAlias = Callable[[str, str, int, float], None]
"""Hears of every request: method, path as it came, without its query, status, seconds."""


class Guard:
    """Guards `app`, which is called with the route in its scope."""

    def __init__(
        self,
        app: ASGIApp,
        table: Table,
        *,
        token: str,
        hosts: AllowedHosts,
        origins: Collection[str] = (),
        log: Log = lambda method, path, status, seconds: None,
        visitors: Visitors | None = None,
    ) -> None:
        self._app = app
        self._visitors = visitors
        self.table = table
        self._token = token.encode()
        self._hosts = hosts
        self._origins = frozenset(origins)
        self._log = log
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return  # there is nothing to start
        scope.setdefault("method", "GET")  # with which a socket begins
        exchange = _Exchange(scope, receive, send)
        started = time.monotonic()
        try:
            await self._serve(exchange)
        finally:
            path = scope["raw_path"].decode("ascii", "replace")
            self._log(scope["method"], path, exchange.status, time.monotonic() - started)

    async def _serve(self, exchange: _Exchange) -> None:
        try:
            request = _Request(exchange.scope)
            exchange.cors = self._cors(request)
            await self._admit(request, exchange)
        except RequestFailed as failure:
            await exchange.fail(failure)
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                logger.exception("a request failed")
            await exchange.fail(failure or RequestFailed(500, "internal", "internal error"))

    async def _admit(self, request: _Request, exchange: _Exchange) -> None:
        self._check_where_from(request)
        if request.method == "OPTIONS":
            await self._preflight(request, exchange)
            return
        found = self.table.find(request.path)
        public = _public(found, request.method)
        visitor = None
        if public is None:
            visitor = await self._let_in(request, found)
            _take_place(exchange.scope)
        route = public or _route(found, request.method)
        if exchange.scope["type"] == "websocket" and not route.socket:
            raise RequestFailed(404, "not_found", "no WebSocket at this path")
        exchange.limit = _body_limit(route, request)
        exchange.scope[ROUTE] = route
        exchange.scope[PARAMETERS] = {} if found is None else dict(found.parameters)
        exchange.scope[VISITOR] = visitor
        with self._watched(visitor, exchange.scope):
            await self._app(exchange.scope, exchange.receive, exchange.send)

    # ── where it comes from ───────────────────────────────────────────────────────────────────

    def _check_where_from(self, request: _Request) -> None:
        host = request.header(b"host")
        if host is None or not self._hosts.has(host):
            raise RequestFailed(421, "wrong_host", "this server does not accept that host name")
        is_allowed = request.origin in self._origins
        if request.origin not in (None, f"http://{host.lower()}") and not is_allowed:
            raise RequestFailed(403, "wrong_origin", "requests from other origins are refused")
        site = request.header(b"sec-fetch-site")
        is_ours = site in (None, "same-origin", "none")
        if not is_ours and not is_allowed and not _is_visit(request):
            raise RequestFailed(403, "cross_site", "requests from other origins are refused")

    def _cors(self, request: _Request) -> list[tuple[bytes, bytes]]:
        if request.origin is None or request.origin not in self._origins:
            return []
        origin = request.origin.encode("latin-1")
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]

    async def _preflight(self, request: _Request, exchange: _Exchange) -> None:
        """Answered only for an origin that was allowed, and a route that is there."""
        wanted = request.header(b"access-control-request-method")
        found = self.table.find(request.path)
        if not exchange.cors or found is None or wanted not in found.routes:
            raise RequestFailed(403, "no_preflight", "not available to other origins")
        exchange.cors += [
            (b"access-control-allow-methods", ", ".join(found.routes).encode()),
            (b"access-control-allow-headers", _TAKEN),
            (b"access-control-max-age", _MAX_AGE),
        ]
        if request.header(b"access-control-request-private-network") == "true":
            exchange.cors.append((b"access-control-allow-private-network", b"true"))
        await exchange.send({"type": "http.response.start", "status": 204, "headers": []})
        await exchange.send({"type": "http.response.body", "body": b""})

    # ── who it is ─────────────────────────────────────────────────────────────────────────────

    async def _let_in(self, request: _Request, found: FoundRoute | None) -> AccessToken | None:
        """The access token of the store that was presented; None for the server's own. The code of
        a pairing opens its own route alone."""
        told = request.header(b"authorization")
        scheme, _, given = (told or "").partition(" ")
        if scheme.lower() == "bearer":
            if compare_digest(given.encode("latin-1"), self._token):
                return None
            visitor = None if self._visitors is None else await self._visitors.find(given)
            route = None if found is None else found.routes.get(request.method)
            if visitor is not None and visitor.pairing == (route is not None and route.pairs):
                return visitor
        raise self._refusal(told)

    def _refusal(self, told: str | None) -> RequestFailed:
        challenge = {"www-authenticate": "Bearer"}
        failure = RequestFailed(
            401, "unauthorized", "a bearer token is required", headers=challenge
        )
        if told is None:
            return failure  # that is not a guess
        now = time.monotonic()
        first = self._failures[0] if len(self._failures) == MAX_FAILURES else None
        self._failures.append(now)
        if first is not None and now - first < FAILURE_SECONDS:
            wait = {"retry-after": str(int(FAILURE_SECONDS))}
            return RequestFailed(429, "too_many_failures", "too many wrong tokens", headers=wait)
        return failure

    @contextmanager
    def _watched(self, visitor: AccessToken | None, scope: Scope) -> Generator[None]:
        """While a visitor's request is answered, its connection ends when its token does."""
        if visitor is None or self._visitors is None:
            yield
            return
        with self._visitors.inside(visitor, scope.get(ABORT, _nothing)):
            yield


def _nothing() -> None:
    pass


def _take_place(scope: Scope) -> None:
    """Raises Failure when there is none."""
    if (admit := scope.get(ADMIT)) is not None and not admit():
        wait = {"retry-after": "1", "connection": "close"}
        message = "too many concurrent requests"
        raise RequestFailed(503, "too_many_connections", message, headers=wait)


def _is_visit(request: _Request) -> bool:
    """Whether a person is taken to the page, in a window of its own: from a file, or a terminal in
    a browser. Nothing is sent there but the page's own words."""
    return (
        (request.method, request.path) == ("GET", "/")
        and request.header(b"sec-fetch-mode") == "navigate"
        and request.header(b"sec-fetch-dest") == "document"
    )


def _public(found: FoundRoute | None, method: str) -> Route | None:
    route = None if found is None else found.routes.get("GET" if method == "HEAD" else method)
    return route if route is not None and route.public else None


def _route(found: FoundRoute | None, method: str) -> Route:
    if found is None:
        raise RequestFailed(404, "not_found", "not found")
    if method not in found.routes:
        allowed = ", ".join(found.routes)
        message = f"this path accepts {allowed}"
        raise RequestFailed(405, "method_not_allowed", message, headers={"allow": allowed})
    return found.routes[method]


def _body_limit(route: Route, request: _Request) -> int:
    """How much may come; what is announced to be more, or of a wrong type, is not read at all."""
    limit = route.body_limit
    if route.body is None:
        limit = _EMPTY_LIMIT if route.method == "POST" else 0
    length = request.header(b"content-length")
    is_chunked = request.header(b"transfer-encoding") is not None
    if length is not None and is_chunked:
        raise RequestFailed(400, "ambiguous", "the length of the body is given in two ways")
    if (length is not None and int(length) > limit) or (is_chunked and route.body is None):
        raise _too_large(limit)
    kind = request.header(b"content-type")
    if kind is not None or is_chunked or length not in (None, "0"):
        _check_type(route, (kind or "").partition(";")[0].strip().lower())
    return limit


def _check_type(route: Route, kind: str) -> None:
    fits = kind == JSON if route.takes != ANY_TYPE else kind not in (*_FORMS, "")
    if not fits:
        wanted = f"of type {route.takes}" if route.takes != ANY_TYPE else "the raw file, not a form"
        raise RequestFailed(415, "wrong_content_type", f"the body must be {wanted}")


def _too_large(limit: int) -> RequestFailed:
    return RequestFailed(413, "too_large", f"the body may have at most {limit} bytes")


class _Request:
    """The parts of a request that decide. Raises Failure for one that could be read in two ways."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path = _plain_path(scope)
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.origin = self.header(b"origin")

    def header(self, name: bytes) -> str | None:
        found = [value for key, value in self._headers if key == name]
        if len(found) > 1:
            raise RequestFailed(400, "ambiguous", f"{name.decode()} is given more than once")
        return found[0].decode("latin-1") if found else None


def _plain_path(scope: Scope) -> str:
    path, raw = scope["path"], scope["raw_path"].lower()
    odd = any(part in raw for part in (b"%2f", b"%5c", b"%00", b"\\"))
    words = path.split("/")[1:]
    is_plain = path.startswith("/") and path.isprintable() and not odd
    if not is_plain or "" in words[:-1] or any(word in (".", "..") for word in words):
        raise RequestFailed(400, "odd_path", "the path is not normalized")
    return path


class _Exchange:
    """One request and its response, with what must hold for both whatever the app does."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.status = 0
        self.limit = 0
        self.cors: list[tuple[bytes, bytes]] = []
        self._receive = receive
        self._send = send
        self._received = 0
        self._more = True

    async def receive(self) -> Message:
        message = await self._take()
        if self._received > self.limit:
            raise _too_large(self.limit)
        return message

    async def _take(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._more = message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.status = 101
        elif message["type"].endswith("http.response.start"):
            self.status = message["status"]
            headers = secured([*message.get("headers", []), *self.cors])
            message = {**message, "headers": headers}
        await self._send(message)

    async def fail(self, failure: RequestFailed) -> None:
        if self.status:
            return  # the response has begun: all that is left is to end the connection
        await self._drain()
        if self._more:
            # What of the body was not read must not be taken for the next request.
            failure.headers["connection"] = "close"
        await response_for(failure)(self.scope, self.receive, self.send)

    async def _drain(self) -> None:
        """Read on for a moment: closing on a client that still writes would cost it the answer."""
        if any(name == b"expect" for name, _ in self.scope["headers"]):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._more and self._received < _DRAIN_BYTES:
                    await self._take()


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cache-control", b"no-store"),
)


def secured(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """These headers and those that are missing; only how long to keep it may a response say."""
    own = [(name, value) for name, value in headers if name.lower() not in _OURS]
    said = {name.lower() for name, _ in own}
    return own + [(name, value) for name, value in SECURITY_HEADERS if name not in said]


_OURS = {name for name, _ in SECURITY_HEADERS} - {b"cache-control"}

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")


class AllowedHosts:
    def __init__(self, bound: str, port: int) -> None:
        self._port = port
        self._everywhere = bound in _EVERYWHERE
        names = [*LOOPBACK, in_brackets(bound)]
        if self._everywhere:
            names.append(socket.gethostname())
        self._names = frozenset(name.lower() for name in names)

    def has(self, header: str) -> bool:
        """Whether a Host header means us."""
        name, port = _split(header.lower())
        if port != str(self._port) and not (port == "" and self._port == 80):
            return False
        return name in self._names or (self._everywhere and _is_address(name))


def in_brackets(host: str) -> str:
    """A host as it is in an address."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in found)


def _split(header: str) -> tuple[str, str]:
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        return header, ""
    return name, port


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
