"""The fence of an agent: from its settings and what is known of it to the floor.

What other agents keep for themselves is covered: it holds their credentials.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from dragoman.agents.known import KnownAgent, known_agents, known_as
from dragoman.host.fence.fence import Fence, sockets_of_others
from dragoman.host.fence.fence_terms import FenceTerms, NetworkTerms
from dragoman.host.fence.floor import Floor, Own, floor_for
from dragoman.host.fence.mount_table import mount_table
from dragoman.session.facts import FenceMode
from dragoman.transport.stdio import AgentCommand

_WORDS = 3
_XDG = {
    "~/.config/": "XDG_CONFIG_HOME",
    "~/.local/share/": "XDG_DATA_HOME",
    "~/.local/state/": "XDG_STATE_HOME",
    "~/.cache/": "XDG_CACHE_HOME",
}


def fence_around(
    *roots: str | os.PathLike[str],
    agent: str = "",
    mode: FenceMode = "require",
    write: Sequence[str | os.PathLike[str]] = (),
    read: Sequence[str | os.PathLike[str]] = (),
    network: Literal["all", "none"] | Sequence[str] = "all",
) -> Fence:
    """A fence for `Client.start`, around an agent whose sessions work in these folders.

    `agent` is its name: a known agent may use its own folders. `write` are additional folders that
    the agent may write to, `read` paths in `/tmp`, or in a folder that the fence hides, that should
    be readable anyway. `network` is what can be reached: `all`, `none`, or hosts such as
    `example.com:443` and `*.example.com`. The client builds the fence when it starts the agent. It
    raises FenceError if that is impossible and `mode` is `require`, ConfigError for folders that
    cannot be fenced. Raises ValueError for a host that cannot be parsed.
    """
    hosts: NetworkTerms = network if network in ("all", "none") else tuple(network)
    terms = FenceTerms(mode=mode, write=_absolute(write), read=_absolute(read), network=hosts)
    command = AgentCommand(agent)

    def floor(folders: Sequence[str]) -> Floor:
        return agent_floor(terms, folders, agent, command, makes=True)

    return Fence(mode, _absolute(roots), floor, hosts)


def _absolute(paths: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    return tuple(os.path.abspath(path) for path in paths)


def agent_fence(terms: FenceTerms, roots: Sequence[str], name: str, command: AgentCommand) -> Fence:
    """A fence around an agent that works in these folders."""

    def floor(folders: Sequence[str]) -> Floor:
        return agent_floor(terms, folders, name, command, makes=True)

    return Fence(terms.mode, roots, floor, terms.network)


def agent_floor(
    terms: FenceTerms,
    roots: Sequence[str],
    name: str,
    command: AgentCommand,
    *,
    makes: bool = False,
) -> Floor:
    """What the fence holds. An agent's own folders are made if they do not exist and `makes` says
    so: inside, it could not make them. Raises ConfigError."""
    env = os.environ | command.env
    agent = _known(name, command)
    own = [] if agent is None else [_placed(path, env) for path in agent.state]
    if makes:
        _make(own)
    return floor_for(
        roots,
        own=Own(tuple(own), "" if agent is None else f"{agent.title} keeps its own data here"),
        others=list(_others(agent, env)),
        write=terms.write,
        read=terms.read,
        homes=tuple(filter(None, (os.path.expanduser("~"), env.get("HOME")))),
        sockets=sockets_of_others(),
        mounts=mount_table(),
    )


def _known(name: str, command: AgentCommand) -> KnownAgent | None:
    """By its name, its program, or what an interpreter or a package runner runs."""
    words = (command.command, *command.args[:_WORDS])
    programs = (os.path.basename(word).partition("@")[0] for word in words)
    return next(filter(None, (known_as(name, program) for program in programs)), None)


def _others(agent: KnownAgent | None, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for other in known_agents():
        if other is not agent:
            for path in other.state:
                yield _placed(path, env), f"{other.title} keeps its sign-in here"


def _placed(path: str, env: Mapping[str, str]) -> str:
    """Where it is for a program with these variables."""
    for start, variable in _XDG.items():
        if path.startswith(start) and env.get(variable, "").startswith("/"):
            return os.path.join(env[variable], path.removeprefix(start))
    home = env.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, path.removeprefix("~/"))


def _make(folders: Sequence[str]) -> None:
    """Those that are files are made by the agent itself, where it can."""
    for path in folders:
        if not os.path.splitext(path)[1] and not os.path.lexists(path):
            os.makedirs(path, mode=0o700, exist_ok=True)
