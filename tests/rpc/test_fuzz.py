"""Mutated frames: no crash, every well-formed request answered exactly once, memory bounded."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.frames import corpus, mutated
from support.hostile import ANSWERED, IGNORED
from support.json_values import Json
from support.peers import Wire, connected, soon

from dragoman.errors import MethodNotFound, RemoteError
from dragoman.wire.messages import MAX_DEPTH

SEED = 20_240_501
BATCH = 500
CALLS = 5
MAX_GROWTH = 50 << 20


async def fuzz(count: int) -> None:
    frames = [*corpus(), *(f for f in (ANSWERED | IGNORED).values() if len(f) < 10_000)]
    grown_from = 0
    for start in range(0, count, BATCH):
        await fuzz_batch(frames, range(SEED + start, SEED + min(start + BATCH, count)))
        grown_from = grown_from or resident_bytes()
    assert resident_bytes() - grown_from <= MAX_GROWTH


async def fuzz_batch(frames: list[bytes], seeds: range) -> None:
    """One connection with a few calls open, as replies are mutated too."""
    async with connected(on_request=answer) as (peer, wire):
        calls = [asyncio.create_task(peer.call("work", b"{}")) for _ in range(CALLS)]
        keys = [await wire.read_call() for _ in calls]
        for seed in seeds:
            chance = random.Random(seed)
            frame = mutated(chance.choice(frames), seed, chance.randint(0, 3))
            await check(wire, frame, f"seed {seed}: {frame!r}")
        await wire.ping()
        wire.write(*(b'{"jsonrpc":"2.0","id":%b,"result":1}' % key for key in keys))
        for outcome in await soon(asyncio.gather(*calls, return_exceptions=True)):
            assert isinstance(outcome, msgspec.Raw | RemoteError), outcome
        assert peer.error is None


def answer(method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
    """Some methods answer at once, some later, some not at all; a barrier comes after them."""
    match method:
        case "echo":
            return bytes(params)
        case "fails":
            raise RuntimeError
        case "unknown":
            raise MethodNotFound
        case _:
            return later()


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


def resident_bytes() -> int:
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


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


def test_the_fuzzer_sends_well_formed_requests_and_others() -> None:
    frames = [mutated(random.Random(n).choice(corpus()), n, n % 4) for n in range(1000)]
    requests = sum(bool(id_of_request(frame)) for frame in frames)
    assert 100 < requests < 900
