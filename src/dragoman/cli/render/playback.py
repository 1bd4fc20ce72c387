"""Shows a recorded session again, from the store or a file, with the views of a live turn."""

from __future__ import annotations

import sys

from dragoman.cli.render import plain, terminal_view
from dragoman.cli.render.event_text import called, shown
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import BOLD, CYAN, DIM, RED, YELLOW, Style, can_draw, wants_colour
from dragoman.cli.render.view import Stage, View, heading
from dragoman.cli.streams import terminal_width
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord


class Playback(Stage):
    """One view a session, and headings that say whose turn it is.

    With `full`, all of what commands and tool calls brought back.
    """

    def __init__(self, status: Status, *, full: bool = False) -> None:
        self.status = status
        self._full = full
        self._style = Style(colour=wants_colour(sys.stdout))
        self._views: dict[str, View] = {}
        self._on = ""
        self._retold: list[str] = []
        self._introduced = False

    def introduce(self, record: SessionRecord) -> None:
        """The session that is shown, the only one."""
        self._introduced = True
        where = record.cwd or ("" if record.imported is None else record.imported.cwd)
        words = f"{record.id}  {called(record.name, record.title)}".rstrip()
        for line, code in ((words, BOLD), (f"{record.agent} in {where}", DIM)):
            self.status.write(self._style(single_line(line, terminal_width()), code) + "\n")

    def present(self, event: e.Event, state: SessionState, *, known: bool = False) -> None:
        if self._introduced and not _is_news(event):
            return
        self._enter(state.session_id)
        if isinstance(event, e.UserMessage) and state.turn is None:
            self._retold.append(shown(event.content))  # it comes in pieces
            return
        self._show_retold()
        super().present(event, state, known=known)

    def asked(self, text: str) -> None:
        self._heading("› ", sanitise(text), BOLD, CYAN)

    def show(self, event: e.Event, state: SessionState) -> None:
        self._view.show(event, state)
        # The other kind of view says so itself.
        if isinstance(event, e.TurnEnded) and isinstance(self._view, plain.PlainView):
            self._ended_early(event)

    def _ended_early(self, event: e.TurnEnded) -> None:
        if event.error is None and event.stop_reason not in ("cancelled", "end_turn", None):
            self.remark(f"the turn ended early: {single_line(event.stop_reason, 80)}")

    def remark(self, sentence: str, *, failed: bool = False) -> None:
        self._heading("", sanitise(sentence), RED if failed else YELLOW)

    def close(self) -> None:
        for view in self._views.values():
            view.close()

    def _announce(self, event: e.Event) -> None:
        match event:
            case e.SessionOpened(continuity="reset"):
                self.remark("the agent had forgotten the session")
            case e.SessionOpened():
                where = single_line(f"session {event.session_id} in {event.cwd}", 200)
                self._heading("", where, BOLD)
            case e.PromptQueued():
                pass  # it stands above its turn, or nothing came of it
            case _:
                super()._announce(event)

    def _show_retold(self) -> None:
        """What was asked before the session was known here, as the agent remembers it."""
        if self._retold:
            asked = "".join(self._retold)
            self._retold.clear()
            self.asked(asked)

    @property
    def _view(self) -> View:
        return self._views[self._on]

    def _enter(self, session_id: str) -> None:
        if session_id != self._on and self._on in self._views:
            self._view.close()
        self._on = session_id
        if session_id not in self._views:
            self._views[session_id] = self._new_view()

    def _new_view(self) -> View:
        if can_draw(sys.stdout):
            lines = None if self._full else terminal_view.OUTPUT_LINES
            return terminal_view.TerminalView(self.status, self._style, lines)
        return plain.PlainView(self.status, None if self._full else plain.OUTPUT_LINES)

    def _heading(self, prefix: str, text: str, *codes: str) -> None:
        self._view.close()
        self.status.write(heading(prefix, text, self._style, *codes))


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
