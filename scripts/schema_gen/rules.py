"""What the JSON schema does not say in a form a program can read: decided here, by hand."""

from __future__ import annotations

# Where omitted means "unchanged" and null means "cleared" (the descriptions say "upsert", "patch
# semantics", "omitted means unchanged", "set to null to clear"), or where null is a value of its
# own. None stands for every optional field, `_meta` included.
PATCHES: dict[str, dict[str, frozenset[str] | None]] = {
    "v1": {
        "CompactionUpdate": None,
        "McpError": frozenset({"data"}),
        "SessionInfoUpdate": None,
        "SessionMessage": None,
        "SubagentUpdate": None,
        "ToolCallUpdate": None,
    },
    "v2": {
        "AgentMessage": None,
        "AgentThought": None,
        "CompactionUpdate": None,
        "McpError": frozenset({"data"}),
        "SessionInfoUpdate": None,
        "SessionMessage": None,
        "SubagentUpdate": None,
        "TerminalUpdate": None,
        "ToolCallUpdate": None,
        "UsageUpdate": frozenset({"cost"}),
        "UserMessage": None,
    },
}

# Unions that become one struct (fields of all variants, required what all require): those that
# are a message's whole params or result, and the one that is itself a variant of another union.
MERGED = frozenset(
    {
        "CreateElicitationRequest",
        "CreateElicitationResponse",
        "MessageMcpResponse",
        "SetSessionConfigOptionRequest",
        "StateUpdate",
    }
)

# A variant is named after its definition when nothing else uses that definition, else after its
# tag; these are the exceptions.
VARIANT_NAMES = {
    ("DiffChange", "add"): "DiffAdd",
    ("DiffChange", "copy"): "DiffCopy",
    ("DiffChange", "delete"): "DiffDelete",
    ("DiffChange", "modify"): "DiffModify",
    ("DiffChange", "move"): "DiffMove",
    ("RequestPermissionOutcome", "cancelled"): "CancelledPermissionOutcome",
    ("SessionUpdate", "state_update"): "SessionStateUpdate",
    ("SessionUpdate", "tool_call_update"): "SessionToolCallUpdate",
}

# A result that is passed on as it is, whatever it is.
RAW_RESULTS = frozenset({"ProxySuccessorResponse"})


def attribute_name(wire: str) -> str:
    """`toolCallId` becomes `tool_call_id`, `_meta` becomes `meta`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in wire.removeprefix("_"))


def wire_name(attribute: str) -> str:
    """What `dragoman.schema.model.wire_name` will make of an attribute."""
    first, *rest = attribute.split("_")
    return "_meta" if attribute == "meta" else first + "".join(map(str.capitalize, rest))
