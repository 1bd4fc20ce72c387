"""Questions in their place: none is asked before what led to it has been shown.

What is shown was stored first, so it comes a moment after it happened; a question must not overtake
it. One that was answered in another window is taken back, and that is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from dragoman.cli.ask.asker import TerminalAsker
from dragoman.cli.render.event_text import answered_elsewhere
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.request import PermissionRequest
from dragoman.session import events as e
from dragoman.session.facts import PermissionOption


class InOrder:
    """The asker of a session that is shown: `shown` is told of every event."""

    def __init__(self, asker: TerminalAsker, tell: Callable[[str], None]) -> None:
        self._asker = asker
        self._tell = tell
        self._shown: dict[str, asyncio.Event] = {}
        self._taken_back: dict[str, Sequence[PermissionOption]] = {}

    def shown(self, event: e.Event) -> None:
        match event:
            case e.PermissionRequested() | e.ElicitationRequested():
                self._place(event.request_id).set()
            case e.PermissionSettled():
                self._settled(event.request_id, event.option_id)
            case e.ElicitationSettled():
                self._settled(event.request_id, None if event.action == "cancel" else event.action)
            case _:
                pass

    def _settled(self, request_id: str, answer: str | None) -> None:
        """Without an answer it was cancelled, and whoever did that knows."""
        self._shown.pop(request_id, None)
        options = self._taken_back.pop(request_id, None)
        if options is not None and answer is not None:
            self._tell(answered_elsewhere(options, answer))

    async def request_permission(self, request: PermissionRequest) -> str | None:
        await self._place(request.request_id).wait()
        with self._taking_back(request.request_id, request.options):
            return await self._asker.request_permission(request)

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        if request.session_id is None:
            return await self._asker.create_elicitation(request)  # nothing is shown before it
        await self._place(request.request_id).wait()
        with self._taking_back(request.request_id, ()):
            return await self._asker.create_elicitation(request)

    @contextmanager
    def _taking_back(self, request_id: str, options: Sequence[PermissionOption]) -> Generator[None]:
        try:
            yield
        except asyncio.CancelledError:
            self._taken_back[request_id] = options
            raise

    def _place(self, request_id: str) -> asyncio.Event:
        return self._shown.setdefault(request_id, asyncio.Event())
