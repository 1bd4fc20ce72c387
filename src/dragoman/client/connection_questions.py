"""Questions outside any session: an agent asks them while it signs in, or opens a session.

They are tied to a request of ours and end with it. What was asked while a session was opened is
added to that session's record once it is open.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.client.dialects.dialect import Place
from dragoman.errors import InvalidParams, MethodNotFound, UnknownQuestion
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    ElicitationProvider,
    ElicitationRequest,
    check,
)
from dragoman.host.permissions.questions import NO_ROOM, Questions, Room
from dragoman.session import events as e
from dragoman.session.state_limits import weigh_struct


class OutsideQuestions:
    """Asked of `provider`; without one they wait for `answer`, or are declined at once.

    `attended` says whether a program answers what is in `pending`, None that it did not say so.
    """

    def __init__(
        self, provider: ElicitationProvider | None, *, offered: bool, attended: bool | None = None
    ) -> None:
        self._offered = offered
        self.on_change: Callable[[], None] | None = None
        """Called when something was asked or settled."""
        self.attended = attended
        self.pending: dict[str, ElicitationRequest] = {}
        self._places: dict[str, Place | None] = {}
        self._provider = provider
        self._room = Room()
        self._told: dict[str, Place] = {}
        """What was asked while a session is opened takes room until it is open."""
        self._questions: Questions[ElicitationAnswer, ElicitationAnswer] = Questions(
            "elicitation-",
            withdrawn=ElicitationAnswer("cancel"),
            failed=lambda error: ElicitationAnswer("cancel"),
        )

    async def ask(self, request: ElicitationRequest, place: Place | None) -> ElicitationAnswer:
        """`place` is that of the session that is being opened, if that is what it is about.

        Raises MethodNotFound where questions are not offered at all, InvalidParams where too many
        were asked.
        """
        if not self._offered:
            raise MethodNotFound("elicitation/create is not offered")
        request = msgspec.structs.replace(request, request_id=self._questions.new_id())
        if not self._room.take(request.request_id, weigh_struct(request)):
            raise InvalidParams(NO_ROOM)
        if self._provider is None and not self.attended:
            return self._settled(request, place, ElicitationAnswer("decline"))
        self.pending[request.request_id] = request
        self._places[request.request_id] = place
        self._changed()
        asking = None if self._provider is None else self._provider.create_elicitation(request)
        return await self._questions.ask(
            request.request_id, lambda answer: self._settled(request, place, answer), asking
        )

    def _settled(
        self, request: ElicitationRequest, place: Place | None, answer: ElicitationAnswer
    ) -> ElicitationAnswer:
        self.pending.pop(request.request_id, None)
        self._places.pop(request.request_id, None)
        self._changed()
        if place is None:
            self._room.leave(request.request_id)
        else:
            self._told[request.request_id] = place
            settled = e.ElicitationSettled(request.request_id, answer.action)
            place.asked += [request.as_event(), settled]
        return answer

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def answer(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Raises UnknownQuestion for one that is unknown or settled, ValueError for one that is
        accepted without what its form needs."""
        request = self.pending.get(request_id)
        if request is not None:
            check(request.schema, answer)
        if not self._questions.settle(request_id, answer):
            raise UnknownQuestion(request_id)

    def complete(self, elicitation_id: str) -> None:
        """The agent saw that the user did what an address asked for: that is the answer."""
        for request in list(self.pending.values()):
            if request.mode == "url" and request.elicitation_id == elicitation_id:
                self._questions.settle(request.request_id, ElicitationAnswer("accept"))

    def withdraw(self, place: Place | None) -> None:
        """The request they were tied to is over."""
        for request_id, tied in list(self._places.items()):
            if tied is place:
                self._questions.settle(request_id, ElicitationAnswer("cancel"))
        for request_id in [each for each, told in self._told.items() if told is place]:
            self._room.leave(request_id)
            del self._told[request_id]
