"""The list of agents: those in the settings, then known ones, and whether each is installed."""

from __future__ import annotations

import shutil
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from dragoman.agents.known import KnownAgent, known_agents, known_as
from dragoman.agents.settings.settings_file import AgentSettings, Settings
from dragoman.agents.sign_ins import Noted, SignInNotes

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
    signed_in: bool | None = None
    """As it last said; null if it never did, or cannot."""
    account: str | None = None


def list_agents(settings: Settings, sign_ins: SignInNotes | None = None) -> list[ListedAgent]:
    """Every agent once; a name in the settings is before the same name among the known."""
    noted = {} if sign_ins is None else sign_ins.all()
    return [_with_sign_in(agent, noted.get(agent.name)) for agent in _each(settings)]


def _with_sign_in(agent: ListedAgent, noted: Noted | None) -> ListedAgent:
    if noted is None:
        return agent
    return replace(agent, signed_in=noted.status.signed_in, account=noted.status.account)


def _each(settings: Settings) -> list[ListedAgent]:
    default = next(iter(settings.agents), "demo")
    known = {agent.name: agent for agent in known_agents() if agent.name not in settings.agents}
    return [
        *(_from_settings(agent, default) for agent in settings.agents.values()),
        *(_from_known(agent, default) for agent in known.values()),
    ]


def _from_settings(agent: AgentSettings, default: str) -> ListedAgent:
    command = None if agent.command is None else agent.command.command
    known = known_as(agent.name, command)
    listed = _listed(agent.name, command, default)
    return listed if known is None else replace(listed, **_how_to_use(known))


def _from_known(agent: KnownAgent, default: str) -> ListedAgent:
    listed = _listed(agent.name, agent.command, default)
    return replace(
        listed,
        title=agent.title,
        source="known",
        state="built in" if agent.built_in else listed.state,
        install=agent.install,
        needs=agent.needs,
        **_how_to_use(agent),
    )


def _listed(name: str, command: str | None, default: str) -> ListedAgent:
    path = None if command is None else shutil.which(command)
    return ListedAgent(
        name=name,
        title=name,
        source="settings",
        state="remote" if command is None else "missing" if path is None else "installed",
        is_default=name == default,
        command=command,
        path=path,
    )


def _how_to_use(agent: KnownAgent) -> dict[str, str]:
    return {"variable": agent.variable, "sign_in": agent.sign_in, "homepage": agent.homepage}
