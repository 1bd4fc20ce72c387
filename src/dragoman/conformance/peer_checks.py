"""What holds for both sides of a connection: ids, methods and errors of JSON-RPC, and odd frames.

An agent and a client are peers here. A subject's checks get these rows where their module says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeAlias

import msgspec

from dragoman.conformance.check import JSON_RPC, Checks, Subject, expect, page
from dragoman.conformance.probing.loose_json import at
from dragoman.conformance.probing.probe import (
    PING,
    Probe,
    Received,
    error_code,
    frame_of,
    is_error,
)

_TRANSPORT = page("transports")
_EXTENSIONS = page("extensibility")
_IDS = {"string": "a-1", "zero": 0, "large": 2**53 - 1, "negative": -7}
_STRAY = b'{"jsonrpc":"2.0","id":"nobody asked",%s}'
_ERROR = b'"error":{"code":-32603,"message":"no"}'

OddFrame: TypeAlias = tuple[str, bytes, str]
"""The name of a frame that is not a usable message, the frame, and what it is."""
STRAY_FRAMES: tuple[OddFrame, ...] = (
    ("stray-answer", _STRAY % b'"result":{}', "a response to a request that was never sent"),
    ("stray-error", _STRAY % _ERROR, "an error response to a request that was never sent"),
)


class PeerChecks(Generic[Subject]):
    """Adds the rows to the checks of a subject, a group at a time."""

    def __init__(
        self,
        checks: Checks[Subject],
        who: str,
        connect: Callable[[Subject], Awaitable[Probe[Any]]],
        when: str = "",
    ) -> None:
        """`who` is the side that is examined, `connect` brings it to where it takes messages, and
        `when` says so."""
        self._checks = checks
        self._who = who
        self._connect = connect
        self._when = when

    # ── JSON-RPC ──────────────────────────────────────────────────────────────────────────────

    def ids(self) -> None:
        for name, key in _IDS.items():
            self._id(name, key)

    def _id(self, name: str, key: Any) -> None:
        @self._checks.must(
            f"rpc.id-{name}",
            "A response has the id of its request, with the same value and type.",
            does=f"sends a request with the id `{msgspec.json.encode(key).decode()}`",
            expects="a response with exactly this id",
        )
        async def echoes_the_id(subject: Subject) -> None:
            probe = await self._connect(subject)
            mark = len(probe.received)
            probe.begin(PING, {}, key)
            await probe.settle("a request")
            others = [str(each.message.get("id")) for each in _answers(probe.received[mark:])]
            expect(bool(probe.replies(key, mark)), f"no response has this id, only {others}")

    def unknown_methods(self) -> None:
        self._method(
            "rpc.unknown-method",
            "conformance/no_such_method",
            "A request for a method that does not exist gets the error -32601.",
        )
        self._method(
            "rpc.unknown-extension",
            "_conformance.example/no_such_method",
            f"A request for an extension method that the {self._who} does not support gets the "
            "error -32601.",
            _EXTENSIONS,
        )

    def _method(self, key: str, method: str, says: str, page_: str = JSON_RPC) -> None:
        @self._checks.must(
            key, says, page=page_, does=f"calls `{method}`{self._when}", expects="the error -32601"
        )
        async def rejects_the_method(subject: Subject) -> None:
            reply = await (await self._connect(subject)).call(method, {})
            code = error_code(reply)
            expect(is_error(reply), "the unknown method got a result")
            expect(code == -32601, f"the unknown method got the error {code!r}")

    def unknown_notifications(self) -> None:
        self._notification(
            "rpc.unknown-notification",
            "conformance/no_such_notification",
            "A notification never gets a response, not even if it is unknown.",
        )
        self._notification(
            "rpc.unknown-extension-notification",
            "_conformance.example/no_such_notification",
            "An unknown extension notification is ignored.",
            _EXTENSIONS,
        )

    def _notification(self, key: str, method: str, says: str, page_: str = JSON_RPC) -> None:
        @self._checks.must(
            key,
            says,
            page=page_,
            does=f"sends the notification `{method}`{self._when}",
            expects=f"no response, and the {self._who} still responds to requests",
        )
        async def ignores_the_notification(subject: Subject) -> None:
            await expect_silence(await self._connect(subject), method, {})

    def error_shape(self) -> None:
        @self._checks.must(
            "rpc.error-shape",
            "An error has an integer `code` and a string `message`.",
            does=f"calls `conformance/show_an_error`{self._when}",
            expects="an error object with both",
        )
        async def shapes_its_errors(subject: Subject) -> None:
            probe = await self._connect(subject)
            reply = await probe.call("conformance/show_an_error", {})
            expect(is_error(reply), f"the error is {reply.get('error')!r}, not an object")
            code, message = error_code(reply), at(reply, "error", "message")
            expect(type(code) is int, f"the code is {code!r}, not an integer")
            expect(isinstance(message, str), "the message is not a string")

    # ── frames ────────────────────────────────────────────────────────────────────────────────

    def odd_frames(self, *frames: OddFrame) -> None:
        for name, line, what in frames:
            self._odd_frame(name, line, what)

    def _odd_frame(self, name: str, line: bytes, what: str) -> None:
        @self._checks.should(
            f"frames.{name}",
            "One unusable message does not end the connection.",
            does=f"sends {what}{self._when}",
            expects=f"the {self._who} still responds to requests",
        )
        async def survives_the_frame(subject: Subject) -> None:
            probe = await self._connect(subject)
            probe.write(line + b"\n")
            await probe.settle(what)

    def split_frame(self) -> None:
        @self._checks.must(
            "frames.split",
            "A message ends at the newline, no matter in how many pieces it arrives.",
            page=_TRANSPORT,
            does=f"sends a request in three pieces{self._when}",
            expects="a response",
        )
        async def joins_pieces(subject: Subject) -> None:
            probe = await self._connect(subject)
            frame = frame_of({"jsonrpc": "2.0", "id": "in pieces", "method": PING, "params": {}})
            for part in (frame[:9], frame[9:30], frame[30:]):
                probe.transport.send(part)
                await probe.transport.drain()
                await asyncio.sleep(0.02)
            await probe.reply_to("in pieces", "a request in three pieces")

    def line_separators(self) -> None:
        @self._checks.must(
            "frames.line-separators",
            "Only a newline ends a message; other line separators are ordinary characters.",
            page=_TRANSPORT,
            does="sends a request whose text contains U+2028, U+2029 and U+0085, unescaped"
            + self._when,
            expects="a response",
        )
        async def keeps_line_separators(subject: Subject) -> None:
            probe = await self._connect(subject)
            frame = f'{{"jsonrpc":"2.0","method":"{PING}","params":{{"text":"\u2028\u2029\x85"}}'
            probe.write(f'{frame},"id":"lines"}}\n'.encode())
            await probe.reply_to("lines", "a request with line separators")


async def expect_silence(probe: Probe[Any], method: str, params: Any) -> None:
    """Send a notification. Raises CheckFailed if it gets a response, or if nothing gets one any
    longer."""
    mark = len(probe.received)
    probe.notify(method, params)
    await probe.settle(f"the notification {method}")
    for each in _answers(probe.received[mark:]):
        expect(False, "the notification got a response", each.frame)


def _answers(received: list[Received]) -> list[Received]:
    """All but the last, which is that to the ping."""
    return [each for each in received if "method" not in each.message][:-1]
