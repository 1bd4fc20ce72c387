"""Removes secrets from the events of a session: twice through, first to learn, then to remove.

An agent says a text in pieces, so a secret may begin in one event and end in another. The pieces of
each text are searched as one, and what is removed is removed from the event that said it: every
event stays, with its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from dragoman.redactor.secret_kinds import Span
from dragoman.redactor.text_redactor import Redactor, holds_secret, in_json, replaced, texts_in

Event: TypeAlias = dict[str, Any]

_SPOKEN = {
    "user_message": "messageId",
    "agent_message": "messageId",
    "agent_thought": "messageId",
    "peer_message_chunk": "messageId",
    "compaction_summary": "compactionId",
}
"""Events that say a piece of a text, and the field that says of which."""


class _Piece(NamedTuple):
    """A part of a text that several events say, and where its event has it."""

    stream: tuple[str, ...]
    text: str
    replaces: bool
    holder: dict[str, Any]
    field: str


def redacted_events(bodies: Callable[[], Iterable[bytes]], redactor: Redactor) -> Iterator[bytes]:
    """The events without secrets. `bodies` is called twice, and gives the same both times."""
    spans = iter(learn_events(bodies(), redactor))
    for body in bodies():
        event = msgspec.json.decode(body)
        piece = _piece(event)
        if piece is None:
            yield msgspec.json.encode(_event(event, redactor))
            continue
        piece.holder[piece.field] = ""
        cleaned = _event(event, redactor)
        if (emptied := _piece(cleaned)) is not None:
            emptied.holder[emptied.field] = replaced(piece.text, next(spans))
        yield msgspec.json.encode(cleaned)


def _event(event: Event, redactor: Redactor) -> Event:
    cleaned: Event = in_json(event, redactor, names=_is_name)
    return cleaned


def _is_name(field: str) -> bool:
    """Whether a field of an event links it to others: two must not become the same."""
    return field == "type" or field == "id" or field.endswith("Id")


# ── learning ──────────────────────────────────────────────────────────────────────────────────


class _Stream:
    """One text, as far as it has been said."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, str]] = []


def learn_events(bodies: Iterable[bytes], redactor: Redactor) -> list[list[Span]]:
    """Learn the secrets of all events. Returns what is to be removed of each piece of a text, in
    the order of the events."""
    streams: dict[tuple[str, ...], _Stream] = {}
    ended: list[_Stream] = []
    count = 0
    for body in bodies:
        event = msgspec.json.decode(body)
        piece = _piece(event)
        if piece is not None:
            if piece.replaces and piece.stream in streams:
                ended.append(streams.pop(piece.stream))
            streams.setdefault(piece.stream, _Stream()).pieces.append((count, piece.text))
            count += 1
        for name, text in texts_in(event):
            if holds_secret(name, text):
                redactor.learn_value(text, name)
            elif not _is_name(name):
                redactor.learn(text)
    every = [*ended, *streams.values()]
    for stream in every:
        redactor.learn("".join(text for _, text in stream.pieces))
    found: list[list[Span]] = [[] for _ in range(count)]
    for stream in every:
        _spread(stream, found, redactor)
    return found


def _spread(stream: _Stream, found: list[list[Span]], redactor: Redactor) -> None:
    """Search a text as one, and note in each of its pieces what is to be removed there. The mark is
    put where a secret begins; the rest of it goes without one."""
    whole = "".join(text for _, text in stream.pieces)
    spans = redactor.counted(whole)
    at = 0
    start = 0
    for number, text in stream.pieces:
        end = start + len(text)
        while at < len(spans) and spans[at].end <= start:
            at += 1
        here = at
        while here < len(spans) and spans[here].start < end:
            span = spans[here]
            first, last = max(span.start, start) - start, min(span.end, end) - start
            found[number].append(Span(first, last, span.kind if span.start >= start else ""))
            here += 1
        start = end


def _piece(event: Event, within: tuple[str, ...] = ()) -> _Piece | None:
    match event:
        case {"type": "subagent_event", "sessionId": str(child), "event": {}}:
            return _piece(event["event"], (*within, child))
        case {"type": "terminal_output", "terminalId": str(terminal), "data": str(text)}:
            stream = (*within, "terminal", terminal)
            return _Piece(stream, text, event.get("replaces", False), event, "data")
        case {"type": str(tag), "content": {"type": "text", "text": str(text)}} if tag in _SPOKEN:
            stream = (*within, tag, str(event.get(_SPOKEN[tag])))
            return _Piece(stream, text, event.get("replaces", False), event["content"], "text")
        case _:
            return None
