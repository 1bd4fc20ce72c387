"""The state of a session as far as it is stored: its snapshot, and the events behind it folded."""

from __future__ import annotations

import logging
from functools import cache

import msgspec

from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.base import Store

logger = logging.getLogger("dragoman.hub")

_PAGE = 2_000

_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder() -> msgspec.msgpack.Decoder[SessionState]:
    """Made when it is first needed: it takes some milliseconds, which a start does not have."""
    return msgspec.msgpack.Decoder(SessionState)


def encode_state(state: SessionState) -> bytes:
    return _encoder.encode(state)


async def stored_state(store: Store, session_id: str) -> SessionState:
    """In pages, so that opening a long session does not hold up the others."""
    state = await _from_snapshot(store, session_id)
    while events := await store.events(session_id, after=state.last_seq, limit=_PAGE):
        for event in events:
            reduce(state, event.decode())
    return state


async def _from_snapshot(store: Store, session_id: str) -> SessionState:
    snapshot = await store.snapshot(session_id)
    if snapshot is None:
        return SessionState()
    try:
        return _decoder().decode(snapshot.body)
    except msgspec.DecodeError:
        # Of another version: the events have it all.
        logger.info("the snapshot of session %s is not readable and was passed over", session_id)
        return SessionState()
