"""The interface of every view of a turn, and the headings between turns."""

from __future__ import annotations

import sys
from typing import Protocol

from dragoman.cli.render.style import Style, can_draw
from dragoman.cli.render.wrap import folded
from dragoman.session import events as e
from dragoman.session.state import SessionState


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


def heading(prefix: str, text: str, style: Style, *codes: str) -> str:
    """Lines of their own, with room above them."""
    first, *more = text.split("\n")
    lines = _laid_out(first, prefix)
    lines += [line for each in more for line in _laid_out(each, " " * len(prefix))]
    return "\n".join(["", *(style(line, *codes) for line in lines), ""])


def _laid_out(line: str, prefix: str) -> list[str]:
    return folded(line, prefix) if can_draw(sys.stdout) else [f"{prefix}{line}"]
