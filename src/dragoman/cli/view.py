"""What every way of showing a turn has in common."""

from __future__ import annotations

from typing import Protocol

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
