"""Translates what versions 1 and 2 of ACP have in common to our types and back.

Their structs differ in little but the module of the schema they come from. So structs are
identified by their tags, and where one has to be made, that module comes in as a parameter: only
the version that is spoken is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.client.capabilities import SessionInfo
from dragoman.client.mcp import HttpServer, InProcessServer, McpServer, SseServer, StdioServer
from dragoman.client.sessions.config_options import is_told, unknown_option
from dragoman.host.forms.elicitation import ElicitationRequest
from dragoman.schema.model import Unknown
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session.facts import (
    BackgroundWork,
    ConfigChoice,
    ConfigOption,
    Cost,
    PermissionOption,
    PlanStep,
    SubagentState,
    TokenUsage,
)

if TYPE_CHECKING:
    from dragoman.schema import v1, v2

Updates: TypeAlias = dict[type[Any], Callable[[Any], e.Event]]
"""What makes an event of an update, by the type of the update."""
Schema: TypeAlias = Any
"""The module `schema.v1` or `schema.v2`."""


def can_override(
    wire: v1.SessionSystemPromptCapabilities | v2.SessionSystemPromptCapabilities | None,
) -> bool:
    """Whether a system prompt may take the place of the agent's own."""
    return wire is not None and wire.mode is not None and wire.mode.override is not None


# ── content ───────────────────────────────────────────────────────────────────────────────────


def content(wire: v1.ContentBlock | v2.ContentBlock) -> c.Content:
    if isinstance(wire, Unknown):
        return c.UnknownContent(wire.kind, wire.raw.decode())
    part = _PARTS[wire.__struct_config__.tag](wire)
    part.annotations = None if wire.annotations is None else msgspec.to_builtins(wire.annotations)
    part.meta = wire.meta
    return part


def contents(wire: list[v1.ContentBlock] | list[v2.ContentBlock]) -> list[c.Content]:
    return [content(block) for block in wire]


def _contents(
    wire: list[v1.ContentBlock] | list[v2.ContentBlock] | UnsetType | None,
) -> list[c.Content] | UnsetType | None:
    return contents(wire) if isinstance(wire, list) else wire


def _text(wire: v1.TextContent | v2.TextContent) -> c.Content:
    return c.Text(wire.text)


def _image(wire: v1.ImageContent | v2.ImageContent) -> c.Content:
    return c.Image(wire.data, wire.mime_type, wire.uri)


def _audio(wire: v1.AudioContent | v2.AudioContent) -> c.Content:
    return c.Audio(wire.data, wire.mime_type)


def _link(wire: v1.ResourceLink | v2.ResourceLink) -> c.Content:
    return c.ResourceLink(**_fields(wire, _LINK))


_LINK = ("uri", "name", "mime_type", "title", "description", "size")


def _fields(of: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those that have the same name in the schema and here."""
    return {name: getattr(of, name) for name in names}


def _embedded(wire: v1.EmbeddedResource | v2.EmbeddedResource) -> c.Content:
    held: Any = wire.resource
    text, blob = getattr(held, "text", None), getattr(held, "blob", None)
    part = c.Resource(held.uri, content=text, blob=blob, mime_type=held.mime_type)
    part.resource_meta = held.meta
    return part


_PARTS: dict[Any, Callable[[Any], c.Content]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource_link": _link,
    "resource": _embedded,
}


def tool_contents(
    wire: Iterable[Any], diffs: Callable[[Any], list[c.ToolContent]]
) -> list[c.ToolContent]:
    """`diffs` gives the diffs of one item: in version 2 that may be several files."""
    found: list[c.ToolContent] = []
    for item in wire:
        if isinstance(item, Unknown):
            found.append(c.UnknownItem(item.kind, item.raw.decode()))
        elif (tag := item.__struct_config__.tag) == "content":
            found.append(c.ContentItem(content(item.content), meta=item.meta))
        elif tag == "diff":
            found += diffs(item)
        else:
            found.append(c.TerminalItem(item.terminal_id, meta=item.meta))
    return found


def location(wire: v1.ToolCallLocation | v2.ToolCallLocation) -> c.Location:
    return c.Location(wire.path, wire.line, meta=wire.meta)


def block_of(part: c.Content, schema: Schema) -> Any:
    """A content block in the types of a version."""
    said = {"annotations": None, "meta": part.meta}
    if part.annotations is not None:
        said["annotations"] = msgspec.convert(part.annotations, schema.Annotations)
    match part:
        case c.Text():
            return schema.TextContent(text=part.text, **said)
        case c.Image():
            return schema.ImageContent(
                data=part.data, mime_type=part.mime_type, uri=part.uri, **said
            )
        case c.Audio():
            return schema.AudioContent(data=part.data, mime_type=part.mime_type, **said)
        case c.ResourceLink():
            return schema.ResourceLink(**_fields(part, _LINK), **said)
        case c.Resource():
            return schema.EmbeddedResource(resource=_held(part, schema), **said)
        case c.UnknownContent():
            return Unknown(part.kind, part.raw.encode())


def _held(part: c.Resource, schema: Schema) -> Any:
    fields = {"uri": part.uri, "mime_type": part.mime_type, "meta": part.resource_meta}
    if part.blob is not None:
        return schema.BlobResourceContents(blob=part.blob, **fields)
    return schema.TextResourceContents(text=part.content or "", **fields)


# ── updates ───────────────────────────────────────────────────────────────────────────────────


def shared_updates(schema: Schema) -> Updates:
    """Those that both versions have, and that mean the same whatever came before them."""
    return {
        schema.UserMessageChunk: _said(e.UserMessage, schema),
        schema.AgentMessageChunk: _said(e.AgentMessage, schema),
        schema.AgentThoughtChunk: _said(e.AgentThought, schema),
        schema.PlanUpdate: _plan_update,
        schema.PlanRemoved: _plan_removed,
        schema.SessionInfoUpdate: _info,
        schema.UsageUpdate: _usage,
        schema.ConfigOptionUpdate: config_changed,
        schema.Notice: _notice,
        schema.CompactionUpdate: _compaction,
        schema.CompactionSummaryChunk: _compaction_summary,
        schema.SubagentUpdate: _subagent,
        schema.SessionMessage: _peer_message,
        schema.SessionMessageChunk: _peer_message_chunk,
    }


def _said(kind: Callable[..., e.Event], schema: Schema) -> Callable[[Any], e.Event]:
    text_type = schema.TextContent

    def event(wire: v1.ContentChunk | v2.AgentMessageChunk) -> e.Event:
        part: Any = wire.content
        # Nearly every update is bare text.
        if type(part) is text_type and part.annotations is None and part.meta is None:
            text = c.Text(part.text)
            if wire.meta is None:  # a keyword takes a fifth of the call
                return kind(text, wire.message_id)
            return kind(text, wire.message_id, meta=wire.meta)
        return kind(content(part), wire.message_id, meta=wire.meta)

    return event


def plan_step(wire: v1.PlanEntry | v2.PlanEntry) -> PlanStep:
    return PlanStep(wire.content, wire.priority, wire.status, meta=wire.meta)


def _plan_update(wire: v1.PlanUpdate | v2.PlanUpdate) -> e.Event:
    plan: Any = wire.plan
    if isinstance(plan, Unknown):
        return e.UnknownUpdate(f"plan_update/{plan.kind}", plan.raw.decode())
    match plan.__struct_config__.tag:
        case "items":
            steps = [plan_step(entry) for entry in plan.entries]
            return e.PlanUpdated(steps, plan.plan_id, meta=wire.meta)
        case "file":
            return e.PlanUpdated(plan_id=plan.plan_id, uri=plan.uri, meta=wire.meta)
        case _:
            return e.PlanUpdated(plan_id=plan.plan_id, markdown=plan.content, meta=wire.meta)


def _plan_removed(wire: v1.PlanRemoved | v2.PlanRemoved) -> e.Event:
    return e.PlanRemoved(wire.plan_id, meta=wire.meta)


def _info(wire: v1.SessionInfoUpdate | v2.SessionInfoUpdate) -> e.Event:
    return e.InfoChanged(wire.title, wire.updated_at, meta=wire.meta or None)


def _usage(wire: v1.UsageUpdate | v2.UsageUpdate) -> e.Event:
    cost = Cost(wire.cost.amount, wire.cost.currency) if wire.cost else None
    credible = cost if cost is not None and cost.is_credible else None
    return e.UsageChanged(wire.used, wire.size, credible, meta=wire.meta)


def _notice(wire: v1.Notice | v2.Notice) -> e.Event:
    return e.Notice(wire.title, wire.severity, wire.description, meta=wire.meta)


def _compaction(wire: v1.CompactionUpdate | v2.CompactionUpdate) -> e.Event:
    summary, meta = _contents(wire.summary), wire.meta or None
    return e.CompactionUpdated(wire.compaction_id, wire.status, summary, wire.error, meta=meta)


def _compaction_summary(
    wire: v1.CompactionSummaryChunk | v2.CompactionSummaryChunk,
) -> e.Event:
    return e.CompactionSummary(wire.compaction_id, content(wire.content), meta=wire.meta)


def _subagent(wire: v1.SubagentUpdate | v2.SubagentUpdate) -> e.Event:
    return e.SubagentUpdated(
        wire.session_id,
        title=wire.title,
        description=wire.description,
        state=_subagent_state(wire.state),
        cwd=wire.cwd,
        additional_directories=wire.additional_directories,
        capabilities=wire.capabilities if wire.capabilities is UNSET else plain(wire.capabilities),
        meta=wire.meta or None,
    )


def _subagent_state(
    wire: v1.StateUpdate | v2.StateUpdate | UnsetType | None,
) -> SubagentState | UnsetType | None:
    if wire is UNSET or wire is None:
        return wire
    works: list[v2.BackgroundWork] | None = getattr(wire, "background", None)
    return SubagentState(
        wire.state,
        stop_reason=wire.stop_reason,
        background=None if works is None else background(works),
        usage=plain(wire.usage),
        error=plain(wire.error),
    )


def background(wire: Iterable[v2.BackgroundWork]) -> list[BackgroundWork]:
    """What continues outside turns."""
    return [_background_work(work) for work in wire]


def _background_work(wire: v2.BackgroundWork) -> BackgroundWork:
    if isinstance(wire, Unknown):
        return BackgroundWork(wire.kind)
    return BackgroundWork(
        str(wire.__struct_config__.tag),
        terminal_id=getattr(wire, "terminal_id", None),
        tool_call_id=getattr(wire, "tool_call_id", None),
        session_id=getattr(wire, "session_id", None),
    )


def plain(value: Any) -> Any:
    """A struct as JSON has it."""
    return msgspec.to_builtins(value, enc_hook=_as_it_came)


def _as_it_came(value: Any) -> Any:
    return msgspec.json.decode(value.raw)


def _peer_message(wire: v1.SessionMessage | v2.SessionMessage) -> e.Event:
    return e.PeerMessageUpdated(
        wire.message_id,
        sender_session_id=wire.sender_session_id,
        recipient_session_id=wire.recipient_session_id,
        sender_message_id=wire.sender_message_id,
        recipient_message_id=wire.recipient_message_id,
        content=_contents(wire.content),
        meta=wire.meta or None,
    )


def _peer_message_chunk(wire: v1.SessionMessageChunk | v2.SessionMessageChunk) -> e.Event:
    return e.PeerMessageChunk(wire.message_id, content(wire.content), meta=wire.meta)


# ── what replies and requests carry ───────────────────────────────────────────────────────────


def config_changed(wire: v1.ConfigOptionUpdate | v2.ConfigOptionUpdate) -> e.ConfigChanged:
    return e.ConfigChanged(config_options(wire.config_options), meta=wire.meta)


def config_options(wire: Iterable[Any]) -> list[ConfigOption]:
    options = (
        unknown_option(option.kind, option.raw)
        if isinstance(option, Unknown)
        else _config_option(option)
        for option in wire
    )
    return [option for option in options if option is not None and is_told(option)]


def _config_option(wire: Any) -> ConfigOption:
    is_select = wire.__struct_config__.tag == "select"
    return ConfigOption(
        wire.config_id if hasattr(wire, "config_id") else wire.id,  # as version 1 calls it
        wire.name,
        wire.current_value,
        _choices(wire.options) if is_select else None,
        description=wire.description,
        category=wire.category,
        meta=wire.meta,
    )


def _choices(wire: Iterable[Any]) -> list[ConfigChoice]:
    """Those of groups too, each with the name of its group."""
    choices: list[ConfigChoice] = []
    for option in wire:
        if hasattr(option, "options"):
            choices += [_choice(inner, option.name) for inner in option.options]
        else:
            choices.append(_choice(option, None))
    return choices


def _choice(
    wire: v1.SessionConfigSelectOption | v2.SessionConfigSelectOption, group: str | None
) -> ConfigChoice:
    return ConfigChoice(wire.value, wire.name, wire.description, group, meta=wire.meta)


def token_usage(wire: v1.Usage | v2.Usage | None) -> TokenUsage | None:
    if wire is None:
        return None
    counts = {kind: getattr(wire, f"{kind}_tokens") for kind in _TOKENS}
    return TokenUsage(**counts, meta=wire.meta)


_TOKENS = ("total", "input", "output", "thought", "cached_read", "cached_write")


def elicitation_request(
    wire: v1.CreateElicitationRequest | v2.CreateElicitationRequest,
) -> ElicitationRequest:
    return ElicitationRequest(
        request_id="",
        message=wire.message,
        mode=wire.mode,
        schema=None if wire.requested_schema is None else plain(wire.requested_schema),
        url=wire.url,
        elicitation_id=wire.elicitation_id,
        tool_call_id=wire.tool_call_id,
        meta=wire.meta,
    )


def permission_option(wire: v1.PermissionOption | v2.PermissionOption) -> PermissionOption:
    return PermissionOption(wire.option_id, wire.name, wire.kind, meta=wire.meta)


def session_info(wire: v1.SessionInfo | v2.SessionInfo) -> SessionInfo:
    """Only the id has another name here."""
    same = (name for name in SessionInfo.__struct_fields__ if name != "id")
    return SessionInfo(id=wire.session_id, **_fields(wire, same))


def mcp_server(server: McpServer, schema: Schema) -> Any:
    """None for a server of a transport that the version does not have."""
    match server:
        case StdioServer():
            env = [schema.EnvVariable(name=name, value=value) for name, value in server.env.items()]
            return schema.McpServerStdio(
                name=server.name, command=server.command, args=list(server.args), env=env
            )
        case HttpServer() | SseServer():
            kind = "McpServerHttp" if isinstance(server, HttpServer) else "McpServerSse"
            found = getattr(schema, kind, None)
            pairs = server.headers.items()
            headers = [schema.HttpHeader(name=name, value=value) for name, value in pairs]
            return found and found(name=server.name, url=server.url, headers=headers)
        case InProcessServer():
            return schema.McpServerAcp(name=server.name, server_id=server.id)


def mcp_server_from(wire: Any) -> McpServer | None:
    """The reverse; None for a server that its client alone reaches, or of an unknown kind."""
    if hasattr(wire, "command"):
        env = {variable.name: variable.value for variable in wire.env}
        return StdioServer(name=wire.name, command=wire.command, args=tuple(wire.args), env=env)
    if hasattr(wire, "url"):
        headers = {header.name: header.value for header in wire.headers}
        kind = SseServer if wire.__struct_config__.tag == "sse" else HttpServer
        return kind(name=wire.name, url=wire.url, headers=headers)
    return None
