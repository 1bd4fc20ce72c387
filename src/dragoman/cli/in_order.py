"""Questions in their place: none is asked before what led to it has been shown.

What is shown was stored first, so it comes a moment after it happened; a question must not overtake
it.
"""

from __future__ import annotations

import asyncio

from dragoman.cli.ask import TerminalAsker
from dragoman.host.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions import PermissionRequest
from dragoman.session import events as e


class InOrder:
    """The asker of a session that is shown: `shown` is told of every event."""

    def __init__(self, asker: TerminalAsker) -> None:
        self._asker = asker
        self._shown: dict[str, asyncio.Event] = {}

    def shown(self, event: e.Event) -> None:
        match event:
            case e.PermissionRequested() | e.ElicitationRequested():
                self._place(event.request_id).set()
            case e.PermissionSettled() | e.ElicitationSettled():
                self._shown.pop(event.request_id, None)
            case _:
                pass

    async def request_permission(self, request: PermissionRequest) -> str | None:
        await self._place(request.request_id).wait()
        return await self._asker.request_permission(request)

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        await self._place(request.request_id).wait()
        return await self._asker.create_elicitation(request)

    def _place(self, request_id: str) -> asyncio.Event:
        return self._shown.setdefault(request_id, asyncio.Event())
