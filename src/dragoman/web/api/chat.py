"""Endpoints for `useChat`: a chat is a session with the same id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

from starlette.responses import Response

from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.sessions.prompts import check_size, prepare
from dragoman.errors import (
    CommandRefused,
    PromptTooLarge,
    SessionElsewhere,
    SessionNotContinued,
    SessionOwned,
    UnknownSession,
)
from dragoman.hub.cluster import commands as c
from dragoman.session import events as e
from dragoman.session.content import Content
from dragoman.session.state import PendingPermission
from dragoman.store.base import event_pages
from dragoman.store.records import StoredEvent
from dragoman.ui_stream import ChatRequest, decode
from dragoman.ui_stream.decoder import Answer, ElicitationReply
from dragoman.ui_stream.encoder import allows
from dragoman.ui_stream.message_history import History
from dragoman.web.api import session_actions
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.placement import WantedPlace, begin, system_prompt_from
from dragoman.web.shapes.server_shapes import ChatQuery, Messages, MessagesQuery
from dragoman.web.shapes.session_shapes import Cancelled, PromptBody, SteerAnswer
from dragoman.web.streams.chat_stream import ChatStream, active_settlements
from dragoman.web.streams.stream_response import StreamedResponse
from dragoman.web.uploads import start_again


async def chat(server: Server, query: ChatQuery, body: bytes) -> StreamedResponse:
    request = decode(body)
    async with server.making_chats:
        await _ensure_session(server, request)
    if request.parts and not request.acp.answers:
        return await _prompted(server, request, query)
    return await _answered(server, request, query)


async def _ensure_session(server: Server, request: ChatRequest) -> None:
    if await server.hub.store.session(request.chat_id) is not None:
        return
    if not request.parts or request.acp.answers:
        raise UnknownSession(request.chat_id)
    _check(request)
    wanted = WantedPlace(
        agent=request.acp.agent,
        cwd=request.acp.cwd,
        session_id=request.chat_id,
        system_prompt=system_prompt_from(request.acp.system_prompt),
    )
    await begin(server, wanted)


def _check(request: ChatRequest) -> None:
    """Before a session is made for it: of what cannot be sent, nothing stays."""
    nothing_special = AgentCapabilities()
    content, _ = request.prompt(nothing_special, "file:///")
    try:
        prepare(content, nothing_special, "/")
    except PromptTooLarge:
        raise
    except ValueError as error:
        raise RequestFailed(400, "invalid", str(error)) from None


# ── a prompt ──────────────────────────────────────────────────────────────────────────────────


async def _prompted(server: Server, request: ChatRequest, query: ChatQuery) -> StreamedResponse:
    try:
        turn, after = await _sent(server, request)
    except (SessionNotContinued, CommandRefused) as error:
        await start_again(server, request.chat_id, error, request.acp.on_reset)
        turn, after = await _sent(server, request)
    return ChatStream(server, request.chat_id, query.sdk).of_turn(turn, after)


async def _sent(server: Server, request: ChatRequest) -> tuple[str, int]:
    """The turn, and the number of the last event before it."""
    content = await _content(server, request)
    after = (await server.hub.record(request.chat_id)).last_seq
    reply = await server.hub.send(request.chat_id, c.Prompt(content))
    return reply["turn"], after


async def _content(server: Server, request: ChatRequest) -> list[Content]:
    """Files that the agent does not take inline are kept as uploads, and linked."""
    kept = server.uploads.new_folder()
    agent = await _capabilities(server, request.chat_id)
    content, attachments = request.prompt(agent, f"file://{quote(str(kept))}/")
    check_size(content)
    for each in attachments:
        await asyncio.to_thread(server.uploads.write, kept / each.name, each.data, each.mime_type)
    if attachments:
        store_id = server.hub.store.id
        await asyncio.to_thread(server.uploads.note, kept, store_id, request.chat_id)
    return content


async def _capabilities(server: Server, chat_id: str) -> AgentCapabilities:
    """What the agent takes; where another process runs it, only what every agent takes."""
    try:
        live = await server.hub.open(chat_id)
    except (SessionOwned, SessionElsewhere):
        return AgentCapabilities()
    return live.agent.client.capabilities


# ── answers ───────────────────────────────────────────────────────────────────────────────────


async def _answered(server: Server, request: ChatRequest, query: ChatQuery) -> StreamedResponse:
    approvals = request.approvals
    if (reply := request.acp.elicitation) is not None:
        approvals[reply.request_id] = reply.action == "accept"
    if (chosen := request.acp.permission) is not None:
        approvals[chosen.request_id] = True
    stream = ChatStream(server, request.chat_id, query.sdk)
    response = await stream.of_answers(approvals)
    if response is None:
        raise RequestFailed(409, "settled", "no pending question for this answer")
    await _answer_all(server, request, query)
    return response


async def _answer_all(server: Server, request: ChatRequest, query: ChatQuery) -> None:
    """All of them; none when one of them was settled in another way before."""
    commands, form = await _commands(server, request), request.acp.elicitation
    given = {*request.answers} if form is None else {*request.answers, form.request_id}
    chosen = request.acp.permission
    if chosen is not None and chosen.request_id not in commands:
        raise RequestFailed(409, "settled", f"{chosen.request_id} is already answered")
    if given - commands.keys():
        settled = await _settled(server, request, query)
        if form is not None and form.request_id not in commands:
            settled.setdefault(form.request_id, False)
        for request_id, agrees in settled.items():
            if not agrees:
                sentence = f"{request_id} already has a different answer"
                raise RequestFailed(409, "settled", sentence)
    for request_id, command in commands.items():
        try:
            await server.hub.send(request.chat_id, command)
        except CommandRefused as error:
            if error.code != "settled":
                raise
            # Someone else was quicker; where they say the same, the stream shows it.
            if not (await _settled(server, request, query)).get(request_id, False):
                raise


async def _commands(server: Server, request: ChatRequest) -> dict[str, c.Command]:
    """What is asked of the session, by the request that it answers."""
    pending = (await server.hub.state(request.chat_id)).pending
    commands: dict[str, c.Command] = {}
    for request_id, answer in request.answers.items():
        asked = pending.get(request_id)
        if isinstance(asked, PendingPermission):
            commands[request_id] = _command(request_id, answer, asked)
    if (reply := request.acp.elicitation) is not None:
        command = _elicitation(reply)
        if reply.request_id in pending:
            commands[reply.request_id] = command
    if (chosen := request.acp.permission) is not None and chosen.request_id in pending:
        commands[chosen.request_id] = c.AnswerPermission(
            chosen.request_id, chosen.option_id, chosen.confirmed
        )
    return commands


async def _settled(server: Server, request: ChatRequest, query: ChatQuery) -> dict[str, bool]:
    """What of this was settled in the turn that runs, and whether as the page will show it."""
    form = request.acp.elicitation
    settled: dict[str, bool] = {}
    async for event in active_settlements(server, request.chat_id):
        match event:
            case e.PermissionSettled(request_id=key) if key in request.answers:
                # Only release 7 can learn that it was not as the page says.
                agrees = request.answers[key].approved == allows(event)
                settled[key] = agrees or query.sdk == 7
            case e.ElicitationSettled(request_id=key) if form and key == form.request_id:
                # Of an accept nobody knows what it said: that is kept by the agent alone.
                settled[key] = form.action == event.action != "accept"
            case _:
                pass
    return settled


def _command(request_id: str, answer: Answer, asked: PendingPermission) -> c.Command:
    """Where only a cancel is left, that is what it comes to: never an allow."""
    option_id = answer.choose(asked.options)
    return c.Cancel() if option_id is None else c.AnswerPermission(request_id, option_id)


def _elicitation(reply: ElicitationReply) -> c.Command:
    match reply.action:
        case "accept" | "decline" | "cancel":
            return c.AnswerElicitation(reply.request_id, reply.action, reply.content)
        case _:
            raise RequestFailed(
                400, "invalid", "answer an elicitation with accept, decline or cancel"
            )


# ── coming back, stopping, looking ────────────────────────────────────────────────────────────


async def resume(server: Server, chat_id: str, query: ChatQuery) -> StreamedResponse | Response:
    """From the start of the active message; there is none when nothing runs."""
    if await server.hub.store.session(chat_id) is None:
        return Response(status_code=204)
    response = await ChatStream(server, chat_id, query.sdk).of_active_turn()
    return Response(status_code=204) if response is None else response


async def steer(server: Server, chat_id: str, body: PromptBody) -> SteerAnswer:
    """The stream of the turn tells it as a `data-acp-steer` part."""
    return await session_actions.steer(server, chat_id, body)


async def stop(server: Server, chat_id: str) -> Cancelled:
    reply = await server.hub.send(chat_id, c.Cancel())
    return Cancelled(cancelled=reply["cancelled"])


async def list_messages(server: Server, chat_id: str, query: MessagesQuery) -> Messages:
    """As they are now: what an agent adds meanwhile is not waited for."""
    state = await server.hub.state(chat_id)
    history = History(query.sdk, set(state.pending))
    async for page in event_pages(server.hub.store, chat_id, until=state.last_seq):
        await asyncio.to_thread(_retell, history, page)
    found = history.all(without_active=not query.active)
    return Messages(messages=found, dropped=history.dropped)


def _retell(history: History, page: Sequence[StoredEvent]) -> None:
    for stored in page:
        history.take(stored.decode())
