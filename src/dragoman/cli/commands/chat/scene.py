"""A session as it is shown: its events, folded once more at the pace of the one who looks."""

from __future__ import annotations

import msgspec

from dragoman.cli.render.terminal_view import TerminalView
from dragoman.cli.run.feed import Feed
from dragoman.client.session import Session
from dragoman.errors import SlowConsumer
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


class Scene:
    """One session; `state` is what it was before the first event that is heard."""

    def __init__(self, view: TerminalView, state: SessionState) -> None:
        self._session: Session | None = None
        self._feed = Feed()
        self._state = state
        self._view = view

    def hear(self, session: Session, event: e.Event) -> None:
        self._session = session
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
        if not event.replay:
            self._view.show(event, self._state)
