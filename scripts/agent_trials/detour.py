"""A second address of the model in the lab, which shows whether an agent goes there."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from agent_trials.features import NotOffered
from agent_trials.lab import LabAgent


class Detour:
    """Passes on what comes; `taken` says how often something did."""

    def __init__(self, agent: LabAgent) -> None:
        if agent.fence.network != "all" and agent.fence.mode != "off":
            raise NotOffered("from its fence it reaches the model alone, by its first address")
        self.taken = 0
        self._model = urlsplit(os.environ["LAB_BASE"])

    async def __aenter__(self) -> Detour:
        self._server = await asyncio.start_server(self._lead, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    def instead_of(self, provider: dict[str, Any]) -> tuple[str, str]:
        """The protocol of a model provider, and its address by the detour."""
        current: dict[str, str] = provider["current"]
        port = self._server.sockets[0].getsockname()[1]
        return current["apiType"], f"http://127.0.0.1:{port}{urlsplit(current['baseUrl']).path}"

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        there = await asyncio.open_connection(self._model.hostname, self._model.port)
        ways = _copied(reader, there[1]), _copied(there[0], writer)
        await asyncio.gather(*ways, return_exceptions=True)


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
