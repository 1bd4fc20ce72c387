"""What a hub starts its agents with, in programs that have one agent."""

from __future__ import annotations

from collections.abc import Callable

from dragoman import Client
from dragoman.agents.settings.project_settings import NO_TERMS, ProjectTerms
from dragoman.client.mcp import McpServer
from dragoman.session.facts import Offer, SystemPrompt


class OneAgent:
    """`start` is called with the agent's name."""

    def __init__(self, start: Callable[[str], Client]) -> None:
        self._start = start

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        return self._start(agent)

    def is_shared(self, agent: str) -> bool:
        return True

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        return []

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        return None

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        return NO_TERMS
