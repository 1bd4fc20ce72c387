"""What is asked of a session: passed on to whoever runs it."""

from __future__ import annotations

from dragoman.hub import commands as c
from dragoman.web.prompts import prompt_content
from dragoman.web.server import Server
from dragoman.web.shapes.base import IdQuery
from dragoman.web.shapes.steering import (
    Accepted,
    Cancelled,
    ConfigBody,
    ElicitationBody,
    ModeBody,
    Nothing,
    PermissionBody,
    PromptBody,
    Queue,
    QueueBody,
    RevertBody,
    Reverted,
)


async def prompt(server: Server, session_id: str, body: PromptBody) -> Accepted:
    content = await prompt_content(server, session_id, body)
    reply = await server.hub.send(session_id, c.Prompt(content))
    return Accepted(turn=reply["turn"], queued=reply["queued"])


async def cancel(server: Server, session_id: str) -> Cancelled:
    reply = await server.hub.send(session_id, c.Cancel())
    return Cancelled(cancelled=reply["cancelled"])


async def set_mode(server: Server, session_id: str, body: ModeBody) -> Nothing:
    await server.hub.send(session_id, c.SetMode(body.mode_id))
    return Nothing()


async def set_config(server: Server, session_id: str, body: ConfigBody) -> Nothing:
    await server.hub.send(session_id, c.SetConfig(body.config_id, body.value))
    return Nothing()


async def close(server: Server, session_id: str) -> Nothing:
    await server.hub.send(session_id, c.Close())
    return Nothing()


async def kill(server: Server, session_id: str) -> Nothing:
    await server.hub.send(session_id, c.Kill())
    return Nothing()


async def answer_permission(
    server: Server, session_id: str, request_id: str, body: PermissionBody
) -> Nothing:
    await server.hub.send(session_id, c.Answer(request_id, body.option_id))
    return Nothing()


async def answer_elicitation(
    server: Server, session_id: str, request_id: str, body: ElicitationBody
) -> Nothing:
    command = c.AnswerElicitation(request_id, body.action, body.content)
    await server.hub.send(session_id, command)
    return Nothing()


async def revert(server: Server, session_id: str, body: RevertBody) -> Reverted:
    reply = await server.hub.send(session_id, c.Revert(body.turn_id, body.force))
    return Reverted(paths=reply["paths"])


async def list_queue(server: Server, session_id: str) -> Queue:
    return Queue(queue=(await server.hub.state(session_id)).queue)


async def change_queue(server: Server, session_id: str, body: QueueBody) -> Queue:
    content = await prompt_content(server, session_id, body)
    if body.id is None:
        await server.hub.send(session_id, c.Prompt(content))
    else:
        await server.hub.send(session_id, c.EditQueued(body.id, content))
    return await list_queue(server, session_id)


async def drop_queued(server: Server, session_id: str, query: IdQuery) -> Queue:
    await server.hub.send(session_id, c.DropQueued(query.id))
    return await list_queue(server, session_id)
