"""What an agent reports in addition to messages and tools, as data parts.

Facts about the session are transient: they pass through the page and stay in no message.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.state import (
    AnyEntry,
    CompactionEntry,
    PeerMessageEntry,
    PlanEntry,
    Subagent,
    ToolCall,
)
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.acp_json import given
from dragoman.ui_stream.chunks import Data, Json

Fact: TypeAlias = (
    e.CommandsChanged
    | e.ModeChanged
    | e.ConfigChanged
    | e.InfoChanged
    | e.UnknownUpdate
    | e.WorkspaceSnapshot
    | e.ProgramsRan
)
Request: TypeAlias = e.PermissionRequested | e.ElicitationRequested
Settlement: TypeAlias = e.PermissionSettled | e.ElicitationSettled


def fact(event: Fact) -> Data:
    match event:
        case e.CommandsChanged():
            found: Json = {"availableCommands": acp_json.commands(event.commands)}
            return _transient("commands", found)
        case e.ModeChanged():
            available = None if event.available is None else acp_json.modes(event.available)
            found = given(currentModeId=event.mode_id, availableModes=available)
            return _transient("mode", found)
        case e.ConfigChanged():
            return _transient("config", {"configOptions": acp_json.config_options(event.options)})
        case e.InfoChanged():
            told = {"title": event.title, "updatedAt": event.updated_at}
            return _transient("title", {k: v for k, v in told.items() if v is not UNSET})
        case e.WorkspaceSnapshot():
            return _transient("changes", _snapshot(event))
        case e.ProgramsRan():
            ran = msgspec.to_builtins(event.programs), msgspec.to_builtins(event.ended)
            found = given(programs=ran[0], ended=ran[1] or None, leftOut=event.left_out or None)
            return _transient("programs", found)
        case _:
            update = acp_json.raw(event.kind, event.raw)
            return _transient("unknown", {"kind": event.kind, "update": update})


def _snapshot(event: e.WorkspaceSnapshot) -> Json:
    """When the folders were read, what was changed until then, and what could not be read."""
    problems = [{"root": each.root, "reason": each.problem} for each in event.roots if each.problem]
    left_out = [each for root in event.roots for each in root.left_out]
    return given(
        moment=event.moment,
        stepId=event.step_id,
        files=msgspec.to_builtins(event.files),
        fileCount=event.file_count,
        problems=problems or None,
        leftOut=msgspec.to_builtins(left_out) or None,
        doubt=event.doubt or None,
    )


def _transient(name: str, data: Json) -> Data:
    return Data(f"data-acp-{name}", data, transient=True)


def tool(call: ToolCall) -> Data:
    """What the part of a tool call has no room for, or loses when the call fails."""
    data = given(
        toolCallId=call.id,
        kind=call.kind,
        content=acp_json.tool_content(call.content) or None,
        locations=acp_json.locations(call.locations) or None,
    )
    return Data("data-acp-tool", data, id=call.id)


def _parked(event: e.Notice) -> Json | None:
    """Of a limit that the agent reports: the prompt that waits, and what became of it."""
    match event:
        case e.TurnLimited(parked=parked) if parked is not None:
            return msgspec.to_builtins(parked)
        case e.ParkingChanged():
            at, to = event.resumes_at, event.session_id
            return given(id=event.parking_id, outcome=event.outcome, resumesAt=at, sessionId=to)
        case _:
            return None


def notice(event: e.Notice) -> Data:
    data = given(
        title=event.title,
        severity=event.severity,
        description=event.description,
        source=event.source,
        limit=msgspec.to_builtins(event.limit) if isinstance(event, e.LimitReached) else None,
        parked=_parked(event),
    )
    return Data("data-acp-notice", data)


def steer(event: e.Steered) -> Data:
    """What was said into the turn, where it was taken up, or why not."""
    data = given(
        outcome=event.outcome,
        way=event.way,
        content=[acp_json.content(part) for part in event.content],
        reason=event.reason or None,
    )
    return Data("data-acp-steer", data, id=event.queue_id)


def compaction(entry: CompactionEntry) -> Data:
    data = given(
        compactionId=entry.id,
        status=entry.status,
        summary=[acp_json.content(part) for part in entry.summary],
        error=entry.error,
    )
    return Data("data-acp-compaction", data, id=entry.id)


def peer_message(entry: PeerMessageEntry) -> Data:
    data = given(
        messageId=entry.id,
        content=[acp_json.content(part) for part in entry.content],
        senderSessionId=entry.sender_session_id,
        recipientSessionId=entry.recipient_session_id,
        senderMessageId=entry.sender_message_id,
        recipientMessageId=entry.recipient_message_id,
    )
    return Data("data-acp-peer-message", data, id=entry.id)


def subagent(child: Subagent) -> Data:
    data = given(
        sessionId=child.session_id,
        title=child.title,
        description=child.description,
        state=None if child.state is None else msgspec.to_builtins(child.state),
        cwd=child.cwd,
        additionalDirectories=child.additional_directories,
        capabilities=child.capabilities,
        parent=child.parent,
        toolCallId=child.tool_call_id,
        usage=None if child.thread.usage is None else acp_json.usage(child.thread.usage),
        entries=[_entry(entry) for entry in child.thread.entries[-MOST_ENTRIES:]] or None,
    )
    return Data("data-acp-subagent", data, id=child.session_id)


MOST_ENTRIES = 100
"""Of the thread of a subagent, the newest ones."""


def _entry(entry: AnyEntry) -> Json:
    """What a subagent said or did."""
    kind = str(entry.__struct_config__.tag)
    match entry:
        case ToolCall():
            return given(
                type=kind,
                toolCallId=entry.id,
                title=entry.title,
                kind=entry.kind,
                status=entry.status,
                content=acp_json.tool_content(entry.content) or None,
                locations=acp_json.locations(entry.locations) or None,
            )
        case PlanEntry(steps=[_, *_]):
            return {"type": kind, "entries": msgspec.to_builtins(entry.steps)}
        case _:
            return {"type": kind, "text": entry.text}


def request(event: Request, settled: Settlement | None) -> Data:
    """A request and, once there is one, its answer; replaced in place."""
    match event:
        case e.PermissionRequested():
            name, data = "permission", _permission(event)
        case _:
            name, data = "elicitation", _elicitation(event)
    data |= given(requestId=event.request_id, toolCallId=event.tool_call_id)
    data |= given(subagent=event.subagent, askedBy=event.asked_by)
    data["status"] = "pending" if settled is None else "settled"
    match settled:
        case e.PermissionSettled():
            data |= given(optionId=settled.option_id)
            data["decision"] = msgspec.to_builtins(settled.decision)
        case e.ElicitationSettled():
            data["action"] = settled.action
        case _:
            pass
    return Data(f"data-acp-{name}", data, id=event.request_id)


def _permission(event: e.PermissionRequested) -> Json:
    return given(
        title=event.title,
        always=event.always,
        explanation=event.explanation,
        options=acp_json.permission_options(event.options),
        operation=event.operation,
        paths=event.paths or None,
        argv=event.argv,
        cwd=event.cwd,
        env=event.env or None,
        content=acp_json.tool_content(event.content) or None,
        offers=msgspec.to_builtins(event.offers) or None,
        danger=event.danger,
        sameAs=event.same_as,
    )


def _elicitation(event: e.ElicitationRequested) -> Json:
    return given(
        message=event.message,
        mode=event.mode,
        requestedSchema=event.schema,
        url=event.url,
        elicitationId=event.elicitation_id,
    )
