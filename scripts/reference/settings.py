"""docs/reference/settings.md, from the table of keys."""

from __future__ import annotations

from dragoman.agents.settings import setting_keys as keys

HEAD = """\
# settings.json

Generated from `src/dragoman/agents/settings/setting_keys.py` by `scripts/gen_reference.py`.

Dragoman reads `dragoman/settings.json` in `$XDG_CONFIG_HOME`, or in `~/.config` if that is not set,
unless `--settings PATH` or `$DRAGOMAN_SETTINGS` names another file. In the library,
`dragoman.load_settings()` reads it; nothing else does. The file is strict JSON. An unknown key or a
wrong type is an error that names the file, the key and what was expected.
[Set up agents](../how-to/set-up-agents.md) has an example."""

SECTIONS = (
    ("Top level", keys.TOP_KEYS, ""),
    (
        "An agent: `agent_servers.NAME`",
        keys.AGENT_KEYS,
        "[Remote agents](../how-to/remote-agents.md)",
    ),
    ("A proxy: `proxies[]`", keys.PROXY_KEYS, "[Proxies](../how-to/proxies.md)"),
    (
        "`offer`",
        keys.OFFER_KEYS,
        "[What an agent is offered](../explanation/permissions.md#what-an-agent-is-offered)",
    ),
    (
        "`system_prompt`",
        keys.SYSTEM_PROMPT_KEYS,
        "[System prompts](../how-to/set-up-agents.md#system-prompts)",
    ),
    (
        "A model provider: `providers.ID`",
        keys.PROVIDER_KEYS,
        "[Model providers](../how-to/set-up-agents.md#model-providers)",
    ),
    ("`quirks`", keys.QUIRKS_KEYS, ""),
    ("`limits[]`", keys.LIMIT_KEYS, "[Limits](../how-to/limits.md)"),
    ("A price: `prices.MODEL`", keys.PRICE_KEYS, "[Money](../how-to/limits.md#money)"),
    ("`fence`", keys.FENCE_KEYS, "[The fence](../explanation/fence.md)"),
    ("An MCP server: `mcp_servers[]`, `mcpServers.NAME`", keys.MCP_KEYS, ""),
    (
        "`retention`",
        keys.RETENTION_KEYS,
        "[Sessions](../how-to/sessions.md#finding-keeping-deleting)",
    ),
    (
        "`snapshots`",
        keys.SNAPSHOT_KEYS,
        "[Review and undo](../how-to/changes.md#how-long-it-is-kept)",
    ),
    ("`webhook`", keys.WEBHOOK_KEYS, "[A webhook](../how-to/phone.md#a-webhook)"),
    ("`push`", keys.PUSH_KEYS, "[Answer from your phone](../how-to/phone.md)"),
    (
        "A project's own: `.dragoman/settings.json`",
        keys.PROJECT_KEYS,
        "[Settings of a project](../how-to/set-up-agents.md#settings-of-a-project)",
    ),
)


def settings_page() -> str:
    return "\n\n".join([HEAD, *(_section(*each) for each in SECTIONS)]) + "\n"


def _section(title: str, table: keys.Keys, more: str) -> str:
    rows = [f"| `{name}` | {kind} | {meaning} |" for name, (kind, meaning) in table.items()]
    parts = [f"## {title}", "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])]
    return "\n\n".join([*parts, f"See {more}."] if more else parts)
