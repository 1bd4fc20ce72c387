"""Questions of a session that another process runs, asked at this terminal too.

The first answer wins, wherever it is given: a question that was settled meanwhile is taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dragoman.cli.ask import TerminalAsker
from dragoman.errors import DragomanError
from dragoman.host.elicitation import ElicitationRequest
from dragoman.host.permissions import PermissionRequest
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e


class Answers:
    """Show it every event; it asks, and sends what was answered. `tell` is given complaints."""

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        agent: str,
        asker: TerminalAsker,
        tell: Callable[[str], None],
    ) -> None:
        self._hub = hub
        self._session_id = session_id
        self._agent = agent
        self._asker = asker
        self._tell = tell
        self._asking: dict[str, asyncio.Task[None]] = {}

    def see(self, event: e.Event) -> None:
        match event:
            case e.PermissionRequested():
                self._ask(event.request_id, self._permission(event))
            case e.ElicitationRequested():
                self._ask(event.request_id, self._elicitation(event))
            case e.PermissionSettled() | e.ElicitationSettled():
                self._withdraw(event.request_id)
            case _:
                pass

    def close(self) -> None:
        for request_id in list(self._asking):
            self._withdraw(request_id)

    def _ask(self, request_id: str, asking: Coroutine[Any, Any, None]) -> None:
        self._asking[request_id] = asyncio.create_task(asking)

    def _withdraw(self, request_id: str) -> None:
        task = self._asking.pop(request_id, None)
        if task is not None and not task.done():
            task.cancel()

    async def _permission(self, event: e.PermissionRequested) -> None:
        option_id = await self._asker.request_permission(self._request(event))
        if option_id is not None:
            await self._send(c.Answer(event.request_id, option_id))

    def _request(self, event: e.PermissionRequested) -> PermissionRequest:
        return PermissionRequest(
            request_id=event.request_id,
            session_id=self._session_id,
            agent=self._agent,
            operation=event.operation,
            options=tuple(event.options),
            title=event.title,
            paths=tuple(event.paths),
            argv=None if event.argv is None else tuple(event.argv),
            # What the agent asks for is a claim; what we ask ourselves is about to be done.
            claimed=event.tool_call_id is not None,
            tool_call_id=event.tool_call_id,
            content=tuple(event.content),
            always=event.description,
        )

    async def _elicitation(self, event: e.ElicitationRequested) -> None:
        request = ElicitationRequest(
            request_id=event.request_id,
            message=event.message,
            mode=event.mode,
            schema=event.schema,
            url=event.url,
        )
        answer = await self._asker.create_elicitation(request)
        command = c.AnswerElicitation(event.request_id, answer.action, answer.content)
        await self._send(command)

    async def _send(self, command: c.Command) -> None:
        try:
            await self._hub.send(self._session_id, command)
        except DragomanError as error:
            self._tell(str(error))
