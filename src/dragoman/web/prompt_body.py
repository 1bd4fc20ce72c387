"""Prompts as they come over HTTP: text, blocks as ACP writes them, and uploads."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.client.prompts import check_size, content_of, find_mentions
from dragoman.errors import CommandRefused, SessionNotContinued
from dragoman.hub import commands as c
from dragoman.hub.opener import OnReset
from dragoman.session.content import Content, Text
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.steering import PromptBody


async def prompt_content(server: Server, session_id: str, body: PromptBody) -> str | list[Content]:
    """What to send. Raises Failure for a block that cannot be sent, PromptTooLarge,
    UnknownSession."""
    if body.text is None and not body.content:
        raise RequestFailed(400, "invalid", "a prompt needs `text` or `content`")
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


async def note_uploads(server: Server, session_id: str, body: PromptBody) -> None:
    """That they were sent in the session: they are deleted with it. Not before a prompt was
    accepted, since one that is refused can be sent again elsewhere."""
    for block in body.content or ():
        match block:
            case {"type": "upload", "uri": str(uri)}:
                store_id = server.hub.store.id
                await asyncio.to_thread(server.uploads.note_sent, uri, store_id, session_id)
            case _:
                pass


async def start_again(
    server: Server,
    session_id: str,
    error: SessionNotContinued | CommandRefused,
    on_reset: OnReset,
) -> None:
    """Have a session that its agent has forgotten go on without that memory, if that is wanted;
    else, and for any other `error`, raises it. Where another process runs it, that is not ours to
    do: raises SessionOwned, SessionElsewhere."""
    is_forgotten = isinstance(error, SessionNotContinued) or error.code == "not_continued"
    if on_reset != "new" or not is_forgotten:
        raise error
    if session_id in server.hub.live:
        await server.hub.send(session_id, c.Close())
    await server.hub.open(session_id, on_reset="new")


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
        raise RequestFailed(400, "invalid", f"content[{number}]: {error}") from None
