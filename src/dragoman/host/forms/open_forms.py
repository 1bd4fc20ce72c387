"""The forms and addresses of one session that wait for a person.

Never answered automatically with anything but a decline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman.errors import InvalidParams
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    ElicitationProvider,
    ElicitationRequest,
    check,
)
from dragoman.host.permissions.questions import NO_ROOM, Questions, Room
from dragoman.host.permissions.wording import blame
from dragoman.host.requester import asking_subagent
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session.bounds import weigh_struct
from dragoman.session.state import PendingElicitation, SessionState


class Attendance(Protocol):
    """Whether anyone is there to answer."""

    @property
    def is_cancelling(self) -> bool: ...

    def nobody_reads(self, asker: object) -> bool: ...

    def nobody_waits_for(self, asker: object) -> bool: ...

    def unfit(self, reason: str) -> InvalidParams: ...


class Elicitations:
    """Asks, and keeps what waits."""

    def __init__(
        self,
        attendance: Attendance,
        workspace: Workspace,
        provider: ElicitationProvider | None,
        room: Room,
        *,
        state: SessionState,
        record: Callable[[e.Event], None],
        limit: float | None,
    ) -> None:
        self._attendance = attendance
        self._workspace = workspace
        self._provider = provider
        self._open: Questions[ElicitationAnswer, ElicitationAnswer] = Questions(
            "elicitation-",
            withdrawn=ElicitationAnswer("cancel"),
            failed=self._failed,
            late=ElicitationAnswer("decline"),
            limit=limit,
        )
        self._room = room
        self._state = state
        self._record = record

    async def create(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Ask the user something.

        Raises InvalidParams where too many questions wait already.
        """
        asker = asking_subagent()
        request = msgspec.structs.replace(
            request,
            request_id=self._open.new_id(),
            session_id=self._workspace.session_id,
            subagent=asker,
            asked_by=None if asker is None else self._state.subagent_name(asker),
        )
        question = request.as_event()
        if not self._room.take(request.request_id, weigh_struct(question)):
            raise self._attendance.unfit(NO_ROOM)
        self._record(question)

        def settled(answer: ElicitationAnswer) -> ElicitationAnswer:
            self._room.leave(request.request_id)
            self._record(e.ElicitationSettled(request.request_id, answer.action))
            return answer

        if self._attendance.is_cancelling:
            return settled(ElicitationAnswer("cancel"))
        if self._attendance.nobody_reads(self._provider):
            return settled(ElicitationAnswer("decline"))
        asking = None if self._provider is None else _asked(self._provider, request)
        return await self._open.ask(request.request_id, settled, asking)

    def answer(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Raises KeyError for one that is unknown or settled, FormError for one that is accepted
        with what its form does not take."""
        pending = self._state.pending.get(request_id)
        if isinstance(pending, PendingElicitation):
            check(pending.schema, answer)
        if not self._open.settle(request_id, answer):
            raise KeyError(request_id)

    def complete(self, elicitation_id: str) -> None:
        """The agent saw that the user did what an address asked for: that is the answer."""
        for pending in list(self._state.pending.values()):
            if not isinstance(pending, PendingElicitation) or pending.mode != "url":
                continue
            if pending.elicitation_id == elicitation_id:
                self._open.settle(pending.id, ElicitationAnswer("accept"))

    def refuse_unattended(self, request_id: str | None) -> None:
        """Decline what has nobody to answer it; None is everything."""
        if self._attendance.nobody_waits_for(self._provider):
            self._open.settle_these(request_id, ElicitationAnswer("decline"))

    def cancel(self, request_id: str) -> None:
        self._open.settle(request_id, ElicitationAnswer("cancel"))

    def cancel_all(self) -> None:
        self._open.settle_all(ElicitationAnswer("cancel"))

    def _failed(self, error: BaseException) -> ElicitationAnswer:
        self._record(e.Notice(blame("elicitation", error), "error", source="client"))
        return ElicitationAnswer("cancel")


async def _asked(provider: ElicitationProvider, request: ElicitationRequest) -> ElicitationAnswer:
    return await provider.create_elicitation(request)
