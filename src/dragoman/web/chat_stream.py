"""The stream of one chat: the events of a turn through the encoder, as they are stored.

Nothing is kept between requests. What a page was shown before follows from the turn's events: for
an answer they are encoded once more, and only what comes behind the question is sent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from dragoman.session import events as e
from dragoman.session.state import SessionState
from dragoman.ui_stream import DONE, HEADERS, KEEP_ALIVE, Chunk, Encoder, encode
from dragoman.ui_stream.chunks import Abort, Error, Sdk
from dragoman.web.server import Server
from dragoman.web.stream import BEAT_SECONDS, Stream, with_beats

_SOONEST_BEAT = 0.02
_PAGE = 2_000


class ChatStream:
    """One response: make it with one of the methods that begin with `of`."""

    def __init__(self, server: Server, chat_id: str, sdk: Sdk) -> None:
        self._server = server
        self._chat_id = chat_id
        self._encoder = Encoder(chat_id, sdk=sdk)

    def of_turn(self, turn_id: str, after: int) -> Stream:
        """A turn that begins behind this event, now or when those before it are done."""
        return self._response(turn_id, after, [])

    async def of_active_turn(self) -> Stream | None:
        """The turn that runs, from its start; None when none does."""
        found = await active_turn(self._server, self._chat_id)
        if found is None:
            return None
        turn_id, events = found
        chunks = self._encoder.feed(*events, pending=_unsettled(events))
        return self._response(turn_id, events[-1].seq, chunks)

    async def of_answers(self, answers: Mapping[str, bool]) -> Stream | None:
        """What comes behind the question that these are answers to; None when it was not asked."""
        found = await active_turn(self._server, self._chat_id)
        if found is None:
            return None
        turn_id, events = found
        chunks = self._behind_question(events, answers)
        return None if chunks is None else self._response(turn_id, events[-1].seq, chunks)

    def _behind_question(
        self, events: Sequence[e.Event], answers: Mapping[str, bool]
    ) -> list[Chunk] | None:
        encoder, asked = self._encoder, _asked(events)
        chunks: list[Chunk] | None = None
        for event in events:
            told = encoder.feed(event, pending=asked)
            if chunks is not None:
                chunks += told
            if encoder.waiting & answers.keys():
                chunks = encoder.resume(answers)
            elif encoder.waiting and chunks is None:
                encoder.resume()  # an earlier question, which was answered in an earlier request
        return chunks

    # ── the response ──────────────────────────────────────────────────────────────────────────

    def _response(self, turn_id: str, after: int, chunks: list[Chunk]) -> Stream:
        return Stream(self._pieces(turn_id, after, chunks), HEADERS)

    async def _pieces(self, turn_id: str, after: int, chunks: list[Chunk]) -> AsyncGenerator[bytes]:
        if chunks:
            yield _encoded(chunks)
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
                    chunks = self._fed(turn_id, [stored.decode() for stored in batch])
                    yield _encoded(chunks)
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
        """Nothing more is told here: the server ends, or the session was deleted."""
        begun = [] if self._encoder.message_id is not None else self._encoder.begin(turn_id)
        is_ending = self._server.closing.is_set()
        ending = Error(error_text="the server was stopped") if is_ending else Abort()
        return [*begun, *self._encoder.close(ending)]


class _End:
    pass


_END = _End()


def _encoded(chunks: Sequence[Chunk]) -> bytes:
    return b"".join(map(encode, chunks))


# ── the events of a turn ──────────────────────────────────────────────────────────────────────


async def active_turn(server: Server, chat_id: str) -> tuple[str, list[e.Event]] | None:
    """The turn that runs and its events so far, the first of which starts it."""
    state = await server.hub.state(chat_id)
    if state.turn is None:
        return None
    turn_id, after = state.turn.id, _before(state, state.turn.id)
    events: list[e.Event] = []
    while page := await server.hub.store.events(chat_id, after=after, limit=_PAGE):
        after = page[-1].seq
        events += [stored.decode() for stored in page]
    starts = (n for n, event in enumerate(events) if _starts(event, turn_id))
    first = next(starts, None)
    return None if first is None else (turn_id, events[first:])


def _before(state: SessionState, turn_id: str) -> int:
    """An event that came before the turn did."""
    seqs = [entry.seq for entry in state.entries if entry.turn_id == turn_id]
    return min(seqs) - 1 if seqs else 0


def _starts(event: e.Event, turn_id: str) -> bool:
    return isinstance(event, e.TurnStarted) and event.turn_id == turn_id


def _is_dropped(turn_id: str, events: Sequence[e.Event]) -> bool:
    """Whether a prompt was taken out of the queue and its turn will not begin."""
    taken = (event for event in events if isinstance(event, e.PromptUnqueued) and event.dropped)
    return any(event.queue_id == turn_id for event in taken)


def _unsettled(events: Sequence[e.Event]) -> set[str]:
    settled = (e.PermissionSettled, e.ElicitationSettled)
    return _asked(events) - {event.request_id for event in events if isinstance(event, settled)}


def _asked(events: Sequence[e.Event]) -> set[str]:
    asked = (e.PermissionRequested, e.ElicitationRequested)
    return {event.request_id for event in events if isinstance(event, asked)}
