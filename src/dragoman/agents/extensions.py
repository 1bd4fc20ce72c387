"""Agent-specific behaviour in tables: fields sent in `_meta`, those with tokens, and quirks.

The dialects read these fields and put the values where ACP's own field would be, so that no other
code knows of any agent. If both are set, ACP's own field counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.host.claims.habits import Habits
from dragoman.session.facts import ModelTokens, TokensOf, TokenUsage


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """`path` leads to it in the `_meta` of an update."""

    path: tuple[str, ...]
    said_by: str
    meaning: str


def _tool_name(said_by: str, *path: str) -> Extension:
    meaning = "the name of a tool call, where `name` is missing"
    return Extension(path=path, said_by=said_by, meaning=meaning)


TOOL_NAMES: Final = (
    _tool_name("Claude Code", "claudeCode", "toolName"),
    # Only its own tools have no `EXTENSION__` before their names.
    _tool_name("Goose", "goose", "toolCall", "toolName"),
    _tool_name("Qwen Code", "toolName"),
)
TOOL_OUTPUT: Final = Extension(
    path=("claudeCode", "toolResponse"),
    said_by="Claude Code",
    meaning="the output of a tool call, where `rawOutput` is missing",
)


def _parent_call(said_by: str, *path: str) -> Extension:
    meaning = "the tool call that started the subagent that sent this"
    return Extension(path=path, said_by=said_by, meaning=meaning)


PARENT_CALLS: Final = (
    _parent_call("Claude Code", "claudeCode", "parentToolUseId"),
    _parent_call("Qwen Code", "parentToolCallId"),
)


def _of_terminals(key: str, meaning: str) -> Extension:
    return Extension(path=(key,), said_by="several agents", meaning=meaning)


TERMINAL_INFO: Final = _of_terminals(
    "terminal_info", "the agent has started a terminal of its own: `terminal_id`, `cwd`"
)
TERMINAL_OUTPUTS: Final = (
    _of_terminals("terminal_output", "what such a terminal prints: `terminal_id`, `data`"),
    Extension(
        path=("terminal_output_delta",),
        said_by="Codex, Claude",
        meaning="the same, by another name",
    ),
)
TERMINAL_EXIT: Final = _of_terminals(
    "terminal_exit", "how it ended: `terminal_id`, `exit_code`, `signal`"
)
STEERING: Final = Extension(
    path=("steering", "supported"),
    said_by="Claude, Codex",
    meaning="in the reply to `initialize`: the agent accepts steers, through `_session/steering`",
)
ACTIVE_RUN: Final = Extension(
    path=("goose", "activeRunId"),
    said_by="Goose",
    meaning="the run that `_goose/unstable/session/steer` must name; null once it has ended",
)
PROMPT_QUEUEING: Final = Extension(
    path=("claudeCode", "promptQueueing"),
    said_by="Claude",
    meaning="in the agent's capabilities: it accepts a prompt while another is in flight",
)
PUSHED_STATUS: Final = "_auth/status_update"
"""A notification of Claude and Codex with their `authStatus`: ACP's `auth/status_update` before it
was one."""


class TokenReport(Extension, frozen=True, kw_only=True):
    """The counts are those of the turn in the `_meta` of a `reply` to a prompt, and of one request
    to the model in that of an `update`."""

    where: Literal["reply", "update"]
    evidence: str


TOKENS: Final = TokenReport(
    path=("quota", "token_count"),
    where="reply",
    said_by="Gemini CLI",
    meaning="the tokens of a turn, where `usage` is missing",
    evidence="`input_tokens` and `output_tokens`, Gemini CLI 0.61.0",
)
MODELS: Final = TokenReport(
    path=("quota", "model_usage"),
    where="reply",
    said_by="Claude, Codex, Gemini CLI",
    meaning="the tokens of a turn by model",
    evidence="a list of `model` and `token_count`, claude-agent-acp 0.99.0, codex-acp 2.6.0",
)
REQUEST: Final = TokenReport(
    path=("usage",),
    where="update",
    said_by="Qwen Code",
    meaning="the tokens of one request to the model",
    evidence="with an empty `agent_message_chunk` after each request, Qwen Code 0.24.4",
)
TOKEN_REPORTS: Final = (TOKENS, MODELS, REQUEST)
EXTENSIONS: Final = (
    *TOOL_NAMES,
    TOOL_OUTPUT,
    *PARENT_CALLS,
    TERMINAL_INFO,
    *TERMINAL_OUTPUTS,
    TERMINAL_EXIT,
    STEERING,
    ACTIVE_RUN,
    PROMPT_QUEUEING,
    *TOKEN_REPORTS,
)


SHOWN_TERMINALS: Final = {"terminal_output": True}
"""In the `_meta` of our capabilities: Claude reports what its commands print as the output of a
terminal only to clients that say so."""


def said(meta: Mapping[str, Any] | None, extension: Extension) -> Any:
    """What `_meta` says there; None for nothing."""
    value: Any = meta
    for key in extension.path:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(key)
    return value


# An agent that does not know the point would fork the whole conversation and not say so.
_FORKS_AT_MESSAGES = {
    "@agentclientprotocol/claude-agent-acp": (0, 99),
    "@agentclientprotocol/codex-acp": (2, 6),
}


def forks_at_messages(agent_name: str, version: str) -> bool:
    """Whether its forks may end with a message, by the name and version that it gives itself."""
    since = _FORKS_AT_MESSAGES.get(agent_name.lower())
    numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
    return since is not None and numbers >= since


def fork_point(message_id: str) -> dict[str, Any]:
    """The `_meta` of a request for a fork that ends with this message."""
    return {"jetbrains": {"air": {"fork": {"version": 1, "messageId": message_id}}}}


def active_run(meta: Mapping[str, Any] | None) -> str | UnsetType | None:
    """The run that can be steered; None when it is over, UNSET where nothing is said about it."""
    match meta:
        case {"goose": {"activeRunId": str() | None as run_id}}:
            return run_id
        case _:
            return UNSET


def tool_name(meta: Mapping[str, Any] | None) -> str | None:
    """The name that `_meta` gives a tool call."""
    names = (said(meta, extension) for extension in TOOL_NAMES)
    return next((name for name in names if isinstance(name, str) and name), None)


def parent_call(meta: Mapping[str, Any] | None) -> str | None:
    """The tool call under which `_meta` puts an update."""
    calls = (said(meta, extension) for extension in PARENT_CALLS)
    return next((call for call in calls if isinstance(call, str) and call), None)


# ── tokens ────────────────────────────────────────────────────────────────────────────────────

# Kimi Code reports none: it says only how full its context is.

_MOST_MODELS = 16
_NAME = 200
"""Characters of the name of a model."""


_SPELLINGS: Final = {
    "total": ("totalTokens", "total_tokens"),
    "input": ("inputTokens", "input_tokens"),
    "output": ("outputTokens", "output_tokens"),
    "thought": ("thoughtTokens", "reasoningOutputTokens"),
    "cached_read": ("cachedReadTokens", "cachedInputTokens"),
    "cached_write": ("cachedWriteTokens", "cacheWriteInputTokens"),
}


def reply_tokens(usage: TokenUsage | None, meta: Mapping[str, Any] | None) -> TokenUsage | None:
    """What the reply to a prompt says of the tokens of its turn, in ACP's field or elsewhere."""
    if not meta:
        return usage
    if usage is None and (counts := _token_counts(said(meta, TOKENS))) is not None:
        usage = TokenUsage(**counts)
    if usage is not None and (models := _models(said(meta, MODELS))):
        usage.models = models
    return usage


def request_tokens(meta: Mapping[str, Any]) -> TokenUsage | None:
    """What an update says of one request to the model."""
    counts = _token_counts(said(meta, REQUEST))
    return None if counts is None else TokenUsage(**counts)


def added_tokens(usage: TokenUsage | None, more: TokenUsage) -> TokenUsage:
    """Of several requests. What only some of them say counts as far as it is said."""
    if usage is None:
        return more
    sums: dict[str, Any] = {}
    for name in _SPELLINGS:
        before, now = getattr(usage, name), getattr(more, name)
        sums[name] = now if before is None else before + (now or 0)
    return TokenUsage(**sums)


def _token_counts(said: Any) -> dict[str, Any] | None:
    """By the names of the fields here; None unless input and output are numbers."""
    if not isinstance(said, Mapping):
        return None
    told = cast("Mapping[str, Any]", said)
    found: dict[str, Any] = {
        name: told[key]
        for name, keys in _SPELLINGS.items()
        for key in keys
        if type(told.get(key)) is int and told[key] >= 0
    }
    if "input" not in found or "output" not in found:
        return None
    found.setdefault("total", found["input"] + found["output"])
    return found


def _models(said: Any) -> list[ModelTokens]:
    if not isinstance(said, list):
        return []
    found: list[ModelTokens] = []
    for each in cast("list[Any]", said)[:_MOST_MODELS]:
        match each:
            case {"model": str(model), "token_count": told}:
                if (counts := _token_counts(told)) is not None:
                    found.append(ModelTokens(model=model[:_NAME], **counts))
            case _:
                pass
    return found


# ── quirks ────────────────────────────────────────────────────────────────────────────────────


class Quirks(Habits, frozen=True, kw_only=True):
    """Workarounds for an agent that deviates from the protocol."""

    missing_file: Literal["error", "empty"] = "error"
    """What reading a missing file returns: an error, or empty text."""
    counted_tokens: TokensOf = "turn"
    """What the tokens reported at the end of a turn cover."""


# Reads a file before it creates it and gives up on any error, whatever its code. Sends no input of
# a command, and its only tool of the kind `execute` is the shell.
_GEMINI = Quirks(missing_file="empty", command_titles=True)
# Names the tool by which it edits next to what it edits.
_HERMES = Quirks(edit_tools=("write_file", "patch"), counted_tokens="session")
_BY_AGENT_NAME = {
    "gemini-cli": _GEMINI,
    "gemini": _GEMINI,
    # Calls every tool `other` while it asks.
    "goose": Quirks(
        tool_kinds={
            "write": "edit",
            "edit": "edit",
            "shell": "execute",
            "read": "read",
            "tree": "read",
        },
        counted_tokens="request",
    ),
    "opencode": Quirks(counted_tokens="request"),
    # Sends the input as text while the model writes it, and asks with its first 50 characters.
    "kimi code cli": Quirks(input_in_content=True),
    # Their tools that fetch take one address.
    "@agentclientprotocol/claude-agent-acp": Quirks(tool_kinds={"WebFetch": "fetch"}),
    "qwen-code": Quirks(tool_kinds={"web_fetch": "fetch"}),
    # Calls the tool by which it edits with most models `other`, and says its name in the title.
    "cline": Quirks(edit_titles=("apply_patch: ",)),
    "hermes-agent": _HERMES,
    "hermes": _HERMES,
    # Asks for all pending actions at once and names none of them, with two ways to say yes once;
    # its editor takes a command as input.
    "openhands cli acp agent": Quirks(
        permission_titles=("Confirm Agent Actions",),
        edit_verbs=("view", "create", "str_replace", "insert", "undo_edit"),
    ),
}


def quirks_for(agent_name: str) -> Quirks:
    """By the name an agent gives itself, or the one it is known by here."""
    return _BY_AGENT_NAME.get(agent_name.lower(), Quirks())
