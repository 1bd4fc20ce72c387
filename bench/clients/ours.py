"""Our column: typed decode, wire order, and a tap that sees every frame."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

import msgspec

from bench.clients.gauge import Gauge
from dragoman.rpc import Peer
from dragoman.schema import v1
from dragoman.schema.codec import decode, decoder, encode
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.transport import Transport
from dragoman.wire.fast_path import Usual


class Counting:
    def __init__(self) -> None:
        self.gauge = Gauge()
        self.tapped = 0

    def tap(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        self.tapped += len(frame)

    def notified(self, method: str, params: msgspec.Raw) -> None:
        self.told([decode(params, v1.SessionNotification)], [len(params)])

    def told(self, run: list[v1.SessionNotification], sizes: list[int]) -> None:
        for notification in run:
            chars, update = 0, notification.update
            if isinstance(update, v1.AgentMessageChunk) and isinstance(
                update.content, v1.TextContent
            ):
                chars = len(update.content.text)
            self.gauge.saw(chars)

    def requested(self, method: str, params: msgspec.Raw) -> bytes:
        """What can be answered at once needs no task; a handler may be a coroutine as well."""
        decode(params, v1.ReadTextFileRequest)
        return encode(v1.ReadTextFileResponse(content="hello"))


async def converse(transport: Transport, client: Counting) -> None:
    """One prompt, measured."""
    async with Peer(
        transport,
        on_notification=client.notified,
        on_request=client.requested,
        tap=client.tap,
    ) as agent:
        agent.usual = Usual("session/update", v1.SessionNotification, client.told, decoder=decoder)
        await agent.call("initialize", encode(v1.InitializeRequest(protocol_version=1)))
        new = encode(v1.NewSessionRequest(cwd="/", mcp_servers=[]))
        session = decode(await agent.call("session/new", new), v1.NewSessionResponse)
        prompt = v1.PromptRequest(session_id=session.session_id, prompt=[v1.TextContent(text="go")])
        client.gauge.start()
        await agent.call("session/prompt", encode(prompt))
        client.gauge.stop()


async def main(command: str, *args: str) -> None:
    await converse(await StdioTransport.start(AgentCommand(command, args)), Counting())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
