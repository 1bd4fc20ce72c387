"""Prompts as they come over HTTP: text, blocks as ACP writes them, and uploads."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.client.blocks import content_of
from dragoman.client.mentions import find_mentions
from dragoman.client.prompts import check_size
from dragoman.session.content import Content, Text
from dragoman.web.failures import Failure
from dragoman.web.server import Server
from dragoman.web.shapes.steering import PromptBody


async def prompt_content(server: Server, session_id: str, body: PromptBody) -> str | list[Content]:
    """What to send. Raises Failure for a block that cannot be sent, PromptTooLarge,
    UnknownSession."""
    if body.text is None and not body.content:
        raise Failure(400, "invalid", "a prompt has `text` or `content`")
    if not body.content:
        return body.text or ""
    parts: list[Content] = []
    if body.text is not None:
        parts.append(Text(body.text))
        record = await server.hub.record(session_id)
        if record.cwd and server.hub.hosts.has(record):  # else the files are on another machine
            parts += find_mentions(body.text, record.cwd).links
    for number, block in enumerate(body.content):
        parts.append(await _part(server, session_id, number, block))
    check_size(parts)
    return parts


async def _part(server: Server, session_id: str, number: int, block: dict[str, Any]) -> Content:
    match block:
        case {"type": "upload", "uri": str(uri)}:
            live = server.hub.live.get(session_id)
            audio = live is None or live.running.client.capabilities.audio
            return await asyncio.to_thread(server.uploads.content, uri, session_id, audio=audio)
        case _:
            return _converted(number, block)


def _converted(number: int, block: dict[str, Any]) -> Content:
    try:
        return content_of(block)
    except ValueError as error:
        raise Failure(400, "invalid", f"content[{number}]: {error}") from None
