"""Inbound v1 messages: turns requests and notifications into calls on the host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.agents.extensions import (
    TERMINAL_EXIT,
    TERMINAL_INFO,
    TERMINAL_OUTPUTS,
    active_run,
    parent_call,
    request_tokens,
    said,
)
from dragoman.client.dialects import translation
from dragoman.client.dialects.inbound import (
    SharedServing,
    Told,
    checked,
    examined,
    typed,
    unread_of_call,
)
from dragoman.client.dialects.steer_calls import PULL, pulled_result
from dragoman.client.dialects.v1 import wire_format
from dragoman.host.permissions.questions import Subject
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit
from dragoman.schema import codec, v1
from dragoman.schema.codec import decoder
from dragoman.session import events as e
from dragoman.session.content import ToolContent
from dragoman.wire.fast_path import Usual

logger = logging.getLogger("dragoman.client")

OLD_NAMES = {
    "read_text_file": "fs/read_text_file",
    "write_text_file": "fs/write_text_file",
    "request_permission": "session/request_permission",
    "create_terminal": "terminal/create",
    "terminal_output": "terminal/output",
    "wait_for_terminal_exit": "terminal/wait_for_exit",
    "kill_terminal": "terminal/kill",
    "release_terminal": "terminal/release",
    "session_update": "session/update",
}
"""Method names of agents from before ACP had namespaces: understood, never sent."""

WAITS = frozenset(
    {
        "session/request_permission",
        "request_permission",
        "terminal/wait_for_exit",
        "wait_for_terminal_exit",
        "elicitation/create",
    }
)
"""Requests that stay open for a person or a process, and so do not count as load."""


class _PeekPermission(msgspec.Struct, rename="camel"):
    tool_call: msgspec.Raw


_UPDATES = frozenset({"session/update", "session_update"})
_NOTIFICATIONS = _UPDATES | {"elicitation/complete"}


_session_of = attrgetter("session_id")


class _Pull(msgspec.Struct, rename="camel"):
    session_id: str = ""


class _McpConnect(msgspec.Struct, rename="camel"):
    acp_id: str = ""
    server_id: str = ""


class _McpDraftMessage(msgspec.Struct, rename="camel"):
    connection_id: str
    method: str
    params: dict[str, Any] | None = None


class Serving(SharedServing):
    """Handles what comes from the agent; the peer calls `on_notification` and `on_request`."""

    schema = v1
    notification = v1.SessionNotification
    updates = _UPDATES
    no_request = UNSET

    # ── notifications ─────────────────────────────────────────────────────────────────────────

    def _tell(
        self, told: v1.SessionNotification, size: int, unfit: msgspec.Raw | None = None
    ) -> None:
        event = wire_format.update(told.update)
        if told.meta is not None:
            event.meta = {**told.meta, **(event.meta or {})}
        if unfit is not None and isinstance(event, e.ToolCallUpdated):
            event.more = _unread(msgspec.json.decode(unfit, type=Told).update, event)
        events = [event] if event.meta is None else _with_meta(event, event.meta)
        self._tell_more(told.session_id, event.meta)
        self._host.on_events(told.session_id, events, size)

    def _tell_more(self, session_id: str, meta: dict[str, Any] | None) -> None:
        """What `_meta` says that does not become an event."""
        if meta is None:
            return
        if (run_id := active_run(meta)) is not UNSET:
            self._host.on_run(session_id, run_id)
        if (usage := request_tokens(meta)) is not None:
            self._host.on_tokens(session_id, usage)

    def usual(self) -> Usual[v1.SessionNotification]:
        return Usual(
            "session/update", v1.SessionNotification, self._session_updates, decoder=decoder
        )

    def _session_updates(self, run: list[v1.SessionNotification], sizes: list[int]) -> None:
        if len({*map(_session_of, run)}) == 1:
            self._host.on_events(run[0].session_id, self._events_of(run), sum(sizes))
            return
        done = 0
        for session_id, told in groupby(run, _session_of):
            together = list(told)
            size = sum(sizes[done : done + len(together)])
            done += len(together)
            self._host.on_events(session_id, self._events_of(together), size)

    def _events_of(self, run: list[v1.SessionNotification]) -> list[e.Event]:
        """What updates tell, in their order; one that fails takes no other along."""
        events: list[e.Event] = []
        for notification in run:
            try:
                update = notification.update
                event = wire_format.UPDATES[type(update)](
                    update
                )  # without one call more: this is a loop
                if notification.meta is not None:
                    event.meta = {**notification.meta, **(event.meta or {})}
                if event.meta is None:
                    events.append(event)
                else:
                    events += _with_meta(event, event.meta)
                    self._tell_more(notification.session_id, event.meta)
            except Exception:
                logger.exception("an update could not be decoded")
        return events

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    def on_request(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        if method in _NOTIFICATIONS:
            # Some serialisers write every member, and so give a notification an id.
            self.on_notification(method, params)
            return b"null"
        handler = _REQUESTS.get(OLD_NAMES.get(method, method))
        if handler is None:
            return self._host.extension(method, params)
        return handler(self, params)

    async def read_text_file(self, p: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        text = await self._host.read_text_file(p.session_id, p.path, p.line, p.limit)
        return v1.ReadTextFileResponse(content=text)

    async def write_text_file(self, p: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
        await self._host.write_text_file(p.session_id, p.path, p.content)
        return v1.WriteTextFileResponse()

    async def request_permission(
        self, p: v1.RequestPermissionRequest, unfit: msgspec.Raw | None
    ) -> v1.RequestPermissionResponse:
        tool_call = wire_format.tool_call_update(p.tool_call)
        if unfit is not None:
            told = msgspec.json.decode(unfit, type=_PeekPermission).tool_call
            tool_call.more = _unread(told, tool_call)
        options = [translation.permission_option(option) for option in p.options]
        subject = Subject(meta=p.meta, parent_call=parent_call(tool_call.meta))
        answer = await self._host.request_permission(p.session_id, tool_call, options, subject)
        return self._outcome(answer)

    async def create_terminal(self, p: v1.CreateTerminalRequest) -> v1.CreateTerminalResponse:
        command = TerminalCommand(
            command=p.command,
            args=tuple(p.args),
            env={variable.name: variable.value for variable in p.env},
            cwd=p.cwd,
            output_byte_limit=p.output_byte_limit,
        )
        terminal_id = await self._host.create_terminal(p.session_id, command)
        return v1.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(self, p: v1.TerminalOutputRequest) -> dict[str, Any]:
        now = await self._host.terminal_output(p.session_id, p.terminal_id)
        answer = {"output": now.output, "truncated": now.truncated}
        return answer if now.exit is None else {**answer, "exitStatus": _exit_status(now.exit)}

    async def wait_for_exit(self, p: v1.WaitForTerminalExitRequest) -> dict[str, Any]:
        return _exit_status(await self._host.wait_for_terminal_exit(p.session_id, p.terminal_id))

    async def kill_terminal(self, p: v1.KillTerminalRequest) -> v1.KillTerminalResponse:
        await self._host.kill_terminal(p.session_id, p.terminal_id)
        return v1.KillTerminalResponse()

    async def release_terminal(self, p: v1.ReleaseTerminalRequest) -> v1.ReleaseTerminalResponse:
        await self._host.release_terminal(p.session_id, p.terminal_id)
        return v1.ReleaseTerminalResponse()

    async def pull_steers(self, p: _Pull) -> msgspec.Raw:
        pulled = await self._host.pull_steers(p.session_id)
        steers = [
            (
                key,
                "".join(part.text for part in content),
                [translation.block_of(part, v1) for part in content],
            )
            for key, content in pulled.steers.items()
        ]
        return msgspec.Raw(pulled_result(steers, pulled.more))

    async def mcp_connect(self, p: _McpConnect) -> dict[str, str]:
        """Older drafts open a connection first; ours is named after the server."""
        return {"connectionId": p.server_id or p.acp_id}

    async def mcp_disconnect(self, p: dict[str, Any]) -> dict[str, str]:
        return {}

    async def mcp_message(self, p: Any) -> Any:
        if "connectionId" in p:  # older drafts: the result is the MCP result itself
            draft = checked(msgspec.Raw(msgspec.json.encode(p)), _McpDraftMessage)
            return await self._host.mcp_server(draft.connection_id)(draft.method, draft.params)
        request = checked(msgspec.Raw(msgspec.json.encode(p)), v1.MessageMcpRequest)
        return await super().mcp_message(request)


Handler = Callable[[Serving, msgspec.Raw], Coroutine[Any, Any, bytes]]


async def _permission(serving: Serving, raw: msgspec.Raw) -> bytes:
    asked, fits = examined(raw, v1.RequestPermissionRequest)
    return codec.encode(await serving.request_permission(asked, None if fits else raw))


_REQUESTS: dict[str, Handler] = {
    "fs/read_text_file": typed(v1.ReadTextFileRequest, Serving.read_text_file),
    "fs/write_text_file": typed(v1.WriteTextFileRequest, Serving.write_text_file),
    "session/request_permission": _permission,
    "elicitation/create": typed(v1.CreateElicitationRequest, Serving.create_elicitation),
    "terminal/create": typed(v1.CreateTerminalRequest, Serving.create_terminal),
    "terminal/output": typed(v1.TerminalOutputRequest, Serving.terminal_output),
    "terminal/wait_for_exit": typed(v1.WaitForTerminalExitRequest, Serving.wait_for_exit),
    "terminal/kill": typed(v1.KillTerminalRequest, Serving.kill_terminal),
    "terminal/release": typed(v1.ReleaseTerminalRequest, Serving.release_terminal),
    "mcp/message": typed(dict[str, Any], Serving.mcp_message),
    PULL: typed(_Pull, Serving.pull_steers),
    "mcp/connect": typed(_McpConnect, Serving.mcp_connect),
    "mcp/disconnect": typed(dict[str, Any], Serving.mcp_disconnect),
}


def _unread(raw: msgspec.Raw, event: e.ToolCallUpdated) -> list[ToolContent]:
    items = event.content if isinstance(event.content, list) else []
    places = event.locations if isinstance(event.locations, list) else []
    return unread_of_call(raw, len(items) + len(places))


def _with_meta(event: e.Event, meta: dict[str, Any]) -> list[e.Event]:
    """An update, and what it says in `_meta` alone."""
    events = [event, *_terminal_events(meta)]
    parent = parent_call(meta)
    return events if parent is None else [e.SubagentEvent(parent, each) for each in events]


def _terminal_events(meta: dict[str, Any]) -> list[e.Event]:
    """The agent's own terminals, which some agents show in `_meta`."""
    events: list[e.Event] = []
    match said(meta, TERMINAL_INFO):
        case {"terminal_id": str(terminal_id), **rest}:
            cwd = rest.get("cwd")
            events.append(e.TerminalStarted(terminal_id, [], cwd if isinstance(cwd, str) else ""))
        case _:
            pass
    for extension in TERMINAL_OUTPUTS:
        match said(meta, extension):
            case {"terminal_id": str(terminal_id), "data": str(data)}:
                events.append(e.TerminalOutput(terminal_id, data))
            case _:
                pass
    match said(meta, TERMINAL_EXIT):
        case {"terminal_id": str(terminal_id), **rest}:
            code, signal = rest.get("exit_code"), rest.get("signal")
            events.append(
                e.TerminalExited(
                    terminal_id,
                    code if isinstance(code, int) else None,
                    signal if isinstance(signal, str) else None,
                )
            )
        case _:
            pass
    return events


def _exit_status(ended: TerminalExit) -> dict[str, Any]:
    """With both fields, null or not: agents tell a signal from a code by the null."""
    return {"exitCode": ended.exit_code, "signal": ended.signal}
