"""Dragoman as an agent: serves one editor on a transport, in the version of ACP it asks for."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman.editor.desk import Agents, Desk, OnClose, Opening
from dragoman.editor.editor_launcher import EditorPlace
from dragoman.editor.faces.face import Face
from dragoman.editor.link import EditorLink
from dragoman.editor.open_editors import Editors
from dragoman.editor.own_terms import NO_TERMS, OwnTerms
from dragoman.errors import InvalidRequest
from dragoman.rpc import Peer, Tap
from dragoman.schema import codec, v1
from dragoman.transport.transport import Transport

WAITS = frozenset({"session/prompt", "authenticate", "auth/login"})
"""Requests that stay open for as long as a turn, or a person, takes."""


NEWEST = 2
"""The newest version of ACP that we speak; a draft, which only those get who ask for it."""


class EditorConnection:
    """One editor. Use it as a context manager; leaving it closes the connection, and what runs
    continues in the hub."""

    def __init__(
        self,
        transport: Transport,
        hub: Opening,
        agents: Agents,
        places: dict[str, EditorPlace],
        editors: Editors,
        *,
        agent: str | None = None,
        on_close: OnClose = "continue",
        terms: OwnTerms = NO_TERMS,
        tap: Tap | None = None,
    ) -> None:
        self._face: Face | None = None
        self._peer = Peer(
            transport,
            on_notification=self._on_notification,
            on_request=self._on_request,
            waits=WAITS,
            tap=tap,
        )
        link = EditorLink(self._peer, transport)
        self._desk = Desk(
            hub, agents, places, editors, link, agent=agent, on_close=on_close, terms=terms
        )

    async def __aenter__(self) -> EditorConnection:
        await self._peer.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._peer.aclose()
        await self._desk.aclose()

    async def wait_ended(self) -> None:
        """Until the editor has closed the connection."""
        await self._peer.wait_ended()

    def _on_notification(self, method: str, params: msgspec.Raw) -> None:
        if self._face is not None:
            self._face.hear(method, params)

    def _on_request(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        if method == "initialize":
            self._face = _face_for(params, self._desk)
            return codec.encode(self._face.welcome())
        if self._face is None:
            raise InvalidRequest("the first request must be initialize")
        return self._face.answer(method, params)


def _face_for(params: msgspec.Raw, desk: Desk) -> Face:
    """The newest version that both sides speak. Raises InvalidParams."""
    asked = codec.decode(params, v1.InitializeRequest)
    if asked.protocol_version >= NEWEST:
        from dragoman.editor.faces.second_version import FaceV2
        from dragoman.schema import v2

        return FaceV2(desk, codec.decode(params, v2.InitializeRequest).capabilities)
    from dragoman.editor.faces.first_version import FaceV1

    return FaceV1(desk, asked.client_capabilities)
