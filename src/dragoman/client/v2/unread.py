"""Parts of a tool call that were told and could not be read. Pure.

The schema has them skipped, which is right for what is shown. Who decides whether the call may be
made must know that there was more: it is kept as one item nobody understands.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.schema import v2
from dragoman.session.content import ToolContent, UnknownItem

T = TypeVar("T")


class _Item(msgspec.Struct):
    type: str = ""
    changes: list[msgspec.Raw] | None = None


class _Call(msgspec.Struct):
    content: list[_Item] | None = None
    locations: list[msgspec.Raw] | None = None


class _Piece(msgspec.Struct):
    content: _Item


def unread(
    raw: msgspec.Raw, wire: v2.ToolCallUpdate | v2.ToolCallContentChunk
) -> list[ToolContent]:
    """An item with all of `raw`, if that has more parts than `wire`, which was made of it."""
    if isinstance(wire, v2.ToolCallContentChunk):
        piece = _decoded(raw, _Piece)
        found = None if piece is None else _told([piece.content])
        read = _read([wire.content])
    else:
        call = _decoded(raw, _Call)
        found = None if call is None else _told(call.content or []) + len(call.locations or [])
        read = _read(wire.content or []) + len(wire.locations or [])
    return [] if found == read else [UnknownItem("unread", bytes(raw).decode(errors="replace"))]


def _decoded(raw: msgspec.Raw, type_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _told(items: list[_Item]) -> int:
    return sum(1 + len(item.changes or []) if item.type == "diff" else 1 for item in items)


def _read(items: list[v2.ToolCallContent]) -> int:
    return sum(1 + len(item.changes) if isinstance(item, v2.Diff) else 1 for item in items)
