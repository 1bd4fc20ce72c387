"""The floor: asyncio, msgspec and a loop written for this agent alone, with nothing made safe.

No order kept for handlers that wait, no answer for what goes wrong, no end of the process tree.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec

from bench.clients.gauge import Gauge


class Content(msgspec.Struct):
    type: str
    text: str


class Update(msgspec.Struct, rename="camel"):
    session_update: str
    content: Content | list[Any] | None = None


class Params(msgspec.Struct):
    update: Update | None = None


class Message(msgspec.Struct):
    id: int | None = None
    method: str | None = None
    params: Params | None = None


decode = msgspec.json.Decoder(Message).decode


class Connection:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.gauge = Gauge()
        self.writer, self.reader = process.stdin, process.stdout

    def send(self, **message: object) -> None:
        self.writer.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def call(self, key: int, method: str, params: object) -> None:
        """Send a request and handle everything up to its reply, which is always the last line."""
        self.send(id=key, method=method, params=params)
        rest: list[bytes] = []
        while data := await self.reader.read(65536):
            head, *lines = data.split(b"\n")
            rest.append(head)
            if lines:
                lines.insert(0, b"".join(rest))
                rest = [lines.pop()]
                if self.handle(lines):
                    return

    def handle(self, lines: list[bytes]) -> bool:
        for line in lines:
            message = decode(line)
            if message.method == "session/update":
                self.updated(message.params)
            elif message.method is not None:
                self.send(id=message.id, result={"content": "hello"})
            else:
                return True
        return False

    def updated(self, params: Params | None) -> None:
        assert params is not None
        assert params.update is not None
        content = params.update.content
        is_text = params.update.session_update == "agent_message_chunk"
        self.gauge.saw(len(content.text) if is_text and isinstance(content, Content) else 0)


async def main(command: str, *args: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(command, *args, stdin=pipe, stdout=pipe)
    agent = Connection(process)
    await agent.call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    await agent.call(1, "session/new", {"cwd": "/", "mcpServers": []})
    agent.gauge.start()
    prompt = [{"type": "text", "text": "go"}]
    await agent.call(2, "session/prompt", {"sessionId": "bench", "prompt": prompt})
    agent.gauge.stop()
    agent.writer.close()
    await process.wait()


asyncio.run(main(*sys.argv[1:]))
