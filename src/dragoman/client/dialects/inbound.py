"""Inbound messages in both dialects: handlers, validated parameters, and values kept as raw JSON.

Values that the schema skips are not shown, but code that decides about a call must know that there
was more: they are kept as one item that nothing understands.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import PUSHED_STATUS
from dragoman.agents.sign_ins import pushed_status, status_from
from dragoman.client.dialects.dialect import Host
from dragoman.client.dialects.translation import Schema, elicitation_request
from dragoman.client.mcp import telling
from dragoman.errors import DragomanError, InvalidMessage, InvalidParams
from dragoman.host.gate import serving_request
from dragoman.host.permissions.questions import PermissionAnswer
from dragoman.schema import codec
from dragoman.session.content import UNREAD, ToolContent, UnknownItem
from dragoman.session.events import UnknownUpdate
from dragoman.wire.error_replies import to_wire

logger = logging.getLogger("dragoman.client")

Params = TypeVar("Params")
Server = TypeVar("Server")


class SharedServing(ABC):
    """Handles what both versions say alike, in the structs of the version's `schema`."""

    schema: ClassVar[Schema]
    notification: ClassVar[type[Any]]
    """What `session/update` carries."""
    updates: ClassVar[frozenset[str]] = frozenset({"session/update"})
    no_request: ClassVar[UnsetType | None] = None
    """The request id of an elicitation that is not tied to one of our requests."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def on_notification(self, method: str, params: msgspec.Raw) -> None:
        if method in self.updates:
            self._session_update(params)
        elif method == "elicitation/complete":
            done = codec.decode(params, self.schema.CompleteElicitationNotification)
            self._host.on_elicitation_complete(done.elicitation_id)
        elif method == "auth/status_update":
            told = codec.decode(params, self.schema.AuthStatusUpdateNotification)
            self._host.on_auth_status(status_from(told.state, told.accounts))
        elif method == PUSHED_STATUS:
            pushed = pushed_status(_decoded(params, dict[str, Any]))
            if pushed is not None:
                self._host.on_auth_status(pushed)
        elif not self._host.on_extension(method, params):
            logger.debug("the notification %s was ignored", method)

    def _session_update(self, params: msgspec.Raw) -> None:
        try:
            told, fits = codec.examine(params, self.notification)
        except InvalidMessage as error:
            self._keep(_unreadable(params, error))
            return
        self._tell(told, len(params), None if fits else params)

    @abstractmethod
    def _tell(self, told: Any, size: int, unfit: msgspec.Raw | None = None) -> None:
        """Pass on a decoded update; `unfit` is all of it, if it has more than was decoded."""

    def _keep(self, found: tuple[str, UnknownUpdate] | None) -> None:
        if found is not None:
            session_id, event = found
            self._host.on_events(session_id, [event], len(event.raw))

    async def create_elicitation(self, p: Any) -> Any:
        request = elicitation_request(p)
        is_tied = p.request_id is not self.no_request
        tied_to = msgspec.json.encode(p.request_id) if is_tied else None
        answer = await self._host.create_elicitation(p.session_id, request, tied_to)
        return self.schema.CreateElicitationResponse(action=answer.action, content=answer.content)

    async def mcp_message(self, p: Any) -> Any:
        schema, handle = self.schema, self._host.mcp_server(p.server_id)

        def tell(method: str, params: dict[str, Any] | None) -> None:
            told = schema.MessageMcpNotification(
                server_id=p.server_id, request_id=p.request_id, method=method, params=params
            )
            self._host.notify("mcp/message", codec.encode(told))

        try:
            with telling(tell):
                result = await handle(p.method, p.params)
            return schema.MessageMcpResponse(result=result)
        except Exception as error:
            code, message, data = _mcp_failure(error)
            failure = schema.McpError(code=code, message=message, data=data)
            return schema.MessageMcpResponse(error=failure)

    def _outcome(self, answer: PermissionAnswer) -> Any:
        outcome = (
            self.schema.CancelledPermissionOutcome()
            if answer.option_id is None
            else self.schema.SelectedPermissionOutcome(option_id=answer.option_id)
        )
        return self.schema.RequestPermissionResponse(outcome=outcome)


def checked(raw: msgspec.Raw, params_type: type[Params]) -> Params:
    """The parameters of a request. Raises InvalidParams."""
    return examined(raw, params_type)[0]


def examined(raw: msgspec.Raw, params_type: type[Params]) -> tuple[Params, bool]:
    """The same, and whether they fit as they are."""
    try:
        return codec.examine(raw, params_type)
    except InvalidMessage as error:
        raise InvalidParams(str(error)) from error


def typed(
    params_type: type[Params], serve: Callable[[Server, Params], Coroutine[Any, Any, Any]]
) -> Callable[[Server, msgspec.Raw], Coroutine[Any, Any, bytes]]:
    """A method of a dialect's serving for parameters that are not decoded yet."""

    async def handle(serving: Server, raw: msgspec.Raw) -> bytes:
        params = checked(raw, params_type)
        with serving_request(_meta_of(params)):
            return codec.encode(await serve(serving, params))

    return handle


def _meta_of(params: Any) -> dict[str, Any] | None:
    """MCP messages have two forms, and are decoded later."""
    if isinstance(params, dict):
        return cast("dict[str, Any]", params).get("_meta")
    return getattr(params, "meta", None)


class Told(msgspec.Struct, rename="camel"):
    """A `session/update`, before anything is known of what it tells."""

    session_id: str
    update: msgspec.Raw


class _Kind(msgspec.Struct, rename="camel"):
    session_update: str = ""


def _unreadable(params: msgspec.Raw, error: InvalidMessage) -> tuple[str, UnknownUpdate] | None:
    """The session of an update that cannot be read, and the update as it came: it is still part of
    the record. None where not even that can be found."""
    logger.debug("an update could not be read: %s", error)
    try:
        told = msgspec.json.decode(params, type=Told)
        kind = msgspec.json.decode(told.update, type=_Kind).session_update
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return told.session_id, UnknownUpdate(kind, bytes(told.update).decode())


def _mcp_failure(error: Exception) -> tuple[int, str, Any]:
    """Code, message and data for an agent whose message to an MCP server of ours failed."""
    if not isinstance(error, DragomanError):
        logger.exception("an MCP server of ours failed")
    code, message, data = to_wire(error)
    return code, message, UNSET if data is None else data


T = TypeVar("T")


class _Item(msgspec.Struct):
    type: str = ""
    changes: list[msgspec.Raw] | None = None


class _Call(msgspec.Struct):
    content: list[_Item] | None = None
    locations: list[msgspec.Raw] | None = None


class _Piece(msgspec.Struct):
    content: _Item


def unread_of_call(raw: msgspec.Raw, read: int) -> list[ToolContent]:
    """An item with all of `raw`, if that has more items, changes and locations than were `read`."""
    call = _decoded(raw, _Call)
    told = None if call is None else _count(call.content or []) + len(call.locations or [])
    return [] if told == read else [_whole(raw)]


def unread_of_piece(raw: msgspec.Raw, read: int) -> list[ToolContent]:
    """The same for a tool call's content that comes in pieces."""
    piece = _decoded(raw, _Piece)
    told = None if piece is None else _count([piece.content])
    return [] if told == read else [_whole(raw)]


def _decoded(raw: msgspec.Raw, type_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _count(items: list[_Item]) -> int:
    return sum(1 + len(item.changes or []) if item.type == "diff" else 1 for item in items)


def _whole(raw: msgspec.Raw) -> UnknownItem:
    return UnknownItem(UNREAD, bytes(raw).decode(errors="replace"))
