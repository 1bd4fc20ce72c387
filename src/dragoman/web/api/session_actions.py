"""Endpoints that ask something of one session: prompts, answers, settings, its queue, its end.

Each sends a command to the process that runs it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import CommandRefused, SessionNotContinued
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.handoffs import hand_off
from dragoman.store.base import events_of_types
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.server_shapes import IdQuery
from dragoman.web.shapes.session_shapes import (
    Accepted,
    CancelBody,
    Cancelled,
    ConfigBody,
    ElicitationBody,
    HandoffAnswer,
    HandoffBody,
    KillBody,
    ModeBody,
    Nothing,
    ParkedAnswer,
    ParkedBody,
    PermissionBody,
    PromptBody,
    Queue,
    QueueBody,
    SteerAnswer,
)
from dragoman.web.uploads import note_uploads, prompt_content, start_again


async def prompt(server: Server, session_id: str, body: PromptBody) -> Accepted:
    reply = await _said(server, session_id, body, c.Prompt)
    return Accepted(turn=reply["turn"], queued=reply["queued"], delayed=reply.get("delayed"))


async def steer(server: Server, session_id: str, body: PromptBody) -> SteerAnswer:
    return SteerAnswer(**await _said(server, session_id, body, c.SteerTurn))


async def _said(
    server: Server, session_id: str, body: PromptBody, command: type[c.Prompt | c.SteerTurn]
) -> c.Reply:
    content = await prompt_content(server, session_id, body)
    try:
        reply = await server.hub.send(session_id, command(content))
    except (SessionNotContinued, CommandRefused) as error:
        await start_again(server, session_id, error, body.on_reset)
        reply = await server.hub.send(session_id, command(content))
    await note_uploads(server, session_id, body)
    return reply


async def cancel(server: Server, session_id: str, body: CancelBody) -> Cancelled:
    reply = await server.hub.send(session_id, _what_to_stop(body))
    return Cancelled(cancelled=reply["cancelled"], delayed=reply.get("delayed"))


def _what_to_stop(body: CancelBody) -> c.Command:
    match body.tool_call_id, body.terminal_id, body.subagent_id:
        case None, None, None:
            return c.Cancel()
        case str(tool_call_id), None, None:
            return c.CancelToolCall(tool_call_id)
        case None, str(terminal_id), None:
            return c.CancelTerminal(terminal_id)
        case None, None, str(subagent_id):
            return c.CancelSubagent(subagent_id)
        case _:
            raise RequestFailed(400, "invalid", "expected one thing to stop, not several")


async def set_mode(server: Server, session_id: str, body: ModeBody) -> Nothing:
    return await _done(server, session_id, c.SetMode(body.mode_id))


async def set_config(server: Server, session_id: str, body: ConfigBody) -> Nothing:
    return await _done(server, session_id, c.SetConfig(body.config_id, body.value))


async def close(server: Server, session_id: str) -> Nothing:
    return await _done(server, session_id, c.Close())


async def kill(server: Server, session_id: str, body: KillBody) -> Nothing:
    reply = await server.hub.send(session_id, c.Kill(body.force))
    if others := reply.get("others"):
        names = ", ".join(each["title"] or each["name"] or each["id"] for each in others)
        sentence = f"the agent's process also serves other sessions, which would end: {names}"
        raise RequestFailed(409, "agent_shared", sentence, {"sessions": others})
    return Nothing(delayed=reply.get("delayed"))


async def _done(server: Server, session_id: str, command: c.Command) -> Nothing:
    reply = await server.hub.send(session_id, command)
    return Nothing(delayed=reply.get("delayed"))


async def answer_permission(
    server: Server, session_id: str, request_id: str, body: PermissionBody
) -> Nothing:
    command = c.AnswerPermission(request_id, body.option_id, body.confirmed)
    return await _answered(server, session_id, command, "permission")


async def answer_elicitation(
    server: Server, session_id: str, request_id: str, body: ElicitationBody
) -> Nothing:
    command = c.AnswerElicitation(request_id, body.action, body.content)
    return await _answered(server, session_id, command, "elicitation")


async def _answered(
    server: Server,
    session_id: str,
    command: c.AnswerPermission | c.AnswerElicitation,
    kind: Literal["permission", "elicitation"],
) -> Nothing:
    """Distinguish what was settled from what was never asked, or not as one of this kind."""
    try:
        return await _done(server, session_id, command)
    except CommandRefused as error:
        key = command.request_id
        if error.code == "settled" and not await _was_asked(server, session_id, key, kind):
            raise RequestFailed(404, "unknown_request", f"there is no {kind} {key}") from None
        raise


async def _was_asked(server: Server, session_id: str, request_id: str, kind: str) -> bool:
    wanted = b'"requestId":%b' % msgspec.json.encode(request_id)
    async for event in events_of_types(server.hub.store, session_id, (f"{kind}_requested",)):
        if wanted in event.body:
            return True
    return False


async def settle_parked(server: Server, session_id: str, body: ParkedBody) -> ParkedAnswer:
    if (body.agent is not None) != (body.action == "hand_over"):
        raise RequestFailed(400, "invalid", "expected an agent with hand_over, and only there")
    if body.agent is not None:
        new_id = await server.hub.parked.hand_over(session_id, body.agent, stays=True)
        return ParkedAnswer(session=new_id)
    command = c.DropParked() if body.action == "drop" else c.ContinueParked(body.action != "wait")
    reply = await server.hub.send(session_id, command)
    return ParkedAnswer(turn=reply.get("turn"), delayed=reply.get("delayed"))


async def hand_off_session(server: Server, session_id: str, body: HandoffBody) -> HandoffAnswer:
    return HandoffAnswer(await hand_off(server.hub, session_id, body.agent, body.text))


async def list_queue(server: Server, session_id: str) -> Queue:
    return Queue(queue=(await server.hub.state(session_id)).queue)


async def change_queue(server: Server, session_id: str, body: QueueBody) -> Queue:
    content = await prompt_content(server, session_id, body)
    command = c.Prompt(content) if body.id is None else c.EditQueued(body.id, content)
    queue = await _queue_after(server, session_id, command)
    await note_uploads(server, session_id, body)
    return queue


async def drop_queued(server: Server, session_id: str, query: IdQuery) -> Queue:
    return await _queue_after(server, session_id, c.DropQueued(query.id))


async def _queue_after(server: Server, session_id: str, command: c.Command) -> Queue:
    reply = await server.hub.send(session_id, command)
    delayed, live = reply.get("delayed"), server.hub.live.get(session_id)
    if delayed is None or live is None:
        return await list_queue(server, session_id)
    # It was done here, and the database cannot say yet what the queue is now.
    return Queue(queue=live.state.queue, delayed=delayed)
