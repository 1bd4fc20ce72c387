"""The tap sees every message, exactly, in order, and can break nothing."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
import pytest
from support.peers import connected, settled, soon

from dragoman.wire.fast_path import Usual

Seen = list[tuple[str, bytes]]


def note(number: int) -> bytes:
    return b'{"jsonrpc":"2.0", "method":"note", "params":%d}\r' % number


async def test_the_tap_sees_the_exact_bytes_of_both_directions_in_order() -> None:
    seen: Seen = []
    async with connected(tap=lambda direction, frame: seen.append((direction, frame))) as pair:
        peer, wire = pair
        call = asyncio.create_task(peer.call("work", b'{"a": 1}'))
        sent = await wire.read()
        answer = b' {"jsonrpc":"2.0","id":0,"result":"\xe2\x80\xa8" } \r'
        wire.write(note(1), note(2), answer)
        await soon(call)
        peer.notify("bye", b"null")
        assert seen == [
            ("sent", sent),
            ("received", note(1)),
            ("received", note(2)),
            ("received", answer),
            ("sent", await wire.read()),
        ]


async def test_the_tap_sees_the_exact_bytes_of_each_frame_of_a_run() -> None:
    seen: Seen = []
    runs: list[tuple[list[int], list[int]]] = []
    run = [b' {"method": "note", "params":2 } \r', b'\t{"params":3,"method":"note"}  ']
    async with connected(tap=lambda direction, frame: seen.append((direction, frame))) as pair:
        peer, wire = pair
        peer.usual = Usual(
            "note",
            int,
            lambda told, sizes: runs.append((told, sizes)),
            decoder=msgspec.json.Decoder,
        )
        wire.write(note(1), *run)
        await settled()
        assert runs == [([2, 3], [len(frame) for frame in run])]
        assert seen == [("received", frame) for frame in (note(1), *run)]


async def test_the_tap_sees_a_request_before_its_answer() -> None:
    seen: Seen = []
    async with connected(tap=lambda direction, frame: seen.append((direction, frame))) as pair:
        _, wire = pair
        wire.write(b'{"jsonrpc":"2.0","id":1,"method":"x"}')
        answer = await wire.read()
        assert seen == [("received", b'{"jsonrpc":"2.0","id":1,"method":"x"}'), ("sent", answer)]


async def test_the_tap_sees_a_notification_before_it_is_handled() -> None:
    steps: list[str] = []
    async with connected(
        on_notification=lambda method, params: steps.append("handled"),
        tap=lambda direction, frame: steps.append(direction),
    ) as (_, wire):
        wire.write(note(1))
        await settled()
        assert steps == ["received", "handled"]


@pytest.mark.parametrize(
    "line", [b"Starting...", b"[INFO] ready", b"", b"{oops", b"\xff\xfe", b"7%"]
)
async def test_a_line_that_is_no_message_is_counted_and_not_tapped(line: bytes) -> None:
    seen: Seen = []
    async with connected(tap=lambda direction, frame: seen.append((direction, frame))) as pair:
        peer, wire = pair
        wire.write(line, note(1))
        await settled()
        assert seen == [("received", note(1))]
        assert peer.noise.lines == (1 if line else 0)


async def test_a_tap_that_fails_is_removed_and_the_connection_lives() -> None:
    calls = 0

    def broken(direction: Literal["sent", "received"], frame: bytes) -> None:
        nonlocal calls
        calls += 1
        raise OSError("disk full")

    async with connected(tap=broken) as (peer, wire):
        call = asyncio.create_task(peer.call("work", b"{}"))
        key = await wire.read_call()
        wire.write(b'{"jsonrpc":"2.0","id":%b,"result":1}' % key)
        assert bytes(await soon(call)) == b"1"
        await wire.ping()
        assert calls == 1
