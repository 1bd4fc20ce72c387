"""Joins adjacent pieces of one text, for slow readers. Pure.

The fold comes to the same: a message in fewer, longer pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.session.content import Text
from dragoman.session.events import AgentMessage, AgentThought, Event, SubagentEvent, TerminalOutput

MAX_LENGTH = 64 * 1024
"""Characters of one joined piece."""


class Joined(msgspec.Struct, frozen=True):
    """An event with the number of the last that went into it and the time of the first, whose
    number is `first_seq`. A single event is the very one, and both numbers are the same."""

    first_seq: int
    event: Event


def coalesce(events: Iterable[Event]) -> Iterator[Joined]:
    """The events in their order, each run of pieces that continue one another as one."""
    run: list[Event] = []
    length = 0
    for event in events:
        if run and length + len(event.text) <= MAX_LENGTH and _continues(run[-1], event):
            length += len(event.text)
        else:
            if run:
                yield _joined(run)
            run, length = [], len(event.text)
        run.append(event)
    if run:
        yield _joined(run)


def _continues(event: Event, following: Event) -> bool:
    if type(event) is not type(following) or event.replay != following.replay:
        return False
    if event.meta is not None or following.meta is not None:
        return False
    if getattr(following, "replaces", False):
        return False
    match event, following:
        case SubagentEvent(), SubagentEvent():
            same = event.session_id == following.session_id
            return same and _continues(event.event, following.event)
        case TerminalOutput(), TerminalOutput():
            return event.terminal_id == following.terminal_id
        case ((AgentMessage() | AgentThought()), (AgentMessage() | AgentThought())):
            same = event.message_id == following.message_id
            return same and _is_plain(event.content) and _is_plain(following.content)
        case _:
            return False


def _is_plain(content: object) -> bool:
    """Whether nothing but words would be lost by joining."""
    return isinstance(content, Text) and content.annotations is None and content.meta is None


def _joined(run: list[Event]) -> Joined:
    first, last = run[0], run[-1]
    if len(run) == 1:
        return Joined(first.seq, first)
    if isinstance(last, SubagentEvent):
        told = [each.event for each in run if isinstance(each, SubagentEvent)]
        joined = msgspec.structs.replace(last, at=first.at, event=_joined(told).event)
        return Joined(first.seq, joined)
    text = "".join(event.text for event in run)
    words: dict[str, Any] = {"replaces": getattr(first, "replaces", False)}
    words |= {"data": text} if isinstance(last, TerminalOutput) else {"content": Text(text)}
    return Joined(first.seq, msgspec.structs.replace(last, at=first.at, **words))
