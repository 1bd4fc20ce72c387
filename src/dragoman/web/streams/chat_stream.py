"""The stream of one chat: the events of a turn through the encoder, as they are stored.

Nothing is kept between requests. What a page was shown before follows from the turn's events: for
an answer they are encoded once more, and only what comes behind the question is sent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

import msgspec

from dragoman.session import events as e
from dragoman.store.base import event_pages, events_of_types
from dragoman.store.records import decode_events
from dragoman.ui_stream import DONE, HEADERS, KEEP_ALIVE, Chunk, Encoder, encode
from dragoman.ui_stream.chunks import Abort, Error, Sdk
from dragoman.web.context import Server
from dragoman.web.streams.sse import PIECE_BYTES
from dragoman.web.streams.stream_response import BEAT_SECONDS, StreamedResponse, with_beats

_SOONEST_BEAT = 0.02


class ChatStream:
    """One response: make it with one of the methods that begin with `of`."""

    def __init__(self, server: Server, chat_id: str, sdk: Sdk) -> None:
        self._server = server
        self._chat_id = chat_id
        self._encoder = Encoder(chat_id, sdk=sdk)

    def of_turn(self, turn_id: str, after: int) -> StreamedResponse:
        """A turn that begins behind this event, now or when those before it are done."""
        return self._response(turn_id, after, _nothing())

    async def of_active_turn(self) -> StreamedResponse | None:
        """The turn that runs, from its start; None when none does."""
        begun = await _active_turn(self._server, self._chat_id)
        if begun is None:
            return None
        return self._response(begun.turn_id, begun.last, self._retold(begun))

    async def _retold(self, begun: _Begun) -> AsyncGenerator[list[Chunk]]:
        """What a page was shown until now."""
        async for events in _pages(self._server, self._chat_id, begun):
            yield self._encoder.feed(*events, pending=begun.pending, more=True)
        yield self._encoder.feed(pending=begun.pending)

    async def of_answers(self, answers: Mapping[str, bool]) -> StreamedResponse | None:
        """What comes behind the question that these are answers to; None when it was not asked."""
        begun = await _active_turn(self._server, self._chat_id)
        if begun is None:
            return None
        retold = self._behind_question(begun, answers)
        # The first is what follows the question; without one it was not asked.
        if (first := await anext(retold, None)) is None:
            return None
        return self._response(begun.turn_id, begun.last, _with_first(first, retold))

    async def _behind_question(
        self, begun: _Begun, answers: Mapping[str, bool]
    ) -> AsyncGenerator[list[Chunk]]:
        encoder, is_found = self._encoder, False
        async for events in _pages(self._server, self._chat_id, begun):
            for event in events:
                told = encoder.feed(event, pending=_EVERYTHING)
                if is_found:
                    yield told
                if encoder.waiting & answers.keys():
                    is_found = True
                    yield encoder.resume(answers)
                elif encoder.waiting and not is_found:
                    encoder.resume()  # an earlier one, which was answered in an earlier request

    # ── the response ──────────────────────────────────────────────────────────────────────────

    def _response(
        self, turn_id: str, after: int, before: AsyncGenerator[list[Chunk]]
    ) -> StreamedResponse:
        return StreamedResponse(self._pieces(turn_id, after, before), HEADERS)

    async def _pieces(
        self, turn_id: str, after: int, before: AsyncGenerator[list[Chunk]]
    ) -> AsyncGenerator[bytes]:
        """What was sent `before`, and then what comes."""
        async with aclosing(before):
            async for chunks in before:
                for piece in _pieces_of(chunks):
                    yield piece
        watched = self._server.hub.watch(self._chat_id, after)
        beating = with_beats(watched, self._server.closing, self._beat)
        try:
            while not self._is_over:
                batch = await anext(beating, _END)
                if isinstance(batch, _End):
                    yield _encoded(self._cut(turn_id))
                elif batch is None:
                    yield _encoded(self._encoder.tick(time.time())) or KEEP_ALIVE
                else:
                    chunks = self._fed(turn_id, decode_events(batch))
                    for piece in _pieces_of(chunks):
                        yield piece
        finally:
            await beating.aclose()
        yield DONE

    @property
    def _is_over(self) -> bool:
        return self._encoder.ended or bool(self._encoder.waiting)

    def _beat(self) -> float:
        due = self._encoder.due
        if due is None:
            return BEAT_SECONDS
        return min(max(due - time.time(), _SOONEST_BEAT), BEAT_SECONDS)

    def _fed(self, turn_id: str, events: Sequence[e.Event]) -> list[Chunk]:
        if _is_dropped(turn_id, events):
            return [*self._encoder.begin(turn_id), *self._encoder.close(Abort())]
        live = self._server.hub.live.get(self._chat_id)
        pending = None if live is None else live.state.pending
        return self._encoder.feed(*self._of_turn(turn_id, events), pending=pending)

    def _of_turn(self, turn_id: str, events: Sequence[e.Event]) -> Sequence[e.Event]:
        """Without what comes before the turn."""
        if self._encoder.message_id is not None:
            return events
        for place, event in enumerate(events):
            if _starts(event, turn_id):
                return events[place:]
        return ()

    def _cut(self, turn_id: str) -> list[Chunk]:
        """Nothing more is sent here: the server ends, or the session was deleted."""
        begun = [] if self._encoder.message_id is not None else self._encoder.begin(turn_id)
        is_ending = self._server.closing.is_set()
        ending = Error(error_text="the server was stopped") if is_ending else Abort()
        return [*begun, *self._encoder.close(ending)]


class _End:
    pass


_END = _End()


def _encoded(chunks: Sequence[Chunk]) -> bytes:
    return b"".join(map(encode, chunks))


def _pieces_of(chunks: Sequence[Chunk]) -> Iterator[bytes]:
    """One is made when the reader has taken the one before."""
    piece: list[bytes] = []
    size = 0
    for chunk in chunks:
        piece.append(encode(chunk))
        size += len(piece[-1])
        if size >= PIECE_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


# ── the events of a turn ──────────────────────────────────────────────────────────────────────


class _Begun(msgspec.Struct, frozen=True):
    """The turn that runs: the numbers of the events before its first and of its last so far."""

    turn_id: str
    after: int
    last: int
    pending: frozenset[str]


async def _active_turn(server: Server, chat_id: str) -> _Begun | None:
    state = await server.hub.state(chat_id)
    if state.turn is None:
        return None
    return _Begun(state.turn.id, state.turn.seq - 1, state.last_seq, frozenset(state.pending))


async def _pages(server: Server, chat_id: str, begun: _Begun) -> AsyncGenerator[list[e.Event]]:
    pages = event_pages(server.hub.store, chat_id, after=begun.after, until=begun.last)
    async with aclosing(pages):
        async for page in pages:
            yield decode_events(page)


async def active_settlements(server: Server, chat_id: str) -> AsyncGenerator[e.Event]:
    """How questions of the turn that runs were settled."""
    if (begun := await _active_turn(server, chat_id)) is None:
        return
    types = ("permission_settled", "elicitation_settled")
    async for stored in events_of_types(server.hub.store, chat_id, types, after=begun.after):
        yield stored.decode()


async def _nothing() -> AsyncGenerator[list[Chunk]]:
    return
    yield


async def _with_first(
    first: list[Chunk], rest: AsyncGenerator[list[Chunk]]
) -> AsyncGenerator[list[Chunk]]:
    yield first
    async with aclosing(rest):
        async for chunks in rest:
            yield chunks


class _Everything:
    def __contains__(self, item: object) -> bool:
        return True


_EVERYTHING = _Everything()


def _starts(event: e.Event, turn_id: str) -> bool:
    return isinstance(event, e.TurnStarted) and event.turn_id == turn_id


def _is_dropped(turn_id: str, events: Sequence[e.Event]) -> bool:
    """Whether a prompt was taken out of the queue and its turn will not begin."""
    taken = (event for event in events if isinstance(event, e.PromptUnqueued) and event.dropped)
    return any(event.queue_id == turn_id for event in taken)
