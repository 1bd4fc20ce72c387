"""The routes of devices: access tokens, pairing, and notifications."""

from __future__ import annotations

from typing import Final

from dragoman.web.api import push, tokens
from dragoman.web.routing.route import Route
from dragoman.web.shapes import push_shapes, token_shapes
from dragoman.web.shapes.server_shapes import IdQuery

_TOKENS = (
    Route(
        method="GET",
        path="/api/tokens",
        handler=tokens.list_tokens,
        summary="List access tokens, such as those of paired devices",
        answer=token_shapes.TokenList,
        wants_request=True,
    ),
    Route(
        method="POST",
        path="/api/tokens/pairing",
        handler=tokens.begin_pairing,
        summary="Begin to pair a device",
        body=token_shapes.PairingBody,
        answer=token_shapes.Pairing,
        status=201,
    ),
    Route(
        method="POST",
        path="/api/tokens/paired",
        handler=tokens.pair,
        summary="Exchange the code of a pairing for a token; the code is used instead of a token",
        body=token_shapes.PairedBody,
        answer=token_shapes.Paired,
        status=201,
        wants_request=True,
        pairs=True,
    ),
    Route(
        method="PATCH",
        path="/api/tokens/{token_id}",
        handler=tokens.edit,
        summary="Rename an access token",
        body=token_shapes.TokenEdit,
        answer=token_shapes.TokenShape,
        wants_request=True,
    ),
    Route(
        method="DELETE",
        path="/api/tokens/{token_id}",
        handler=tokens.revoke,
        summary="Revoke an access token; connections that use it end",
        answer=token_shapes.TokenShape,
        wants_request=True,
    ),
)

_PUSH = (
    Route(
        method="GET",
        path="/api/push",
        handler=push.state,
        summary="Whether this server can push notifications, and its key",
        answer=push_shapes.PushState,
    ),
    Route(
        method="POST",
        path="/api/push",
        handler=push.subscribe,
        summary="Have notifications pushed to a browser, or change which",
        body=push_shapes.PushBody,
        answer=push_shapes.PushShape,
        status=201,
        wants_request=True,
    ),
    Route(
        method="DELETE",
        path="/api/push",
        handler=push.unsubscribe,
        summary="Stop pushing to a browser",
        query=IdQuery,
    ),
    Route(
        method="PUT",
        path="/api/attention",
        handler=push.attend,
        summary="Say whether someone looks at a window; nothing is pushed meanwhile",
        body=push_shapes.AttentionBody,
    ),
)

DEVICE_ROUTES: Final = (*_TOKENS, *_PUSH)
