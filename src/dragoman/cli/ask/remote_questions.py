"""Questions of a session that another process runs, asked at this terminal too.

The first answer wins, wherever it is given: a question that was settled meanwhile is taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from dragoman.cli.ask.asker import TerminalAsker, request_of
from dragoman.cli.render.event_text import answered_elsewhere
from dragoman.errors import CommandRefused, DragomanError
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.always_rules import Option, choose_option
from dragoman.host.permissions.request import PermissionRequest
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.facts import PermissionOption


class Refuser:
    """Answers in the place of a person who is not to be asked: with a no, where there is one."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        options = [Option(each.id, each.name, each.kind) for each in request.options]
        return choose_option(options, "deny")

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        return ElicitationAnswer("decline")


class Answers:
    """Asks, and sends what was answered; `tell` is given a sentence when something got between.

    `hear` is told of every event when it comes, `see` when it is shown: whoever shows events waits
    while a question is open, and would never come to the one that settles it.
    """

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        agent: str,
        asker: TerminalAsker | Refuser,
        tell: Callable[[str], None],
    ) -> None:
        self._hub = hub
        self._session_id = session_id
        self._agent = agent
        self._asker = asker
        self._tell = tell
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._settled: set[str] = set()
        self._taken_back: set[str] = set()
        self._options: dict[str, list[PermissionOption]] = {}

    def hear(self, events: Iterable[e.Event]) -> None:
        for event in events:
            if isinstance(event, e.PermissionSettled | e.ElicitationSettled):
                self._settled.add(event.request_id)
                if self._take_back(event.request_id):
                    self._taken_back.add(event.request_id)

    def see(self, event: e.Event) -> None:
        match event:
            case e.PermissionRequested() if event.request_id not in self._settled:
                self._options[event.request_id] = event.options
                self._ask(event.request_id, self._permission(event))
            case e.ElicitationRequested() if event.request_id not in self._settled:
                self._ask(event.request_id, self._elicitation(event))
            case e.PermissionSettled():
                self._tell_of(event.request_id, event.option_id)
            case e.ElicitationSettled():
                self._tell_of(event.request_id, None if event.action == "cancel" else event.action)
            case _:
                pass

    def close(self) -> None:
        for request_id in list(self._asking):
            self._take_back(request_id)

    def _ask(self, request_id: str, asking: Coroutine[Any, Any, None]) -> None:
        self._asking[request_id] = asyncio.create_task(asking)

    def _tell_of(self, request_id: str, answer: str | None) -> None:
        """Without an answer it was cancelled, which is told anyway."""
        self._settled.discard(request_id)
        options = self._options.pop(request_id, [])
        if request_id in self._taken_back and answer is not None:
            self._tell(answered_elsewhere(options, answer))
        self._taken_back.discard(request_id)

    def _take_back(self, request_id: str) -> bool:
        """Whether it was still being asked; what was answered here is on its way."""
        task = self._asking.pop(request_id, None)
        if task is None or task.done() or task in self._sending:
            return False
        task.cancel()
        return True

    async def _permission(self, event: e.PermissionRequested) -> None:
        request = request_of(
            event, event.request_id, session_id=self._session_id, agent=self._agent
        )
        option_id = await self._asker.request_permission(request)
        if option_id is not None:
            await self._send(c.Answer(event.request_id, option_id))

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
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        try:
            await self._hub.send(self._session_id, command)
        except CommandRefused as error:
            self._tell("another window was quicker" if error.code == "settled" else str(error))
        except DragomanError as error:
            self._tell(str(error))
