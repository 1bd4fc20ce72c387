"""Lines that are no messages: counted, sampled for the error message, never fatal."""

from __future__ import annotations

import pytest
from support.peers import Turns, connected


async def test_the_first_lines_of_noise_are_kept_as_a_sample() -> None:
    async with connected() as (peer, wire):
        wire.write(b"npm WARN deprecated", b"caf\xe9", b"[]")
        await wire.ping()
        assert peer.noise.lines == 3
        assert peer.noise.sample == "npm WARN deprecated\ncaf\ufffd\n[]\n"


async def test_a_flood_of_noise_is_counted_and_not_kept() -> None:
    async with connected() as (peer, wire):
        for _ in range(100):
            wire.write(*([b"x" * 1000] * 100))
        await wire.ping()
        assert peer.noise.lines == 10_000
        assert len(peer.noise.sample) <= 2500


async def test_blank_lines_are_no_noise() -> None:
    async with connected() as (peer, wire):
        wire.write(b"", b" ", b"\r", b"\t\r")
        await wire.ping()
        assert peer.noise.lines == 0


@pytest.mark.parametrize("line", [b"", b"noise", b"[]"])
async def test_others_get_their_turn_while_a_flood_of_lines_is_passed_over(line: bytes) -> None:
    async with connected() as (_, wire), Turns() as turns:
        wire.write(*[line] * 50_000)
        await wire.ping()
    assert turns.count > 50_000 // 256
