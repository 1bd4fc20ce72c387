"""Methods and notifications of an agent's own, whose names begin with an underscore."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import msgspec

from dragoman.errors import InvalidParams, MethodNotFound

logger = logging.getLogger("dragoman.client")

Serve: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Gets the parameters of a request and returns its result."""
Listen: TypeAlias = Callable[[Any], None]
"""Gets the parameters of a notification."""


class ExtensionMethods:
    """What the program serves and listens to, for one client."""

    def __init__(self) -> None:
        self._served: dict[str, Serve] = {}
        self._heard: dict[str, Listen] = {}

    def serve(self, method: str, handler: Serve) -> None:
        self._served[extension_name(method)] = handler

    def listen(self, method: str, handler: Listen) -> None:
        self._heard[extension_name(method)] = handler

    def answer(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        """Raises MethodNotFound."""
        handler = self._served.get(method)
        if handler is None:
            raise MethodNotFound(f"{method} is not offered here")
        return _answer(handler, params)

    def hear(self, method: str, params: msgspec.Raw) -> bool:
        """Whether anyone listens."""
        if (handler := self._heard.get(method)) is None:
            return False
        try:
            handler(_decoded(params))
        except Exception:  # a listener must not be able to break the conversation
            logger.exception("the listener for %s failed", method)
        return True


async def _answer(handler: Serve, params: msgspec.Raw) -> bytes:
    return msgspec.json.encode(await handler(_decoded(params)))


def _decoded(params: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(params) if params else None
    except msgspec.DecodeError as error:
        raise InvalidParams(str(error)) from error


def extension_name(method: str) -> str:
    """The name itself. Raises ValueError for one that is ACP's."""
    if not method.startswith("_") or len(method) < 2:
        raise ValueError(f"the name of an extension method begins with _; {method!r} does not")
    return method
