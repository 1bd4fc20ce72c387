"""The pages about the library (api.md, events.md, errors.md), from its docstrings and types."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec

import dragoman
from dragoman import errors, events, ext, testing, ui_stream
from reference.source import (
    Definition,
    Field,
    Method,
    alias_of,
    definition_of,
    function_of,
)

NOTICE = "Generated from the source by `scripts/gen_reference.py`."

GROUPS = {
    "Connect to an agent": (
        "Client AgentCommand RemoteAgent Transport HostCapabilities SessionOptions Timeouts Quirks "
        "Offer SystemPrompt Fence fence_around Tap AgentInfo AgentCapabilities AuthMethod "
        "AuthStatus SessionInfo tracing"
    ),
    "Without async": "run ask SyncSession run_prompt",
    "Sessions and turns": (
        "Session Turn Steer Stream PromptInput RevertOptions Change FolderChanges ChangedFile Hunk "
        "FolderProblem LeftOut Reverted RootSnapshot FileSummary ProgramRun ProgramEnd "
        "ReachedLimit Parking"
    ),
    "Worktrees": "worktree Worktree MergeResult",
    "Races": (
        "race solve Solution RaceRecord Entrant JudgedFiles CheckRun CheckCounts RaceVerdict "
        "RacePlace RaceReview ReviewRound"
    ),
    "Content": (
        "Content Text Image Audio Resource ResourceLink UnknownContent ToolContent ContentItem "
        "Diff TerminalItem UnknownItem Location"
    ),
    "State": (
        "SessionState TurnState AnyEntry Entry UserEntry AgentEntry ThoughtEntry ToolCall "
        "PlanEntry NoticeEntry CompactionEntry PeerMessageEntry ResetEntry ErrorEntry UnknownEntry "
        "Terminal Subagent QueuedPrompt Pending PendingPermission PendingElicitation Mode Modes "
        "BackgroundWork SubagentState ConfigOption ConfigChoice Command PlanStep "
        "Cost ContextUsage TokenUsage ModelTokens TurnTerms PermissionOption PermissionOffer "
        "Decision"
    ),
    "Permissions": (
        "Policy Rule load_policy Access PolicyDecision Explanation Considered RuleStore StoredRule "
        "PermissionsProvider PermissionRequest PermissionAnswer"
    ),
    "Other providers": (
        "FilesProvider TerminalsProvider TerminalCommand TerminalExit TerminalSnapshot "
        "TerminalWatcher ElicitationProvider ElicitationRequest ElicitationAnswer Workspace Root "
        "request_meta"
    ),
    "Settings and MCP servers": (
        "load_settings Settings AgentSettings ModelProvider FenceTerms Retention SnapshotLimits "
        "WorktreeSetup NoticeSettings WebhookSettings "
        "SpendingLimit Spending Tokens Price "
        "McpServer StdioServer HttpServer SseServer InProcessServer"
    ),
}
# Methods that other layers of ours call, and constructors of what is made for you.
INTERNAL = {
    "Turn": {"__init__"},
    "Worktree": {"__init__", "committed", "files", "folder", "has_files", "origin", "release"}
    | {"result", "tip", "to_branch"},
    "Stream": {"__init__", "push", "close", "ready"},
    "RemoteAgent": {"endpoint", "sent_headers", "is_secret_in"},
    "ElicitationRequest": {"as_event"},
    "Reverted": {"notices"},
    "PermissionRequested": {"description"},
    "SessionState": {"places", "placed", "printed"},
    "Quirks": {"kind_of"},
    "Fence": {"__init__", "open", "plan", "environment", "aclose", "folder"},
    "AgentTurn": {"__init__", "cancel"},
    "MemoryTransport": {"__init__"},
    "StandardStreams": {"__init__"},
}
ELSEWHERE = {"Event", "__version__"}


# ── api.md ────────────────────────────────────────────────────────────────────────────────────


def api_page() -> str:
    _check_groups()
    parts = [_API_HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_entry(dragoman, name) for name in names.split()]
    parts.append("## `dragoman.ext`\n\n" + _EXT)
    parts += [_entry(ext, name) for name in ext.__all__]
    parts.append("## `dragoman.testing`\n\n" + _TESTING)
    parts += [_entry(testing, name) for name in testing.__all__]
    parts.append("## `dragoman.ui_stream`\n\n" + _UI_STREAM)
    parts += [_entry(ui_stream, name) for name in ui_stream.__all__ if name != "UnusableRequest"]
    return "\n\n".join(parts) + "\n"


_API_HEAD = f"""\
# Python API

{NOTICE}

Import everything below from `dragoman`, except for the last three sections. See also
[events](events.md) and [errors](errors.md). [Use the library](../how-to/library.md) explains how
the parts fit together."""
_EXT = """\
Methods and notifications of an agent's own. [Use the
library](../how-to/library.md#methods-beyond-acp) shows how to use them."""
_TESTING = """\
A scripted agent, recordings, and their replay. [Test with a scripted
agent](../how-to/test-with-a-scripted-agent.md) and [record and
replay](../how-to/record-and-replay.md) show how to use them."""
_UI_STREAM = """\
A session as an AI SDK UI message stream, without a server. [Put an agent behind
useChat](../how-to/use-chat.md) shows how to use it."""


def _check_groups() -> None:
    listed = [name for names in GROUPS.values() for name in names.split()]
    known = {cls.__name__ for cls in _error_classes()} | ELSEWHERE
    missing = set(dragoman.__all__) - set(listed) - known
    unknown = [name for name in listed if name not in dragoman.__all__]
    if missing or unknown or len(set(listed)) != len(listed):
        sys.exit(f"GROUPS: missing {sorted(missing)}, unknown {unknown}, or a name twice")


def _entry(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    if isinstance(value, type):
        return _class(definition_of(value))
    if callable(value) and hasattr(value, "__module__") and hasattr(value, "__code__"):
        return _function(function_of(value))
    return _alias(module, name, value)


def _alias(module: ModuleType, name: str, value: Any) -> str:
    if isinstance(value, (bytes, dict)):
        return f"### `{name}`\n\n```python\n{name} = {value!r}\n```"
    home = module.__dict__.get("_HOMES", {}).get(name) or _home_of_alias(module, name)
    composed, note = alias_of(f"dragoman.{home}", name)
    return "\n\n".join(filter(None, [f"### `{name}`", _code(f"{name} = {composed}"), note]))


def _home_of_alias(module: ModuleType, name: str) -> str:
    for found in sorted(sys.modules):
        if found.startswith(f"{module.__name__}.") and name in vars(sys.modules[found]):
            return found.removeprefix("dragoman.")
    raise LookupError(name)


def _class(found: Definition, level: int = 3) -> str:
    bases = [base for base in found.bases if base in dragoman.__all__]
    parts = [f"{'#' * level} `{found.name}`", found.doc]
    if bases:
        parts.append("Extends " + ", ".join(f"[`{b}`](#{b.lower()})" for b in bases) + ".")
    hidden = INTERNAL.get(found.name, set()) | _left_out(found.name)
    if fields := [field for field in found.fields if field.name not in hidden]:
        parts.append(_fields(fields))
    if found.name != "Turn":  # of the others, the page of events has it
        hidden = hidden | {"text", "as_kind"}
    if methods := [method for method in found.methods if method.name not in hidden]:
        parts.append("\n".join(_item(method) for method in methods))
    return "\n\n".join(filter(None, parts))


def _left_out(name: str) -> set[str]:
    """What help leaves out, too."""
    for cls in (dragoman.Client, dragoman.Session, dragoman.Turn):
        if cls.__name__ == name:
            return {"internal", *cls.internal}
    return set()


def _fields(fields: list[Field]) -> str:
    rows = [f"| `{f.name}` | {_cell(f.type)} | {_cell(f.default)} | {f.note} |" for f in fields]
    return "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def _item(method: Method) -> str:
    doc = method.doc.replace("\n\n", " ")
    return f"- `{method.signature}`" + (f"<br>{doc}" if doc else "")


def _function(found: Method) -> str:
    return f"### `{found.name}`\n\n{_code(found.signature)}\n\n{found.doc}"


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


# ── events.md ─────────────────────────────────────────────────────────────────────────────────


def events_page() -> str:
    parts = [_EVENTS_HEAD]
    for cls in typing.get_args(events.Event):
        found = definition_of(cls)
        own = tuple(field for field in found.fields if field.name not in _COMMON)
        found = msgspec.structs.replace(found, fields=own)
        tag = cls.__struct_config__.tag
        parts.append(_class(found, 2).replace("\n\n", f"\n\nStored as `{tag}`. ", 1))
    return "\n\n".join(parts) + "\n"


_COMMON = ("seq", "at", "replay", "meta")
_EVENTS_HEAD = f"""\
# Events

{NOTICE}

Import them from `dragoman.events`. `dragoman.events.Event` is the union of all of them, so a type
checker can tell you which kinds a `match` forgets. In JSON, their fields are in camelCase:
`tool_call_id` is `toolCallId`.

Every event also has these fields:

| field | type | |
|---|---|---|
| `seq` | `int` | its number in the session, from 1 without gaps; 0 before it is recorded |
| `at` | `float` | when it was recorded, in seconds since 1970 |
| `replay` | `bool` | whether it is history that the agent sent again |
| `meta` | `dict[str, Any] \\| None` | the `_meta` that came with it |
| `text` | `str` | the words in it that a person would read; `""` where there are none |"""


# ── errors.md ─────────────────────────────────────────────────────────────────────────────────


def errors_page() -> str:
    root = errors.DragomanError
    tree = "\n".join([root.__name__, *_branches(root, "")])
    sections = [_error(cls) for cls in _error_classes()]
    return "\n\n".join([_ERRORS_HEAD, f"```text\n{tree}\n```", *sections]) + "\n"


_ERRORS_HEAD = f"""\
# Errors

{NOTICE}

Import them from `dragoman` or `dragoman.errors`. Data is in attributes; `str(error)` is one
sentence for people.

A caller's mistake (an empty prompt, a mode the agent does not have, a question that was answered
already) is a `ValueError`, `TypeError` or `KeyError` instead, raised at once."""


def _error_classes() -> list[type[Exception]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [cls for cls in found if issubclass(cls, errors.DragomanError)]


def _children(cls: type[Exception]) -> list[type[Exception]]:
    return [each for each in _error_classes() if each.__bases__[0] is cls]


def _branches(cls: type[Exception], indent: str) -> Iterator[str]:
    children = _children(cls)
    for child in children:
        last = child is children[-1]
        yield f"{indent}{'└── ' if last else '├── '}{child.__name__}"
        yield from _branches(child, indent + ("    " if last else "│   "))


def _error(cls: type[Exception]) -> str:
    found = definition_of(cls)
    made = [m.signature for m in found.methods if m.name == "__init__"]
    wire = f"The agent's error code {cls.code}." if _has_code(cls) else ""
    attributes = f"`{made[0]}`" if made else ""
    return "\n\n".join(filter(None, [f"## `{found.name}`", found.doc or wire, attributes]))


def _has_code(cls: type[Exception]) -> typing.TypeGuard[type[errors.RemoteError]]:
    return issubclass(cls, errors.RemoteError) and "code" in vars(cls)
