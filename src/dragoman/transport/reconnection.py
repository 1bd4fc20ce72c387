"""Connects and reconnects to a remote agent, and explains why it could not.

Brings along what speaks to networks, so it is imported when there is an address to go to.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from http.cookiejar import Cookie, CookieJar
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import RemoteLost, Unreachable
from dragoman.transport.target import RemoteAgent, host_of
from dragoman.transport.transport import Transport

CONNECT_SECONDS = 20.0
REASON_BYTES = 4 * 1024
"""The body of a refusal is read when it is not larger than this."""
_LONGEST_REASON = 200
PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Before each further try to reach an agent that was there before."""

Result = TypeVar("Result")


class RouteTimeouts(msgspec.Struct, kw_only=True, frozen=True):
    """How long a connection to a remote agent waits, in seconds."""

    reason: float = 2.0
    """For the body of a refusal."""
    close: float = 2.0
    """For the other side to take part in closing."""
    beat: float = 20.0
    """Silence for so long is answered with a ping; for so long again, and the other side is gone.
    Only WebSockets have pings."""


_MOST_COOKIES = 16 * 1024


class FewCookies(CookieJar):
    """Keeps cookies of so many characters together: a server may set one with each answer, and
    every request carries all of them."""

    def set_cookie(self, cookie: Cookie) -> None:
        replaced = cookie.domain, cookie.path, cookie.name
        kept = [each for each in self if (each.domain, each.path, each.name) != replaced]
        if sum(map(_length, (*kept, cookie))) <= _MOST_COOKIES:
            super().set_cookie(cookie)


def _length(cookie: Cookie) -> int:
    named = cookie.domain, cookie.path, cookie.name, cookie.value or ""
    return sum(map(len, named))


class ReconnectingRoute:
    """The way to one remote agent. Cookies are kept from one connection to the next, so that a
    balancer can send us where we were before.

    `at_work` tells whether more is expected of a session though no request of ours waits there: one
    that the other side forgets is then the end of the connection, and can be resumed on another.
    """

    def __init__(
        self,
        agent: RemoteAgent,
        at_work: Callable[[str], bool] = lambda session_id: False,
        timeouts: RouteTimeouts | None = None,
    ) -> None:
        self.agent = agent
        self.at_work = at_work
        self.timeouts = timeouts or RouteTimeouts()
        self.cookies = FewCookies()

    async def connect(self) -> Transport:
        """A new connection. Raises Unreachable; over HTTP only the first message does that."""
        if urlsplit(self.agent.url).scheme in ("ws", "wss"):
            from dragoman.transport.websocket import connect

            return await connect(self)
        from dragoman.transport import http

        return http.connect(self)


async def patiently(
    connect: Callable[[], Awaitable[Result]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Result:
    """Connect, and again after longer and longer pauses, as long as that may help."""
    for pause in PAUSES:
        try:
            return await connect()
        except Unreachable as error:
            if not error.again:
                raise
        except RemoteLost:
            pass
        # Clients that lost the same server must not all come back at the same moment.
        await sleep(pause * random.uniform(0.5, 1.0))
    return await connect()


def unreachable(place: str, error: Exception) -> Unreachable:
    """What went wrong on the way there, and whether it may go better next time."""
    for found in _causes(error):
        if isinstance(found, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted ({found.verify_message})"
            return Unreachable(place, f"{reason}; SSL_CERT_FILE can add another authority")
        if isinstance(found, ssl.SSLError):
            return Unreachable(place, "the TLS handshake failed; is the scheme correct?")
    if isinstance(error, TimeoutError):
        return Unreachable(place, f"no reply within {CONNECT_SECONDS:g} s", again=True)
    return Unreachable(place, _in_words(error), again=True)


def _in_words(error: Exception) -> str:
    """The system's own words, not those that libraries put around them."""
    for found in _causes(error):
        if isinstance(found, socket.gaierror):
            return f"unknown host ({(found.strerror or 'no address').lower()})"
        if isinstance(found, OSError) and found.errno is not None:
            return os.strerror(found.errno).lower()
    return "connection refused"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class _Problem(msgspec.Struct):
    message: str


class _Refusal(msgspec.Struct):
    """As a bridge says why it lets nobody in."""

    error: _Problem


def refusal(
    agent: RemoteAgent, status: int, location: str | None = None, body: bytes = b""
) -> Unreachable:
    """What an HTTP status, and a body that explains it, say about why we are not let in."""
    place = agent.place
    if location is not None and 300 <= status < 400:
        there = urlsplit(location)
        where = f"{there.scheme}://{host_of(there)}" if there.netloc else "another path"
        reason = f"it redirects to {where}, and headers are not sent there; use the final address"
        return Unreachable(place, reason)
    why = _why(agent, body)
    match status:
        case 401 | 403:
            reason = f"it rejected the credentials in the headers ({status})"
            return Unreachable(place, reason, refused=True)
        case 404 | 405 | 426:
            return Unreachable(place, f"there is no agent at this path ({status})")
        case 421:
            return Unreachable(place, f"it does not accept this host name ({status})")
        case 408 | 425 | 429 | 500 | 502 | 503 | 504:
            return Unreachable(place, f"it is unavailable ({status}){why}", again=True)
        case _:
            return Unreachable(place, f"it replied with HTTP status {status}{why}")


def _why(agent: RemoteAgent, body: bytes) -> str:
    """Nothing of a body that has another shape: it may be a page, and of anyone."""
    try:
        message = msgspec.json.decode(body, type=_Refusal).error.message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if agent.is_secret_in(message):
        return ""
    return f": {plain_words(message)}"


def plain_words(message: str) -> str:
    """What the other side says: it may end up in a log, and nothing of it may act or hide there."""
    shown = "".join(each if each.isprintable() else "\ufffd" for each in message)
    return shown if len(shown) <= _LONGEST_REASON else f"{shown[: _LONGEST_REASON - 1]}…"
