"""The keys of `settings.json`: what each takes and means. No others are accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

Keys: TypeAlias = Mapping[str, tuple[str, str]]
"""By name: the type, and the meaning; `docs/reference/settings.md` is generated from these."""

TOP_KEYS: Keys = {
    "agent_servers": ("object", "your agents, by name; the first one is the default"),
    "mcp_servers": ("list", "MCP servers that are passed on to every session"),
    "mcpServers": (
        "object",
        "MCP servers too, in the format that other programs use: an object whose keys are the "
        "names of the servers. Both keys can be used together",
    ),
    "retention": ("object", "how long sessions are kept; without it, forever"),
    "system_prompt": (
        "string or object",
        "the system prompt of new sessions of every agent: a string that is added to the agent's "
        "own instructions. An agent that accepts none works without it, and the session says so",
    ),
    "enter": (
        '`"queue"` or `"steer"`',
        "what Enter does in `chat` while a turn runs: queue a prompt (the default), or send it "
        "to the running turn; Alt-Enter does the other",
    ),
    "notify": (
        '`"off"`, `"bell"`, `"osc9"` or `"osc777"`',
        "how `chat` notifies you when it asks you something, and when a turn of more than ten "
        "seconds ends: by the terminal's bell, or by a notification of the terminal (`osc9`: "
        "iTerm2, Windows Terminal, WezTerm, Ghostty; `osc777`: urxvt, foot, VTE); default `off`",
    ),
    "notify_command": (
        "list of strings",
        "a program and its arguments, which `serve` runs when nobody looks at the page and an "
        "agent [asks something or a turn ends](../how-to/phone.md#a-command-of-your-own)",
    ),
    "webhook": (
        "object",
        "an address to which `serve` sends [signed notices](../how-to/phone.md#a-webhook)",
    ),
    "push": ("object", "of [notifications on devices](../how-to/phone.md)"),
    "fence": (
        "string or object",
        "whether agents run in a [fence](../explanation/fence.md), and what it leaves open; "
        "an agent may have its own",
    ),
    "snapshots": (
        "object",
        "limits of the snapshots of session folders, which let you [see and "
        "undo](../how-to/changes.md) what agents did",
    ),
    "limits": (
        "list",
        "[how much](../how-to/limits.md) a turn or a session may use before it is stopped",
    ),
    "on_limit": (
        '`"park"`, `"ask"` or `"fail"`',
        "what becomes of a prompt when the agent reports a limit of its model provider: it "
        "[waits](../how-to/limits.md#when-the-model-provider-refuses), you are asked, or the turn "
        "fails (the default); an agent may have its own",
    ),
    "prices": (
        "object",
        "[what models cost](../how-to/limits.md#money), by their names, where the agent does not "
        "report it; these override the built-in prices",
    ),
    "question_timeout": (
        "string",
        'how long a question may wait before it is refused, such as `"10m"`; by default as long as '
        "its turn",
    ),
    "keep_warm": (
        "number or string",
        "how long the agent of a named or continued session stays after a run, ready for the [next "
        "prompt](../how-to/sessions.md#the-agent-stays-for-a-while): seconds, or a time such as "
        '`"10m"`; `0` ends it with the run; default `300`; Linux only',
    ),
    "worktrees": (
        "object",
        "the command that prepares a new [worktree](../how-to/worktrees.md), such as one that "
        "installs dependencies",
    ),
    "$schema": ("string", "ignored; for editors"),
}

PROJECT_KEYS: Keys = {
    "agent": (
        "string",
        "the default agent in this project, by name; a known agent, or one of yours",
    ),
    "system_prompt": (
        "string or object",
        "the system prompt of new sessions in this project, instead of the top-level one of your "
        "settings; it cannot name a `file`",
    ),
    "limits": ("list", "[limits](../how-to/limits.md) that apply in addition to yours"),
    "on_limit": (
        '`"park"`, `"ask"` or `"fail"`',
        "what becomes of a prompt when the agent reports a limit of its model provider, instead of "
        "the top-level `on_limit` of your settings; an agent's own `on_limit` there still applies",
    ),
    "question_timeout": (
        "string",
        'how long a question may wait before it is refused, such as `"10m"`, instead of the '
        "`question_timeout` of your settings",
    ),
    "$schema": TOP_KEYS["$schema"],
}
"""Of a project; none of them starts a program."""

_REACH_KEYS: Keys = {
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

AGENT_KEYS: Keys = {
    **_REACH_KEYS,
    "process": (
        '`"shared"` or `"per-session"`',
        'whether its sessions share one process; default `"shared"`',
    ),
    "on_limit": (
        '`"park"`, `"ask"` or `"fail"`',
        "what becomes of its prompts at a limit of its model provider",
    ),
    "protocol": ("`1` or `2`", "the newest version of ACP to speak; default `1`"),
    "offer": (
        "object of booleans",
        "`files` and `terminals`: set one to `false` to withhold it from the agent",
    ),
    "system_prompt": (
        "string, object or null",
        "the system prompt of new sessions of this agent, instead of the top-level one; `null` for "
        "none",
    ),
    "providers": (
        "object",
        "the model providers of the agent, by the ids that `dragoman agents providers` lists: an "
        "object for each, or `null` to switch it off. They are sent each time the agent starts; "
        "an agent that does not support providers is not started",
    ),
    "proxies": ("list", "ACP proxies between you and the agent, the nearest to you first"),
    "quirks": ("object", "workarounds for agents that deviate from the protocol"),
    "fence": ("string or object", "as at the top level, which it replaces for this agent"),
}

PROXY_KEYS: Keys = {
    **_REACH_KEYS,
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

OFFER_KEYS: Keys = {
    "files": ("boolean", "whether the agent may ask Dragoman for files; default `true`"),
    "terminals": ("boolean", "whether the agent may ask Dragoman to run commands; default `true`"),
}

SYSTEM_PROMPT_KEYS: Keys = {
    "text": ("string", "the text, of at most 64 KiB"),
    "file": (
        "string",
        "a file with the text, instead of `text`; a relative path starts at the folder of the "
        "settings file, a leading `~` is your home directory",
    ),
    "mode": (
        '`"append"` or `"override"`',
        "`append` (the default) adds it to the agent's own instructions, `override` replaces them",
    ),
}

PROVIDER_KEYS: Keys = {
    "api_type": (
        "string",
        "the protocol of the provider's API, such as `openai` or `anthropic`; required",
    ),
    "base_url": ("string", "the address for requests to the model; required"),
    "headers": (
        "object of strings",
        "HTTP headers to send with each request, such as one with a key",
    ),
}

QUIRKS_KEYS: Keys = {
    "missing_file": (
        '`"error"` or `"empty"`',
        "what reading a missing file returns; `empty` is for agents that can create a file only "
        "if reading it first does not fail",
    ),
    "counted_tokens": (
        '`"turn"`, `"session"` or `"request"`',
        "what the agent's token counts at the end of a turn cover: that turn (the "
        "default), the whole session so far, or only the last request to the model",
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
    "edit_tools": (
        "list of strings",
        "values of `tool` that are the agent's own editor, not MCP tools",
    ),
    "tool_kinds": (
        "object of strings",
        "what the agent's own tools do, by name, if it reports them as `other`: `read`, `edit`, "
        "`execute` or `fetch`; a tool that fetches must have exactly one address, in its "
        "input `url`",
    ),
    "command_titles": (
        "boolean",
        "whether a call that runs a command has that command as its title, and the folder in its "
        "content",
    ),
    "input_in_content": (
        "boolean",
        "whether the agent sends the input of a tool call as the call's content (JSON text), until "
        "it asks for permission",
    ),
}

MCP_KEYS: Keys = {
    "name": ("string", "required in `mcp_servers`; in `mcpServers` it is the key"),
    "command": ("string", "the program, for a server that the agent starts"),
    "args": ("list of strings", "its arguments"),
    "env": ("object of strings", "its variables"),
    "url": ("string", "the address, instead of `command`"),
    "type": (
        "string",
        '`"stdio"` for a `command`, `"http"` (the default) or `"sse"` for a `url`',
    ),
    "headers": ("object of strings", "HTTP headers to send to `url`"),
}

RETENTION_KEYS: Keys = {
    "days": (
        "number or null",
        "delete a session this many days after its last event; null keeps it forever",
    ),
    "projects": (
        "object",
        "days per folder (absolute path), for that folder and everything beneath it",
    ),
}

WORKTREE_KEYS: Keys = {
    "setup": (
        "string",
        "a shell command that runs once in each new worktree, with your rights and outside of any "
        "fence; its output is kept",
    ),
    "projects": (
        "object of strings",
        "another command per folder (absolute path), for that folder and everything beneath it; "
        '`""` for none',
    ),
}

SNAPSHOT_KEYS: Keys = {
    "enabled": (
        "boolean",
        "`false` takes no snapshots: prompts are sent sooner, and only what Dragoman itself wrote "
        "can be undone; default `true`",
    ),
    "days": (
        "number or null",
        "delete the snapshots of a session this many days after its last turn, default `90`; null "
        "keeps them for as long as the session",
    ),
    "file_mib": ("number", "leave out files larger than this many MiB; default `10`"),
    "files": ("number", "do not watch a folder with more files than this; default `200000`"),
}

WEBHOOK_KEYS: Keys = {
    "url": ("string", "the address; required"),
    "secret_file": (
        "string",
        "a file with the secret, of at least 16 bytes, that signs what is sent; required. A "
        "relative path starts at the folder of the settings file",
    ),
    "events": (
        "list of strings",
        "which notices are sent: `question`, `turn_ended`; default: both",
    ),
    "content": (
        "boolean",
        "whether they contain the title and the folder of the session, and what the agent asks; "
        "default `false`",
    ),
}

PUSH_KEYS: Keys = {
    "contact": (
        "string",
        "`mailto:…` or `https://…`: whom a push service may write to about your pushes",
    ),
    "services": (
        "list of strings",
        "origins of push services besides those of Chrome, Edge, Firefox and Safari",
    ),
}

LIMIT_KEYS: Keys = {
    "cost": ("number", "at most this much money, as the agent reports it"),
    "tokens": ("number", "at most this many tokens, as the agent reports them"),
    "time": ("string", 'at most this long, such as `"90s"`, `"10m"` or `"2h"`'),
    "tool_calls": ("number", "at most this many tool calls"),
    "turns": ("number", 'at most this many turns; not with `"per": "turn"`'),
    "currency": ("string", 'of the `cost`, such as `"EUR"`; default `"USD"`'),
    "per": (
        '`"session"`, `"turn"`, `"day"`, `"agent"` or `"project"`',
        "what the limit covers: the whole session, each turn, or all sessions together (of a day, "
        'of the agent, or in the folder); default `"session"`',
    ),
    "then": (
        '`"stop"`, `"ask"` or `"warn"`',
        'stop the turn, hold it and ask whether it may use more, or only warn; default `"stop"`',
    ),
    "instead": (
        "object",
        "limits (`time`, `tool_calls`, `turns`) that replace `cost` and `tokens` for agents that "
        "do not report them; without it, such an agent is refused, unless `then` is `warn`",
    ),
    "agent": ("string", "only for this agent; a pattern such as `cl*` covers several"),
    "project": ("string", "only in this folder (absolute path), and everything beneath it"),
}

PRICE_KEYS: Keys = {
    "input": ("number", "for a million tokens of input; required"),
    "output": ("number", "for a million tokens of output; required"),
    "cached_read": (
        "number",
        "for a million tokens of input that were read from a cache; default: as `input`",
    ),
    "cached_write": (
        "number",
        "for a million tokens of input that were written to a cache; default: as `input`",
    ),
    "currency": ("string", 'such as `"EUR"`; default `"USD"`'),
}

FENCE_KEYS: Keys = {
    "mode": (
        '`"off"`, `"on"`, `"ask"` or `"require"`',
        "`on`: a fence if this system can build one; `ask`: the same, and a write outside becomes "
        "a question; `require`: start nothing if no fence can be built; "
        'default `"on"`. `"fence": "on"` is short for `"fence": {"mode": "on"}`',
    ),
    "write": ("list of strings", "additional folders that the agent may write to, such as a cache"),
    "read": (
        "list of strings",
        "paths in `/tmp`, or in a folder that the fence hides, that should be readable anyway",
    ),
    "network": (
        '`"all"`, `"none"` or list of strings',
        "what may be reached: everything (the default), nothing, or these hosts: "
        "`example.com` (ports 80 and 443), `example.com:8443`, `example.com:*`, `*.example.com` "
        "(not `example.com` itself), `*`, an address or a range (`10.0.0.0/8:443`), and servers on "
        "this machine (`localhost:5432`)",
    ),
}


def known_keys(key: str, known: Collection[str]) -> str:
    import difflib  # only when there is something to complain about

    meant = difflib.get_close_matches(key, sorted(known), n=1)
    return (
        f"a known key; did you mean {meant[0]}?" if meant else f"one of {', '.join(sorted(known))}"
    )
