"""The limits of a session's state, whatever its agent sends. Pure.

The events in the store have everything; a state has the newest of it, within these limits. The
weight of a value is a fair guess of what it costs to keep: its characters, and something for each
value. The page computes the same from the same JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from dragoman.session.content import ContentItem, Text

T = TypeVar("T")

KIB = 1024
MIB = 1024 * KIB

NODE = 64
"""What a value weighs in addition to its characters; a key of an object weighs as much."""
ROW = 256
"""What an entry weighs in addition to what is in it."""
PIECE = 1024
"""Characters of one piece of a message, except for its last."""
ID = 1024
"""Characters of an id that distinguish entries."""
WORD = 64
"""Characters of a word such as a status."""
_DOUBLE_BITS = 1024
"""An integer with more of them weighs its digits: any other is a number to the page too."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a state keeps at most. It may be over by one event, which a frame limits."""

    entry: int = 4 * MIB
    """What one entry weighs: a message, a tool call."""
    thread: int = 16 * MIB
    """What all entries weigh; twice as much while the oldest is a tool call under way."""
    entries: int = 10_000
    """How many there are; twice as many while the oldest is a tool call under way."""
    turns: int = 2_000
    facts: int = MIB
    """What a list of facts weighs, such as the commands."""
    fact: int = 64 * KIB
    """What a single one weighs, such as a usage report. Of each subagent and terminal there are
    several, which weigh a part of it."""
    others: int = 256
    """How many subagents there are, and how many terminals."""
    programs: int = 200
    """How many programs that ran inside the fence."""
    words: int = 64
    """How many words of each, and how many programs above it."""
    tail: int = MIB
    """Characters of one terminal's output, its last; twice as many before they are cut."""
    tails: int = 16 * MIB
    """Characters of the output of all terminals."""
    line: int = KIB
    """Characters of what fits on a line: a title, a stop reason; and of the output of a terminal
    that has to make room."""


LIMITS = Limits()


@cache
def limits_of_subagent(limits: Limits) -> Limits:
    """What the thread of one subagent keeps at most. The entries of all of them together weigh no
    more than those of the session; of the rest, each may have its share."""
    return msgspec.structs.replace(
        limits,
        entry=limits.entry // 4,
        thread=limits.thread // 4,
        entries=limits.entries // 4,
        facts=limits.facts // 256,
        fact=limits.fact // 8,
        others=4,
        tail=limits.tail // 64,
        tails=limits.tails // 256,
    )


def drop_oldest(known: dict[str, Any], most: int) -> None:
    """Keep no more than so many, the newest."""
    while len(known) > most:
        del known[next(iter(known))]


def weigh(value: Any, most: float = math.inf) -> int:
    """The weight of plain JSON. Beyond `most`, it is not weighed to its end."""
    if type(value) is str:
        return NODE + len(value)
    total, rest = NODE, [value]
    while rest and total <= most:
        each: Any = rest.pop()
        kind = each.__class__
        if kind is dict:
            total += 2 * NODE * len(each)
            for key, member in each.items():
                total += len(key)
                if member.__class__ is str:
                    total += len(member)
                else:
                    rest.append(member)
        elif kind is str:
            total += len(each)
        elif kind is list:
            total += NODE * len(each)
            rest += each
        elif kind is int and each.bit_length() > _DOUBLE_BITS:
            total += each.bit_length() // 3
    return total


def weigh_struct(value: Any) -> int:
    """The weight of a struct, or of a list of them: that of its JSON."""
    return weigh(msgspec.to_builtins(value))


def fitted(value: Any, room: int) -> tuple[Any, int]:
    """Plain JSON cut to what has room, and its weight: the beginning of a text, the first items of
    a list and keys of an object, each whole unless it is a text."""
    weight = weigh(value, room)
    return (value, weight) if weight <= room else _cut(value, room)


def _cut(value: Any, room: int) -> tuple[Any, int]:
    if isinstance(value, str):
        return (cut := value[: max(0, room - NODE)]), NODE + len(cut)
    if isinstance(value, dict):
        return _fitted_object(cast("dict[str, Any]", value), room)
    if isinstance(value, list):
        return _fitted_list(cast("list[Any]", value), room)
    return None, NODE


def fitted_as(kind: Any, value: Any, room: int) -> Any:
    """The same for a struct, or a list of structs, of which nothing has to be there."""
    plain = msgspec.to_builtins(value)
    kept, _ = fitted(plain, room)
    return value if kept is plain else msgspec.convert(kept, kind)


def _fitted_object(value: dict[str, Any], room: int) -> tuple[dict[str, Any], int]:
    kept: dict[str, Any] = {}
    weight = NODE
    for key, item in value.items():
        head = NODE + len(key)
        left = room - weight - head
        if left < NODE:
            break
        whole = weigh(item, left)
        if isinstance(item, str) or whole <= left:
            kept[key], more = (item, whole) if whole <= left else _cut(item, left)
            weight += head + more
    return kept, weight


def _fitted_list(value: list[Any], room: int) -> tuple[list[Any], int]:
    kept: list[Any] = []
    weight = NODE
    for item in value:
        left = room - weight
        if left < NODE:
            break
        whole = weigh(item, left)
        if isinstance(item, str) or whole <= left:
            part, more = (item, whole) if whole <= left else _cut(item, left)
            kept.append(part)
            weight += more
    return kept, weight


def fitting(items: Sequence[T], room: int) -> tuple[list[T], int]:
    """The structs that have room, and what they weigh: each whole, unless it is a text."""
    kept: list[T] = []
    weight = 0
    for item in items:
        if room - weight < NODE:
            break
        more = weigh_struct(item)
        over = max(0, weight + more - room)
        part = _shortened(item, over) if over else item
        if part is not None:
            kept.append(part)
            weight += more - over
    return kept, weight


def _shortened(item: T, by: int) -> T | None:
    """A text without its last characters; None for anything else, and for one that is shorter."""
    if isinstance(item, ContentItem):
        content = _shortened(item.content, by)
        return None if content is None else msgspec.structs.replace(item, content=content)
    if isinstance(item, Text) and len(item.text) > by:
        return msgspec.structs.replace(item, text=item.text[:-by])
    return None
