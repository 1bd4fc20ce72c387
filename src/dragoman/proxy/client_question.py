"""A permission request of the agent, as the client on the other side of the chain is asked it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from dragoman.errors import InvalidMessage
from dragoman.host.permissions.questions import PermissionAnswer, PermissionRequest
from dragoman.schema import codec, v1
from dragoman.wire.messages import Failure, Reply
from dragoman.wire.proxy_passing import PassedRequest

_open: ContextVar[ClientQuestion] = ContextVar("open_question")


class ClientQuestion:
    """One request. `put` sends it to the client word for word, `withdraw` takes it back."""

    def __init__(
        self,
        asked: PassedRequest,
        put: Callable[[PassedRequest], None],
        withdraw: Callable[[PassedRequest], None],
    ) -> None:
        self.asked = asked
        self._put = put
        self._withdraw = withdraw
        self._reply: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        self._said: Reply | Failure | None = None
        _open.set(self)

    def replied(self, reply: Reply | Failure) -> None:
        """The client has answered."""
        if not self._reply.done():
            self._reply.set_result(reply)

    async def option(self) -> str | None:
        """What the client chooses; None if it chooses nothing. When the caller is cancelled, since
        someone else has answered, the question is withdrawn from the client."""
        self._put(self.asked)
        try:
            self._said = await self._reply
        except asyncio.CancelledError:
            self._withdraw(self.asked)
            raise
        return _chosen(self._said)

    async def plainly(self) -> Reply | Failure:
        """What the client says, whatever it is."""
        await self.option()
        assert self._said is not None
        return msgspec.structs.replace(self._said, id=self.asked.request.id)

    def answer(self, answer: PermissionAnswer) -> Reply | Failure:
        """For the agent: the client's own words where they are what counts."""
        key = self.asked.request.id
        if self._said is not None and _chosen(self._said) in (None, answer.option_id):
            return msgspec.structs.replace(self._said, id=key)
        option_id = answer.option_id
        outcome = v1.SelectedPermissionOutcome(option_id=option_id) if option_id else _CANCELLED
        result = codec.encode(v1.RequestPermissionResponse(outcome=outcome))
        return Reply(key, msgspec.Raw(result))


class ClientAsker:
    """Asks the client, for the rules that leave something open."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        return await _open.get().option()


_CANCELLED = v1.CancelledPermissionOutcome()


def _chosen(said: Reply | Failure) -> str | None:
    if isinstance(said, Failure):
        return None
    try:
        outcome = codec.decode(said.result, v1.RequestPermissionResponse).outcome
    except InvalidMessage:
        return None
    return getattr(outcome, "option_id", None)
