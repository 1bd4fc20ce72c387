"""The fence of an agent: from its settings and what is known of it to the floor.

What other agents keep for themselves is covered: it holds their credentials.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from dragoman.agents.known import KnownAgent, known_agents, known_as
from dragoman.host.fence.covered_paths import holds, moved, places_of
from dragoman.host.fence.fence import Fence, sockets_of_others
from dragoman.host.fence.fence_terms import FenceTerms, NetworkTerms
from dragoman.host.fence.floor import Floor, Own, floor_for, leads_out
from dragoman.host.fence.mount_table import mount_table
from dragoman.session.facts import FenceMode
from dragoman.transport.stdio import AgentCommand

_WORDS = 3


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
    # What you keep is where your own variables say, and the agent's may say something else.
    environments = [dict(os.environ), env] if command.env else [env]
    homes = tuple(filter(None, (os.path.expanduser("~"), env.get("HOME"))))
    agent = _known(name, command)
    own = {} if agent is None else _own(agent, env, homes, roots)
    missing = tuple(place for path, place in own.items() if _is_made(path, place))
    if makes:
        _make(missing)
    return floor_for(
        roots,
        own=Own(
            tuple(own.values()),
            "" if agent is None else f"{agent.title} keeps its own data here",
            made=missing,
        ),
        others=list(_others(agent, environments, homes)),
        write=terms.write,
        read=terms.read,
        homes=homes,
        environments=environments,
        sockets=sockets_of_others(),
        mounts=mount_table(),
    )


def _known(name: str, command: AgentCommand) -> KnownAgent | None:
    """By its name, its program, or what an interpreter or a package runner runs."""
    words = (command.command, *command.args[:_WORDS])
    programs = (os.path.basename(word).partition("@")[0] for word in words)
    return next(filter(None, (known_as(name, program) for program in programs)), None)


def _own(
    agent: KnownAgent, env: Mapping[str, str], homes: Sequence[str], roots: Sequence[str]
) -> dict[str, str]:
    """What the agent keeps, and where. What a variable names is left out if that would give away
    more than a folder of the agent."""
    inside = [os.path.realpath(root) for root in roots]
    placed = ((path, _placed(path, env)) for path in agent.state)
    found = {path: place for path, place in placed if place is not None}
    return {
        path: place
        for path, place in found.items()
        if not (path.startswith("$") and (holds(place, homes) or leads_out(place, inside)))
    }


def _others(
    agent: KnownAgent | None, environments: Sequence[Mapping[str, str]], homes: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for other in known_agents():
        if other is not agent:
            reason = f"{other.title} keeps its sign-in here"
            for path in other.state:
                yield from ((place, reason) for place in _places(path, environments, homes))


def _places(
    path: str, environments: Sequence[Mapping[str, str]], homes: Sequence[str]
) -> list[str]:
    """Everywhere that it may be."""
    if path.startswith("$"):
        found = filter(None, (_placed(path, env) for env in environments))
        return [place for place in found if not holds(place, homes)]
    return places_of(path.removeprefix("~/"), homes, environments)


def _placed(path: str, env: Mapping[str, str]) -> str | None:
    """Where it is for a program with these variables; None if the one that names it is not set."""
    if path.startswith("$"):
        variable, _, inner = path[1:].partition("/")
        folder = os.path.expanduser(env.get(variable, ""))
        return os.path.join(folder, inner).rstrip("/") if folder.startswith("/") else None
    name = path.removeprefix("~/")
    return moved(name, env) or os.path.join(env.get("HOME") or os.path.expanduser("~"), name)


def _is_made(path: str, place: str) -> bool:
    """Those that are files are made by the agent itself, where it can."""
    return not os.path.splitext(path)[1] and not os.path.lexists(place)


def _make(folders: Sequence[str]) -> None:
    for path in folders:
        os.makedirs(path, mode=0o700, exist_ok=True)
