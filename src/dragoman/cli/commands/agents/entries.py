"""`dragoman agents add` and `default`: entries of the settings, without an editor."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dragoman.agents.known import known_agents
from dragoman.agents.settings.settings_edits import put_agent_first, set_agent
from dragoman.agents.settings.settings_file import Settings, load_settings
from dragoman.cli.exit_codes import UsageError
from dragoman.data_directory import settings_file
from dragoman.safe_text import sanitise

_ADDRESSES = ("ws://", "wss://", "http://", "https://")


def run(options: argparse.Namespace) -> int:
    path = Path(options.settings) if options.settings else settings_file()
    settings = load_settings(path) if path.exists() else Settings()
    if options.action == "add":
        _add(options, path, settings)
    else:
        _default(options, path, settings)
    return 0


def _add(options: argparse.Namespace, path: Path, settings: Settings) -> None:
    if options.name in settings.agents and not options.replace:
        raise UsageError(f"{path} already has an agent {options.name!r}; --replace replaces it")
    set_agent(path, options.name, _entry(options))
    if options.default:
        put_agent_first(path, options.name)
    _tell(f"added to {path} as {options.name}; try: dragoman agents doctor {options.name}")


def _entry(options: argparse.Namespace) -> dict[str, Any]:
    if not options.command:
        raise UsageError(
            f"pass its command after --: dragoman agents add {options.name} -- CMD ARGS"
        )
    program, *args = options.command
    if not program.startswith(_ADDRESSES):
        return {"command": program, "args": args, "env": dict(map(_variable, options.env))}
    if args or options.env:
        raise UsageError("an agent with an address takes no arguments and no --env")
    return {"url": program}


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--env {text}: expected NAME=VALUE")
    return name, value


def _default(options: argparse.Namespace, path: Path, settings: Settings) -> None:
    if options.name is None:
        print(next(iter(settings.agents), "demo"))
        return
    if options.name not in settings.agents:
        known = {agent.name: agent for agent in known_agents() if not agent.built_in}
        if (agent := known.get(options.name)) is None:
            there = ", ".join([*settings.agents, *known])
            raise UsageError(f"there is no agent {options.name!r}; available: {there}")
        set_agent(path, agent.name, {"command": agent.command, "args": list(agent.args)})
    put_agent_first(path, options.name)
    _tell(f"{options.name} is the default agent in {path}")


def _tell(words: str) -> None:
    print(sanitise(words, newlines=False))
