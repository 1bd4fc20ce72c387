"""docs/reference/settings.md, from the table of keys."""

from __future__ import annotations

from dragoman.agents import settings_keys as keys

HEAD = """\
# settings.json

Generated from `src/dragoman/agents/settings_keys.py` by `scripts/gen_reference.py`.

Dragoman reads `~/.config/dragoman/settings.json` (or the same under `$XDG_CONFIG_HOME`), unless
`--settings PATH` or `$DRAGOMAN_SETTINGS` names another file. In the library,
`dragoman.load_settings()` reads it; nothing else does. The file is strict JSON. An unknown key or a
wrong type is an error that names the file, the key and what was expected.
[Set up agents](../how-to/set-up-agents.md) has an example."""

SECTIONS = (
    ("Top level", keys.TOP, ""),
    ("An agent: `agent_servers.NAME`", keys.AGENT, "[Remote agents](../how-to/remote-agents.md)"),
    ("A proxy: `proxies[]`", keys.PROXY, "[Proxies](../how-to/proxies.md)"),
    (
        "`offer`",
        keys.OFFER,
        "[What an agent is offered](../explanation/permissions.md#what-an-agent-is-offered)",
    ),
    ("`quirks`", keys.QUIRKS, ""),
    ("An MCP server: `mcp_servers[]`", keys.MCP, ""),
    ("`retention`", keys.RETENTION, "[Sessions](../how-to/sessions.md#finding-keeping-deleting)"),
)


def settings_page() -> str:
    return "\n\n".join([HEAD, *(_section(*each) for each in SECTIONS)]) + "\n"


def _section(title: str, table: keys.Keys, more: str) -> str:
    rows = [f"| `{name}` | {kind} | {meaning} |" for name, (kind, meaning) in table.items()]
    parts = [f"## {title}", "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])]
    return "\n\n".join([*parts, f"See {more}."] if more else parts)
