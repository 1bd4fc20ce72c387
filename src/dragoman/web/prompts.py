"""Prompts as they come over HTTP: text, blocks as ACP writes them, and uploads."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.client.blocks import content_of
from dragoman.client.mentions import find_mentions
from dragoman.session.content import Content, Text
from dragoman.web.failures import Failure
from dragoman.web.server import Server
from dragoman.web.shapes.steering import PromptBody

MAX_PROMPT_BYTES = 48 * 1024 * 1024
"""Less than a recording takes at once, or a frame to the agent has room for."""


async def prompt_content(server: Server, session_id: str, body: PromptBody) -> str | list[Content]:
    """What to send. Raises Failure for a block that cannot be sent, UnknownSession."""
    record = await server.hub.record(session_id)
    if body.text is None and not body.content:
        raise Failure(400, "invalid", "a prompt has `text` or `content`")
    if not body.content:
        return body.text or ""
    parts: list[Content] = []
    if body.text is not None:
        parts.append(Text(body.text))
        if record.cwd and server.hub.hosts.has(record):  # else the files are on another machine
            parts += find_mentions(body.text, record.cwd)
    for number, block in enumerate(body.content):
        parts.append(await _part(server, session_id, number, block))
    check_size(parts)
    return parts


def check_size(content: list[Content]) -> None:
    """Raises Failure for what is too much for one event. Small files may be: as JSON, control
    characters take six bytes each."""
    if len(msgspec.json.encode(content)) > MAX_PROMPT_BYTES:
        sentence = f"the prompt and its files may have {MAX_PROMPT_BYTES} bytes at most, as JSON"
        raise Failure(413, "too_large", sentence)


async def _part(server: Server, session_id: str, number: int, block: dict[str, Any]) -> Content:
    match block:
        case {"type": "upload", "uri": str(uri)}:
            live = server.hub.live.get(session_id)
            audio = live is None or live.running.client.capabilities.audio
            return await asyncio.to_thread(server.uploads.content, uri, audio=audio)
        case _:
            return _converted(number, block)


def _converted(number: int, block: dict[str, Any]) -> Content:
    try:
        return content_of(block)
    except ValueError as error:
        raise Failure(400, "invalid", f"content[{number}]: {error}") from None
