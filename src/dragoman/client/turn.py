"""A turn: one prompt and everything the agent does with it, until it ends exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from dragoman.errors import DragomanError
from dragoman.session.content import Content
from dragoman.session.events import (
    ElicitationRequested,
    Event,
    PermissionRequested,
    TurnEnded,
)
from dragoman.session.facts import TokenUsage
from dragoman.stream import Stream

_QUESTIONS = (PermissionRequested, ElicitationRequested)
_QUESTION_TYPES = frozenset(_QUESTIONS)


class Turn:
    """Iterate it for its events, or await it to run it to its end; made by `Session.prompt`.

    Both raise what cut the turn short, such as AgentExited; iteration yields the TurnEnded event
    first. Being cancelled is no error: the stop reason says so.
    """

    def __init__(
        self,
        turn_id: str,
        content: list[Content],
        *,
        timeout: float | None,
        on_unanswered: Callable[[str | None], None],
    ) -> None:
        self.id = turn_id
        self.content = content
        self.meta: dict[str, Any] | None = None
        self.timeout = timeout
        self.warnings: list[str] = []
        """What had to be changed about the prompt, a sentence each."""
        self.stop_reason: str | None = None
        self.usage: TokenUsage | None = None
        self.error: DragomanError | None = None
        self.cancel_requested = False
        self.sent = False
        self.unread = False
        """Nobody reads the events: the turn is awaited, not iterated."""
        self._on_unanswered = on_unanswered
        """Called when whoever reads the turn goes on without answering this question, or, with
        None, will not read at all."""
        self._asked: str | None = None
        self._stream: Stream[Event] = Stream()
        self._ended = asyncio.Event()

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    def push(self, events: list[Event], size: int) -> None:
        """Called by the session with the events of this turn, as they come."""
        self._stream.push(events, size)

    def finish(self, event: TurnEnded, error: DragomanError | None) -> None:
        """Called by the session with the turn's last event."""
        self.stop_reason = event.stop_reason
        self.usage = event.usage
        self.error = error
        self._stream.push([event], 0)
        self._stream.close(error)
        self._ended.set()

    def discard(self) -> None:
        """Keep no events for a reader of this turn: whoever watches the session sees them there.

        Unlike awaiting the turn, this does not say that nobody answers its questions.
        """
        self._stream = Stream()
        self._stream.close()

    async def wait(self) -> None:
        """Wait for the end, however it comes."""
        await self._ended.wait()

    def __aiter__(self) -> Turn:
        return self

    async def __anext__(self) -> Event:
        if self._asked is not None:
            self._on_unanswered(self._asked)
            self._asked = None
        ready = self._stream.ready
        event = ready.popleft() if ready else await self._stream.__anext__()
        # By exact type first: `isinstance` of a struct is slow to say no, and this is every event.
        if type(event) in _QUESTION_TYPES and isinstance(event, _QUESTIONS):
            self._asked = event.request_id
        return event

    def __await__(self) -> Generator[Any, None, Turn]:
        return self._run().__await__()

    async def _run(self) -> Turn:
        self.unread = True
        self._on_unanswered(None)
        self._stream.close()
        await self._ended.wait()
        if self.error is not None:
            raise self.error
        return self
