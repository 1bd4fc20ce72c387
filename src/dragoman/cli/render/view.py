"""The interface of every view of a turn, the stages that views are shown on, and headings."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.render.event_text import outcome_words
from dragoman.cli.render.style import Style, can_draw
from dragoman.cli.render.wrap import folded
from dragoman.session import events as e
from dragoman.session.state import SessionState

if TYPE_CHECKING:
    from dragoman.cli.render.status_line import Status


class View(Protocol):
    """Shows a turn, event by event; `state` is the session as it was right after the event."""

    def show(self, event: e.Event, state: SessionState) -> None: ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object: ...


class NoView:
    """Shows nothing: the frames speak for themselves."""

    def show(self, event: e.Event, state: SessionState) -> None:
        pass

    def close(self) -> None:
        pass


class Stage(ABC):
    """Where sessions are shown: events in a view, prompts above them, remarks below."""

    status: Status

    def present(self, event: e.Event, state: SessionState, *, known: bool = False) -> None:
        """Show an event; one that is `known` without a heading or a remark."""
        if not known:
            self._announce(event)
        self.show(event, state)
        if not known and isinstance(event, e.TurnEnded) and (words := outcome_words(event)):
            self.remark(words, failed=event.error is not None)

    def _announce(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted():
                self.asked(event.text)
            case e.PromptQueued(steer=None | "waiting"):
                self.remark(f"queued: {event.text}")
            case e.Steered() if event.content:
                self._said_meanwhile(event)
            case _:
                pass

    def _said_meanwhile(self, event: e.Steered) -> None:
        if event.outcome in ("delivered", "started"):
            self.asked(event.text)
        else:
            self.remark(steer_words(event), failed=True)

    @abstractmethod
    def asked(self, text: str) -> None:
        """What someone asked, in another window or before."""

    @abstractmethod
    def show(self, event: e.Event, state: SessionState) -> None:
        """The event itself."""

    @abstractmethod
    def remark(self, sentence: str, *, failed: bool = False) -> None:
        """A sentence of ours about the session."""


def steer_words(event: e.Steered) -> str:
    """What became of a steer that was not delivered, and what was said."""
    what = "not delivered" if event.outcome == "refused" else "perhaps not delivered"
    why = f" ({event.reason})" if event.reason else ""
    return f"{what}{why}: {event.text}"


def heading(prefix: str, text: str, style: Style, *codes: str) -> str:
    """Lines of their own, with room above them."""
    first, *more = text.split("\n")
    lines = _laid_out(first, prefix)
    lines += [line for each in more for line in _laid_out(each, " " * len(prefix))]
    return "\n".join(["", *(style(line, *codes) for line in lines), ""])


def _laid_out(line: str, prefix: str) -> list[str]:
    return folded(line, prefix) if can_draw(sys.stdout) else [f"{prefix}{line}"]
