"""Stored events as server-sent events: frames, and batches of them made once for all readers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from dragoman.session.coalesce import coalesce
from dragoman.store.records import StoredEvent, decode_events, encode_event

RETRY: Final = b"retry: 1000\n\n"
HEARTBEAT: Final = b": still here\n\n"
HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}

PIECE_BYTES = 64 * 1024
"""Frames are written in pieces of about this size, so that a slow reader holds up little."""
_KEPT_BYTES = 1024 * 1024
_LARGEST_KEPT = 256 * 1024

Scope: TypeAlias = Literal["session", "all"]


class ResetNote(msgspec.Struct):
    """Sent when a cursor is ahead of everything stored, so the reader's state is not ours."""

    reason: str
    after: int


def reset_frame(reason: str, after: int) -> bytes:
    """The stream continues after `after`; that is also where a reader resumes that is cut off
    now."""
    data = msgspec.json.encode(ResetNote(reason, after))
    return b"id: %d\nevent: reset\ndata: %b\n\n" % (after, data)


def gone_frame() -> bytes:
    """The session was deleted: there is nothing to wait for."""
    return named_frame("gone", b"{}")


class StoreNote(msgspec.Struct):
    """What is delayed during an outage of the store; null when it is over."""

    away: str | None


def store_frame(away: str | None) -> bytes:
    return named_frame("store", msgspec.json.encode(StoreNote(away)))


def named_frame(name: str, data: bytes) -> bytes:
    """Without an id: a reader cannot resume after it."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def at_frame(position: int) -> bytes:
    """Where a stream begins, for a reader that is cut off before the first event."""
    return b"id: %d\nevent: position\ndata: %d\n\n" % (position, position)


def frames(events: Iterable[StoredEvent], scope: Scope) -> Iterator[bytes]:
    """A frame each: its id is what a reader resumes behind."""
    for event in events:
        yield _frame(event, event.body, scope)


def joined_frames(events: Sequence[StoredEvent], scope: Scope) -> Iterator[bytes]:
    """The same, pieces of one text joined: such a frame has the id of the last and in its event
    the `firstSeq`."""
    for run in _of_one_session(events):
        by_seq = {event.seq: event for event in run}
        for joined in coalesce(decode_events(run)):
            last = by_seq[joined.event.seq]
            if joined.first_seq == last.seq:
                yield _frame(last, last.body, scope)
            else:
                body = encode_event(joined.event)
                yield _frame(last, b'{"firstSeq":%d,%b' % (joined.first_seq, body[1:]), scope)


def _of_one_session(events: Sequence[StoredEvent]) -> Iterator[list[StoredEvent]]:
    """Runs of one session: across others nothing can be joined without being late for them."""
    run: list[StoredEvent] = []
    for event in events:
        if run and run[-1].session_id != event.session_id:
            yield run
            run = []
        run.append(event)
    if run:
        yield run


def _frame(event: StoredEvent, body: bytes, scope: Scope) -> bytes:
    if scope == "session":
        return b"id: %d\ndata: %b\n\n" % (event.seq, body)
    session = event.session_id.encode()  # an id has no character that JSON would escape
    return b'id: %d\ndata: {"sessionId":"%b","event":%b}\n\n' % (event.position, session, body)


def pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Frames joined to pieces that are worth a write."""
    piece: list[bytes] = []
    size = 0
    for part in parts:
        piece.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


class Batches:
    """The newest batches as they were written: readers that keep up all get the same one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Scope, bool, int, int], list[bytes]] = OrderedDict()
        self._size = 0

    def pieces(
        self, events: Sequence[StoredEvent], scope: Scope, *, joined: bool
    ) -> Iterable[bytes]:
        # Positions are unique over all sessions, so the first and the last say which these are,
        # as long as the scope does.
        key = (scope, joined, events[0].position, events[-1].position)
        known = self._kept.get(key)
        if known is not None:
            return known
        made = pieces((joined_frames if joined else frames)(events, scope))
        if sum(len(event.body) for event in events) > _LARGEST_KEPT:
            return made  # of someone far behind: a piece at a time, while it is being sent
        self._keep(key, list(made))
        return self._kept[key]

    def _keep(self, key: tuple[Scope, bool, int, int], made: list[bytes]) -> None:
        self._kept[key] = made
        self._size += sum(map(len, made))
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= sum(map(len, dropped))
