"""The usual notification is handed over in runs, and nothing about it changes but its cost."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec import Raw
from support.peers import connected, settled, soon

from dragoman.errors import FrameTooLarge, PeerStalled
from dragoman.rpc import PeerLimits
from dragoman.wire.fast_path import Usual


def note(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"note","params":%d}' % number


def request(key: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"ask"}' % key


class Log:
    """Everything the peer was told, in the order it was."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.runs: list[int] = []

    def usual(self) -> Usual[int]:
        return Usual("note", int, self.told, decoder=msgspec.json.Decoder)

    def told(self, run: list[int], sizes: list[int]) -> None:
        assert sizes == [len(note(number)) for number in run]
        self.runs.append(len(run))
        self.steps += [f"note {number}" for number in run]

    def notified(self, method: str, params: Raw) -> None:
        self.steps.append(f"{method} {bytes(params).decode()}")

    def asked(self, method: str, params: Raw) -> bytes:
        self.steps.append(method)
        return b"null"

    def tap(self, direction: str, frame: bytes) -> None:
        if direction == "received" and b'"note"' in frame:
            self.steps.append(f"tap {msgspec.json.decode(frame)['params']}")


async def test_runs_keep_their_place_among_all_else_on_the_wire() -> None:
    log = Log()
    async with connected(on_notification=log.notified, on_request=log.asked) as (peer, wire):
        peer.usual = log.usual()
        call = asyncio.create_task(peer.call("work", b"{}"))
        key = await wire.read_call()
        reply = b'{"jsonrpc":"2.0","id":%b,"result":1}' % key
        call.add_done_callback(lambda _: log.steps.append("reply"))
        other = b'{"jsonrpc":"2.0","method":"other","params":7}'
        wire.write(*map(note, range(5)), request(1), note(5), other, note(6), note(7), reply)
        await soon(call)
        assert log.steps == [
            *(f"note {number}" for number in range(5)),
            "ask",
            "note 5",
            "other 7",
            "note 6",
            "note 7",
            "reply",
        ]
        # The first of a run behind something else comes the long way, one by one.
        assert log.runs == [4, 1]
        assert await wire.read_json() == {"jsonrpc": "2.0", "id": 1, "result": None}


async def test_the_tap_sees_each_of_a_run_before_it_is_handled() -> None:
    log = Log()
    async with connected(on_notification=log.notified, tap=log.tap) as (peer, wire):
        peer.usual = log.usual()
        wire.write(*map(note, range(4)))
        await settled()
        taps = [f"tap {number}" for number in range(4)]
        assert log.steps == [taps[0], "note 0", *taps[1:], "note 1", "note 2", "note 3"]


async def test_a_tap_that_fails_in_the_middle_of_a_run_takes_nothing_along() -> None:
    log = Log()
    seen: list[bytes] = []

    def tap(direction: str, frame: bytes) -> None:
        seen.append(frame)
        if frame == note(2):
            raise OSError("disk full")

    async with connected(on_notification=log.notified, tap=tap) as (peer, wire):
        peer.usual = log.usual()
        wire.write(*map(note, range(5)))
        await wire.ping()
        assert log.steps == [f"note {number}" for number in range(5)]
        assert log.runs == [4]
        assert seen == [note(0), note(1), note(2)]


async def test_a_run_is_handled_before_the_broken_request_behind_it_is_answered() -> None:
    log = Log()

    def tap(direction: str, frame: bytes) -> None:
        log.steps.append(f"{direction} {msgspec.json.decode(frame).get('params')}")

    async with connected(on_notification=log.notified, tap=tap) as (peer, wire):
        peer.usual = log.usual()
        wire.write(note(0), note(1), b'{"jsonrpc":"2.0","id":5,"method":7}', note(2))
        assert (await wire.read_json())["id"] == 5
        await settled()
        assert log.steps == [
            *("received 0", "note 0"),
            *("received 1", "note 1"),
            *("received None", "sent None"),
            *("received 2", "note 2"),
        ]


async def test_a_run_does_not_wait_for_more() -> None:
    log = Log()
    async with connected(on_notification=log.notified) as (peer, wire):
        peer.usual = log.usual()
        for number in range(4):
            wire.write(note(number))
            await settled()
            assert log.steps[-1] == f"note {number}"


async def test_what_came_before_the_frame_that_ends_a_connection_is_handled() -> None:
    log = Log()
    limits = PeerLimits(frame_bytes=1000)
    async with connected(on_notification=log.notified, limits=limits) as (peer, wire):
        peer.usual = log.usual()
        wire.write(*map(note, range(4)), b"x" * 2000)
        assert isinstance(await soon(peer.wait_ended()), FrameTooLarge)
        assert log.steps == [f"note {number}" for number in range(4)]


async def test_nothing_is_handled_behind_a_run_that_ended_the_connection() -> None:
    log = Log()
    limits = PeerLimits(unsent_bytes=1000)
    async with connected(on_notification=log.notified, on_request=log.asked, limits=limits) as (
        peer,
        wire,
    ):

        def told(run: list[int], sizes: list[int]) -> None:
            log.told(run, sizes)
            peer.notify("much", b'"%b"' % (b"x" * 200_000))

        peer.usual = Usual("note", int, told, decoder=msgspec.json.Decoder)
        wire.write(note(0), note(1), request(1), note(2), request(2))
        assert isinstance(await soon(peer.wait_ended()), PeerStalled)
        assert log.steps == ["note 0", "note 1"]


async def test_the_last_one_may_lack_its_newline() -> None:
    log = Log()
    async with connected(on_notification=log.notified) as (peer, wire):
        peer.usual = log.usual()
        wire.write(note(0), note(1))
        wire.transport.send(note(2))
        await wire.end()
        await soon(peer.wait_ended())
        assert log.steps == ["note 0", "note 1", "note 2"]


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
async def test_a_handler_that_fails_is_logged_and_the_connection_lives(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fails(run: list[int], sizes: list[int]) -> None:
        raise kind(f"no {run}")

    async with connected() as (peer, wire):
        peer.usual = Usual("note", int, fails, decoder=msgspec.json.Decoder)
        wire.write(note(0), note(1), note(2))
        await wire.ping()
    assert "a handler of note failed" in caplog.text
    assert "no [1, 2]" in caplog.text
