"""What is served alike in both dialects: parameters are checked, what cannot be read is kept.

Knows nothing of what either version says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import DragomanError, InvalidMessage, InvalidParams, to_wire
from dragoman.schema import codec
from dragoman.session.events import UnknownUpdate

logger = logging.getLogger("dragoman.client")

Params = TypeVar("Params")
Serving = TypeVar("Serving")


def checked(raw: msgspec.Raw, params_type: type[Params]) -> Params:
    """The parameters of a request. Raises InvalidParams."""
    return examined(raw, params_type)[0]


def examined(raw: msgspec.Raw, params_type: type[Params]) -> tuple[Params, bool]:
    """The same, and whether they fit as they stand."""
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
