"""Starts agents by name, from the settings or from the table of known agents.

The settings are read each time: an agent that was just installed can be started at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from dragoman.agents.settings.project_settings import (
    NO_TERMS,
    ProjectSettings,
    ProjectTerms,
    trusted_settings,
)
from dragoman.agents.settings.settings_file import (
    AgentSettings,
    ModelProvider,
    Settings,
    agent_named,
    system_prompt_of,
)
from dragoman.client.client import Client
from dragoman.client.client_options import HostCapabilities, Timeouts
from dragoman.client.mcp import McpServer
from dragoman.errors import FenceError, Unsupported
from dragoman.host.fence.fence_terms import FenceTerms, NetworkTerms, at_least, changed_terms
from dragoman.host.rules.policy import Policy
from dragoman.rpc import Tap
from dragoman.session.facts import EVERYTHING, FenceMode, Offer, SystemPrompt
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent

if TYPE_CHECKING:
    from dragoman.host.fence.fence import Fence


logger = logging.getLogger("dragoman.hub")


class SettingsLauncher:
    """Starts agents as the settings say. `new_tap` makes a tap for each agent, and `taps` has those
    of running agents. What `offer` switches off is off for every agent; `fence` and `network` are
    for every agent, whatever the settings say, as are `limits`, besides those of the settings."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        policy: Policy,
        *,
        new_tap: Callable[[], Tap] | None = None,
        offer: Offer = EVERYTHING,
        fence: FenceMode | None = None,
        network: NetworkTerms | None = None,
        limits: Sequence[SpendingLimit] = (),
    ) -> None:
        self._limits = limits
        self._offer = offer
        self._fence: FenceMode | None = fence
        self._network: NetworkTerms | None = network
        self.settings = settings
        self.taps: WeakKeyDictionary[Client, Tap] = WeakKeyDictionary()
        self.policy = policy
        self._new_tap = new_tap
        self.model_providers: dict[str, dict[str, ModelProvider | None]] = {}
        """By agent: those that were set since, which count more than the settings."""

    @property
    def default(self) -> str:
        """The agent to start when none is named."""
        return next(iter(self.settings().agents), "demo")

    def default_in(self, cwd: str) -> str:
        """The same for a session in a folder, whose project may prefer one."""
        project = self._project(cwd)
        return (None if project is None else project.agent()) or self.default

    def client(self, agent: str, cwd: str, offer: Offer = EVERYTHING) -> Client:
        """Raises ConfigError and UnknownAgent."""
        tap = None if self._new_tap is None else self._new_tap()
        found = self._agent(agent)
        target = run_in(found.target, cwd)
        client = self.start(
            target,
            name=agent,
            policy=self.policy,
            quirks=found.quirks,
            protocol=found.protocol,
            proxies=[run_in(proxy, cwd) for proxy in found.proxies],
            capabilities=_capabilities(found.offer.within(self._offer).within(offer)),
            tap=tap,
            fence=fence_of(at_least(self._terms(found), offer.fence), [cwd], found, target),
            model_providers=found.providers | self.model_providers.get(agent, {}),
            limits=(*self._limits, *self.settings().limits),
            timeouts=Timeouts(question=self.settings().question_timeout),
            on_limit=found.on_limit or self.settings().on_limit,
        )
        if tap is not None:
            self.taps[client] = tap
        return client

    def start(self, target: AgentCommand | RemoteAgent, **options: Any) -> Client:
        """As `Client.start`: where files and terminals of another kind may be served."""
        return Client.start(target, **options)

    def is_shared(self, agent: str) -> bool:
        """Never in a fence, which is about the folders of one session."""
        found = self._agent(agent)
        return found.process == "shared" and self._terms(found).mode == "off"

    def _terms(self, agent: AgentSettings) -> FenceTerms:
        return changed_terms(self.settings().fence_of(agent), self._fence, self._network)

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        return list(self.settings().mcp_servers)

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        settings, project = self.settings(), self._project(cwd)
        return system_prompt_of(settings if project is None else project.over(settings), agent)

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        if (project := self._project(cwd)) is None:
            return NO_TERMS
        terms = project.terms()
        if self._agent(agent).on_limit is None:
            return terms
        return msgspec.structs.replace(terms, on_limit=None)

    def _project(self, cwd: str) -> ProjectSettings | None:
        """None for an imported session, which may have no folder yet."""
        return trusted_settings(cwd, logger.warning) if cwd else None

    def target(self, agent: str) -> AgentCommand | RemoteAgent:
        """What is started or reached for it. Raises as `client` does."""
        return self._agent(agent).target

    def command(self, agent: str) -> AgentCommand:
        """How the agent is started. Raises as `client` does, and Unsupported for one elsewhere."""
        found = self._agent(agent)
        if found.command is None:
            raise Unsupported("being started here: it has an address, not a command")
        return found.command

    def _agent(self, name: str) -> AgentSettings:
        return agent_named(name, self.settings())


def fence_of(
    terms: FenceTerms,
    roots: Sequence[str],
    agent: AgentSettings,
    target: AgentCommand | RemoteAgent,
) -> Fence | None:
    """Around an agent that is started here. Raises FenceError if one is required and it is not."""
    if terms.mode == "off":
        return None
    if isinstance(target, AgentCommand) and target.files != "there":
        from dragoman.agents.agent_fence import agent_fence  # few sessions need one

        return agent_fence(terms, roots, agent.name, target)
    if terms.mode == "require":
        raise FenceError(agent.name, "it does not run on this machine")
    return None


def _capabilities(offer: Offer) -> HostCapabilities:
    return HostCapabilities(
        read_files=offer.files,
        write_files=offer.files,
        terminals=offer.terminals,
        # A user who sees such a method also sees what to run.
        terminal_sign_in=True,
    )


def run_in(target: AgentCommand | RemoteAgent, folder: str) -> AgentCommand | RemoteAgent:
    """An agent or a proxy, started in the workspace if it is started here."""
    return started_in(target, folder) if isinstance(target, AgentCommand) else target


def started_in(command: AgentCommand, folder: str) -> AgentCommand:
    """The command, run in the workspace; where it stands relative to us, it is still found."""
    if command.cwd is not None or command.files == "there":
        return command
    path = command.command
    found = os.path.abspath(path) if "/" in path else path
    return msgspec.structs.replace(command, command=found, cwd=folder)
