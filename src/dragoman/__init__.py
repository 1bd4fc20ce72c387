"""Dragoman: the Python client for every coding agent that speaks ACP, the Agent Client Protocol.

    async with dragoman.Client.start("demo") as client:
        session = await client.new_session(".")
        async for event in session.prompt("Summarise @README.md"):
            print(event.text, end="")

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from dragoman._version import __version__

# Not from `typing`, which would be most of the cost of importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dragoman.agents.settings import load_settings
    from dragoman.client.client import Client
    from dragoman.client.config import HostCapabilities, Timeouts
    from dragoman.client.mcp import HttpServer, InProcessServer, SseServer, StdioServer
    from dragoman.client.session import Session
    from dragoman.client.sync import run_prompt
    from dragoman.client.turn import Turn
    from dragoman.errors import DragomanError
    from dragoman.host.rules.policy import Policy
    from dragoman.host.rules.rule import Rule
    from dragoman.session.content import Audio, Image, Resource, ResourceLink, Text
    from dragoman.session.events import Event
    from dragoman.session.state import SessionState
    from dragoman.transport.remote_address import RemoteAgent
    from dragoman.transport.stdio import AgentCommand

__all__ = [
    "AgentCommand",
    "Audio",
    "Client",
    "DragomanError",
    "Event",
    "HostCapabilities",
    "HttpServer",
    "Image",
    "InProcessServer",
    "Policy",
    "RemoteAgent",
    "Resource",
    "ResourceLink",
    "Rule",
    "Session",
    "SessionState",
    "SseServer",
    "StdioServer",
    "Text",
    "Timeouts",
    "Turn",
    "__version__",
    "load_settings",
    "run_prompt",
]

_HOMES = {
    "AgentCommand": "transport.stdio",
    "Audio": "session.content",
    "Client": "client.client",
    "DragomanError": "errors",
    "Event": "session.events",
    "HostCapabilities": "client.config",
    "HttpServer": "client.mcp",
    "Image": "session.content",
    "InProcessServer": "client.mcp",
    "Policy": "host.rules.policy",
    "RemoteAgent": "transport.remote_address",
    "Resource": "session.content",
    "ResourceLink": "session.content",
    "Rule": "host.rules.rule",
    "Session": "client.session",
    "SessionState": "session.state",
    "SseServer": "client.mcp",
    "StdioServer": "client.mcp",
    "Text": "session.content",
    "Timeouts": "client.config",
    "Turn": "client.turn",
    "load_settings": "agents.settings",
    "run_prompt": "client.sync",
}
_MODULES = {"errors", "events", "testing", "ui_stream"}


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is not None:
        value = getattr(import_module(f"dragoman.{home}"), name)
    elif name in _MODULES:
        value = import_module(f"dragoman.{name}")
    else:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
