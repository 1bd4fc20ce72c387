"""Mutated frames of every message of the schema, read as their types: no crash, every well-formed
request answered exactly once, memory bounded."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from support.cost import resident_bytes
from support.frames import corpus, mutated
from support.hostile import ANSWERED, IGNORED
from support.json_values import Json
from support.peers import Wire, connected, soon
from support.samples import CALLS, NOTIFICATIONS, REQUESTS, sample

from dragoman.errors import InvalidMessage, MethodNotFound, RemoteError
from dragoman.rpc import Peer
from dragoman.schema import decode, encode, v1
from dragoman.schema.model import Method
from dragoman.wire.messages import MAX_DEPTH

SEED = 20_240_501
BATCH = 500
MAX_GROWTH = 50 << 20


async def fuzz(count: int) -> None:
    frames = [*corpus(), *(f for f in (ANSWERED | IGNORED).values() if len(f) < 10_000)]
    grown_from = 0
    for start in range(0, count, BATCH):
        await fuzz_batch(frames, range(SEED + start, SEED + min(start + BATCH, count)))
        grown_from = grown_from or resident_bytes()
    assert resident_bytes() - grown_from <= MAX_GROWTH


async def fuzz_batch(frames: list[bytes], seeds: range) -> None:
    """One connection with a call of every kind open, as replies are mutated too."""
    reader = Reader()
    async with connected(on_notification=reader.notified, on_request=reader.asked) as (peer, wire):
        calls = [asyncio.create_task(reader.call(peer, method)) for method in CALLS]
        keys = [await wire.read_call() for _ in calls]
        for seed in seeds:
            chance = random.Random(seed)
            frame = mutated(chance.choice(frames), seed, chance.randint(0, 3))
            await check(wire, frame, f"seed {seed}: {frame!r}")
            assert reader.crashes == [], f"seed {seed}: {frame!r}"
        await wire.ping()
        wire.write(*(b'{"jsonrpc":"2.0","id":%b,"result":1}' % key for key in keys))
        for outcome in await soon(asyncio.gather(*calls, return_exceptions=True)):
            assert isinstance(outcome, msgspec.Raw | RemoteError), outcome
        assert peer.error is None


class Reader:
    """Handlers that read what comes as its type; a peer would only log what they fail with."""

    def __init__(self) -> None:
        self.crashes: list[Exception] = []

    def notified(self, method: str, params: msgspec.Raw) -> None:
        if method in v1.NOTIFICATIONS_TO_CLIENT:
            self.read(params, v1.NOTIFICATIONS_TO_CLIENT[method].params)

    def asked(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        """Some are answered at once, some later, some with errors; a barrier comes after them."""
        if method in v1.REQUESTS_TO_CLIENT:
            self.read(params, v1.REQUESTS_TO_CLIENT[method].params)
        match method:
            case "echo":
                return bytes(params)
            case "fails":
                raise RuntimeError
            case "unknown":
                raise MethodNotFound
            case _:
                return later()

    async def call(self, peer: Peer, method: Method) -> msgspec.Raw:
        return await peer.call(
            method.name, b"{}", on_reply=lambda result: self.read(result, method.result)
        )

    def read(self, data: msgspec.Raw, type_: Any) -> None:
        try:
            decode(data, type_)
        except InvalidMessage:
            return
        except Exception as crash:
            self.crashes.append(crash)


async def later() -> bytes:
    return b"null"


async def check(wire: Wire, frame: bytes, said: str) -> None:
    wire.write(frame, b'{"jsonrpc":"2.0","id":"barrier","method":"barrier"}')
    answers: list[Json] = []
    while (answered := exactly(await wire.read()))["id"] != "barrier":
        answers.append(answered["id"])
    expected = id_of_request(frame)
    assert len(answers) <= 1, said
    assert not expected or answers == expected, said


def id_of_request(frame: bytes) -> list[Json]:
    """The id to answer, in a list, if this is a well-formed request; else nothing."""
    if frame.count(b"[") + frame.count(b"{") > MAX_DEPTH:
        return []
    try:
        message = exactly(frame)
        json.dumps(message, ensure_ascii=False).encode()  # fails for lone surrogates
    except ValueError:
        return []
    match message:
        case {"method": str(), "id": key}:
            return [key]
        case _:
            return []


def exactly(frame: bytes) -> Any:
    """JSON by another parser than the one under test; numbers keep their spelling."""
    return json.loads(
        frame.decode(),
        parse_int=lambda digits: {"number": digits},
        parse_float=lambda digits: {"number": digits},
        parse_constant=no_json,
    )


def no_json(word: str) -> None:
    raise ValueError(word)


async def test_ten_thousand_mutated_frames() -> None:
    await fuzz(10_000)


@pytest.mark.soak
@pytest.mark.within(600)
async def test_two_hundred_thousand_mutated_frames() -> None:
    await fuzz(200_000)


async def test_the_fuzzer_notices_a_request_without_an_answer() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"lost"}'

    async def never() -> bytes:
        await asyncio.Event().wait()
        return b"null"

    def lose(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        return never() if method == "lost" else b"null"

    async with connected(on_request=lose) as (_, wire):
        with pytest.raises(AssertionError, match="seed 7"):
            await check(wire, frame, "seed 7")


def test_the_fuzzer_starts_from_every_method_and_update_of_the_schema() -> None:
    messages = [exactly(frame) for frame in corpus()]
    methods = {message["method"] for message in messages if "method" in message}
    kinds = {m["params"]["update"]["sessionUpdate"] for m in messages if has_update(m)}
    assert methods >= {
        *v1.REQUESTS_TO_AGENT,
        *v1.NOTIFICATIONS_TO_AGENT,
        *v1.REQUESTS_TO_CLIENT,
        *v1.NOTIFICATIONS_TO_CLIENT,
    }
    assert kinds == v1.STABLE_UPDATES | v1.UNSTABLE_UPDATES


def has_update(message: Any) -> bool:
    return isinstance(message.get("params"), dict) and "update" in message["params"]


@pytest.mark.parametrize("method", [*REQUESTS, *NOTIFICATIONS], ids=lambda method: method.name)
def test_what_the_fuzzer_starts_from_is_valid(method: Method) -> None:
    for type_ in filter(None, (method.params, method.result)):
        message = sample(type_)
        assert decode(encode(message), type_) == message


def test_the_fuzzer_notices_a_message_that_cannot_be_read() -> None:
    reader = Reader()
    reader.read(msgspec.Raw(b"1"), object())
    assert len(reader.crashes) == 1


def test_the_fuzzer_sends_well_formed_requests_and_others() -> None:
    valid = corpus()
    frames = [mutated(random.Random(n).choice(valid), n, n % 4) for n in range(1000)]
    requests = sum(bool(id_of_request(frame)) for frame in frames)
    assert 100 < requests < 900
