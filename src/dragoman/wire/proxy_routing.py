"""Routes messages in a chain: from the client through the proxies to the agent, and back.

Each component talks only to us, over a connection with its own ids. Given a message from one
component, a `Chain` says what to send to which. Of ACP it knows only the methods of proxy chains,
not what a message means or what its params are.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from dragoman.wire.in_flight import CANCEL_REQUEST, Answers, Calls, cancelled_id, encode_cancel
from dragoman.wire.messages import (
    INTERNAL_ERROR,
    MAX_DEPTH,
    NULL,
    Failure,
    Id,
    Malformed,
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

CLIENT: Final = 0
"""The client's place; the proxies have 1, 2, … and the agent the last one."""
MOST_OPEN: Final = 4096
"""Requests of one place that wait for their answers at the same time."""
DEEPEST: Final = MAX_DEPTH + 1
"""How deep a message of a proxy may nest: what it wraps is one level deeper than it was."""

Sent: TypeAlias = tuple[int, bytes]
"""A place, and a frame to send there."""

# Far from the numbers that others count their own requests with: a proxy that passes on a
# cancellation word for word names an id of ours, and must not hit a request of its own by chance.
_FIRST_ID = 1_000_000_000
_INVALID_REQUEST = -32600
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602


class _Names(msgspec.Struct, frozen=True):
    initialize: str
    successor: str


_NAMES = _Names("proxy/initialize", "proxy/successor")
# The SDK for proxies, which is older than the schema, knows them as extensions.
_OLDER_NAMES = _Names("_proxy/initialize", "_proxy/successor")
_SUCCESSOR = {_NAMES.successor, _OLDER_NAMES.successor}
_PROXY_INITIALIZE = {_NAMES.initialize, _OLDER_NAMES.initialize}
_INITIALIZE = {"initialize", *_PROXY_INITIALIZE}


class NotAProxy(Exception):
    """The component at this place is not a proxy; `reason` ends the sentence."""

    def __init__(self, place: int, reason: str = "does not know proxy/initialize") -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason


class _Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class _Wrapped(msgspec.Struct):
    method: str
    params: msgspec.Raw = NULL


class _Welcome(msgspec.Struct):
    version: msgspec.Raw = msgspec.field(name="protocolVersion")


class _Call:
    """A request on its way: who asks, by which id, and whom we asked, by which of ours."""

    def __init__(self, asker: int, key: Id, asked: int, method: str) -> None:
        self.asker = asker
        self.id = key
        self.asked = asked
        self.our_id: Id = b""
        self.greeting = method if asked > asker and method in _INITIALIZE else None
        self.again: msgspec.Raw | None = None
        """The params, if it may have to be asked again in other words: of one greeting a place,
        since thousands may be open."""


_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode
_decode_welcome = msgspec.json.Decoder(_Welcome).decode


class Chain:
    """The state of a chain whose agent is at the place `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        places = range(last + 1)
        self._calls: list[Calls[_Call]] = [Calls(_FIRST_ID) for _ in places]
        self._asking: list[Answers[_Call]] = [Answers() for _ in places]
        self._names = [_NAMES for _ in places]
        self._greeted: set[int] = set()
        self._is_unwelcome = False

    @property
    def open(self) -> int:
        """How many requests wait for their answers."""
        return sum(map(len, self._asking))

    @property
    def ungreeted(self) -> int | None:
        """The last place that was sent initialize and has not replied."""
        calls = (call for asking in self._asking for call in asking)
        return max((call.asked for call in calls if call.greeting is not None), default=None)

    def owes(self, place: int) -> bool:
        """Whether this place is waited for on the client's side of it."""
        return any(call.asked == place for call in self._asking[place - 1])

    def heard(self, place: int, message: Message) -> list[Sent]:
        """What follows from a message of this place, in order. Raises NotAProxy."""
        # Nearly all messages are notifications.
        if type(message) is Notification:
            return self._notified(place, message)
        match message:
            case Request():
                return self._requested(place, message)
            case Reply():
                return self._replied(place, message)
            case Failure():
                return self._failed(place, message)
            case Malformed(reason, id=key) if key is not None:
                return [(place, encode_failure(key, _INVALID_REQUEST, reason))]
            case _:
                return []

    # ── notifications and requests ────────────────────────────────────────────────────────────

    def _notified(self, place: int, told: Notification) -> list[Sent]:
        try:
            to, method, params = self._meant(place, told.method, told.params)
        except _Refused:
            return []
        if method == CANCEL_REQUEST:
            return self._cancelled(place, params)
        return [(to, encode_notification(*self._worded(place, to, method, params)))]

    def _requested(self, place: int, request: Request) -> list[Sent]:
        try:
            to, method, params = self._meant(place, request.method, request.params)
            if len(self._asking[place]) >= MOST_OPEN:
                raise _Refused(INTERNAL_ERROR, "too many requests at once")
        except _Refused as refusal:
            return [(place, encode_failure(request.id, refusal.code, refusal.message))]
        return [self._ask(place, request.id, to, *self._worded(place, to, method, params))]

    def _ask(self, asker: int, key: Id, to: int, method: str, params: msgspec.Raw) -> Sent:
        call = _Call(asker, key, to, method)
        if call.greeting == _NAMES.initialize and to not in self._greeted:
            self._greeted.add(to)
            call.again = params
        call.our_id = self._calls[to].open(call)
        self._asking[asker].open(call, Request(key, "", NULL))  # which is all that it needs
        return to, encode_request(call.our_id, method, params)

    def _meant(self, place: int, method: str, params: msgspec.Raw) -> tuple[int, str, msgspec.Raw]:
        """For whom it is, and what it says, out of its wrapping. Raises _Refused."""
        if method in _SUCCESSOR:
            wrapped = self._unwrapped(place, params)
            return place + 1, wrapped.method, wrapped.params
        if place != CLIENT:
            return place - 1, method, params
        if method in _PROXY_INITIALIZE:
            raise _Refused(_METHOD_NOT_FOUND, f"{method} is for proxies")
        return place + 1, method, params

    def _unwrapped(self, place: int, params: msgspec.Raw) -> _Wrapped:
        if place in (CLIENT, self._last):
            raise _Refused(_METHOD_NOT_FOUND, "only a proxy has a successor")
        try:
            wrapped = _decode_wrapped(params)
        except msgspec.DecodeError as error:
            raise _Refused(_INVALID_PARAMS, "a message for the successor has a method") from error
        if wrapped.method in _SUCCESSOR:
            # The next proxy would take it for a message of its own successor.
            raise _Refused(_INVALID_PARAMS, "a message for the successor is wrapped once")
        return wrapped

    def _worded(
        self, place: int, to: int, method: str, params: msgspec.Raw
    ) -> tuple[str, msgspec.Raw]:
        """How it is said there: what comes from behind a proxy is wrapped."""
        if to > place:
            return (self._opening(to) if method in _INITIALIZE else method), params
        if to == CLIENT:
            return method, params
        return self._names[to].successor, msgspec.Raw(b"{%b}" % encode_members(method, params))

    def _opening(self, place: int) -> str:
        return "initialize" if place == self._last else self._names[place].initialize

    def _cancelled(self, place: int, params: msgspec.Raw) -> list[Sent]:
        """A cancellation is about one connection: the component we asked is sent the id that we
        used."""
        wanted = cancelled_id(params)
        calls = [] if wanted is None else self._asking[place].cancel(wanted)
        return [(call.asked, encode_cancel(call.our_id)) for call in calls]

    # ── answers ───────────────────────────────────────────────────────────────────────────────

    def _replied(self, place: int, reply: Reply) -> list[Sent]:
        call = self._settled(place, reply.id)
        if call is None:
            return []
        if call.greeting is not None and not _is_welcome(reply):
            self._check_unwelcome(call)
        return [(call.asker, encode_reply(call.id, reply.result))]

    def _check_unwelcome(self, call: _Call) -> None:
        """A proxy may pass on what its successor said, and is not to blame for that; what an agent
        says is for the client to judge. Raises NotAProxy."""
        if call.greeting in _PROXY_INITIALIZE and not self._is_unwelcome:
            raise NotAProxy(call.asked, f"answered {call.greeting} without a protocolVersion")
        self._is_unwelcome = True

    def _failed(self, place: int, failure: Failure) -> list[Sent]:
        call = self._settled(place, failure.id)
        if call is None:
            return []
        if failure.code == _METHOD_NOT_FOUND:
            if call.greeting == _OLDER_NAMES.initialize:
                raise NotAProxy(place)
            if call.again is not None:
                return [self._in_older_words(call, call.again)]
        answer = encode_failure(call.id, failure.code, failure.message, failure.data)
        return [(call.asker, answer)]

    def _in_older_words(self, call: _Call, params: msgspec.Raw) -> Sent:
        self._names[call.asked] = _OLDER_NAMES
        return self._ask(call.asker, call.id, call.asked, _OLDER_NAMES.initialize, params)

    def _settled(self, place: int, key: Id) -> _Call | None:
        """The request that was answered; None when there is none, or it was answered before."""
        call = self._calls[place].settle(key)
        if call is not None:
            self._asking[call.asker].close(call)
        return call


def _is_welcome(reply: Reply) -> bool:
    try:
        _decode_welcome(reply.result)
    except msgspec.DecodeError:
        return False
    return True
