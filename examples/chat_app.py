"""Any agent behind `useChat`, in an app of your own: `uvicorn examples.chat_app:app`.

One agent process, and one session per chat, in memory. `dragoman serve` does the same with stored
sessions, resumable streams and a token. Put your own authentication in front of this app.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman import Client, PendingPermission, Session
from dragoman.ui_stream import DONE, HEADERS, ChatRequest, Encoder, UnusableRequest, decode, encode

AGENT = "demo"
FOLDER = os.environ.get("CHAT_FOLDER", ".")


class Chat:
    """A session, and the encoder of the message that is being streamed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events = session.events()
        self.encoder = Encoder(session.id)

    async def stream(self, first: list[bytes]) -> AsyncIterator[bytes]:
        for piece in first:
            yield piece
        while self.encoder.open or self.encoder.message_id is None:
            event = await anext(self.events)
            for chunk in self.encoder.feed(event, pending=self.session.state.pending):
                yield encode(chunk)
        yield DONE


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, object]]:
    chats: dict[str, Chat] = {}
    async with Client.start(AGENT) as client:
        yield {"client": client, "chats": chats}


async def chat(request: Request) -> Response:
    try:
        asked = decode(await request.body())
        found = await chat_of(request, asked.chat_id)
        if asked.answers:
            await answer(found, asked)
            first = [encode(chunk) for chunk in found.encoder.resume(asked.approvals)]
        else:
            agent = request.state.client.capabilities
            content, files = asked.prompt(agent, "attachment:")
            if files:
                raise UnusableRequest("messages", "this app keeps no files")
            found.encoder = Encoder(found.session.id)
            found.session.prompt(content)
            first = []
    except UnusableRequest as error:
        return JSONResponse({"error": str(error)}, 400)
    return StreamingResponse(found.stream(first), headers=HEADERS)


async def chat_of(request: Request, chat_id: str) -> Chat:
    chats: dict[str, Chat] = request.state.chats
    if chat_id not in chats:
        chats[chat_id] = Chat(await request.state.client.new_session(FOLDER))
    return chats[chat_id]


async def answer(found: Chat, asked: ChatRequest) -> None:
    for request_id, given in asked.answers.items():
        pending = found.session.state.pending.get(request_id)
        if isinstance(pending, PendingPermission):
            option = given.choose(pending.options)
            if option is None:
                await found.session.cancel()
            else:
                await found.session.answer(request_id, option)


async def stop(request: Request) -> Response:
    found = await chat_of(request, request.path_params["chat_id"])
    await found.session.cancel()
    return JSONResponse({})


app = Starlette(
    routes=[
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/chat/{chat_id}/stop", stop, methods=["POST"]),
    ],
    lifespan=lifespan,
)
