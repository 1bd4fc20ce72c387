"""The list of agents: those in the settings, then known ones, and whether each is installed."""

from __future__ import annotations

import shutil
from typing import Literal, TypeAlias

import msgspec

from dragoman.agents.known import KnownAgent, known_agents, known_as
from dragoman.agents.settings import AgentSettings, Settings

State: TypeAlias = Literal["installed", "missing", "remote", "built in"]


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An agent and its state. Neither arguments nor environment: they may hold secrets."""

    name: str
    title: str
    source: Literal["settings", "known"]
    state: State
    is_default: bool
    command: str | None = None
    path: str | None = None
    install: str = ""
    needs: str = ""
    variable: str = ""
    sign_in: str = ""
    homepage: str = ""


def list_agents(settings: Settings) -> list[ListedAgent]:
    """Every agent once; a name in the settings is before the same name among the known."""
    default = next(iter(settings.agents), "demo")
    known = {agent.name: agent for agent in known_agents() if agent.name not in settings.agents}
    return [
        *(_from_settings(agent, default) for agent in settings.agents.values()),
        *(_from_known(agent, default) for agent in known.values()),
    ]


def _from_settings(agent: AgentSettings, default: str) -> ListedAgent:
    command = None if agent.command is None else agent.command.command
    path = None if command is None else shutil.which(command)
    state = "remote" if command is None else "missing" if path is None else "installed"
    known = known_as(agent.name, command)
    return ListedAgent(
        name=agent.name,
        title=agent.name,
        source="settings",
        state=state,
        is_default=agent.name == default,
        command=command,
        path=path,
        variable="" if known is None else known.variable,
        sign_in="" if known is None else known.sign_in,
        homepage="" if known is None else known.homepage,
    )


def _from_known(agent: KnownAgent, default: str) -> ListedAgent:
    path = shutil.which(agent.command)
    state = "built in" if agent.built_in else "missing" if path is None else "installed"
    return ListedAgent(
        name=agent.name,
        title=agent.title,
        source="known",
        state=state,
        is_default=agent.name == default,
        command=agent.command,
        path=path,
        install=agent.install,
        needs=agent.needs,
        variable=agent.variable,
        sign_in=agent.sign_in,
        homepage=agent.homepage,
    )
