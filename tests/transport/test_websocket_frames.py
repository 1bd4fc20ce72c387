"""Frames as bytes: whole, in pieces, split anywhere, and those that no server should send."""

from __future__ import annotations

import random

import pytest
from support.socket_server import frame, head
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from dragoman.transport import websocket_frames
from dragoman.transport.websocket_frames import BadFrame, Incoming

SEED = 7


def fed(*parts: bytes) -> bytes:
    incoming = Incoming()
    return b"".join(map(incoming.feed, parts))


def test_each_text_is_a_line() -> None:
    texts = [b"", b"{}", b"x" * 125, b"x" * 126, b"x" * 65535, b"x" * 65536]
    assert fed(b"".join(map(frame, texts))) == b"".join(text + b"\n" for text in texts)


def test_a_newline_inside_a_message_does_not_make_two_lines_of_it() -> None:
    assert fed(frame(b'{\n"a":\n1}') + frame(b"{}")) == b'{ "a": 1}\n{}\n'
    assert fed(frame(b"{\n", fin=False) + frame(b"\n}", 0)) == b"{  }\n"


def test_a_message_in_fragments_is_one_line() -> None:
    pieces = frame(b'{"a"', fin=False) + frame(b":", 0, fin=False) + frame(b"1}", 0)
    assert fed(pieces + frame(b"{}")) == b'{"a":1}\n{}\n'


def test_what_has_come_of_a_message_is_passed_on_at_once() -> None:
    incoming = Incoming()
    assert incoming.feed(head(1 << 40) + b"a" * 10) == b"a" * 10
    assert incoming.feed(b"b" * 10) == b"b" * 10


def test_binary_messages_are_passed_over() -> None:
    parts = frame(b"\x00\n", 0x2, fin=False) + frame(b"more", 0) + frame(b"", 0x2) + frame(b"{}")
    assert fed(parts) == b"{}\n"


def test_control_frames_may_come_between_fragments() -> None:
    incoming = Incoming()
    parts = frame(b"{", fin=False) + frame(b"p", 0x9) + frame(b"", 0xA) + frame(b"}", 0)
    assert incoming.feed(parts) == b"{}\n"
    assert incoming.pings == [b"p"]


@pytest.mark.parametrize(
    ("payload", "closed"),
    [(b"", (1005, "")), (b"\x03\xe9", (1001, "")), (b"\x03\xf3why \xff", (1011, "why \ufffd"))],
)
def test_behind_a_close_nothing_counts(payload: bytes, closed: tuple[int, str]) -> None:
    incoming = Incoming()
    assert incoming.feed(frame(b"{}") + frame(payload, 0x8) + b"\xff\xff") == b"{}\n"
    assert incoming.closed == closed
    assert incoming.feed(frame(b"{}")) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\x80\x00\x00\x00\x00",
        b"\xc1\x00",
        b"\x83\x00",
        b"\x8b\x00",
        frame(b"", 0x0),
        frame(b"a", fin=False) + frame(b"b"),
        frame(b"a", 0x9, fin=False),
        b"\x89\x7e\x00\x7e" + b"x" * 126,
    ],
    ids=[
        *("masked", "reserved bit", "unknown kind", "unknown control"),
        *("nothing to continue", "begun within another", "ping in pieces", "large ping"),
    ],
)
def test_what_is_no_websocket_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        fed(data)


def test_it_does_not_matter_where_the_bytes_are_split() -> None:
    chance = random.Random(SEED)
    sizes = (0, 1, 125, 126, 127, 300, 65535, 65536)
    texts = [bytes(chance.choices(b"ab\n{}", k=chance.choice(sizes))) for _ in range(60)]
    data = b"".join(frame(b"", 0x9) + frame(text) for text in texts)
    whole = fed(data)
    for _ in range(20):
        cuts = sorted(chance.sample(range(len(data)), 200))
        parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert fed(*parts) == whole, f"seed {SEED}"
    small = b"".join(map(frame, [b"ab", b"", b"c" * 130]))
    assert fed(*(small[i : i + 1] for i in range(len(small)))) == fed(small)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 1 << 20])
def test_the_library_reads_what_we_send(size: int) -> None:
    server = ServerProtocol(state=OPEN, max_size=None)
    text = b"x" * size
    server.receive_data(websocket_frames.text(text) + websocket_frames.pong(b"p"))
    server.receive_data(websocket_frames.ping() + websocket_frames.close(1000))
    events = [event for event in server.events_received() if isinstance(event, Frame)]
    assert [(event.opcode, bytes(event.data)) for event in events] == [
        (Opcode.TEXT, text),
        (Opcode.PONG, b"p"),
        (Opcode.PING, b""),
        (Opcode.CLOSE, b"\x03\xe8"),
    ]
    assert server.parser_exc is None
