"""`python -m dragoman.testing.serve package.module:agent`: a scripted agent as a process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

from dragoman.testing.agent_stdio import Served

if TYPE_CHECKING:
    from dragoman.transport.stdio import AgentCommand


def command(
    target: str, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> AgentCommand:
    """How to run the agent that `target` names, with the Python that runs us."""
    from dragoman.transport.stdio import AgentCommand  # an agent's own process has no use for it

    arguments = ("-m", "dragoman.testing.serve", target)
    return AgentCommand(sys.executable, arguments, dict(env or {}), cwd)


def find_agent(target: str) -> Served:
    """The agent, or what the function of that name returns.

    Raises ValueError for an invalid target, ImportError and AttributeError for what is not there.
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise ValueError(f"{target!r} names no agent; expected package.module:agent")
    found: Served | Callable[[], Served] = getattr(_module(place), name)
    return found if isinstance(found, Served) else found()


def _module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return import_module(place)
    spec = spec_from_file_location("scripted", place)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place} cannot be imported")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m dragoman.testing.serve package.module:agent")
    find_agent(sys.argv[1]).serve_stdio()


if __name__ == "__main__":
    main()
