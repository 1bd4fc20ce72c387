"""Shows a recorded session again, from the store or a file, with the views of a live turn."""

from __future__ import annotations

import sys

from dragoman.cli.render import plain, terminal_view
from dragoman.cli.render.event_text import called, shown
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import BOLD, CYAN, DIM, RED, YELLOW, Style, can_draw, wants_colour
from dragoman.cli.render.view import View, heading
from dragoman.cli.streams import terminal_width
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord
from dragoman.testing.recorded_events import RecordedEvent


class Stage:
    """One view a session, and headings that say whose turn it is.

    With `full`, all of what commands and tool calls brought back.
    """

    def __init__(self, status: Status, *, full: bool = False) -> None:
        self._status = status
        self._full = full
        self._style = Style(colour=wants_colour(sys.stdout))
        self._views: dict[str, View] = {}
        self._on = ""
        self._retold: list[str] = []

    def show(self, happened: RecordedEvent) -> None:
        event, state = happened.event, happened.state
        if event.replay:
            return
        view = self._enter(state.session_id)
        if isinstance(event, e.UserMessage) and state.turn is None:
            self._retold.append(shown(event.content))  # it comes in pieces
            return
        self._tell_retold(view)
        self._head(view, event)
        view.show(event, state)
        if isinstance(event, e.TurnEnded):
            self._foot(view, event)

    def _head(self, view: View, event: e.Event) -> None:
        match event:
            case e.SessionOpened(continuity="reset"):
                self._heading(view, "", "the agent did not remember the session any more", YELLOW)
            case e.SessionOpened():
                where = single_line(f"session {event.session_id} in {event.cwd}", 200)
                self._heading(view, "", where, BOLD)
            case e.TurnStarted():
                self._heading(view, "› ", sanitise(event.text), BOLD, CYAN)
            case _:
                pass

    def _foot(self, view: View, event: e.TurnEnded) -> None:
        match event:
            case e.TurnEnded(error=str(error)):
                self._heading(view, "", f"the turn failed: {sanitise(error)}", RED)
            case e.TurnEnded(stop_reason="cancelled"):
                self._heading(view, "", "the turn was cancelled", YELLOW)
            case e.TurnEnded(stop_reason="end_turn" | None):
                pass
            case _ if isinstance(view, plain.PlainView):  # the other kind says so itself
                reason = single_line(event.stop_reason or "", 80)
                self._heading(view, "", f"the turn ended early: {reason}", YELLOW)
            case _:
                pass

    def _tell_retold(self, view: View) -> None:
        """What was asked before the session was known here, as the agent remembers it."""
        if self._retold:
            asked = "".join(self._retold)
            self._retold.clear()
            self._heading(view, "› ", sanitise(asked), BOLD, CYAN)

    def title(self, words: str, remark: str) -> None:
        """What is told here, and a word about it."""
        self._status.write(self._style(single_line(words, terminal_width()), BOLD) + "\n")
        self._status.write(self._style(single_line(remark, terminal_width()), DIM) + "\n")

    def close(self) -> None:
        for view in self._views.values():
            view.close()

    def _enter(self, session_id: str) -> View:
        if session_id != self._on and self._on in self._views:
            self._views[self._on].close()
        self._on = session_id
        if session_id not in self._views:
            self._views[session_id] = self._view()
        return self._views[session_id]

    def _view(self) -> View:
        if can_draw(sys.stdout):
            lines = None if self._full else terminal_view.OUTPUT_LINES
            return terminal_view.TerminalView(self._status, self._style, lines)
        return plain.PlainView(self._status, None if self._full else plain.OUTPUT_LINES)

    def _heading(self, view: View, prefix: str, text: str, *codes: str) -> None:
        view.close()
        self._status.write(heading(prefix, text, self._style, *codes))


class Retelling:
    """Give it the events of one session in order."""

    def __init__(self, stage: Stage, record: SessionRecord) -> None:
        self._stage = stage
        self._state = SessionState()
        self._told_at = 0.0
        words = called(record.name, record.title)
        where = record.cwd or ("" if record.imported is None else record.imported.cwd)
        stage.title(f"{record.id}  {words}".rstrip(), f"{record.agent} in {where}")

    def tell(self, event: e.Event) -> None:
        reduce(self._state, event)
        self._told_at = event.at
        # History that an agent told us is all there is of it here.
        event.replay = False
        if _is_news(event):
            self._stage.show(RecordedEvent(self._state, event))

    def pause_before(self, event: e.Event) -> float:
        """How long it took then; between two turns somebody was away, and nobody waits for that."""
        return 0.0 if self._state.turn is None else event.at - self._told_at


def _is_news(event: e.Event) -> bool:
    """That somebody came back to the session is none, unless the agent had forgotten it; nor is
    what could have been typed then."""
    match event:
        case e.SessionOpened():
            return event.continuity == "reset"
        case e.CommandsChanged():
            return False
        case _:
            return True
