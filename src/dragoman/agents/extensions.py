"""What agents send in `_meta` in addition to ACP's own fields, in one table.

The dialects read it and put what they find where ACP's own field would be, so that nothing behind
them knows of any agent. Where both speak, ACP's own field counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """`path` leads to it in the `_meta` of an update."""

    path: tuple[str, ...]
    said_by: str
    meaning: str


TOOL_NAME: Final = Extension(
    path=("claudeCode", "toolName"),
    said_by="Claude Code",
    meaning="the name of a tool call, where `name` is missing",
)
TOOL_OUTPUT: Final = Extension(
    path=("claudeCode", "toolResponse"),
    said_by="Claude Code",
    meaning="the output of a tool call, where `rawOutput` is missing",
)
PARENT_CALL: Final = Extension(
    path=("claudeCode", "parentToolUseId"),
    said_by="Claude Code",
    meaning="the tool call whose subagent made this one; the page indents it",
)
TERMINAL_INFO: Final = Extension(
    path=("terminal_info",),
    said_by="several agents",
    meaning="a terminal of the agent's own begins: `terminal_id`, `cwd`",
)
TERMINAL_OUTPUT: Final = Extension(
    path=("terminal_output",),
    said_by="several agents",
    meaning="what such a terminal prints: `terminal_id`, `data`",
)
TERMINAL_EXIT: Final = Extension(
    path=("terminal_exit",),
    said_by="several agents",
    meaning="how it ended: `terminal_id`, `exit_code`, `signal`",
)
EXTENSIONS: Final = (
    TOOL_NAME,
    TOOL_OUTPUT,
    PARENT_CALL,
    TERMINAL_INFO,
    TERMINAL_OUTPUT,
    TERMINAL_EXIT,
)


def said(meta: Mapping[str, Any] | None, extension: Extension) -> Any:
    """What `_meta` says there; None for nothing."""
    value: Any = meta
    for key in extension.path:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(key)
    return value
