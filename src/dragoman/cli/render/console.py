"""The output of a run: standard output, standard error, and the terminal, if there is one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import tell
from dragoman.cli.render.event_text import Asides
from dragoman.cli.render.plain import PlainView, SimpleView
from dragoman.cli.render.status_line import UNANSWERED, Status
from dragoman.cli.render.style import BOLD, CYAN, Style, can_draw, wants_colour
from dragoman.cli.render.view import AnswerView, JsonView, NoView, Stage, View, Writer, heading
from dragoman.safe_text import sanitise
from dragoman.session import events as e
from dragoman.session.state import SessionState

if TYPE_CHECKING:
    from dragoman.cli.render.terminal_view import TerminalView
    from dragoman.store.records import SessionRecord

WAITING = "waiting for the agent"


class Console(Stage):
    """`output` is text, simple, jsonl, events, result, or answers, which prints nothing."""

    def __init__(self, output: str) -> None:
        self.style = Style(colour=wants_colour(sys.stdout))
        self.status = _status()
        self.writer: Writer = self.status if can_draw(sys.stdout) else _Flushed()
        self.terminal_view: TerminalView | None = None
        """The view, if it draws on a terminal."""
        self.view = self._view(output)
        self._asides = Asides(of_silence=output == "text")

    def _view(self, output: str) -> View:
        match output:
            case "simple":
                return SimpleView(self.writer, on_screen=sys.stdout.isatty())
            case "text" if can_draw(sys.stdout):
                from dragoman.cli.render.terminal_view import TerminalView  # pipes do without

                self.terminal_view = TerminalView(self.status, self.style)
                return self.terminal_view
            case "text":
                return PlainView(self.writer)
            case "events":
                from dragoman.cli.render.json_output import EventLines  # most runs do without

                return EventLines(sys.stdout.buffer)
            case "result":
                from dragoman.cli.render.json_output import ResultView

                return ResultView()
            case "answers":
                return AnswerView()
            case _:
                return NoView()

    def begin(self, record: SessionRecord, last_seq: int) -> None:
        """The session is open; what is shown follows its event `last_seq`."""
        if isinstance(self.view, JsonView):
            self.view.begin(record, last_seq)

    def show(self, event: e.Event, state: SessionState) -> None:
        """Show the event, and what is known about it apart from the answer."""
        self.view.show(event, state)
        if self.terminal_view is not None:
            return  # which tells that itself, in its place
        self.status.follow(event)
        self.status.doing(UNANSWERED if state.pending else WAITING)
        if (sentence := self._asides.sentence(event)) is not None:
            self.tell(sentence)

    def asked(self, text: str) -> None:
        self.view.close()
        self.writer.write(heading("› ", sanitise(text), self.style, BOLD, CYAN))

    def remark(self, sentence: str, *, failed: bool = False) -> None:
        self.tell(sentence)

    def tell(self, sentence: str) -> None:
        """A line on standard error, which may be the same terminal."""
        self.status.wipe()
        if sys.stdout.isatty() and sys.stderr.isatty():
            self.view.close()
        tell(sentence)


class _Flushed:
    """Standard output that is not a terminal: a reader of a pipe sees each piece at once."""

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _status() -> Status:
    """Drawn on whichever of our outputs is a terminal."""
    for out in (sys.stdout, sys.stderr):
        if can_draw(out):
            return Status(out, visible=True, style=Style(colour=wants_colour(out)))
    return Status(sys.stderr, visible=False)
