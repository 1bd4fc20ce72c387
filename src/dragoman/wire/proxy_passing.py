"""Passes messages on as one proxy of a chain that another program conducts.

There is one connection, that to the conductor: what the client says comes unwrapped, what the
successor says comes wrapped, and so it goes to them. Params pass byte for byte, ids are translated.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from dragoman.wire.in_flight import CANCEL_REQUEST, Answers, Calls, cancelled_id, encode_cancel
from dragoman.wire.messages import (
    NULL,
    Failure,
    Id,
    Message,
    Notification,
    Reply,
    Request,
    encode_failure,
    encode_members,
    encode_notification,
    encode_reply,
    encode_request,
)
from dragoman.wire.proxy_routing import MOST_OPEN

Side: TypeAlias = Literal["client", "successor"]

_SUCCESSOR = "proxy/successor"
_INITIALIZE = "proxy/initialize"
# The SDK for proxies, which is older than the schema, knows them as extensions.
_OLDER = "_"


class PassedRequest(msgspec.Struct, eq=False):
    """A request on its way: who asks, and what, under the id that the conductor gave it."""

    side: Side
    request: Request
    our_id: Id = b""


class Heard(msgspec.Struct, frozen=True):
    """A message out of its wrapping, and who said it. An answer comes with what was `asked`, and
    has its id."""

    side: Side
    message: Request | Notification | Reply | Failure
    asked: PassedRequest | None = None


class GivenUp(msgspec.Struct, frozen=True):
    """A request that was given up by the side that asked."""

    asked: PassedRequest


class Misplaced(Exception):
    """This component was not greeted as a proxy, or a wrapped message holds none."""


class _Wrapped(msgspec.Struct):
    method: str
    params: msgspec.Raw = NULL


_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode


class Passing:
    """What is on its way through this proxy."""

    def __init__(self) -> None:
        self._calls: Calls[PassedRequest] = Calls()
        self._asking: Answers[PassedRequest] = Answers()
        self._prefix: str | None = None
        """Before the names of the methods of chains, as the conductor spells them."""

    def heard(self, message: Message) -> Heard | GivenUp | None:
        """What a message of the conductor means; None for nothing. Raises Misplaced for a request
        or a notification that cannot be passed on."""
        # Nearly all messages are notifications.
        match message:
            case Notification(method, params):
                side, method, params = self._meant(method, params)
                if method == CANCEL_REQUEST:
                    return self._given_up(params)
                return Heard(side, Notification(method, params))
            case Request(id=key, method=method, params=params):
                side, method, params = self._meant(method, params)
                return Heard(side, Request(key, method, params))
            case Reply() | Failure():
                return self._answered(message)
            case _:
                return None

    def _meant(self, method: str, params: msgspec.Raw) -> tuple[Side, str, msgspec.Raw]:
        plain = method.removeprefix(_OLDER)
        if plain == _SUCCESSOR:
            try:
                wrapped = _decode_wrapped(params)
            except msgspec.DecodeError as error:
                raise Misplaced("a message of the successor has a method") from error
            return "successor", wrapped.method, wrapped.params
        if plain == _INITIALIZE:
            self._prefix = method.removesuffix(_INITIALIZE)
            return "client", "initialize", params
        if self._prefix is None:
            raise Misplaced(f"a proxy is greeted with {_INITIALIZE}, by the conductor of its chain")
        return "client", method, params

    def _given_up(self, params: msgspec.Raw) -> GivenUp | None:
        wanted = cancelled_id(params)
        given_up = [] if wanted is None else self._asking.cancel(wanted)
        return GivenUp(given_up[0]) if given_up else None

    def _answered(self, answer: Reply | Failure) -> Heard | None:
        asked = self._calls.settle(answer.id)
        if asked is None:
            return None
        there: Side = "client" if asked.side == "successor" else "successor"
        own = msgspec.structs.replace(answer, id=asked.request.id)
        return Heard(there, own, asked)

    # ── passing on ────────────────────────────────────────────────────────────────────────────

    def told(self, to: Side, message: Notification) -> bytes:
        """The frame with a notification for one side."""
        if to == "client":
            return encode_notification(message.method, message.params)
        return encode_notification(*self._wrapped(message.method, message.params))

    def taken(self, side: Side, request: Request) -> PassedRequest | None:
        """A request to be passed on or answered here; None if too many are open."""
        if len(self._asking) >= MOST_OPEN:
            return None
        asked = PassedRequest(side, request)
        self._asking.open(asked, request)
        return asked

    def put(self, asked: PassedRequest) -> bytes:
        """The frame that asks the other side."""
        asked.our_id = self._calls.open(asked)
        method, params = asked.request.method, asked.request.params
        if asked.side == "client":
            method, params = self._wrapped(method, params)
        return encode_request(asked.our_id, method, params)

    def withdrawn(self, asked: PassedRequest) -> bytes | None:
        """The frame that gives up a request there; None if it was not put, or is answered."""
        return encode_cancel(asked.our_id) if asked.our_id else None

    def forgotten(self, asked: PassedRequest) -> None:
        """What the other side answers to it is no longer of interest."""
        self._calls.settle(asked.our_id)

    def answer(self, asked: PassedRequest, answer: Reply | Failure) -> bytes:
        """The frame that answers a request, once."""
        self._asking.close(asked)
        if isinstance(answer, Failure):
            return encode_failure(asked.request.id, answer.code, answer.message, answer.data)
        return encode_reply(asked.request.id, answer.result)

    def _wrapped(self, method: str, params: msgspec.Raw) -> tuple[str, msgspec.Raw]:
        name = f"{self._prefix or ''}{_SUCCESSOR}"
        return name, msgspec.Raw(b"{%b}" % encode_members(method, params))
