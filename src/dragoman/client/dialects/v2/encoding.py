"""Events as updates of ACP v2; what both versions say alike is in `dialects/encoding`. Pure.

Version 2 names every message and plan; where an agent gave no name, one is made of the number of
the event that began it, so that it is the same whenever it is sent again.
"""

from __future__ import annotations

import base64
import difflib
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.client.dialects import encoding as shared
from dragoman.client.dialects.encoding import Shows, UpdateEncoder, patched_meta
from dragoman.client.dialects.v2.wire_format import GIT
from dragoman.errors import InternalError
from dragoman.schema import v2
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.state import SessionState

_CHANGES: dict[str, type[Any]] = {
    "add": v2.DiffAdd,
    "delete": v2.DiffDelete,
    "modify": v2.DiffModify,
    "move": v2.DiffMove,
    "copy": v2.DiffCopy,
}
_WHOLE: dict[type[Any], type[Any]] = {
    v2.UserMessageChunk: v2.UserMessage,
    v2.AgentMessageChunk: v2.AgentMessage,
    v2.AgentThoughtChunk: v2.AgentThought,
}


class EncoderV2(UpdateEncoder):
    """The updates of one session in version 2."""

    schema = v2
    echoes_prompts = True
    modes_are_options = True

    def __init__(self, shows: Shows) -> None:
        super().__init__(shows)
        self._speaking: tuple[type[Any], str | None, str] | None = None
        """The kind of message that is being said, its name if the agent gave it one, and ours."""
        self._plan = ""
        """The name of the plan that has none of its own."""

    # ── messages ──────────────────────────────────────────────────────────────────────────────

    def message(self, kind: type[Any], part: c.Content, message_id: str | None) -> Any:
        speaking = self._speaking
        if speaking is None or speaking[:2] != (kind, message_id):
            speaking = kind, message_id, message_id or f"message-{self.seq}"
            self._speaking = speaking
        return kind(content=shared.block(part, v2), message_id=speaking[2])

    def said(self, kind: type[Any], event: Any) -> Any:
        if not event.replaces:
            return super().said(kind, event)
        chunk = self.message(kind, event.content, event.message_id)
        return _WHOLE[kind](
            message_id=chunk.message_id, content=[chunk.content], meta=patched_meta(event)
        )

    def begins_entry(self) -> None:
        """Something else is in the thread: a message without a name ends here."""
        self._speaking = None

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    def turn_started(self, event: e.TurnStarted, before: SessionState) -> list[Any]:
        self._speaking, self._plan = None, ""
        content = [shared.block(part, v2) for part in event.content]
        message = v2.UserMessage(message_id=event.turn_id, content=content)
        return [message, v2.SessionStateUpdate(state="running")]

    def turn_ended(self, event: e.TurnEnded, before: SessionState) -> list[Any]:
        error, reason = None, event.stop_reason or "end_turn"
        if event.error is not None:
            error = v2.Error(code=InternalError.code, message=event.error)
            reason = "error"
        usage = shared.token_usage(event.usage, v2)
        idle = v2.SessionStateUpdate(
            state="idle", stop_reason=reason, usage=usage, error=error, meta=event.meta
        )
        return [idle]

    def steered(self, event: e.Steered, before: SessionState) -> list[Any]:
        if not event.content:
            return []
        content = [shared.block(part, v2) for part in event.content]
        return [v2.UserMessage(message_id=event.queue_id, content=content)]

    def standing(self, state: SessionState) -> list[Any]:
        if state.turn is None:
            return []
        asks = bool(state.pending)
        return [v2.SessionStateUpdate(state="requires_action" if asks else "running")]

    def asked(self, event: Any, before: SessionState) -> list[Any]:
        return [] if before.pending else [v2.SessionStateUpdate(state="requires_action")]

    def settled(self, event: Any, before: SessionState) -> list[Any]:
        """Back to work, unless something else is still open."""
        is_last = before.pending.keys() <= {event.request_id}
        if not is_last or before.turn is None:
            return []
        return [v2.SessionStateUpdate(state="running")]

    def activity(self, event: e.ActivityChanged, before: SessionState) -> list[Any]:
        """What the agent does outside turns; within one, the turn says it."""
        if before.turn is not None:
            return []
        works = before.background if event.background is UNSET else event.background
        said: dict[str, Any] = {"sessionUpdate": "state_update"}
        said["state"] = before.activity if event.activity is UNSET else event.activity
        said["background"] = shared.background(works)
        return [msgspec.convert(said, v2.SessionStateUpdate)]

    # ── tool calls ────────────────────────────────────────────────────────────────────────────

    def tool_call(self, event: e.ToolCallUpdated, before: SessionState) -> list[Any]:
        if before.tool_call(event.tool_call_id) is None:
            self.begins_entry()
        items, wires = event.content, list[Any]()
        call = v2.SessionToolCallUpdate(
            tool_call_id=event.tool_call_id,
            title=event.title,
            name=event.name,
            kind=event.kind,
            status=event.status,
            content=self.content(items) if isinstance(items, list) else items,
            locations=shared.locations(event.locations, v2),
            raw_input=event.raw_input,
            raw_output=event.raw_output,
            capabilities=_cancellable(event.cancellable, v2.ToolCallCapabilities),
            meta=None if event.forgets_meta and event.meta is None else patched_meta(event),
        )
        more = self.content(event.more)
        if not more or call != v2.SessionToolCallUpdate(tool_call_id=event.tool_call_id):
            wires.append(call)
        chunk = v2.ToolCallContentChunk
        return wires + [chunk(tool_call_id=event.tool_call_id, content=item) for item in more]

    def content(self, items: Sequence[c.ToolContent]) -> list[Any]:
        return shared.tool_content(items, v2, _diff)

    # ── facts ─────────────────────────────────────────────────────────────────────────────────

    def plan(self, event: e.PlanUpdated, before: SessionState) -> list[Any]:
        if not event.plan_id and not self._plan:
            self.begins_entry()
            self._plan = f"plan-{self.seq}"
        return [shared.plan_update(v2, event, event.plan_id or self._plan)]

    def commands_changed(self, event: e.CommandsChanged, before: SessionState) -> list[Any]:
        return [
            v2.AvailableCommandsUpdate(available_commands=commands(event.commands), meta=event.meta)
        ]

    # ── terminals ─────────────────────────────────────────────────────────────────────────────

    def terminal_started(self, event: e.TerminalStarted, before: SessionState) -> list[Any]:
        return [
            v2.TerminalUpdate(
                terminal_id=event.terminal_id,
                command=event.command or shlex.join(event.argv) or UNSET,
                cwd=event.cwd or UNSET,
                capabilities=_cancellable(event.cancellable or UNSET, v2.TerminalCapabilities),
                meta=patched_meta(event),
            )
        ]

    def terminal_printed(self, event: e.TerminalOutput, before: SessionState) -> list[Any]:
        data = base64.b64encode(event.data.encode()).decode()
        if event.replaces:
            output = v2.TerminalOutput(data=data)
            return [v2.TerminalUpdate(terminal_id=event.terminal_id, output=output)]
        if not event.data and event.meta is None:
            return []
        chunk = v2.TerminalOutputChunk
        return [chunk(terminal_id=event.terminal_id, data=data, meta=event.meta)]

    def terminal_exited(self, event: e.TerminalExited, before: SessionState) -> list[Any]:
        ended = v2.TerminalExitStatus(exit_code=event.exit_code, signal=event.signal)
        return [v2.TerminalUpdate(terminal_id=event.terminal_id, exit_status=ended)]


def commands(known: Sequence[f.Command]) -> list[v2.AvailableCommand]:
    """Slash commands, also as the reply that opens a session has them."""
    return [
        v2.Command(
            name=each.name,
            description=each.description,
            input=None if each.hint is None else v2.TextCommandInput(hint=each.hint),
            meta=each.meta,
        )
        for each in known
    ]


def _cancellable(can: Any, capabilities: type[Any]) -> Any:
    if can is UNSET:
        return UNSET
    return msgspec.convert({"cancel": {}}, capabilities) if can else None


def _diff(item: c.Diff) -> Any:
    """A change with its patch; one with the text of its files gets a patch."""
    if item.operation is None:
        operation = "add" if item.old_text is None else "modify"
        change = _CHANGES[operation](path=item.path, file_type="text")
        text = git_patch(item.path, item.old_text, item.new_text)
        return v2.Diff(changes=[change], patch=_patch(text), meta=item.meta)
    kind = _CHANGES.get(item.operation)
    if kind is None:
        words = " → ".join(item.paths)
        return v2.Content(content=v2.TextContent(text=f"{item.operation} {words}"))
    fields: dict[str, Any] = {"path": item.path, "file_type": item.file_type}
    if item.operation in ("move", "copy"):
        fields["old_path"] = item.old_path or ""
    change = kind(**fields, mime_type=item.mime_type)
    return v2.Diff(changes=[change], patch=_patch(item.patch), meta=item.meta)


def _patch(text: str | None) -> v2.DiffPatch | None:
    return None if text is None else v2.DiffPatch(format=GIT, text=text)


def git_patch(path: str, old: str | None, new: str) -> str:
    """What changed in one file, as Git says it; without an old text it is new."""
    before = (old or "").splitlines(keepends=True)
    source = "/dev/null" if old is None else path
    lines = difflib.unified_diff(before, new.splitlines(keepends=True), source, path)
    marked = (f"{x}" if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines)
    return f"diff --git {path} {path}\n" + "".join(marked)


EncoderV2.table = shared.shared_updates(v2) | {
    e.TurnStarted: EncoderV2.turn_started,
    e.TurnEnded: EncoderV2.turn_ended,
    e.Steered: EncoderV2.steered,
    e.PermissionRequested: EncoderV2.asked,
    e.ElicitationRequested: EncoderV2.asked,
    e.PermissionSettled: EncoderV2.settled,
    e.ElicitationSettled: EncoderV2.settled,
    e.ActivityChanged: EncoderV2.activity,
    e.ToolCallUpdated: EncoderV2.tool_call,
    e.PlanUpdated: EncoderV2.plan,
    e.CommandsChanged: EncoderV2.commands_changed,
    e.TerminalStarted: EncoderV2.terminal_started,
    e.TerminalOutput: EncoderV2.terminal_printed,
    e.TerminalExited: EncoderV2.terminal_exited,
}
