"""What an agent says in ACP v2, in our words; what depends on earlier words is in `upserts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import TOOL_NAME, TOOL_OUTPUT, said
from dragoman.client.config_options import is_told, unknown_option
from dragoman.client.v2.diffs import diffs
from dragoman.schema import v2
from dragoman.schema.base import Unknown
from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    Content,
    ContentItem,
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
    PermissionOption,
    PlanStep,
    TokenUsage,
)


def update(wire: v2.SessionUpdate) -> e.Event:
    """The event for an update that means the same whatever came before it."""
    if isinstance(wire, Unknown):
        return e.UnknownUpdate(wire.kind, wire.raw.decode())
    return _UPDATES[type(wire)](wire)


# ── content ───────────────────────────────────────────────────────────────────────────────────


def content(wire: v2.ContentBlock) -> Content:
    if type(wire) is v2.TextContent and wire.annotations is None and wire.meta is None:
        return Text(wire.text)
    match wire:
        case Unknown():
            return UnknownContent(wire.kind, wire.raw.decode())
        case v2.TextContent():
            part: Content = Text(wire.text)
        case v2.ImageContent():
            part = Image(wire.data, wire.mime_type, wire.uri)
        case v2.AudioContent():
            part = Audio(wire.data, wire.mime_type)
        case v2.ResourceLink():
            part = _link(wire)
        case v2.EmbeddedResource():
            part = _resource(wire.resource)
    part.annotations = None if wire.annotations is None else msgspec.to_builtins(wire.annotations)
    part.meta = wire.meta
    return part


def _link(wire: v2.ResourceLink) -> ResourceLink:
    return ResourceLink(
        wire.uri,
        wire.name,
        wire.mime_type,
        title=wire.title,
        description=wire.description,
        size=wire.size,
    )


def _resource(wire: v2.TextResourceContents | v2.BlobResourceContents) -> Resource:
    if isinstance(wire, v2.TextResourceContents):
        part = Resource(wire.uri, content=wire.text, mime_type=wire.mime_type)
    else:
        part = Resource(wire.uri, blob=wire.blob, mime_type=wire.mime_type)
    part.resource_meta = wire.meta
    return part


def contents(wire: list[v2.ContentBlock]) -> list[Content]:
    return [content(block) for block in wire]


def tool_content(wire: v2.ToolCallContent) -> list[ToolContent]:
    """Several for a diff of several files."""
    match wire:
        case v2.Content():
            return [ContentItem(content(wire.content), meta=wire.meta)]
        case v2.Diff():
            return diffs(wire)
        case v2.Terminal():
            return [TerminalItem(wire.terminal_id, meta=wire.meta)]
        case Unknown():
            return [UnknownItem(wire.kind, wire.raw.decode())]


# ── updates ───────────────────────────────────────────────────────────────────────────────────


def _user_chunk(wire: v2.UserMessageChunk) -> e.Event:
    return e.UserMessage(content(wire.content), wire.message_id, meta=wire.meta)


def _agent_chunk(wire: v2.AgentMessageChunk) -> e.Event:
    return e.AgentMessage(content(wire.content), wire.message_id, meta=wire.meta)


def _thought_chunk(wire: v2.AgentThoughtChunk) -> e.Event:
    return e.AgentThought(content(wire.content), wire.message_id, meta=wire.meta)


def tool_call_update(wire: v2.ToolCallUpdate) -> e.ToolCallUpdated:
    """What is missing did not change, and null clears."""
    items, places, can = wire.content, wire.locations, wire.capabilities
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=wire.title,
        name=_tool_name(wire),
        kind=wire.kind,
        status=wire.status,
        content=_each(items, tool_content),
        locations=[_location(p) for p in places] if isinstance(places, list) else places,
        raw_input=wire.raw_input,
        raw_output=_tool_output(wire),
        cancellable=can if can is UNSET else _can_cancel(can),
        forgets_meta=wire.meta is None,
        meta=wire.meta or None,
    )


def _tool_name(wire: v2.ToolCallUpdate) -> str | UnsetType | None:
    name = said(wire.meta or None, TOOL_NAME) if wire.name is UNSET else None
    return name if isinstance(name, str) and name else wire.name


def _tool_output(wire: v2.ToolCallUpdate) -> Any:
    output = said(wire.meta or None, TOOL_OUTPUT) if wire.raw_output is UNSET else None
    return wire.raw_output if output is None else output


def _each(
    items: list[v2.ToolCallContent] | UnsetType | None,
    translate: Callable[[v2.ToolCallContent], list[ToolContent]],
) -> list[ToolContent] | UnsetType | None:
    if not isinstance(items, list):
        return items
    return [found for item in items for found in translate(item)]


def _can_cancel(capabilities: Any) -> bool:
    return capabilities is not None and capabilities.cancel is not None


def _tool_chunk(wire: v2.ToolCallContentChunk) -> e.Event:
    return e.ToolCallUpdated(wire.tool_call_id, more=tool_content(wire.content))


def _location(wire: v2.ToolCallLocation) -> Location:
    return Location(wire.path, wire.line, meta=wire.meta)


def _plan(wire: v2.PlanUpdate) -> e.Event:
    match wire.plan:
        case v2.PlanItems() as plan:
            steps = [PlanStep(s.content, s.priority, s.status, meta=s.meta) for s in plan.entries]
            return e.PlanUpdated(steps, plan.plan_id, meta=wire.meta)
        case v2.PlanFile() as plan:
            return e.PlanUpdated(plan_id=plan.plan_id, uri=plan.uri, meta=wire.meta)
        case v2.PlanMarkdown() as plan:
            return e.PlanUpdated(plan_id=plan.plan_id, markdown=plan.content, meta=wire.meta)
        case Unknown() as plan:
            return e.UnknownUpdate(f"plan_update/{plan.kind}", plan.raw.decode())


def _plan_removed(wire: v2.PlanRemoved) -> e.Event:
    return e.PlanRemoved(wire.plan_id, meta=wire.meta)


def _commands(wire: v2.AvailableCommandsUpdate) -> e.Event:
    return e.CommandsChanged(commands(wire.available_commands), meta=wire.meta)


def _config(wire: v2.ConfigOptionUpdate) -> e.Event:
    return e.ConfigChanged(config_options(wire.config_options), meta=wire.meta)


def _info(wire: v2.SessionInfoUpdate) -> e.Event:
    return e.InfoChanged(wire.title, wire.updated_at, meta=wire.meta or None)


def _usage(wire: v2.UsageUpdate) -> e.Event:
    cost = Cost(wire.cost.amount, wire.cost.currency) if wire.cost else None
    credible = cost if cost is not None and cost.is_credible else None
    return e.UsageChanged(wire.used, wire.size, credible, meta=wire.meta)


def _notice(wire: v2.Notice) -> e.Event:
    return e.Notice(wire.title, wire.severity, wire.description, meta=wire.meta)


def _compaction(wire: v2.CompactionUpdate) -> e.Event:
    summary = contents(wire.summary) if isinstance(wire.summary, list) else wire.summary
    meta = wire.meta or None
    return e.CompactionUpdated(wire.compaction_id, wire.status, summary, wire.error, meta=meta)


def _compaction_chunk(wire: v2.CompactionSummaryChunk) -> e.Event:
    return e.CompactionSummary(wire.compaction_id, content(wire.content), meta=wire.meta)


def _subagent(wire: v2.SubagentUpdate) -> e.Event:
    return e.SubagentUpdated(
        wire.session_id,
        title=wire.title,
        description=wire.description,
        state=_plain(wire.state),
        cwd=wire.cwd,
        additional_directories=wire.additional_directories,
        capabilities=_plain(wire.capabilities),
        meta=wire.meta or None,
    )


def _plain(value: Any) -> Any:
    return value if value is UNSET else plain(value)


def plain(value: Any) -> Any:
    """A struct as JSON has it."""
    return msgspec.to_builtins(value, enc_hook=_as_it_came)


def _as_it_came(value: Any) -> Any:
    return msgspec.json.decode(value.raw)


def _peer_message(wire: v2.SessionMessage) -> e.Event:
    return e.PeerMessageUpdated(
        wire.message_id,
        sender_session_id=wire.sender_session_id,
        recipient_session_id=wire.recipient_session_id,
        sender_message_id=wire.sender_message_id,
        recipient_message_id=wire.recipient_message_id,
        content=contents(wire.content) if isinstance(wire.content, list) else wire.content,
        meta=wire.meta or None,
    )


def _peer_chunk(wire: v2.SessionMessageChunk) -> e.Event:
    return e.PeerMessageChunk(wire.message_id, content(wire.content), meta=wire.meta)


_UPDATES: dict[type[Any], Callable[[Any], e.Event]] = {
    v2.UserMessageChunk: _user_chunk,
    v2.AgentMessageChunk: _agent_chunk,
    v2.AgentThoughtChunk: _thought_chunk,
    v2.SessionToolCallUpdate: tool_call_update,
    v2.ToolCallContentChunk: _tool_chunk,
    v2.PlanUpdate: _plan,
    v2.PlanRemoved: _plan_removed,
    v2.AvailableCommandsUpdate: _commands,
    v2.ConfigOptionUpdate: _config,
    v2.SessionInfoUpdate: _info,
    v2.UsageUpdate: _usage,
    v2.Notice: _notice,
    v2.CompactionUpdate: _compaction,
    v2.CompactionSummaryChunk: _compaction_chunk,
    v2.SubagentUpdate: _subagent,
    v2.SessionMessage: _peer_message,
    v2.SessionMessageChunk: _peer_chunk,
}


# ── what replies and requests carry ───────────────────────────────────────────────────────────


def commands(wire: list[v2.AvailableCommand]) -> list[Command]:
    found = (_command(command) for command in wire)
    return [command for command in found if command.name]


class _Named(msgspec.Struct):
    name: str = ""
    description: str = ""


def _command(wire: v2.AvailableCommand) -> Command:
    """Of a kind that is not known, its name and what it says of itself are."""
    if isinstance(wire, Unknown):
        try:
            named = msgspec.json.decode(wire.raw, type=_Named)
        except msgspec.ValidationError:
            named = _Named()
        return Command(named.name, named.description)
    hint = wire.input.hint if isinstance(wire.input, v2.TextCommandInput) else None
    return Command(wire.name, wire.description, hint, meta=wire.meta)


def config_options(wire: list[v2.SessionConfigOption]) -> list[ConfigOption]:
    options = (
        unknown_option(option.kind, option.raw, "configId")
        if isinstance(option, Unknown)
        else _config_option(option)
        for option in wire
    )
    return [option for option in options if option is not None and is_told(option)]


def _config_option(wire: v2.SessionConfigSelect | v2.SessionConfigBoolean) -> ConfigOption:
    choices = _choices(wire.options) if isinstance(wire, v2.SessionConfigSelect) else None
    return ConfigOption(
        wire.config_id,
        wire.name,
        wire.current_value,
        choices,
        wire.description,
        wire.category,
        meta=wire.meta,
    )


def _choices(wire: v2.SessionConfigSelectOptions) -> list[ConfigChoice]:
    choices: list[ConfigChoice] = []
    for option in wire:
        if isinstance(option, v2.SessionConfigSelectGroup):
            choices += [_choice(inner, option.name) for inner in option.options]
        else:
            choices.append(_choice(option, None))
    return choices


def _choice(wire: v2.SessionConfigSelectOption, group: str | None) -> ConfigChoice:
    return ConfigChoice(wire.value, wire.name, wire.description, group, meta=wire.meta)


def token_usage(wire: v2.Usage | None) -> TokenUsage | None:
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


def permission_option(wire: v2.PermissionOption) -> PermissionOption:
    return PermissionOption(wire.option_id, wire.name, wire.kind, meta=wire.meta)
