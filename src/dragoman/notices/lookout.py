"""Finds what is worth telling, in the stored events of all sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from dragoman.errors import DragomanError
from dragoman.hub.hub import Hub
from dragoman.notices.notice import Alert, Noticed, notice_of
from dragoman.session.events import (
    ElicitationRequested,
    ElicitationSettled,
    PermissionRequested,
    PermissionSettled,
    TurnEnded,
)
from dragoman.store.base import events_of_types, session_pages
from dragoman.store.records import SessionFilter, StoredEvent

_QUESTIONS = ("permission_requested", "elicitation_requested")
_SETTLED = ("permission_settled", "elicitation_settled")
_BEGINNINGS = tuple(
    b'{"type":"%b"' % each.encode() for each in (*_QUESTIONS, *_SETTLED, "turn_ended")
)
_RECENT_SECONDS = 300.0
"""A turn that ended earlier came with an import or a fork."""


class Lookout:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def notices(self) -> AsyncGenerator[list[Alert]]:
        """Questions that wait already, then what happens. Raises StoreError."""
        after = await self._hub.store.last_position()
        yield await self._waiting(after)
        async for events in self._hub.watch_all(after):
            if found := await self._in(events):
                yield found

    async def _waiting(self, upto: int) -> list[Alert]:
        """Those of sessions that wait, up to a position."""
        found: list[Alert] = []
        wanted = SessionFilter(limit=500, status="waiting")
        async for page in session_pages(self._hub.store, wanted):
            for record in page:
                found += await self._questions_of(record.id, upto)
        return found

    async def _questions_of(self, session_id: str, upto: int) -> list[Alert]:
        try:
            pending = (await self._hub.state(session_id)).pending
        except DragomanError:  # it was deleted, or cannot be read
            return []
        asked: dict[str, StoredEvent] = {}
        async for event in events_of_types(self._hub.store, session_id, _QUESTIONS):
            question = event.decode()
            if isinstance(question, PermissionRequested | ElicitationRequested):
                asked[question.request_id] = event
        return await self._in(
            [event for request, event in asked.items() if request in pending],
            upto=upto,
        )

    async def _in(self, events: Sequence[StoredEvent], upto: int | None = None) -> list[Alert]:
        """What these events mean, except questions that are settled among them."""
        decoded = [
            (event.session_id, event.decode())
            for event in events
            if event.body.startswith(_BEGINNINGS) and (upto is None or event.position <= upto)
        ]
        settled = {
            (session_id, event.request_id)
            for session_id, event in decoded
            if isinstance(event, PermissionSettled | ElicitationSettled)
        }
        return [
            notice
            for session_id, event in decoded
            if isinstance(event, PermissionRequested | ElicitationRequested | TurnEnded)
            and self._counts(session_id, event, settled)
            and (notice := await self._notice(session_id, event)) is not None
        ]

    def _counts(self, session_id: str, event: Noticed, settled: set[tuple[str, str]]) -> bool:
        if event.replay:
            return False
        if isinstance(event, TurnEnded):
            return event.at > self._hub.store.now() - _RECENT_SECONDS
        if isinstance(event, PermissionRequested) and event.same_as is not None:
            return False  # one answer answers both
        return (session_id, event.request_id) not in settled

    async def _notice(self, session_id: str, event: Noticed) -> Alert | None:
        try:
            return notice_of(event, await self._hub.record(session_id))
        except (DragomanError, msgspec.DecodeError):
            return None  # deleted meanwhile
