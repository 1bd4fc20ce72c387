"""The events of one session, in the order they happened: stamped, folded, passed on.

What an agent tells again is kept apart here: it goes into the state once, and to no reader.
`session/retelling.py` compares it with what is known.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

from msgspec import UNSET

from dragoman.client.sessions.config_options import with_own
from dragoman.client.sessions.turn import Turn
from dragoman.errors import DragomanError
from dragoman.host.terminals.provider import is_terminal_id
from dragoman.session import events as e
from dragoman.session.facts import TokensOf
from dragoman.session.limits.delivery import Delivery
from dragoman.session.limits.output_quota import OutputQuota
from dragoman.session.reduce import fold
from dragoman.session.retelling import Retelling, Told
from dragoman.session.state import SessionState
from dragoman.stream import Stream

logger = logging.getLogger("dragoman.client")

Heard = TypeVar("Heard")

_TOLD_TERMINALS = (e.TerminalStarted, e.TerminalOutput, e.TerminalExited)
_DOUBTFUL = frozenset(
    (e.ConfigChanged, e.ActivityChanged, e.UserMessage, e.SubagentEvent, *_TOLD_TERMINALS)
)
"""What an agent tells that we may know better, or that says something about what follows."""

_SMALL = 256
"""Bytes an event of our own counts for in a reader's buffer."""


class SessionLog:
    """`opening` is recorded before anything else; `replay` says what to do with history.

    With a `history` the log continues after it; `quota` limits the terminal output it takes. The
    `recorder` gets events in batches before they are folded, since the state shares parts with
    them; `listeners` get each event with the state that it leads to.
    """

    def __init__(
        self,
        opening: Iterable[e.Event],
        *,
        replaying: bool,
        listeners: Iterable[Callable[[e.Event], None]] = (),
        recorder: Callable[[list[e.Event]], None] | None = None,
        history: SessionState | None = None,
        quota: OutputQuota | None = None,
    ) -> None:
        self._quota = quota
        self.state = SessionState() if history is None else history
        self.turn: Turn | None = None
        """The reader of the running turn."""
        self.is_repeated: Callable[[e.UserMessage], bool] | None = None
        """Whether the agent only tells what was just said to it."""
        self.watch: Callable[[list[e.Event]], None] | None = None
        """Called with events after everyone else; it may record more."""
        self.replay: Literal["keep", "skip", "no"] = _told_again(replaying, history)
        self.counted_tokens: TokensOf = "turn"
        """What the tokens are of that the agent reports at the end of a turn."""
        self.progress = time.monotonic()
        """When the agent, or a command it runs, was last heard of."""
        self._opening = list(opening)
        self._recorder = recorder
        self.listeners = list(listeners)
        self._streams: list[Stream[e.Event]] = []
        self._seq = self.state.last_seq
        self.retold = 0
        """How much history the agent has sent again."""
        self._begun = False
        """Something was recorded here; what a history tells does not count."""
        self._closed = False
        self.delivery: Delivery | None = None
        """Hears the history that the agent tells."""
        self._retelling: Retelling | None = None
        if self.replay == "skip":
            self._retelling = Retelling(self.state)

    def touch(self) -> None:
        self.progress = time.monotonic()

    def stream(self) -> Stream[e.Event]:
        """Everything that happens from now on."""
        stream: Stream[e.Event] = Stream()
        if self._closed:
            stream.close()
        else:
            self._streams.append(stream)
        return stream

    def open(self) -> None:
        """Record what the session begins with, once."""
        opening, self._opening = self._opening, []
        self._begun = True
        for event in opening:
            self.record(event)

    def record(self, event: e.Event, size: int = _SMALL) -> None:
        """Stamp an event, fold it, and pass it on."""
        self._record([event], size)

    def record_unsent(self, turn: Turn, error: DragomanError) -> e.TurnEnded:
        """A queued prompt as a turn that failed: what was accepted does not vanish without a
        word."""
        ended = e.TurnEnded(turn.id, error=f"the prompt was not sent: {error}")
        self.record(e.PromptUnqueued(turn.id))
        self.record(e.TurnStarted(turn.id, turn.content))
        self.record(ended)
        return ended

    def _record(self, events: list[e.Event], size: int) -> None:
        """The only way into the session's state."""
        if self._opening:
            self.open()
        if self._closed:
            return
        if self._quota is not None and not (events := self._quota.within(events)):
            return
        self._stamp(events)
        if self._recorder is not None:
            self._call(self._recorder, events)
        fold(self.state, events)
        for listen in self.listeners:
            for event in events:
                self._call(listen, event)
        if not events[0].replay:  # history comes one by one
            self._pass_on(events, size)
        if self.watch is not None:
            self._call(self.watch, events)

    def _pass_on(self, events: list[e.Event], size: int) -> None:
        # The turn's last event goes to it by `finish`.
        if self.turn is not None:
            self.turn.push(events, size)
        for stream in self._streams:
            stream.push(events, size)

    def _stamp(self, events: list[e.Event]) -> None:
        at = time.time()
        for seq, event in enumerate(events, self._seq + 1):
            event.seq = seq
            event.at = at
        self._seq += len(events)

    def _call(self, listen: Callable[[Heard], None], heard: Heard) -> None:
        try:
            listen(heard)
        except (Exception, asyncio.CancelledError):
            # A listener must not be able to break the conversation.
            logger.exception("a listener failed")

    def record_work(self, event: e.Event) -> None:
        """Record what happens on this machine for the agent: that is progress too."""
        self.touch()
        if self._retelling is not None:
            self._record_news(self._retelling.works())
        self.record(event)

    def record_told(self, events: list[e.Event], size: int) -> None:
        """Record what the agent tells, which came in `size` bytes."""
        if not events:
            return
        self.touch()
        if not self.listeners and self.replay == "no":
            self._record_together(events, size)
            return
        # A listener wants the state after each, and what is history is found one by one.
        for event in events:
            if news := self._news_in(event, size):
                self._record_news(news)
                size = 0  # it came in once

    def _record_together(self, events: list[e.Event], size: int) -> None:
        if _DOUBTFUL.isdisjoint(map(type, events)):
            self._record(events, size)
            return
        for run in _up_to_what_depends(events):
            if told := [
                each for each in run if type(each) not in _DOUBTFUL or self._believed(each)
            ]:
                self._record(told, size)
                size = 0

    def _news_in(self, event: e.Event, size: int) -> list[Told]:
        if type(event) in _DOUBTFUL and not self._believed(event):
            return []
        if self.replay == "no" or not event.is_history:
            return [(event, size)]
        self.retold += 1
        if self.delivery is not None:
            self.delivery.hear(event)
        if self._retelling is not None:
            return self._retelling.hear(event, size)
        event.replay = True
        return [(event, size)]

    def _record_news(self, news: list[Told]) -> None:
        if self._retelling is not None and self._retelling.over:
            self._retelling, self.replay = None, "no"
        for event, size in news:
            self._record([event], size)

    # ── history that is sent again ────────────────────────────────────────────────────────────

    def reopening(self) -> None:
        """The agent is going to open this session again."""
        self.replay, self._retelling = "skip", Retelling(self.state)

    def answered(self, way: Literal["load", "resume", "fork"]) -> None:
        """The agent has opened it."""
        if self._retelling is not None:
            self._retelling.answered(way)

    def settled(self) -> None:
        """The agent was silent for a while after that."""
        if self._retelling is not None:
            self._record_news(self._retelling.settled())

    def prompted(self, prompt: str) -> None:
        """A prompt is about to go out."""
        if self._retelling is not None:
            self._record_news(self._retelling.prompted(prompt))
        else:
            self.replay = "no"

    def end_replay(self) -> None:
        """The agent works, or has ended: nothing that follows is history."""
        if self._retelling is not None:
            self._record_news(self._retelling.ended())
        self.replay = "no"

    def _believed(self, event: e.Event) -> bool:
        if isinstance(event, e.SubagentEvent):
            told = event.event
            return not (isinstance(told, _TOLD_TERMINALS) and self._runs_here(told.terminal_id))
        if isinstance(event, e.ActivityChanged) and event.activity not in (UNSET, "idle"):
            self.end_replay()  # who works tells no history
        if isinstance(event, e.ConfigChanged):
            event.options = with_own(event.options, self.state.config_options)
        if isinstance(event, e.UserMessage):
            return self.replay != "no" or self.is_repeated is None or not self.is_repeated(event)
        return not (isinstance(event, _TOLD_TERMINALS) and self._runs_here(event.terminal_id))

    def _runs_here(self, terminal_id: str) -> bool:
        """What a terminal of ours prints, we know better than the agent; also of one that has left
        the state."""
        terminal = self.state.terminals.get(terminal_id)
        return is_terminal_id(terminal_id) or (terminal is not None and terminal.ours)

    def close(self, reason: str) -> None:
        """The last event, if the session was ever open; nothing is recorded behind it."""
        self._opening.clear()
        if self._begun and self.state.open:
            self.end_replay()
            self.record(e.SessionClosed(reason))
        self._closed = True
        for stream in self._streams:
            stream.close()
        self._streams.clear()


def _up_to_what_depends(events: Iterable[e.Event]) -> Iterator[list[e.Event]]:
    """Runs that end before a change of settings, or a user's message: what those mean depends on
    the state before them."""
    run: list[e.Event] = []
    for event in events:
        if run and type(event) in (e.ConfigChanged, e.UserMessage):
            yield run
            run = []
        run.append(event)
    yield run


def _told_again(replaying: bool, history: SessionState | None) -> Literal["keep", "skip", "no"]:
    if not replaying:
        return "no"
    return "keep" if history is None or not history.entry_count else "skip"
