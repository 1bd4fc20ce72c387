"""A route as data, and how a path is matched to one. Knows nothing of HTTP servers.

Validation, documentation and protection follow from the table; a handler sees decoded values only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

Handler: TypeAlias = Callable[..., Awaitable[Any]]
"""Called with the server, the path's parameters, and `query`, `body` and `request` if it wants
them; what it returns is sent as JSON, unless it is a response already."""

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/jsonl"
PLAIN_TEXT = "text/plain"
ANY_TYPE = "*/*"

JSON_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One path and method. `body` is the type of the request, `answer` that of the response;
    with `takes` other than JSON the body is raw bytes. A route is public only if it says so."""

    method: str
    path: str
    handler: Handler
    summary: str
    query: type[msgspec.Struct] | None = None
    body: Any = None
    answer: Any = None
    status: int = 200
    public: bool = False
    takes: str = JSON
    gives: tuple[str, ...] = (JSON,)
    body_limit: int = JSON_LIMIT
    body_optional: bool = False
    wants_request: bool = False
    may_be_empty: bool = False
    socket: bool = False
    """Whether a WebSocket may be opened here."""
    pairs: bool = False
    """Whether it takes the code of a pairing instead of a token, and nothing else."""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(s[1:-1] for s in self.segments if s.startswith("{"))


@dataclass(frozen=True, slots=True)
class FoundRoute:
    """The routes at a path, one for each method, and the path's parameters."""

    routes: Mapping[str, Route]
    parameters: Mapping[str, str]


class Table:
    """All routes. A literal path is found before one with parameters."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._by_shape: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in sorted(self.routes, key=lambda route: len(route.parameters)):
            self._by_shape.setdefault(route.segments, {})[route.method] = route

    def find(self, path: str) -> FoundRoute | None:
        words = tuple(path.split("/")[1:])
        for shape, routes in self._by_shape.items():
            if len(shape) == len(words) and all(map(_fits, shape, words)):
                pairs = zip(shape, words, strict=True)
                return FoundRoute(routes, {s[1:-1]: word for s, word in pairs if s.startswith("{")})
        return None


def _fits(segment: str, word: str) -> bool:
    return bool(word) if segment.startswith("{") else segment == word
