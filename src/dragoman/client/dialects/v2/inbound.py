"""Inbound v2 messages: turns updates into events, and requests into calls on the host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from itertools import groupby
from typing import Any

import msgspec

from dragoman.agents.extensions import reply_tokens
from dragoman.client.dialects import translation
from dragoman.client.dialects.dialect import Finished, Host
from dragoman.client.dialects.inbound import (
    SharedServing,
    Told,
    checked,
    typed,
    unread_of_call,
    unread_of_piece,
)
from dragoman.client.dialects.v2 import upserts, wire_format
from dragoman.client.dialects.v2.foreground import Foreground
from dragoman.errors import DragomanError, InternalError
from dragoman.host.permissions.questions import Subject
from dragoman.schema import codec, v2
from dragoman.schema.codec import decoder
from dragoman.session import events as e
from dragoman.session.content import ToolContent
from dragoman.session.state_limits import ID, LIMITS, drop_oldest
from dragoman.wire.error_replies import remote_error
from dragoman.wire.fast_path import Usual

logger = logging.getLogger("dragoman.client")

_CHUNKS = frozenset((v2.AgentMessageChunk, v2.AgentThoughtChunk))


def _session_and_chunk(told: v2.UpdateSessionNotification) -> tuple[str, bool]:
    return told.session_id, type(told.update) in _CHUNKS


class _PeekSubject(msgspec.Struct, rename="camel"):
    tool_call: msgspec.Raw


class _PeekPermission(msgspec.Struct):
    subject: _PeekSubject


class ConversationState(msgspec.Struct):
    """What has to be kept of one session to understand what the agent says next."""

    foreground: Foreground
    terminals: upserts.Terminals


class Conversations:
    """Those of one connection; `tell` passes on what happens outside of turns."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sessions: dict[str, ConversationState] = {}
        self._strangers: dict[str, ConversationState] = {}
        """Of sessions that only the agent speaks of: it may name some without end."""

    def of(self, session_id: str) -> ConversationState:
        """Of a session that we open or have opened."""
        found = self._sessions.get(session_id)
        if found is None:
            found = self._strangers.pop(session_id, None) or _conversation()
            self._sessions[session_id] = found
        return found

    def heard(self, session_id: str) -> ConversationState:
        """Of one that the agent speaks of: what it tells may come before we know that it opened."""
        found = self._sessions.get(session_id) or self._strangers.get(session_id)
        if found is None:
            found = _conversation()
            if len(session_id) <= ID:
                self._strangers[session_id] = found
                drop_oldest(self._strangers, LIMITS.others)
        return found

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
        self._strangers.pop(session_id, None)

    def tell(self, session_id: str) -> None:
        if news := self.heard(session_id).foreground.news():
            self._host.on_events(session_id, [e.ActivityChanged(**news)], 0)


def _conversation() -> ConversationState:
    return ConversationState(Foreground(), upserts.Terminals())


class Serving(SharedServing):
    """Handles what comes from the agent; the peer calls `on_notification` and `on_request`."""

    schema = v2
    notification = v2.UpdateSessionNotification

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.conversations = Conversations(host)

    # ── notifications ─────────────────────────────────────────────────────────────────────────

    def usual(self) -> Usual[v2.UpdateSessionNotification]:
        return Usual(
            "session/update", v2.UpdateSessionNotification, self._session_updates, decoder=decoder
        )

    def _session_updates(self, run: list[v2.UpdateSessionNotification], sizes: list[int]) -> None:
        done = 0
        for (session_id, are_chunks), updates in groupby(run, _session_and_chunk):
            some = list(updates)
            of_some = sizes[done : done + len(some)]
            done += len(some)
            if are_chunks:
                self._chunks(session_id, some, sum(of_some))
                continue
            # One by one: what an update changes depends on what the one before it did.
            for told, size in zip(some, of_some, strict=True):
                try:
                    self._tell(told, size)
                except Exception:
                    logger.exception("an update could not be decoded")

    def _chunks(self, session_id: str, told: list[v2.UpdateSessionNotification], size: int) -> None:
        """Nearly every update is a chunk, and there is little to it."""
        self.conversations.heard(session_id).foreground.works()
        events: list[e.Event] = []
        for each in told:
            try:
                event = wire_format.update(each.update)
                if each.meta is not None:
                    event.meta = {**each.meta, **(event.meta or {})}
                events.append(event)
            except Exception:
                logger.exception("an update could not be decoded")
        self._host.on_events(session_id, events, size)

    def _tell(
        self, told: v2.UpdateSessionNotification, size: int, unfit: msgspec.Raw | None = None
    ) -> None:
        if type(told.update) in _CHUNKS:
            self._chunks(told.session_id, [told], size)
            return
        if isinstance(told.update, v2.SessionStateUpdate):
            self._state(told.session_id, told.update)
            return
        events = self._events(told.session_id, told.update)
        for event in events:
            if told.meta is not None:
                event.meta = {**told.meta, **(event.meta or {})}
            if unfit is not None and isinstance(event, e.ToolCallUpdated):
                event.more = [*event.more, *_unread(unfit, told.update)]
        self._host.on_events(told.session_id, events, size)

    def _events(self, session_id: str, wire: v2.SessionUpdate) -> list[e.Event]:
        conversation = self.conversations.heard(session_id)
        events = self._translated(session_id, wire, conversation)
        # A whole message that repeats what is known becomes no event, but it shows work too.
        is_message = isinstance(wire, v2.AgentMessage | v2.AgentThought)
        if is_message or any(event.is_answer for event in events):
            conversation.foreground.works()
        return events

    def _translated(
        self, session_id: str, wire: v2.SessionUpdate, conversation: ConversationState
    ) -> list[e.Event]:
        match wire:
            case v2.UserMessage() | v2.UserMessageChunk() if _echoes(conversation, wire):
                return []
            case v2.UserMessage() | v2.AgentMessage() | v2.AgentThought():
                return upserts.message(wire, self._host.known(session_id))
            case v2.TerminalUpdate():
                return conversation.terminals.update(wire, self._host.known(session_id))
            case v2.TerminalOutputChunk():
                return conversation.terminals.chunk(wire)
            case _:
                return [wire_format.update(wire)]

    def _state(self, session_id: str, wire: v2.StateUpdate) -> None:
        foreground = self.conversations.heard(session_id).foreground
        if wire.background is not None:
            foreground.background = translation.background(wire.background)
        foreground.changes(wire.state, _finished(wire), snapshot=wire.background is not None)
        self.conversations.tell(session_id)

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    def on_request(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        handler = _REQUESTS.get(method)
        if handler is None:
            return self._host.extension(method, params)
        return handler(self, params)

    async def request_permission(
        self, p: v2.RequestPermissionRequest, raw: msgspec.Raw
    ) -> v2.RequestPermissionResponse:
        options = [translation.permission_option(option) for option in p.options]
        tool_call, subject = tool_call_of(p, raw), subject_of(p)
        answer = await self._host.request_permission(p.session_id, tool_call, options, subject)
        return self._outcome(answer)


Handler = Callable[[Serving, msgspec.Raw], Coroutine[Any, Any, bytes]]


async def _permission(serving: Serving, raw: msgspec.Raw) -> bytes:
    asked = checked(raw, v2.RequestPermissionRequest)
    return codec.encode(await serving.request_permission(asked, raw))


_REQUESTS: dict[str, Handler] = {
    "session/request_permission": _permission,
    "elicitation/create": typed(v2.CreateElicitationRequest, Serving.create_elicitation),
    "mcp/message": typed(v2.MessageMcpRequest, Serving.mcp_message),
}


def _unread(params: msgspec.Raw, wire: v2.SessionUpdate) -> list[ToolContent]:
    match wire:
        case v2.SessionToolCallUpdate():
            return unread_of_call(msgspec.json.decode(params, type=Told).update, _read(wire))
        case v2.ToolCallContentChunk():
            raw = msgspec.json.decode(params, type=Told).update
            return unread_of_piece(raw, _read_content([wire.content]))
        case _:
            return []


def _read(wire: v2.ToolCallUpdate) -> int:
    return _read_content(wire.content or []) + len(wire.locations or [])


def _read_content(items: list[v2.ToolCallContent]) -> int:
    return sum(1 + len(item.changes) if isinstance(item, v2.Diff) else 1 for item in items)


def tool_call_of(wire: v2.RequestPermissionRequest, raw: msgspec.Raw) -> e.ToolCallUpdated | None:
    """The tool call a request is about, with what could not be read of it in `raw`."""
    if not isinstance(wire.subject, v2.ToolCallPermissionSubject):
        return None
    call = wire.subject.tool_call
    event = wire_format.tool_call_update(call)
    told = msgspec.json.decode(raw, type=_PeekPermission).subject.tool_call
    event.more = unread_of_call(told, _read(call))
    return event


def subject_of(wire: v2.RequestPermissionRequest) -> Subject:
    """The fields of a request other than the tool call it may be about."""
    subject = Subject(title=wire.title, explanation=wire.description, meta=wire.meta)
    if not isinstance(asked := wire.subject, v2.CommandPermissionSubject):
        return subject
    return msgspec.structs.replace(
        subject, command=asked.command, cwd=asked.cwd, tool_call_id=asked.tool_call_id
    )


def _echoes(conversation: ConversationState, wire: v2.UserMessage | v2.UserMessageChunk) -> bool:
    foreground = conversation.foreground
    whole = isinstance(wire, v2.UserMessage)
    blocks = wire.content or [] if isinstance(wire, v2.UserMessage) else [wire.content]
    text = "".join(translation.content(block).text for block in blocks)
    return not foreground.opening and foreground.echoes(wire.message_id, text, whole=whole)


def _finished(wire: v2.StateUpdate) -> Finished | None:
    """None where the state says nothing about how work ended."""
    if wire.stop_reason is None and wire.error is None and wire.usage is None:
        return None
    usage = reply_tokens(translation.token_usage(wire.usage), wire.meta)
    reason = wire.stop_reason or "end_turn"
    return Finished(reason, usage, wire.meta, _failure(wire) if reason == "error" else None)


def _failure(wire: v2.StateUpdate) -> DragomanError:
    if wire.error is None:
        return InternalError("the agent stopped with an unspecified error")
    return remote_error(wire.error.code, wire.error.message, wire.error.data)
