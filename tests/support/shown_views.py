"""What a view has shown, after events."""

from __future__ import annotations

import io

from dragoman.cli.render.event_text import Asides
from dragoman.cli.render.plain import PlainView, SimpleView
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import Style
from dragoman.cli.render.terminal_view import TerminalView
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


class Shown:
    """Shows events the way a run does, and keeps what came out."""

    def __init__(self, kind: str, *, colour: bool = True) -> None:
        self.out = io.StringIO()
        self.state = SessionState()
        status = Status(self.out, visible=False)
        self.view = {
            "simple": lambda: SimpleView(self.out, on_screen=True),
            "plain": lambda: PlainView(self.out),
            "terminal": lambda: TerminalView(status, Style(colour=colour)),
            "chat": lambda: TerminalView(status, Style(colour=colour), in_chat=True),
        }[kind]()
        self.asides: list[str] = []
        self._asides = Asides()

    def show(self, *events: e.Event) -> str:
        for event in events:
            event.seq = self.state.last_seq + 1
            reduce(self.state, event)
            self.view.show(event, self.state)
            self.asides += filter(None, [self._asides.sentence(event)])
        return self.out.getvalue()

    def end(self) -> str:
        self.view.close()
        return self.out.getvalue()


def shown(kind: str, *events: e.Event) -> str:
    view = Shown(kind)
    view.show(*events)
    return view.end()
