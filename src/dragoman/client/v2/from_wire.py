"""What only an agent of ACP v2 says, in our words; what builds on earlier words is in `upserts`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import TOOL_NAME, TOOL_OUTPUT, said
from dragoman.client import translation
from dragoman.client.translation import Updates, location, shared_updates, tool_contents
from dragoman.client.v2.diffs import diffs
from dragoman.schema import v2
from dragoman.schema.base import Unknown
from dragoman.session import events as e
from dragoman.session.facts import Command, ConfigOption


def update(wire: v2.SessionUpdate) -> e.Event:
    """The event for an update that means the same whatever came before it."""
    if isinstance(wire, Unknown):
        return e.UnknownUpdate(wire.kind, wire.raw.decode())
    return _UPDATES[type(wire)](wire)


def tool_call_update(wire: v2.ToolCallUpdate) -> e.ToolCallUpdated:
    """What is missing did not change, and null clears."""
    items, places, can = wire.content, wire.locations, wire.capabilities
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=wire.title,
        name=_tool_name(wire),
        kind=wire.kind,
        status=wire.status,
        content=tool_contents(items, diffs) if isinstance(items, list) else items,
        locations=[location(p) for p in places] if isinstance(places, list) else places,
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


def _can_cancel(capabilities: Any) -> bool:
    return capabilities is not None and capabilities.cancel is not None


def _tool_chunk(wire: v2.ToolCallContentChunk) -> e.Event:
    return e.ToolCallUpdated(wire.tool_call_id, more=tool_contents([wire.content], diffs))


def _commands(wire: v2.AvailableCommandsUpdate) -> e.Event:
    return e.CommandsChanged(commands(wire.available_commands), meta=wire.meta)


def _config(wire: v2.ConfigOptionUpdate) -> e.Event:
    return e.ConfigChanged(config_options(wire.config_options), meta=wire.meta)


_UPDATES: Updates = shared_updates(v2) | {
    v2.SessionToolCallUpdate: tool_call_update,
    v2.ToolCallContentChunk: _tool_chunk,
    v2.AvailableCommandsUpdate: _commands,
    v2.ConfigOptionUpdate: _config,
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
    return translation.config_options(wire, "config_id", "configId")
