"""`dragoman agents install` and `remove`: from a registry to the settings, and out again."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.agents.install.installer import install, installed_id, remove
from dragoman.agents.install.registry import fetch_text, find_agent
from dragoman.agents.settings.settings_edits import drop_agent, set_agent
from dragoman.agents.settings.settings_file import Settings, load_settings
from dragoman.cli.exit_codes import UsageError
from dragoman.data_directory import settings_file
from dragoman.errors import ConfigError
from dragoman.safe_text import sanitise


def run(options: argparse.Namespace) -> int:
    return _install(options) if options.action == "install" else _remove(options)


def _install(options: argparse.Namespace) -> int:
    path = _settings_path(options)
    name = options.name or options.id
    _must_be_free(path, name, options.id)
    agent = find_agent(_registry(options.registry), options.registry, options.id)
    _tell(f"{agent.name or agent.id} {agent.version}, licence: {agent.license or 'not stated'}")
    made = install(agent, allow_scripts=options.allow_scripts, tell=_tell)
    entry = {"command": made.command, "args": list(made.args), "env": made.env}
    set_agent(path, name, entry)
    _tell(f"added to {path} as {name}; try: dragoman agents doctor {name}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    path = _settings_path(options)
    settings = load_settings(options.settings)
    agent_id = _installed_id(settings, options.name)
    if options.name not in settings.agents:
        known = ", ".join(settings.agents) or "none"
        raise UsageError(f"no agent {options.name!r} in {path}; available: {known}")
    drop_agent(path, options.name)
    others = [_installed_id(settings, name) for name in settings.agents if name != options.name]
    if agent_id is not None and agent_id not in others:
        remove(agent_id)
    _tell(f"removed {options.name}")
    return 0


def _registry(source: str) -> str:
    if "://" in source:
        return fetch_text(source)
    try:
        return Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(source, "", f"a readable registry file ({reason})") from error


def _settings_path(options: argparse.Namespace) -> Path:
    return Path(options.settings) if options.settings else settings_file()


def _must_be_free(path: Path, name: str, agent_id: str) -> None:
    """A name that stands for something else is not taken over."""
    settings = load_settings(path) if path.exists() else Settings()
    if name in settings.agents and _installed_id(settings, name) != agent_id:
        raise UsageError(f"{path} already has an agent {name!r}; choose another name with --name")


def _installed_id(settings: Settings, name: str) -> str | None:
    agent = settings.agents.get(name)
    return None if agent is None or agent.command is None else installed_id(agent.command.command)


def _tell(words: str) -> None:
    print(sanitise(words, newlines=False), flush=True)
