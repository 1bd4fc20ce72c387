"""Follows a session on this terminal: folds its events, shows them in order, asks its questions.

Every window does it this way, wherever the session runs. What is shown comes from the record, so a
reader that is slow, or waits for an answer, costs nothing and misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Literal, Protocol

from dragoman.cli.render.event_text import Tally
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import decode_events

if TYPE_CHECKING:
    from dragoman.cli.render.view import Stage
    from dragoman.hub.hub import Hub
    from dragoman.store.records import StoredEvent


class QuestionHandler(Protocol):
    """What becomes of a session's questions."""

    fail: Callable[[BaseException], None]
    """Called when asking fails."""

    def see(self, event: e.Event) -> None:
        """An event was shown."""
        ...

    def ask(self) -> None:
        """All that there is to show has been shown: what is still open may be asked."""
        ...


class OwnTurn:
    """The turn that a run is about, as the events of its session report it."""

    def __init__(self, turn_id: str) -> None:
        self.id = turn_id
        self.tally = Tally()
        self.started = False
        self.ended: e.TurnEnded | None = None
        self.taken_back = False
        """Whether the prompt left the queue without being sent."""

    @property
    def is_over(self) -> bool:
        return self.ended is not None or self.taken_back

    def is_about(self, event: e.Event) -> bool:
        """Whether the event is the prompt's own: queued, sent, ended."""
        match event:
            case e.PromptQueued() | e.PromptUnqueued():
                return event.queue_id == self.id
            case e.TurnStarted() | e.TurnEnded():
                return event.turn_id == self.id
            case _:
                return False

    def see(self, event: e.Event, state: SessionState) -> bool:
        """Whether the event belongs to this turn; what happens between turns does, too."""
        is_late = isinstance(event, e.LimitReached) and event.limit.turn_id == self.id
        is_ours = is_late or (not self.is_over and not self._is_of_others(event, state))
        if is_ours:
            self.tally.count(event)
        match event:
            case e.TurnStarted(turn_id=self.id):
                self.started = True
            case e.TurnEnded(turn_id=self.id):
                self.ended = event
            case e.PromptUnqueued(queue_id=self.id, dropped=True):
                self.taken_back = True
            case _:
                pass
        return is_ours

    def _is_of_others(self, event: e.Event, state: SessionState) -> bool:
        if isinstance(event, e.TurnEnded):
            return event.turn_id != self.id
        return state.turn is not None and state.turn.id != self.id


def _nothing(event: e.Event) -> bool:
    return False


class Follower:
    """Shows one session on a stage. `state` is what it was before the first event.

    `knows` says which events need no words of their own: a person who typed a prompt has read it.
    History that an agent repeats is left out, unless it `retells`. With an own `turn`, `others`
    says what becomes of the rest: all is shown, only questions are asked, or nothing is done.
    Events before `since` are only folded, and nothing is asked before the event `asks_from`.
    """

    def __init__(
        self,
        stage: Stage,
        state: SessionState | None = None,
        *,
        knows: Callable[[e.Event], bool] = _nothing,
        retells: bool = False,
        turn: OwnTurn | None = None,
        others: Literal["show", "ask", "skip"] = "show",
        questions: QuestionHandler | None = None,
        since: int = 0,
        asks_from: int = 0,
    ) -> None:
        # A state of our own: the session's is ahead of the events that are still to be shown.
        self.state = SessionState() if state is None else state
        self.turn = turn
        self._stage = stage
        self._knows = knows
        self._retells = retells
        self._others = others
        self._questions = questions
        self._since = since
        self._asks_from = asks_from
        self._pages: AsyncIterator[list[StoredEvent]] | None = None
        self._failed = asyncio.Event()
        self._error: BaseException | None = None
        if questions is not None:
            questions.fail = self.fail

    def take(self, event: e.Event) -> None:
        """The next event: fold it, show it, and have its question asked."""
        reduce(self.state, event)
        if event.seq < self._since or (event.replay and not self._retells):
            return
        event.replay = False
        is_ours = self.turn is None or self.turn.see(event, self.state)
        if is_ours or self._others == "show":
            self._stage.present(event, self.state, known=self._is_known(event))
        if self._questions is not None and (is_ours or self._others != "skip"):
            self._questions.see(event)

    def _is_known(self, event: e.Event) -> bool:
        return self._knows(event) or (self.turn is not None and self.turn.is_about(event))

    # ── a session that continues ────────────────────────────────────────────────────────────────

    def listen(self, hub: Hub, session_id: str) -> None:
        """From now on this is the session that `follow` shows, from where the state is."""
        self._pages = hub.watch(session_id, self.state.last_seq)

    async def follow(self, is_over: Callable[[], bool]) -> bool:
        """Show what is stored until it is over; False when the session was deleted before.

        Raises what `fail` was called with.
        """
        showing = asyncio.create_task(self._show_until(is_over))
        failing = asyncio.create_task(self._failed.wait())
        try:
            await asyncio.wait((showing, failing), return_when=asyncio.FIRST_COMPLETED)
            if self._error is not None:
                raise self._error
            return showing.result()
        finally:
            showing.cancel()
            failing.cancel()

    def fail(self, error: BaseException) -> None:
        """Have `follow` raise this."""
        self._error = self._error or error
        self._failed.set()

    async def _show_until(self, is_over: Callable[[], bool]) -> bool:
        assert self._pages is not None
        while not is_over():
            page = await anext(self._pages, None)
            if page is None:
                return False
            # All of it, before a question can get between: what leads to a question comes first.
            async with self._stage.status.floor:
                for event in decode_events(page):
                    self.take(event)
            if self._questions is not None and self.state.last_seq >= self._asks_from:
                self._questions.ask()
        return True
