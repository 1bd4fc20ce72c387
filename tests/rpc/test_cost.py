"""What a message costs, beside the bare work of decoding it: wide margins, against gross mistakes.

A task for each message, or a frame looked at twice, would be several times over them. `make bench`
has the figures against other clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from support.cost import cpu_seconds
from support.fake_transport import FakeTransport
from support.peers import soon

from dragoman.rpc import Peer
from dragoman.schema import Model, decode, encode, v1
from dragoman.wire.messages import encode_notification, encode_request

COUNT = 5000
MOST_TIMES = 6


class Envelope(msgspec.Struct):
    method: str
    params: msgspec.Raw
    id: int = 0


class Client:
    """Decodes what comes to its type, and answers at once."""

    def __init__(self) -> None:
        self.tapped = 0

    def notified(self, method: str, params: msgspec.Raw) -> None:
        decode(params, v1.SessionNotification)

    def asked(self, method: str, params: msgspec.Raw) -> bytes:
        decode(params, v1.ReadTextFileRequest)
        return encode(v1.ReadTextFileResponse(content="hello"))

    def tap(self, direction: str, frame: bytes) -> None:
        self.tapped += 1


def handled(frame: bytes) -> Callable[[], None]:
    """A whole connection over which so many of these frames come."""
    chunk = (frame + b"\n") * 250

    async def run() -> None:
        transport = FakeTransport.with_input(*[chunk] * (COUNT // 250), b"")
        client = Client()
        async with Peer(
            transport, on_notification=client.notified, on_request=client.asked, tap=client.tap
        ) as peer:
            await soon(peer.wait_ended())
        assert client.tapped >= COUNT

    return lambda: asyncio.run(run())


def floor(frame: bytes, type_: type[Model]) -> float:
    """The CPU time of splitting the lines and decoding them twice, envelope and params."""
    envelope, params = msgspec.json.Decoder(Envelope).decode, msgspec.json.Decoder(type_).decode
    chunk = (frame + b"\n") * COUNT

    def run() -> None:
        for line in chunk.split(b"\n")[:-1]:
            params(envelope(line).params)

    return cpu_seconds(run)


def test_an_update_costs_little_more_than_its_decoding() -> None:
    text = v1.AgentMessageChunk(content=v1.TextContent(text="and so the answer goes on a bit"))
    update = encode(v1.SessionNotification(session_id="s", update=text))
    frame = encode_notification("session/update", update)
    assert cpu_seconds(handled(frame)) < MOST_TIMES * floor(frame, v1.SessionNotification)


def test_a_request_costs_little_more_than_its_decoding() -> None:
    asked = encode(v1.ReadTextFileRequest(session_id="s", path="/src/main.py"))
    frame = encode_request(b"7", "fs/read_text_file", asked)
    most = 3 * MOST_TIMES  # it is also encoded, and sent
    assert cpu_seconds(handled(frame)) < most * floor(frame, v1.ReadTextFileRequest)
