"""The keys of `settings.json`, each with its type and meaning.

The reader accepts no others, and `docs/reference/settings.md` is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Keys: TypeAlias = Mapping[str, tuple[str, str]]
"""By name: the type, and the meaning."""

TOP: Keys = {
    "agent_servers": ("object", "your agents, by name; the first one is the default"),
    "mcp_servers": ("list", "MCP servers that are passed on to every session"),
    "retention": ("object", "how long sessions are kept; without it, forever"),
    "$schema": ("string", "ignored; for editors"),
}

_REACH: Keys = {
    "command": (
        "string",
        "the program, without arguments: a path, or a name in `PATH`; a leading `~` is your home "
        "directory, variables are not expanded, and a relative path starts at the folder where "
        "`dragoman` runs. Required unless there is a `url`",
    ),
    "args": ("list of strings", "its arguments"),
    "env": ("object of strings", "variables added to your environment"),
    "url": (
        "string",
        "the address of a remote agent (`ws://`, `wss://`, `http://`, `https://`), instead of "
        "`command`",
    ),
    "headers": ("object of strings", "HTTP headers to send to `url`"),
    "files": (
        '`"here"` or `"there"`',
        "which machine the workspaces of its sessions are on: this one, or the agent's. The "
        'default for a `command` is `"here"`. A `url` has no default: if this is not set, files '
        "and terminals are not served",
    ),
    "type": ("string", "ignored; for files shared with other clients"),
}

AGENT: Keys = {
    **_REACH,
    "process": (
        '`"shared"` or `"per-session"`',
        'whether its sessions share one process; default `"shared"`',
    ),
    "protocol": ("`1` or `2`", "the newest version of ACP to speak; default `1`"),
    "offer": (
        "object of booleans",
        "`files` and `terminals`: set one to `false` to withhold it from the agent",
    ),
    "proxies": ("list", "ACP proxies between you and the agent, the nearest to you first"),
    "quirks": ("object", "workarounds for agents that deviate from the protocol"),
}

PROXY: Keys = {
    **_REACH,
    "url": (
        "string",
        "the address of a remote proxy (`ws://` or `wss://`), instead of `command`",
    ),
    "files": (
        '`"here"` or `"there"`',
        'for a `url`: `"here"` lets the chain use files and terminals of this machine; without it, '
        "neither is served",
    ),
}
"""A proxy is started or reached like an agent."""

OFFER: Keys = {
    "files": ("boolean", "whether the agent may ask Dragoman for files; default `true`"),
    "terminals": ("boolean", "whether the agent may ask Dragoman to run commands; default `true`"),
}

QUIRKS: Keys = {
    "missing_file": (
        '`"error"` or `"empty"`',
        "what reading a missing file returns; `empty` is for agents that can create a file only "
        "if reading it first does not fail",
    ),
    "permission_titles": (
        "list of strings",
        "titles of permission requests that cover all pending tool calls",
    ),
    "edit_titles": (
        "list of strings",
        "title prefixes of edits that the agent reports as `other`",
    ),
    "edit_verbs": (
        "list of strings",
        "values of `command` that are editor actions, not shell commands",
    ),
}

MCP: Keys = {
    "name": ("string", "required"),
    "command": ("string", "the program, for a server that the agent starts"),
    "args": ("list of strings", "its arguments"),
    "env": ("object of strings", "its variables"),
    "url": ("string", "the address, instead of `command`"),
    "type": ("string", '`"sse"` for a server that speaks SSE; otherwise a `url` is HTTP'),
    "headers": ("object of strings", "HTTP headers to send to `url`"),
}

RETENTION: Keys = {
    "days": (
        "number or null",
        "delete a session this many days after its last event; null keeps it forever",
    ),
    "projects": (
        "object",
        "days per folder (absolute path), for that folder and everything beneath it",
    ),
}
