"""One client of MCP: the handshake, and which method is whose. Knows no session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from dragoman._version import __version__
from dragoman.errors import InvalidParams, MethodNotFound
from dragoman.rpc import Peer
from dragoman.transport.transport import Transport

Json: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[float, str], None]
"""Reports how far a call is: a number that grows, and a sentence."""

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Of MCP; the newest first."""
CANCELLED = "notifications/cancelled"
_WAITS = frozenset({"tools/call"})


class McpOffer(Protocol):
    """What the server has."""

    instructions: str

    def tools(self) -> list[Json]: ...

    async def call(self, name: str, arguments: Json, progress: Progress) -> Json:
        """The result of a tool. Raises InvalidParams for a tool that is unknown."""
        ...

    async def resources(self) -> list[Json]: ...

    def resource_templates(self) -> list[Json]: ...

    async def read(self, uri: str) -> list[Json]:
        """Raises ResourceNotFound."""
        ...

    def prompts(self) -> list[Json]: ...

    async def prompt(self, name: str, arguments: Json) -> Json:
        """Raises InvalidParams."""
        ...


class McpMethods:
    """Answers the methods of MCP with what is offered; `tell` sends a notification."""

    def __init__(self, offers: McpOffer, tell: Callable[[str, Json], None]) -> None:
        self._offers = offers
        self._tell = tell

    async def answer(self, method: str, params: Json) -> Json:
        """Raises RemoteError, which is the reply."""
        offers = self._offers
        match method:
            case "initialize":
                return self._initialized(params)
            case "ping" | "logging/setLevel":
                return {}
            case "tools/list":
                return {"tools": offers.tools()}
            case "tools/call":
                return await self._called(params)
            case "resources/list":
                return {"resources": await offers.resources()}
            case "resources/templates/list":
                return {"resourceTemplates": offers.resource_templates()}
            case "resources/read":
                return {"contents": await offers.read(_text(params, "uri"))}
            case "prompts/list":
                return {"prompts": offers.prompts()}
            case "prompts/get":
                return await offers.prompt(_text(params, "name"), _object(params, "arguments"))
            case _:
                raise MethodNotFound(method)

    def _initialized(self, params: Json) -> Json:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
            "instructions": self._offers.instructions,
        }

    async def _called(self, params: Json) -> Json:
        token = _object(params, "_meta").get("progressToken")

        def progress(done: float, words: str) -> None:
            if token is not None:
                told = {"progressToken": token, "progress": done, "message": words}
                self._tell("notifications/progress", told)

        name, arguments = _text(params, "name"), _object(params, "arguments")
        return await self._offers.call(name, arguments, progress)


def _text(params: Json, key: str) -> str:
    if not isinstance(found := params.get(key), str):
        raise InvalidParams(f"{key} has to be a text")
    return found


def _object(params: Json, key: str) -> Json:
    found = params.get(key)
    if found is not None and not isinstance(found, dict):
        raise InvalidParams(f"{key} has to be an object")
    return cast("Json | None", found) or {}


async def serve_mcp(transport: Transport, offers: McpOffer) -> None:
    """Serve one client until it has left."""

    def requested(method: str, raw: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        return _answered(methods, method, raw)

    def notified(method: str, raw: msgspec.Raw) -> None:
        """Nothing is to be done about any: withdrawn requests are the peer's."""

    peer = Peer(
        transport,
        on_notification=notified,
        on_request=requested,
        waits=_WAITS,
        cancel_method=CANCELLED,
    )
    methods = McpMethods(
        offers, lambda method, told: peer.notify(method, msgspec.json.encode(told))
    )
    async with peer:
        await peer.wait_ended()


async def _answered(methods: McpMethods, method: str, raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(await methods.answer(method, params_of(raw)))


def params_of(raw: msgspec.Raw) -> Json:
    """Raises InvalidParams for what is not an object."""
    try:
        return (msgspec.json.decode(raw, type=Json | None) if raw else None) or {}
    except msgspec.DecodeError as error:
        raise InvalidParams(f"the parameters are not an object: {error}") from error
