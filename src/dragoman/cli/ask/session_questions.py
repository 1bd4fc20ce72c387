"""Asks a session's questions at this terminal, based on its stored events.

The same for every session, wherever it runs: a question is asked once its event was shown, and the
answer goes through the hub to the process that runs the session, which may be this one. The first
answer wins: a question that was settled elsewhere is withdrawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from dragoman.cli.ask.asker import Choice, request_of
from dragoman.cli.render.event_text import answered_elsewhere
from dragoman.errors import CommandRefused, DragomanError
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e

Asked: TypeAlias = e.PermissionRequested | e.ElicitationRequested
_SETTLED = (e.PermissionSettled, e.ElicitationSettled)


class Asker(Protocol):
    """Asks one person one question."""

    async def request_permission(self, request: PermissionRequest) -> Choice | None:
        """What was chosen; None for no answer."""
        ...

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer: ...


class ConnectionAsker:
    """Asks what an agent wants to know outside any session, while it signs in for example: there is
    no record to ask from."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        if request.session_id is not None:
            await asyncio.Event().wait()  # its session asks it, and ends this with the answer
        return await self._asker.create_elicitation(request)


class SessionQuestions:
    """Asks a person and sends the answers; `tell` shows a sentence about what came in between.

    With `must_answer` there may be nobody else to answer: then no answer is a refusal.
    """

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        agent: str,
        asker: Asker,
        tell: Callable[[str], None],
        *,
        must_answer: bool,
    ) -> None:
        self.fail: Callable[[BaseException], None] = _raise
        self._hub = hub
        self._session_id = session_id
        self._agent = agent
        self._asker = asker
        self._tell = tell
        self._must_answer = must_answer
        self._open: dict[str, Asked] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._answered: set[str] = set()

    def see(self, event: e.Event) -> None:
        match event:
            case e.PermissionRequested() | e.ElicitationRequested():
                self._open[event.request_id] = event
            case e.PermissionSettled():
                self._settled(event.request_id, event.option_id)
            case e.ElicitationSettled():
                self._settled(event.request_id, None if event.action == "cancel" else event.action)
            case _:
                pass

    def ask(self) -> None:
        """What is open and was not asked yet, nor is the same as something that is open."""
        for request_id, event in self._open.items():
            if request_id not in self._asking and not self._waits_for_another(event):
                task = self._asking[request_id] = asyncio.create_task(self._ask(event))
                task.add_done_callback(self._asked)

    def _waits_for_another(self, event: Asked) -> bool:
        return isinstance(event, e.PermissionRequested) and event.same_as in self._open

    def close(self) -> None:
        """Take back what is asked."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()

    def _settled(self, request_id: str, answer: str | None) -> None:
        """Without an answer it was cancelled, and the person who did that knows."""
        event, task = self._open.pop(request_id, None), self._asking.pop(request_id, None)
        if request_id in self._answered:
            self._answered.discard(request_id)
        elif task is not None:
            task.cancel()
            if answer is not None:
                options = event.options if isinstance(event, e.PermissionRequested) else ()
                self._tell(answered_elsewhere(options, answer))

    def _asked(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    # ── one question ──────────────────────────────────────────────────────────────────────────

    async def _ask(self, event: Asked) -> None:
        """Until an answer was taken, or the question is settled without us."""
        answer = await self._answer(event)
        while answer is not None and not await self._send(answer):
            self._answered.discard(event.request_id)
            answer = await self._answer(event)

    async def _answer(self, event: Asked) -> c.Command | None:
        """What the person answers; None when nobody does, or needs to."""
        answering = asyncio.create_task(self._command(event))
        settling = asyncio.create_task(self._until_settled(event))
        try:
            await asyncio.wait((answering, settling), return_when=asyncio.FIRST_COMPLETED)
            command = answering.result() if answering.done() else None
            if command is not None:
                self._answered.add(event.request_id)
            return command
        finally:
            answering.cancel()
            settling.cancel()

    async def _until_settled(self, event: Asked) -> None:
        """Nothing is shown while a question is open, so the settlement has a reader of its own."""
        request_id = event.request_id.encode()
        try:
            async for page in self._hub.watch(self._session_id, event.seq):
                for stored in page:
                    if request_id in stored.body and isinstance(stored.decode(), _SETTLED):
                        return
        except DragomanError:
            return  # the follower of the session gets the same error

    async def _command(self, event: Asked) -> c.Command | None:
        if isinstance(event, e.PermissionRequested):
            return await self._permission(event)
        try:
            answer = await self._asker.create_elicitation(event.as_kind(ElicitationRequest))
        except OSError:  # the terminal has gone away
            if not self._must_answer:
                return None
            answer = ElicitationAnswer("cancel")
        return c.AnswerElicitation(event.request_id, answer.action, answer.content)

    async def _permission(self, event: e.PermissionRequested) -> c.Command | None:
        request = request_of(
            event, event.request_id, session_id=self._session_id, agent=self._agent
        )
        try:
            choice = await self._asker.request_permission(request)
        except OSError:  # the terminal has gone away
            choice = None
        if choice is not None:
            return c.AnswerPermission(event.request_id, choice.option_id, choice.confirmed)
        return c.AnswerPermission(event.request_id, None) if self._must_answer else None

    async def _send(self, command: c.Command) -> bool:
        """Whether it need not be asked again."""
        try:
            await self._hub.send(self._session_id, command)
        except CommandRefused as error:
            settled = "already answered in another window"
            self._tell(settled if error.code == "settled" else str(error))
            return error.code != "invalid"
        except DragomanError as error:
            self._tell(str(error))
        return True


class QuestionsElsewhere:
    """Asks nobody, but says that the session waits for an answer, and how to give one."""

    def __init__(self, session_id: str, tell: Callable[[str], None]) -> None:
        self.fail: Callable[[BaseException], None] = lambda error: None
        self._session_id = session_id
        self._tell = tell

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionRequested | e.ElicitationRequested):
            how = f"give one with `dragoman sessions answer {self._session_id}`"
            self._tell(f"the session is waiting for an answer; {how}")

    def ask(self) -> None:
        pass


def _raise(error: BaseException) -> None:
    raise error
