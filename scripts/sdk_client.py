"""A client of a few lines on the official Python SDK, for the checks of conformance.

python scripts/sdk_client.py AGENT

It takes a moment over each update, as a client does that writes to a file or a socket.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from acp import PROTOCOL_VERSION, text_block
from acp.schema import AgentMessageChunk, TextContentBlock
from acp.stdio import spawn_agent_process

MOMENT_SECONDS = 0.002


class Printing:
    """Prints what the agent says."""

    def __init__(self) -> None:
        self._updates = 0

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self._updates += 1
        await asyncio.sleep(MOMENT_SECONDS * (self._updates % 3))
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            print(update.content.text, end="", flush=True)


async def main(command: str) -> None:
    client: Any = Printing()  # a tenth of what `acp.Client` asks for
    async with spawn_agent_process(client, command) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[text_block("go")])


asyncio.run(main(sys.argv[1]))
