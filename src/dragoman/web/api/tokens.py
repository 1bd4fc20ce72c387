"""Endpoints for access tokens: list, rename, revoke, and pair a device."""

from __future__ import annotations

import time
from datetime import datetime
from urllib.parse import urlsplit

from starlette.requests import Request

from dragoman.access.access_tokens import AccessToken
from dragoman.store.records import utc
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.server.guard import VISITOR
from dragoman.web.server.pairing import pairing_address, qr_rows
from dragoman.web.shapes.token_shapes import (
    Paired,
    PairedBody,
    Pairing,
    PairingBody,
    TokenEdit,
    TokenList,
    TokenShape,
)


async def list_tokens(server: Server, request: Request) -> TokenList:
    here = _visitor(request)
    return TokenList(tokens=[_shape(each, here) for each in await server.visitors.book.list()])


async def begin_pairing(server: Server, body: PairingBody) -> Pairing:
    origin = _origin(body.address)
    token, code = await server.visitors.book.pairing(body.name)
    address = pairing_address(origin, code)
    return Pairing(token=_shape(token, None), address=address, rows=qr_rows(address))


async def pair(server: Server, body: PairedBody, request: Request) -> Paired:
    """Exchange the code, with which the request came, for the device's own token."""
    code = _visitor(request)
    if code is None:
        raise RequestFailed(409, "not_pairing", "this needs the code of a pairing, not a token")
    token, text = await server.visitors.book.pair(code)
    if body.name is not None and body.name.strip() and body.name != token.name:
        token = await server.visitors.book.rename(token.id, body.name)
    return Paired(id=token.id, name=token.name, token=text)


async def edit(server: Server, token_id: str, body: TokenEdit, request: Request) -> TokenShape:
    return _shape(await server.visitors.book.rename(token_id, body.name), _visitor(request))


async def revoke(server: Server, token_id: str, request: Request) -> TokenShape:
    """Connections that use it are cut, except this request's own."""
    token = await server.visitors.book.revoke(token_id)
    await server.notices.devices.subscriptions.remove_device(token_id)
    visitor = _visitor(request)
    if visitor is None or visitor.id != token_id:
        server.visitors.cut_off(token_id)
    return _shape(token, visitor)


def _visitor(request: Request) -> AccessToken | None:
    return request.scope.get(VISITOR)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or address != f"{parts.scheme}://{parts.netloc}":
        raise RequestFailed(400, "invalid", "address must be an origin, such as https://host:port")
    return address


def _shape(token: AccessToken, here: AccessToken | None) -> TokenShape:
    return TokenShape(
        id=token.id,
        name=token.name,
        role=token.role,
        state=token.state(time.time()),
        created_at=utc(token.created_at),
        expires_at=_moment(token.expires_at),
        used_at=_moment(token.used_at),
        revoked_at=_moment(token.revoked_at),
        here=here is not None and here.id == token.id,
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else utc(seconds)
