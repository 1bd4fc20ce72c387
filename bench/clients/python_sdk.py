"""The column of the official Python SDK."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from acp import PROTOCOL_VERSION, text_block
from acp.schema import AgentMessageChunk, ReadTextFileResponse, TextContentBlock
from acp.stdio import spawn_agent_process

from bench.clients.gauge import Gauge


class Counting:
    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        chars = 0
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            chars = len(update.content.text)
        self.gauge.saw(chars)

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **kwargs: Any,
    ) -> ReadTextFileResponse:
        return ReadTextFileResponse(content="hello")


async def main(command: str, *args: str) -> None:
    gauge = Gauge()
    client: Any = Counting(gauge)  # a tenth of what `acp.Client` asks for: all this agent uses
    async with spawn_agent_process(client, command, *args) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd="/", mcp_servers=[])
        gauge.start()
        await agent.prompt(session_id=session.session_id, prompt=[text_block("go")])
        gauge.stop()


asyncio.run(main(*sys.argv[1:]))
