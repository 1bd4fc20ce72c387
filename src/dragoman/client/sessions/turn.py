"""A turn: one prompt and everything the agent does with it, until it ends exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.errors import DragomanError
from dragoman.public_face import PublicFace, names
from dragoman.session.content import Content, Meta
from dragoman.session.events import (
    ElicitationRequested,
    Event,
    LimitReached,
    PermissionRequested,
    TurnEnded,
)
from dragoman.session.facts import Parking, TokensOf, TokenUsage, TurnTerms
from dragoman.stream import Stream

if TYPE_CHECKING:
    from dragoman.client.sessions.steering import PendingSteer

_QUESTIONS = (PermissionRequested, ElicitationRequested)
_QUESTION_TYPES = frozenset(_QUESTIONS)


class TurnOwner(Protocol):
    """What a turn needs of its session."""

    def went_on_unanswered(self, request_id: str | None) -> None:
        """The reader of the turn continued without answering this question or, with None, does not
        read at all."""
        ...

    def answer_of(self, turn: Turn) -> str: ...

    def stop_turn(self, turn: Turn) -> None:
        """Ask the agent to stop, without waiting; drop the prompt if it is still queued."""
        ...

    async def cancel_turn(self, turn: Turn, meta: Meta = None) -> None: ...


class Turn(PublicFace):
    """One prompt, made by `Session.prompt`. Iterate it for its events, or await its end.

    `text` is the agent's answer; `stop_reason`, `usage` and `error` say how the turn ended.

    Both raise what cut the turn short, such as AgentExited; iteration yields the TurnEnded event
    first. Being cancelled is not an error: the stop reason says so.

    A turn that is given up is cancelled: if the task that awaits it, or waits for its next event,
    is cancelled (by a timeout, for example), and if a loop over its events is left early, by
    `break`, `return` or an exception. To keep it, await it or iterate it again directly after the
    loop, or call `detach` before. `async with` also waits until a turn that is left has ended:

        async with session.prompt("…") as turn:
            async for event in turn:
                break
    """

    internal = names("push finish discard left used terms parking terminals_before unread")

    def __init__(
        self,
        turn_id: str,
        content: list[Content],
        terms: TurnTerms | None = None,
        *,
        timeout: float | None,
        owner: TurnOwner,
    ) -> None:
        self.id = turn_id
        self.content = content
        self.meta: dict[str, Any] | None = None
        self.terms = terms
        """What came with the prompt from another process."""
        self.timeout = timeout
        self.warnings: list[str] = []
        """What had to be changed in the prompt, one sentence each."""
        self.stop_reason: str | None = None
        self.usage: TokenUsage | None = None
        self.requested: TokenUsage | None = None
        """The sum of what was reported so far for each of its requests to the model."""
        self.error: DragomanError | None = None
        self.cancel_requested = False
        self.sent = False
        self.limit: LimitReached | None = None
        """The limit that was reached last in this turn, if one was."""
        self.parking: Parking | None = None
        """The parked prompt that this turn sends again."""
        self.parked: Parking | None = None
        """Set at the end of the turn if the agent reported a limit and the prompt waits for the
        limit to end."""
        self.terminals_before = 0
        self.unread = False
        """Whether nobody reads the events, because the turn is awaited and not iterated."""
        self.steer: PendingSteer | None = None
        """Set while the prompt is queued as a steer of the running turn."""
        self._owner = owner
        self._is_detached = False
        self._loops = 0
        """How many loops over the events have begun."""
        self._text: str | None = None
        self._asked: str | None = None
        self._stream: Stream[Event] = Stream()
        self._ended = asyncio.Event()

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    @property
    def text(self) -> str:
        """The agent's answer, as far as it has come: its messages in this turn, with a blank line
        between two of them."""
        return self._owner.answer_of(self) if self._text is None else self._text

    async def cancel(self, *, meta: Meta = None) -> None:
        """Stop this turn and wait for its end; drop the prompt if it is still queued. Nothing
        happens to a turn that is over.

        Raises CancelIgnored if the agent continues for longer than `Timeouts.cancel`.
        """
        await self._owner.cancel_turn(self, meta)

    def detach(self) -> Turn:
        """From now on, the turn continues even if the task that waits for it is cancelled, or a
        loop over its events is left."""
        self._is_detached = True
        return self

    def __repr__(self) -> str:
        if self.done:
            how = "failed" if self.error is not None else self.stop_reason
        else:
            how = "running" if self.sent else "queued"
        return f"<Turn {self.id}: {how}>"

    def push(self, events: list[Event], size: int) -> None:
        """Called by the session with the events of this turn, as they come."""
        self._stream.push(events, size)

    def used(self, reported: TokenUsage | None, counted: TokensOf) -> TokenUsage | None:
        """What it has used, as `reported` at its end or with its requests."""
        if reported is not None:
            reported.counted = counted
        return reported or self.requested

    def finish(self, event: TurnEnded, error: DragomanError | None) -> None:
        """Called by the session with the turn's last event."""
        self.stop_reason = event.stop_reason
        self.usage = event.usage
        self.error = error
        self._text = self._owner.answer_of(self)
        self._stream.push([event], 0)
        self._stream.close(error)
        self._ended.set()

    def discard(self) -> None:
        """Keep no events for a reader of this turn: watchers of the session see them there.

        Unlike awaiting the turn, this does not say that nobody answers its questions.
        """
        self._stream = Stream()
        self._stream.close()

    async def wait(self) -> None:
        """Wait for the end, without raising what cut the turn short."""
        await self._ended.wait()

    async def settled_within(self, seconds: float) -> bool:
        """Wait for the end, at most this long, and return whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            return False
        return True

    def __aiter__(self) -> AsyncIterator[Event]:
        self._loops += 1
        return _Loop(self, self._loops)

    async def __anext__(self) -> Event:
        if self._asked is not None:
            self._owner.went_on_unanswered(self._asked)
            self._asked = None
        ready = self._stream.ready
        event = ready.popleft() if ready else await self._following()
        # By exact type first: `isinstance` of a struct is slow to say no, and this is every event.
        if type(event) in _QUESTION_TYPES and isinstance(event, _QUESTIONS):
            self._asked = event.request_id
        return event

    async def _following(self) -> Event:
        try:
            return await self._stream.__anext__()
        except asyncio.CancelledError:
            self._given_up()
            raise

    def _given_up(self) -> None:
        """Nobody wants the rest any longer, and the agent must not work on unseen."""
        if not self._is_detached:
            self._owner.stop_turn(self)

    def left(self, loop: int) -> None:
        """Called a moment after that loop over the events was left, for whatever reason."""
        if not (self.done or self.unread or self._loops > loop):
            self._given_up()

    def __await__(self) -> Generator[Any, None, Turn]:
        return self._run().__await__()

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(self, *exception: object) -> None:
        if not self._is_detached:
            await self.cancel()

    async def _run(self) -> Turn:
        self.unread = True
        self._owner.went_on_unanswered(None)
        self._stream.close()
        try:
            await self._ended.wait()
        except asyncio.CancelledError:
            self._given_up()
            raise
        if self.error is not None:
            raise self.error
        return self


class _Loop:
    """One loop over the events of a turn. Python drops it the moment the loop is left, whatever
    ends the loop, and only then: there is no other way to notice a `break`."""

    __slots__ = ("_event_loop", "_number", "_turn")

    def __init__(self, turn: Turn, number: int) -> None:
        self._turn = turn
        self._number = number
        self._event_loop = asyncio.get_running_loop()

    def __aiter__(self) -> _Loop:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Event]:
        return self._turn.__anext__()

    def __del__(self) -> None:
        if not self._turn.done:
            with suppress(RuntimeError):  # the event loop is closed, and the agent gone with it
                self._event_loop.call_soon_threadsafe(self._turn.left, self._number)
