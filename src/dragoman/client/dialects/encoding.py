"""Events as updates again: the reverse of `translation`, for those to whom we are the agent. Pure.

Here is what both versions say alike, in the structs of a version's `schema`; each dialect's own
`encoding` has the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import parent_call
from dragoman.client.dialects.translation import Schema, block_of
from dragoman.schema.model import Unknown
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.content import Text
from dragoman.session.state import SessionState


class Shows(msgspec.Struct, kw_only=True, frozen=True):
    """What the client on the other side can show, as far as it has to say so."""

    notices: bool = False
    compactions: bool = False
    plans: bool = False
    """Plans with an id, as Markdown or as a file, besides the one list of steps."""
    subagents: bool = False
    switches: bool = False
    """Config options that are on or off."""
    terminals: bool = False
    """The output of terminals that it did not start."""
    forms: bool = False
    addresses: bool = False
    """Questions with a form to fill in, and with an address to visit."""


class Update(msgspec.Struct, frozen=True):
    """An update, as a struct of the schema; of which subagent, if of one."""

    wire: Any
    subagent: str | None = None


Encode: TypeAlias = Callable[[Any, Any, SessionState], list[Any]]
"""What an encoder of a version makes of an event, given the state before it."""


class UpdateEncoder(ABC):
    """The updates of one session, in the order of its events.

    What a client cannot show is left out, or told in a way that it can show.
    """

    schema: ClassVar[Schema]
    table: ClassVar[Mapping[type[Any], Encode]]
    """What becomes of each kind of event; the others are not updates."""
    echoes_prompts: ClassVar[bool] = False
    """Whether a client also gets the prompts that it sent itself."""
    modes_are_options: ClassVar[bool] = False
    """Whether modes are one of the config options."""

    def __init__(self, shows: Shows) -> None:
        self.shows = shows
        self.seq = 0
        """The number of the event that is encoded."""

    def updates(self, event: e.Event, before: SessionState) -> list[Update]:
        """What an event becomes; `before` is the state that it changes."""
        self.seq = event.seq
        if isinstance(event, e.SubagentEvent):
            return self._of_subagent(event, before)
        encode = self.table.get(type(event))
        return [] if encode is None else [Update(wire) for wire in encode(self, event, before)]

    def _of_subagent(self, event: e.SubagentEvent, before: SessionState) -> list[Update]:
        """Of one that its parent's agent tells as tool calls, it says so in its metadata."""
        inner = event.event
        if parent_call(inner.meta) is not None:
            return self.updates(inner, before)
        encode = self.table.get(type(inner))
        if encode is None or not self.shows.subagents:
            return []
        child = before.subagents.get(event.session_id)
        thread = SessionState() if child is None else child.thread
        return [Update(wire, event.session_id) for wire in encode(self, inner, thread)]

    @abstractmethod
    def message(self, kind: type[Any], part: c.Content, message_id: str | None) -> Any:
        """A piece of a message, as one of the schema's chunks."""

    def said(self, kind: type[Any], event: Any) -> Any:
        """A piece of a message, from its event."""
        wire = self.message(kind, event.content, event.message_id)
        wire.meta = event.meta
        return wire

    def standing(self, state: SessionState) -> list[Any]:
        """What a client that has just opened the session must know of a running turn."""
        return []

    def remark(self, event: e.Notice) -> list[Any]:
        """A notice; for a client that does not show any, as a message of the agent."""
        if self.shows.notices:
            notice = self.schema.Notice(
                severity=event.severity,
                title=event.title,
                description=event.description,
                meta=event.meta,
            )
            return [notice]
        words = Text(f"\n\n[{event.severity}] {event.text}\n\n")
        return [self.message(self.schema.AgentMessageChunk, words, f"notice-{event.seq}")]

    def options(self, options: Sequence[f.ConfigOption]) -> list[Any]:
        """The config options that the client can show."""
        return [config_option(each, self.schema) for each in options if self._can_set(each)]

    def _can_set(self, option: f.ConfigOption) -> bool:
        if option.kind is not None:
            return False
        if option.choices is None:
            return self.shows.switches and isinstance(option.value, bool)
        return isinstance(option.value, str)


# ── what both say ─────────────────────────────────────────────────────────────────────────────


def shared_updates(schema: Schema) -> dict[type[Any], Encode]:
    """Those that both versions have, and that mean the same in both."""
    return {
        e.UserMessage: _said(schema.UserMessageChunk),
        e.AgentMessage: _said(schema.AgentMessageChunk),
        e.AgentThought: _said(schema.AgentThoughtChunk),
        e.PlanRemoved: _plan_removed,
        e.ConfigChanged: _config,
        e.InfoChanged: _info,
        e.UsageChanged: _usage,
        e.Notice: _remark,
        e.LimitReached: _remark,
        e.TurnLimited: _remark,
        e.ParkingChanged: _remark,
        e.SessionOpened: _opened,
        e.CompactionUpdated: _compaction,
        e.CompactionSummary: _compaction_summary,
        e.SubagentUpdated: _subagent,
        e.PeerMessageUpdated: _peer_message,
        e.PeerMessageChunk: _peer_message_chunk,
        e.UnknownUpdate: _unknown,
    }


def _said(chunk: type[Any]) -> Encode:
    def encode(encoder: UpdateEncoder, event: Any, before: SessionState) -> list[Any]:
        return [encoder.said(chunk, event)]

    return encode


def told(encoder: UpdateEncoder, content: Sequence[c.Content], message_id: str) -> list[Any]:
    """What a person said, as the agent would report it."""
    chunk = encoder.schema.UserMessageChunk
    return [encoder.message(chunk, part, message_id) for part in content]


def _plan_removed(encoder: UpdateEncoder, event: e.PlanRemoved, before: SessionState) -> list[Any]:
    if not encoder.shows.plans:
        return []
    return [encoder.schema.PlanRemoved(plan_id=event.plan_id, meta=event.meta)]


def plan_update(schema: Schema, event: e.PlanUpdated, plan_id: str) -> Any:
    """A plan with an id, in any of its forms."""
    if event.uri is not None:
        plan = schema.PlanFile(plan_id=plan_id, uri=event.uri)
    elif event.markdown is not None:
        plan = schema.PlanMarkdown(plan_id=plan_id, content=event.markdown)
    else:
        plan = schema.PlanItems(plan_id=plan_id, entries=plan_entries(schema, event.steps))
    return schema.PlanUpdate(plan=plan, meta=event.meta)


def plan_entries(schema: Schema, steps: Sequence[f.PlanStep]) -> list[Any]:
    return [
        schema.PlanEntry(
            content=step.content, priority=step.priority, status=step.status, meta=step.meta
        )
        for step in steps
    ]


def _config(encoder: UpdateEncoder, event: e.ConfigChanged, before: SessionState) -> list[Any]:
    options = encoder.options(event.options)
    return [encoder.schema.ConfigOptionUpdate(config_options=options, meta=event.meta)]


def _info(encoder: UpdateEncoder, event: e.InfoChanged, before: SessionState) -> list[Any]:
    wire = encoder.schema.SessionInfoUpdate
    return [wire(title=event.title, updated_at=event.updated_at, meta=patched_meta(event))]


def _usage(encoder: UpdateEncoder, event: e.UsageChanged, before: SessionState) -> list[Any]:
    schema, cost = encoder.schema, event.cost
    amount = None if cost is None else schema.Cost(amount=cost.amount, currency=cost.currency)
    return [
        schema.UsageUpdate(used=event.used, size=event.size, cost=amount, meta=event.meta),
    ]


def _remark(encoder: UpdateEncoder, event: e.Notice, before: SessionState) -> list[Any]:
    return encoder.remark(event)


FORGOTTEN = "the agent does not remember what came before this"


def _opened(encoder: UpdateEncoder, event: e.SessionOpened, before: SessionState) -> list[Any]:
    if event.continuity != "reset" or not before.entry_count:
        return []
    return encoder.remark(e.Notice(FORGOTTEN, "warning", source="client", seq=event.seq))


def _compaction(
    encoder: UpdateEncoder, event: e.CompactionUpdated, before: SessionState
) -> list[Any]:
    if not encoder.shows.compactions:
        return []
    return [
        encoder.schema.CompactionUpdate(
            compaction_id=event.compaction_id,
            status=event.status,
            summary=_blocks(event.summary, encoder.schema),
            error=event.error,
            meta=patched_meta(event),
        )
    ]


def _compaction_summary(
    encoder: UpdateEncoder, event: e.CompactionSummary, before: SessionState
) -> list[Any]:
    if not encoder.shows.compactions:
        return []
    return [
        encoder.schema.CompactionSummaryChunk(
            compaction_id=event.compaction_id,
            content=block(event.content, encoder.schema),
            meta=event.meta,
        )
    ]


def _subagent(encoder: UpdateEncoder, event: e.SubagentUpdated, before: SessionState) -> list[Any]:
    """Not one that we know of by its tool call alone: that is an update already."""
    if event.tool_call_id is not None or not encoder.shows.subagents:
        return []
    schema, can = encoder.schema, event.capabilities
    capabilities = schema.SubagentSessionCapabilities
    return [
        schema.SubagentUpdate(
            session_id=event.session_id,
            title=event.title,
            description=event.description,
            state=_subagent_state(event.state, schema),
            cwd=event.cwd,
            additional_directories=event.additional_directories,
            capabilities=msgspec.convert(can, capabilities) if isinstance(can, dict) else can,
            meta=patched_meta(event),
        )
    ]


def _subagent_state(state: f.SubagentState | UnsetType | None, schema: Schema) -> Any:
    if state is UNSET or state is None:
        return state
    fields: dict[str, Any] = {"state": state.state, "stopReason": state.stop_reason}
    fields |= {"usage": state.usage, "error": state.error}
    if state.background is not None and hasattr(schema, "BackgroundWork"):
        fields["background"] = background(state.background)
    said = {name: value for name, value in fields.items() if value is not None}
    return msgspec.convert(said, schema.StateUpdate)


def background(works: Sequence[f.BackgroundWork]) -> list[dict[str, Any]]:
    """What continues outside turns, as JSON."""
    return [_background_work(work) for work in works]


def _background_work(work: f.BackgroundWork) -> dict[str, Any]:
    ids = {
        "terminalId": work.terminal_id,
        "toolCallId": work.tool_call_id,
        "sessionId": work.session_id,
    }
    return {"type": work.type} | {name: known for name, known in ids.items() if known is not None}


def _peer_message(
    encoder: UpdateEncoder, event: e.PeerMessageUpdated, before: SessionState
) -> list[Any]:
    return [
        encoder.schema.SessionMessage(
            message_id=event.message_id,
            sender_session_id=event.sender_session_id,
            recipient_session_id=event.recipient_session_id,
            sender_message_id=event.sender_message_id,
            recipient_message_id=event.recipient_message_id,
            content=_blocks(event.content, encoder.schema),
            meta=patched_meta(event),
        )
    ]


def _peer_message_chunk(
    encoder: UpdateEncoder, event: e.PeerMessageChunk, before: SessionState
) -> list[Any]:
    content = block(event.content, encoder.schema)
    wire = encoder.schema.SessionMessageChunk
    return [wire(message_id=event.message_id, content=content, meta=event.meta)]


def _unknown(encoder: UpdateEncoder, event: e.UnknownUpdate, before: SessionState) -> list[Any]:
    """As it came; of an unknown plan only the plan is kept."""
    if not event.kind.startswith("plan_update/"):
        return _as_received(event.kind, event.raw, "sessionUpdate")
    if not _as_received(event.kind, event.raw, "type"):
        return []
    raw = b'{"sessionUpdate":"plan_update","plan":%b}' % event.raw.encode()
    return [Unknown(event.kind, raw)]


def _as_received(kind: str, raw: str, tag: str) -> list[Any]:
    """Nothing, if it cannot have come like that: an imported file may say anything."""
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return []
    return [Unknown(kind, raw.encode())] if isinstance(fields.get(tag), str) else []


# ── parts ─────────────────────────────────────────────────────────────────────────────────────


def patched_meta(event: Any) -> Any:
    """Of an update that changes what is known: left alone where it says nothing."""
    return UNSET if event.meta is None else event.meta


def block(part: c.Content, schema: Schema) -> Any:
    """A content block; what cannot be one is text."""
    if isinstance(part, c.UnknownContent) and not _as_received(part.kind, part.raw, "type"):
        return schema.TextContent(text=part.raw)
    return block_of(part, schema)


def _blocks(parts: Sequence[c.Content] | UnsetType | None, schema: Schema) -> Any:
    if parts is UNSET or parts is None:
        return parts
    return [block(part, schema) for part in parts]


def tool_content(
    items: Sequence[c.ToolContent], schema: Schema, diff: Callable[[c.Diff], Any]
) -> list[Any]:
    """What a tool call shows, as its agent said it; what could not be read of it is left out."""
    return list(_tool_items(items, schema, diff))


def _tool_items(
    items: Sequence[c.ToolContent], schema: Schema, diff: Callable[[c.Diff], Any]
) -> Iterator[Any]:
    for item in items:
        match item:
            case c.ContentItem():
                yield schema.Content(content=block(item.content, schema), meta=item.meta)
            case c.Diff():
                yield diff(item)
            case c.TerminalItem():
                yield schema.Terminal(terminal_id=item.terminal_id, meta=item.meta)
            case c.UnknownItem(kind=c.UNREAD):
                pass
            case c.UnknownItem():
                yield from _as_received(item.kind, item.raw, "type")


def locations(places: Sequence[c.Location] | UnsetType | None, schema: Schema) -> Any:
    if places is UNSET or places is None:
        return places
    wire = schema.ToolCallLocation
    return [wire(path=place.path, line=place.line, meta=place.meta) for place in places]


def config_option(option: f.ConfigOption, schema: Schema) -> Any:
    """One that is a choice, or on or off."""
    name = "config_id" if "config_id" in schema.SessionConfigSelect.__struct_fields__ else "id"
    said: dict[str, Any] = {
        name: option.id,
        "name": option.name,
        "description": option.description,
        "category": option.category,
        "current_value": option.value,
        "meta": option.meta,
    }
    if option.choices is None:
        return schema.SessionConfigBoolean(**said)
    return schema.SessionConfigSelect(**said, options=_choices(option.choices, schema))


def _choices(choices: Sequence[f.ConfigChoice], schema: Schema) -> list[Any]:
    """Those of a group together again."""
    group_type = schema.SessionConfigSelectGroup
    key = "group_id" if "group_id" in group_type.__struct_fields__ else "group"
    if not any(choice.group for choice in choices):
        return [_choice(choice, schema) for choice in choices]
    groups = groupby(choices, lambda choice: choice.group or "")
    return [
        group_type(**{key: name}, name=name, options=[_choice(each, schema) for each in some])
        for name, some in groups
    ]


def _choice(choice: f.ConfigChoice, schema: Schema) -> Any:
    return schema.SessionConfigSelectOption(
        value=choice.value, name=choice.name, description=choice.description, meta=choice.meta
    )


def mode_option(modes: f.Modes) -> f.ConfigOption:
    """Modes as the config option that they are in newer versions."""
    choices = [f.ConfigChoice(mode.id, mode.name, mode.description) for mode in modes.available]
    return f.ConfigOption(MODE, "Mode", modes.current, choices, category=MODE)


MODE = "mode"


def token_usage(usage: f.TokenUsage | None, schema: Schema) -> Any:
    """The tokens of a turn; those of a session or of one request are not what ACP means."""
    if usage is None or usage.counted != "turn":
        return None
    names = ("total", "input", "output", "thought", "cached_read", "cached_write")
    counts = {f"{name}_tokens": getattr(usage, name) for name in names}
    return schema.Usage(**counts, meta=usage.meta)
