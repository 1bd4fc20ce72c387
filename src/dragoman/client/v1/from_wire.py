"""What an agent says in ACP v1, in our words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import TOOL_NAME, TOOL_OUTPUT, said
from dragoman.client.config_options import is_told, unknown_option
from dragoman.errors import InvalidMessage
from dragoman.schema import codec, v1
from dragoman.schema.base import Unknown
from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    Content,
    ContentItem,
    Diff,
    Image,
    Location,
    Resource,
    ResourceLink,
    TerminalItem,
    Text,
    ToolContent,
    UnknownContent,
    UnknownItem,
)
from dragoman.session.facts import (
    Command,
    ConfigChoice,
    ConfigOption,
    Cost,
    Mode,
    PermissionOption,
    PlanStep,
    TokenUsage,
)


def update(wire: v1.SessionUpdate) -> e.Event:
    """The event for a session update."""
    return UPDATES[type(wire)](wire)


def _unknown(wire: Unknown) -> e.Event:
    if wire.kind == "config_options_update":  # the name older agents use
        fields = msgspec.json.decode(wire.raw, type=dict[str, msgspec.Raw])
        fields["sessionUpdate"] = msgspec.Raw(b'"config_option_update"')
        try:
            return _config(codec.decode(msgspec.json.encode(fields), v1.ConfigOptionUpdate))
        except InvalidMessage:
            pass
    return e.UnknownUpdate(wire.kind, wire.raw.decode())


# ── content ───────────────────────────────────────────────────────────────────────────────────


def content(wire: v1.ContentBlock) -> Content:
    match wire:
        case Unknown():
            return UnknownContent(wire.kind, wire.raw.decode())
        case v1.TextContent():
            part: Content = Text(wire.text)
        case v1.ImageContent():
            part = Image(wire.data, wire.mime_type, wire.uri)
        case v1.AudioContent():
            part = Audio(wire.data, wire.mime_type)
        case v1.ResourceLink():
            part = ResourceLink(
                wire.uri,
                wire.name,
                wire.mime_type,
                title=wire.title,
                description=wire.description,
                size=wire.size,
            )
        case v1.EmbeddedResource():
            part = _resource(wire.resource)
    part.annotations = _plain(wire.annotations)
    part.meta = wire.meta
    return part


def _resource(wire: v1.TextResourceContents | v1.BlobResourceContents) -> Resource:
    if isinstance(wire, v1.TextResourceContents):
        part = Resource(wire.uri, content=wire.text, mime_type=wire.mime_type)
    else:
        part = Resource(wire.uri, blob=wire.blob, mime_type=wire.mime_type)
    part.resource_meta = wire.meta
    return part


def _plain(value: v1.Annotations | None) -> dict[str, Any] | None:
    return None if value is None else msgspec.to_builtins(value)


def tool_content(wire: v1.ToolCallContent) -> ToolContent:
    match wire:
        case v1.Content():
            return ContentItem(content(wire.content), meta=wire.meta)
        case v1.Diff():
            return Diff(wire.path, wire.new_text, wire.old_text, meta=wire.meta)
        case v1.Terminal():
            return TerminalItem(wire.terminal_id, meta=wire.meta)
        case Unknown():
            return UnknownItem(wire.kind, wire.raw.decode())


# ── updates ───────────────────────────────────────────────────────────────────────────────────


def _said(kind: Callable[..., e.Event]) -> Callable[[v1.ContentChunk], e.Event]:
    def event(wire: v1.ContentChunk) -> e.Event:
        part = wire.content
        # Nearly every update is bare text.
        if type(part) is v1.TextContent and part.annotations is None and part.meta is None:
            text = Text(part.text)
            if wire.meta is None:  # a keyword takes a fifth of the call
                return kind(text, wire.message_id)
            return kind(text, wire.message_id, meta=wire.meta)
        return kind(content(part), wire.message_id, meta=wire.meta)

    return event


def _tool_call(wire: v1.ToolCall) -> e.Event:
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=wire.title,
        name=_tool_name(wire.name, wire.meta),
        kind=_given(wire.kind),
        status=_given(wire.status),
        content=[tool_content(item) for item in wire.content] if wire.content else UNSET,
        locations=[_location(place) for place in wire.locations] if wire.locations else UNSET,
        raw_input=_given(wire.raw_input),
        raw_output=_tool_output(wire.raw_output, wire.meta),
        meta=wire.meta,
    )


def tool_call_update(wire: v1.ToolCallUpdate) -> e.ToolCallUpdated:
    """In v1 a field that is null did not change, just as one that is missing."""
    items, places, meta = wire.content, wire.locations, wire.meta or None
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=_given(wire.title),
        name=_tool_name(wire.name, meta),
        kind=_given(wire.kind),
        status=_given(wire.status),
        content=UNSET if not isinstance(items, list) else [tool_content(item) for item in items],
        locations=UNSET if not isinstance(places, list) else [_location(p) for p in places],
        raw_input=_given(wire.raw_input),
        raw_output=_tool_output(wire.raw_output, meta),
        meta=meta,
    )


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def _tool_name(told: str | UnsetType | None, meta: dict[str, Any] | None) -> str | UnsetType:
    if told:
        return told
    name = said(meta, TOOL_NAME)
    return name if isinstance(name, str) and name else UNSET


def _tool_output(told: Any, meta: dict[str, Any] | None) -> Any:
    if told is not None and told is not UNSET:
        return told
    return _given(said(meta, TOOL_OUTPUT))


def _location(wire: v1.ToolCallLocation) -> Location:
    return Location(wire.path, wire.line, meta=wire.meta)


def _plan(wire: v1.Plan) -> e.Event:
    return e.PlanUpdated([_step(entry) for entry in wire.entries], meta=wire.meta)


def _plan_update(wire: v1.PlanUpdate) -> e.Event:
    match wire.plan:
        case v1.PlanItems() as plan:
            steps = [_step(entry) for entry in plan.entries]
            return e.PlanUpdated(steps, plan.plan_id, meta=wire.meta)
        case v1.PlanFile() as plan:
            return e.PlanUpdated(plan_id=plan.plan_id, uri=plan.uri, meta=wire.meta)
        case v1.PlanMarkdown() as plan:
            return e.PlanUpdated(plan_id=plan.plan_id, markdown=plan.content, meta=wire.meta)
        case Unknown() as plan:
            return e.UnknownUpdate(f"plan_update/{plan.kind}", plan.raw.decode())


def _step(wire: v1.PlanEntry) -> PlanStep:
    return PlanStep(wire.content, wire.priority, wire.status, meta=wire.meta)


def _plan_removed(wire: v1.PlanRemoved) -> e.Event:
    return e.PlanRemoved(wire.plan_id, meta=wire.meta)


def _commands(wire: v1.AvailableCommandsUpdate) -> e.Event:
    return e.CommandsChanged([_command(c) for c in wire.available_commands], meta=wire.meta)


def _command(wire: v1.AvailableCommand) -> Command:
    hint = None if wire.input is None else wire.input.hint
    return Command(wire.name, wire.description, hint, meta=wire.meta)


def _mode(wire: v1.CurrentModeUpdate) -> e.Event:
    return e.ModeChanged(wire.current_mode_id, meta=wire.meta)


def _config(wire: v1.ConfigOptionUpdate) -> e.Event:
    return e.ConfigChanged(config_options(wire.config_options), meta=wire.meta)


def _info(wire: v1.SessionInfoUpdate) -> e.Event:
    return e.InfoChanged(wire.title, wire.updated_at, meta=wire.meta or None)


def _usage(wire: v1.UsageUpdate) -> e.Event:
    cost = None if wire.cost is None else Cost(wire.cost.amount, wire.cost.currency)
    credible = cost if cost is not None and cost.is_credible else None
    return e.UsageChanged(wire.used, wire.size, credible, meta=wire.meta)


def _notice(wire: v1.Notice) -> e.Event:
    return e.Notice(wire.title, wire.severity, wire.description, meta=wire.meta)


def _compaction(wire: v1.CompactionUpdate) -> e.Event:
    return e.CompactionUpdated(
        wire.compaction_id,
        wire.status,
        _contents(wire.summary),
        wire.error,
        meta=wire.meta or None,
    )


def _contents(
    wire: list[v1.ContentBlock] | UnsetType | None,
) -> list[Content] | UnsetType | None:
    return [content(block) for block in wire] if isinstance(wire, list) else wire


def _compaction_summary(wire: v1.CompactionSummaryChunk) -> e.Event:
    return e.CompactionSummary(wire.compaction_id, content(wire.content), meta=wire.meta)


def _subagent(wire: v1.SubagentUpdate) -> e.Event:
    return e.SubagentUpdated(
        wire.session_id,
        title=wire.title,
        description=wire.description,
        state=_builtins(wire.state),
        cwd=wire.cwd,
        additional_directories=wire.additional_directories,
        capabilities=_builtins(wire.capabilities),
        meta=wire.meta or None,
    )


def _builtins(value: Any) -> Any:
    if isinstance(value, Unknown):
        return msgspec.json.decode(value.raw)
    return value if value is UNSET else msgspec.to_builtins(value)


def _peer_message(wire: v1.SessionMessage) -> e.Event:
    return e.PeerMessageUpdated(
        wire.message_id,
        sender_session_id=wire.sender_session_id,
        recipient_session_id=wire.recipient_session_id,
        sender_message_id=wire.sender_message_id,
        recipient_message_id=wire.recipient_message_id,
        content=_contents(wire.content),
        meta=wire.meta or None,
    )


def _peer_message_chunk(wire: v1.SessionMessageChunk) -> e.Event:
    return e.PeerMessageChunk(wire.message_id, content(wire.content), meta=wire.meta)


UPDATES: dict[type[Any], Callable[[Any], e.Event]] = {
    v1.UserMessageChunk: _said(e.UserMessage),
    v1.AgentMessageChunk: _said(e.AgentMessage),
    v1.AgentThoughtChunk: _said(e.AgentThought),
    v1.ToolCall: _tool_call,
    v1.SessionToolCallUpdate: tool_call_update,
    v1.Plan: _plan,
    v1.PlanUpdate: _plan_update,
    v1.PlanRemoved: _plan_removed,
    v1.AvailableCommandsUpdate: _commands,
    v1.CurrentModeUpdate: _mode,
    v1.ConfigOptionUpdate: _config,
    v1.SessionInfoUpdate: _info,
    v1.UsageUpdate: _usage,
    v1.Notice: _notice,
    v1.CompactionUpdate: _compaction,
    v1.CompactionSummaryChunk: _compaction_summary,
    v1.SubagentUpdate: _subagent,
    v1.SessionMessage: _peer_message,
    v1.SessionMessageChunk: _peer_message_chunk,
    Unknown: _unknown,
}


# ── what replies carry ────────────────────────────────────────────────────────────────────────


def modes(wire: v1.SessionModeState) -> e.ModeChanged:
    available = [Mode(m.id, m.name, m.description, meta=m.meta) for m in wire.available_modes]
    return e.ModeChanged(wire.current_mode_id, available)


def config_options(wire: list[v1.SessionConfigOption]) -> list[ConfigOption]:
    options = (
        unknown_option(option.kind, option.raw, "id")
        if isinstance(option, Unknown)
        else _config_option(option)
        for option in wire
    )
    return [option for option in options if option is not None and is_told(option)]


def _config_option(wire: v1.SessionConfigSelect | v1.SessionConfigBoolean) -> ConfigOption:
    choices = _choices(wire.options) if isinstance(wire, v1.SessionConfigSelect) else None
    return ConfigOption(
        wire.id,
        wire.name,
        wire.current_value,
        choices,
        wire.description,
        wire.category,
        meta=wire.meta,
    )


def _choices(wire: v1.SessionConfigSelectOptions) -> list[ConfigChoice]:
    choices: list[ConfigChoice] = []
    for option in wire:
        if isinstance(option, v1.SessionConfigSelectGroup):
            choices += [_choice(inner, option.name) for inner in option.options]
        else:
            choices.append(_choice(option, None))
    return choices


def _choice(wire: v1.SessionConfigSelectOption, group: str | None) -> ConfigChoice:
    return ConfigChoice(wire.value, wire.name, wire.description, group, meta=wire.meta)


def token_usage(wire: v1.Usage | None) -> TokenUsage | None:
    if wire is None:
        return None
    return TokenUsage(
        total=wire.total_tokens,
        input=wire.input_tokens,
        output=wire.output_tokens,
        thought=wire.thought_tokens,
        cached_read=wire.cached_read_tokens,
        cached_write=wire.cached_write_tokens,
        meta=wire.meta,
    )


def permission_option(wire: v1.PermissionOption) -> PermissionOption:
    return PermissionOption(wire.option_id, wire.name, wire.kind, meta=wire.meta)
