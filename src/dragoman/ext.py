"""Call and serve the methods that an agent has beyond ACP; their names begin with an underscore.

    status = await ext.call(client, "_example.com/status", {"verbose": True})
    ext.serve(client, "_example.com/ask", handler)
    ext.listen(client, "_example.com/progress", print)

Parameters and results are JSON: dicts, lists, strings, numbers, booleans and None.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.client.client import Client

__all__ = ["call", "listen", "notify", "serve"]


async def call(
    client: Client, method: str, params: Any = None, *, timeout: float | None = None
) -> Any:
    """Call a method of the agent and return its result. Without a `timeout`, that of
    `Timeouts.control` applies.

    Raises ValueError if the name does not begin with an underscore, RemoteError for an error of the
    agent (MethodNotFound if it has no such method), CallTimeout and ConnectionLost.
    """
    return await client.dialect.call_extension(method, params, timeout)


def notify(client: Client, method: str, params: Any = None) -> None:
    """Send the agent a notification. Raises ValueError for the name, and ConnectionLost."""
    client.dialect.notify_extension(method, params)


def serve(client: Client, method: str, handler: Callable[[Any], Awaitable[Any]]) -> None:
    """Answer requests of the agent with what `handler` returns, which is awaited. If it raises a
    DragomanError, the agent gets that error. Can be called before the client is entered."""
    client.extensions.serve(method, handler)


def listen(client: Client, method: str, handler: Callable[[Any], None]) -> None:
    """Call `handler` with the parameters of each such notification of the agent, in wire order. It
    must not wait. Can be called before the client is entered."""
    client.extensions.listen(method, handler)
