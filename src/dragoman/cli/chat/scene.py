"""A session as it is shown: its events, folded once more at the pace of the one who looks."""

from __future__ import annotations

import msgspec

from dragoman.cli.feed import Feed
from dragoman.cli.terminal import TerminalView
from dragoman.client.session import Session
from dragoman.errors import SlowConsumer
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


class Scene:
    """One session, from its first event on."""

    def __init__(self, view: TerminalView) -> None:
        self._session: Session | None = None
        self._feed = Feed()
        self._state = SessionState()
        self._view = view

    def hear(self, session: Session, event: e.Event) -> None:
        """Of other sessions, such as one that was left for this one, nothing is shown."""
        if self._session is None and isinstance(event, e.SessionOpened):
            self._session = session
        if session is self._session:
            self._feed.push(session, event)

    async def wait(self) -> None:
        """Until there is something to show."""
        await self._feed.wait()

    def take(self) -> list[e.Event]:
        """What is to be shown next. Raises SlowConsumer, once, when some of it was lost."""
        try:
            return self._feed.take()
        except SlowConsumer:
            self._feed = Feed()
            if self._session is not None:
                now = msgspec.to_builtins(self._session.state)
                self._state = msgspec.convert(now, SessionState)
            raise

    def show(self, event: e.Event) -> None:
        reduce(self._state, event)
        self._view.show(event, self._state)
