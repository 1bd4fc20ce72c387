"""Parts of a tool call that were told and could not be read. Pure, and of no version.

The schemas have them skipped, which is right for what is shown. Who decides whether the call may be
made must know that there was more: it is kept as one item nobody understands.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.session.content import UNREAD, ToolContent, UnknownItem

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
