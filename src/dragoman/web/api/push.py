"""Endpoints for push notifications, and for whether someone looks at the page."""

from __future__ import annotations

from starlette.requests import Request

from dragoman.errors import ConfigError, Unsupported
from dragoman.notices.push.subscriptions import Subscription
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.server.guard import VISITOR
from dragoman.web.shapes.push_shapes import AttentionBody, PushBody, PushShape, PushState
from dragoman.web.shapes.server_shapes import IdQuery


async def state(server: Server) -> PushState:
    try:
        return PushState(available=True, key=(await server.notices.devices.key()).public)
    except (Unsupported, ConfigError) as error:
        return PushState(available=False, reason=str(error))


async def subscribe(server: Server, body: PushBody, request: Request) -> PushShape:
    """The device that asks is the one whose revocation ends it."""
    visitor = request.scope.get(VISITOR)
    wanted = Subscription(
        id="",
        endpoint=body.endpoint,
        key=body.key,
        secret=body.secret,
        server_key="",
        created_at=0.0,
        device=None if visitor is None else visitor.id,
        content=body.content,
        endings=body.endings,
    )
    await server.notices.devices.key()
    made = await server.notices.devices.subscribe(wanted)
    return PushShape(id=made.id, content=made.content, endings=made.endings)


async def unsubscribe(server: Server, query: IdQuery) -> None:
    if not await server.notices.devices.subscriptions.remove(query.id):
        raise RequestFailed(404, "unknown_subscription", "no such subscription")


async def attend(server: Server, body: AttentionBody) -> None:
    server.notices.attention.note(body.window, looking=body.looking)
