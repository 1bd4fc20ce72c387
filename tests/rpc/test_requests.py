"""Requests from the other side: each is answered once, and the reader waits for none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from support.json_values import IDS
from support.peers import connected, settled

from dragoman.errors import (
    AuthRequired,
    CallTimeout,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    RemoteError,
    RequestCancelled,
    ResourceNotFound,
)
from dragoman.rpc import PeerLimits
from dragoman.wire.messages import NULL

REMOTE_ERRORS = [
    (ParseError, -32700),
    (InvalidRequest, -32600),
    (MethodNotFound, -32601),
    (InvalidParams, -32602),
    (InternalError, -32603),
    (RequestCancelled, -32800),
    (AuthRequired, -32000),
    (ResourceNotFound, -32002),
]


def request(key: bytes, method: bytes = b"work", params: bytes = b"null") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (key, method, params)


class Door:
    """A handler whose requests stay open until the door is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.waiting = 0

    async def __call__(self, method: str, params: msgspec.Raw) -> bytes:
        self.waiting += 1
        await self.opened.wait()
        return bytes(params)


@pytest.mark.parametrize(
    ("key", "spelt"), [(b"1", b"1"), (b"null", b"null"), (b'"a"', rb'"\u0061"')]
)
async def test_a_request_whose_id_is_still_open_is_refused_and_the_first_is_answered(
    key: bytes, spelt: bytes
) -> None:
    door = Door()
    async with connected(on_request=door) as (_, wire):
        wire.write(request(key, params=b'"first"'), request(spelt, params=b'"second"'))
        refused = await wire.read_json()
        assert refused["id"] == json.loads(key)
        assert refused["error"]["code"] == -32600
        assert "still open" in refused["error"]["message"]
        door.opened.set()
        assert (await wire.read_json())["result"] == "first"
        wire.write(request(key, params=b'"third"'))  # it is free again
        assert (await wire.read_json())["result"] == "third"


# ── answers ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", IDS)
async def test_a_request_is_answered_with_the_exact_id_it_came_with(key: bytes) -> None:
    async with connected(on_request=lambda method, params: b"[]") as (_, wire):
        wire.write(request(key))
        assert await wire.read() == b'{"jsonrpc":"2.0","id":%b,"result":[]}' % key


async def test_a_handler_may_answer_at_once_or_later() -> None:
    async def later() -> bytes:
        await settled()
        return b'"later"'

    def answer(method: str, params: msgspec.Raw) -> Any:
        return b'"at once"' if method == "quick" else later()

    async with connected(on_request=answer) as (_, wire):
        wire.write(request(b"1"), request(b"2", b"quick"))
        answers = [await wire.read_json(), await wire.read_json()]
        assert [(a["id"], a["result"]) for a in answers] == [(2, "at once"), (1, "later")]


async def test_a_handler_gets_the_method_and_the_raw_params() -> None:
    seen: list[tuple[str, bytes]] = []

    def answer(method: str, params: msgspec.Raw) -> bytes:
        seen.append((method, bytes(params)))
        return b"null"

    async with connected(on_request=answer) as (_, wire):
        wire.write(request(b"1", params=b'{"a": 1.0}'), b'{"jsonrpc":"2.0","id":2,"method":"bare"}')
        await wire.read()
        await wire.read()
        assert seen == [("work", b'{"a": 1.0}'), ("bare", bytes(NULL))]


async def test_requests_with_the_same_id_are_each_answered() -> None:
    async with connected(on_request=lambda method, params: bytes(params)) as (_, wire):
        wire.write(request(b"1", params=b'"a"'), request(b"1", params=b'"b"'))
        assert [(await wire.read_json())["result"] for _ in range(2)] == ["a", "b"]


@pytest.mark.parametrize("later", [False, True])
async def test_raw_params_may_be_passed_on_as_a_result(later: bool) -> None:
    async def echo_later(params: msgspec.Raw) -> bytes:
        return params

    def echo(method: str, params: msgspec.Raw) -> Any:
        return echo_later(params) if later else params

    async with connected(on_request=echo) as (_, wire):
        wire.write(request(b"1", params=b'{"a": 1.0}'))
        assert await wire.read() == b'{"jsonrpc":"2.0","id":1,"result":{"a": 1.0}}'


async def test_a_result_laid_out_over_lines_is_sent_as_one() -> None:
    async with connected(on_request=lambda method, params: b'{\n "a": 1\n}') as (_, wire):
        wire.write(request(b"1"))
        assert await wire.read() == b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'


# ── errors ────────────────────────────────────────────────────────────────────────────────────


async def answer_to(error: Exception, *, later: bool) -> dict[str, Any]:
    """What the other side gets when a handler raises `error`."""

    async def fail() -> bytes:
        await asyncio.sleep(0)
        raise error

    def answer(method: str, params: msgspec.Raw) -> Any:
        if later:
            return fail()
        raise error

    async with connected(on_request=answer) as (_, wire):
        wire.write(request(b"1"))
        found = await wire.read_json()
        await wire.ping()
        assert found["id"] == 1
        return found["error"]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    "error", [ValueError("/home/me/.ssh/id"), KeyError("token"), OSError(2, "x")]
)
async def test_a_handler_that_fails_answers_with_an_internal_error_that_leaks_nothing(
    error: Exception, later: bool
) -> None:
    assert await answer_to(error, later=later) == {"code": -32603, "message": "internal error"}


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("cls", "code"), REMOTE_ERRORS)
async def test_a_remote_error_is_answered_with_its_code_message_and_data(
    cls: type[RemoteError], code: int, later: bool
) -> None:
    found = await answer_to(cls("because", {"a": [1]}), later=later)
    assert found == {"code": code, "message": "because", "data": {"a": [1]}}


async def test_a_code_of_ones_own_is_answered_as_it_is() -> None:
    assert await answer_to(RemoteError("x", code=-7), later=True) == {"code": -7, "message": "x"}


async def test_an_error_of_our_own_is_answered_with_its_sentence() -> None:
    found = await answer_to(CallTimeout("fs/read", 2.0), later=True)
    assert found == {"code": -32603, "message": "no reply to fs/read within 2 s"}


@pytest.mark.parametrize("later", [False, True])
async def test_an_error_whose_data_is_no_json_is_still_answered(later: bool) -> None:
    found = await answer_to(InvalidParams("no file \udcff", object()), later=later)
    assert found == {"code": -32602, "message": "no file ?"}


@pytest.mark.parametrize("later", [False, True])
async def test_a_result_that_is_no_json_is_answered_with_an_internal_error(later: bool) -> None:
    async def answer_later() -> bytes:
        return b"{\n"

    def answer(method: str, params: msgspec.Raw) -> Any:
        return answer_later() if later else b"{\n"

    async with connected(on_request=answer) as (_, wire):
        wire.write(request(b"1"))
        assert (await wire.read_json())["error"] == {"code": -32603, "message": "internal error"}
        await wire.ping()


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":"a","method":7}',
        b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"a":tru}}',
        b'{"jsonrpc":"2.0","id":"a","method":"x","params":%b}' % (b"[" * 1000 + b"]" * 1000),
    ],
)
async def test_a_malformed_request_is_answered_as_invalid(frame: bytes) -> None:
    async with connected() as (peer, wire):
        wire.write(frame)
        answer = await wire.read_json()
        assert (answer["id"], answer["error"]["code"]) == ("a", -32600)
        assert peer.noise.lines == 1


# ── limits ────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_is_answered_while_sixty_waits_stay_open() -> None:
    door = Door()

    def answer(method: str, params: msgspec.Raw) -> Any:
        return door(method, params) if method == "wait" else b'"killed"'

    async with connected(on_request=answer, waits=frozenset({"wait"})) as (_, wire):
        wire.write(*(request(b"%d" % n, b"wait") for n in range(60)))
        wire.write(request(b'"kill"', b"kill"))
        assert (await wire.read_json())["result"] == "killed"
        await settled()
        assert door.waiting == 60
        door.opened.set()
        assert [(await wire.read_json())["id"] for _ in range(60)] == list(range(60))


async def test_a_notification_is_handled_while_requests_are_open() -> None:
    seen = asyncio.Event()
    door = Door()
    async with connected(on_request=door, on_notification=lambda m, p: seen.set()) as (_, wire):
        wire.write(*(request(b"%d" % n) for n in range(64)))
        wire.write(b'{"jsonrpc":"2.0","method":"note"}')
        async with asyncio.timeout(60):
            await seen.wait()


async def test_the_65th_request_at_once_is_refused_and_the_64_go_on() -> None:
    door = Door()
    async with connected(on_request=door) as (_, wire):
        wire.write(*(request(b"%d" % n) for n in range(65)))
        refused = await wire.read_json()
        assert refused["id"] == 64
        assert refused["error"] == {"code": -32603, "message": "too many requests at once"}
        door.opened.set()
        assert [(await wire.read_json())["id"] for _ in range(64)] == list(range(64))


async def test_an_answered_request_makes_room_for_another() -> None:
    door = Door()
    async with connected(on_request=door, limits=PeerLimits(requests=1)) as (_, wire):
        for key in (b"1", b"2"):
            door.opened.clear()
            wire.write(request(key))
            await settled()
            door.opened.set()
            assert "result" in await wire.read_json()


async def test_a_cancelled_request_makes_room_for_another() -> None:
    async with connected(on_request=Door(), limits=PeerLimits(requests=1)) as (_, wire):
        for key in (b"1", b"2"):
            wire.write(request(key))
            wire.write(
                b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % key
            )
            assert (await wire.read_json())["error"]["code"] == -32800


async def test_open_waits_take_no_room_from_requests() -> None:
    door = Door()
    limits = PeerLimits(requests=1, waits=10)
    async with connected(on_request=door, waits=frozenset({"wait"}), limits=limits) as (_, wire):
        wire.write(*(request(b"%d" % n, b"wait") for n in range(10)))
        wire.write(request(b"10"), request(b"11"))
        assert (await wire.read_json())["id"] == 11
        door.opened.set()
        assert [(await wire.read_json())["id"] for _ in range(11)] == list(range(11))


async def test_waits_have_a_limit_of_their_own() -> None:
    door = Door()
    limits = PeerLimits(requests=1, waits=2)
    async with connected(on_request=door, waits=frozenset({"wait"}), limits=limits) as (_, wire):
        wire.write(*(request(b"%d" % n, b"wait") for n in range(3)))
        refused = await wire.read_json()
        assert (refused["id"], refused["error"]["code"]) == (2, -32603)
        wire.write(request(b"3"))
        await settled()
        door.opened.set()
        assert [(await wire.read_json())["id"] for _ in range(3)] == [0, 1, 3]


async def test_requests_answered_at_once_never_count() -> None:
    async with connected(
        on_request=lambda method, params: bytes(params), limits=PeerLimits(requests=1)
    ) as (_, wire):
        wire.write(*(request(b"%d" % n, params=b"%d" % n) for n in range(200)))
        answers = [json.loads(await wire.read()) for _ in range(200)]
        assert [answer["result"] for answer in answers] == list(range(200))
