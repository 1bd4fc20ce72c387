"""Inbound messages in both dialects: validated parameters, and values kept as raw JSON.

Knows nothing of what either version says.

Values that the schema skips are not shown, but code that decides about a call must know that there
was more: they are kept as one item that nothing understands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import DragomanError, InvalidMessage, InvalidParams, to_wire
from dragoman.schema import codec
from dragoman.session.content import UNREAD, ToolContent, UnknownItem
from dragoman.session.events import UnknownUpdate

logger = logging.getLogger("dragoman.client")

Params = TypeVar("Params")
Serving = TypeVar("Serving")


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
    params_type: type[Params], serve: Callable[[Serving, Params], Coroutine[Any, Any, Any]]
) -> Callable[[Serving, msgspec.Raw], Coroutine[Any, Any, bytes]]:
    """A method of a dialect's serving for parameters that are not decoded yet."""

    async def handle(serving: Serving, raw: msgspec.Raw) -> bytes:
        return codec.encode(await serve(serving, checked(raw, params_type)))

    return handle


class Told(msgspec.Struct, rename="camel"):
    """A `session/update`, before anything is known of what it tells."""

    session_id: str
    update: msgspec.Raw


class _Kind(msgspec.Struct, rename="camel"):
    session_update: str = ""


def unreadable(params: msgspec.Raw, error: InvalidMessage) -> tuple[str, UnknownUpdate] | None:
    """The session of an update that cannot be read, and the update as it came: it is still part of
    the record. None where not even that can be found."""
    logger.debug("an update could not be read: %s", error)
    try:
        told = msgspec.json.decode(params, type=Told)
        kind = msgspec.json.decode(told.update, type=_Kind).session_update
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return told.session_id, UnknownUpdate(kind, bytes(told.update).decode())


def mcp_failure(error: Exception) -> tuple[int, str, Any]:
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
