"""Wire types that only ACP v1 has, to and from ours; shared ones are in `translation`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import SHOWN_TERMINALS, TOOL_OUTPUT, said, tool_name
from dragoman.client.client_options import HostCapabilities
from dragoman.client.dialects.translation import (
    Updates,
    block_of,
    config_changed,
    location,
    plan_step,
    shared_updates,
    tool_contents,
)
from dragoman.errors import InvalidMessage
from dragoman.schema import codec, v1
from dragoman.schema.model import Unknown
from dragoman.session import events as e
from dragoman.session.content import Content, Diff, ToolContent
from dragoman.session.facts import Command, Mode


def update(wire: v1.SessionUpdate) -> e.Event:
    """The event for a session update."""
    return UPDATES[type(wire)](wire)


def _unknown(wire: Unknown) -> e.Event:
    if wire.kind == "config_options_update":  # the name older agents use
        fields = msgspec.json.decode(wire.raw, type=dict[str, msgspec.Raw])
        fields["sessionUpdate"] = msgspec.Raw(b'"config_option_update"')
        try:
            return config_changed(codec.decode(msgspec.json.encode(fields), v1.ConfigOptionUpdate))
        except InvalidMessage:
            pass
    return e.UnknownUpdate(wire.kind, wire.raw.decode())


def _diffs(wire: v1.Diff) -> list[ToolContent]:
    return [Diff(wire.path, wire.new_text, wire.old_text, meta=wire.meta)]


def _tool_call(wire: v1.ToolCall) -> e.Event:
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=wire.title,
        name=_tool_name(wire.name, wire.meta),
        kind=_given(wire.kind),
        status=_given(wire.status),
        content=tool_contents(wire.content, _diffs) if wire.content else UNSET,
        locations=[location(place) for place in wire.locations] if wire.locations else UNSET,
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
        content=UNSET if not isinstance(items, list) else tool_contents(items, _diffs),
        locations=UNSET if not isinstance(places, list) else [location(p) for p in places],
        raw_input=_given(wire.raw_input),
        raw_output=_tool_output(wire.raw_output, meta),
        meta=meta,
    )


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def _tool_name(told: str | UnsetType | None, meta: dict[str, Any] | None) -> str | UnsetType:
    return told or (tool_name(meta) if meta else None) or UNSET


def _tool_output(told: Any, meta: dict[str, Any] | None) -> Any:
    if told is not None and told is not UNSET:
        return told
    return _given(said(meta, TOOL_OUTPUT))


def _plan(wire: v1.Plan) -> e.Event:
    return e.PlanUpdated([plan_step(entry) for entry in wire.entries], meta=wire.meta)


def _commands(wire: v1.AvailableCommandsUpdate) -> e.Event:
    return e.CommandsChanged([_command(c) for c in wire.available_commands], meta=wire.meta)


def _command(wire: v1.AvailableCommand) -> Command:
    hint = None if wire.input is None else wire.input.hint
    return Command(wire.name, wire.description, hint, meta=wire.meta)


def _mode(wire: v1.CurrentModeUpdate) -> e.Event:
    return e.ModeChanged(wire.current_mode_id, meta=wire.meta)


UPDATES: Updates = shared_updates(v1) | {
    v1.ToolCall: _tool_call,
    v1.SessionToolCallUpdate: tool_call_update,
    v1.Plan: _plan,
    v1.AvailableCommandsUpdate: _commands,
    v1.CurrentModeUpdate: _mode,
    Unknown: _unknown,
}


# ── what replies carry ────────────────────────────────────────────────────────────────────────


def modes(wire: v1.SessionModeState) -> e.ModeChanged:
    available = [Mode(m.id, m.name, m.description, meta=m.meta) for m in wire.available_modes]
    return e.ModeChanged(wire.current_mode_id, available)


def content(part: Content) -> v1.ContentBlock:
    return block_of(part, v1)


def client_capabilities(host: HostCapabilities) -> v1.ClientCapabilities:
    """Only what was not switched off, and only what we really handle."""
    form = v1.ElicitationFormCapabilities() if host.elicitation else None
    url = v1.ElicitationUrlCapabilities() if host.elicitation else None
    return v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(
            read_text_file=host.read_files, write_text_file=host.write_files
        ),
        terminal=host.terminals,
        session=v1.ClientSessionCapabilities(
            compaction=v1.CompactionCapabilities(),
            notices=v1.NoticeCapabilities(),
            config_options=v1.SessionConfigOptionsCapabilities(
                boolean=v1.BooleanConfigOptionCapabilities()
            ),
        ),
        plan=v1.PlanCapabilities(),
        subagents=v1.SubagentCapabilities(),
        auth=v1.AuthCapabilities(terminal=host.terminal_sign_in),
        elicitation=v1.ElicitationCapabilities(form=form, url=url) if host.elicitation else None,
        meta=SHOWN_TERMINALS | (host.meta or {}),
    )
