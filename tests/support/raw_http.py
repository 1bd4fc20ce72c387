"""HTTP as bytes: requests that no proper client would send."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The word for the error."""
        error: Any = json.loads(self.body)["error"]
        return error["code"]


async def raw(port: int, request: bytes) -> Answer:
    """Send these bytes on a connection of their own; what comes back."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            return await _read(reader)
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    length = int(headers.get("content-length", "0"))
    return Answer(int(head[0].split(" ")[1]), headers, await reader.readexactly(length))


def request(
    method: str, target: str, headers: dict[str, str], body: bytes = b"", *, length: bool = True
) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if length and body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
