"""`dragoman agents list`: a table for people, JSON or bare names for programs."""

from __future__ import annotations

import argparse
import os

from dragoman.agents.listing import ListedAgent, list_agents
from dragoman.agents.settings.settings_file import load_settings
from dragoman.agents.sign_ins import SignInNotes
from dragoman.cli.render.printed_json import indented_json
from dragoman.safe_text import reveal


def run(options: argparse.Namespace) -> int:
    agents = list_agents(load_settings(options.settings), SignInNotes())
    if options.names:
        print("\n".join(agent.name for agent in agents))
    elif options.json:
        print(indented_json(agents))
    else:
        print(_table(agents))
    return 0


def _table(agents: list[ListedAgent]) -> str:
    width = max(len(agent.name) for agent in agents)
    lines: list[str] = []
    for source, heading in (("settings", "in your settings:"), ("known", "known agents:")):
        rows = [_row(agent, width) for agent in agents if agent.source == source]
        if rows:
            lines += ["", heading, *rows]
    return "\n".join(lines[1:])


def _row(agent: ListedAgent, width: int) -> str:
    mark = "*" if agent.is_default else " "
    words = f"{mark} {agent.name:<{width}}  {agent.state:<9}  {_detail(agent)}{_sign_in(agent)}"
    return reveal(words).rstrip()


def _sign_in(agent: ListedAgent) -> str:
    """As the agent last said, when it ran."""
    if agent.signed_in is None:
        return ""
    account = "" if agent.account is None else f" ({agent.account})"
    return f"; signed in{account}" if agent.signed_in else "; not signed in"


def _detail(agent: ListedAgent) -> str:
    match agent.state:
        case "installed":
            return _short(agent.path or "")
        case "missing" if agent.source == "known":
            return f"{agent.title}: {agent.install}"
        case "missing":
            return f"{agent.command} not found"
        case "built in":
            return f"{agent.title}; needs no account"
        case _:
            return "a remote agent"


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
