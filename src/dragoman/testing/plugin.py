"""The pytest plugin: `acp_agent` makes scripted agents that are closed after the test.

    async def test_my_program(acp_agent):
        agent = acp_agent([say("hello")])
        async with dragoman.Client.start(agent.connect()) as client: ...

Loaded by pytest wherever Dragoman is installed, so nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from dragoman.testing.scripted_agent import ScriptedAgent
    from dragoman.testing.scripted_turn import Script, Step


class MakeAgent(Protocol):
    """What `acp_agent` is: takes what `ScriptedAgent` takes."""

    def __call__(self, script: Script | Sequence[Step] = (), **options: Any) -> ScriptedAgent: ...


@pytest.fixture
def acp_agent() -> Iterator[MakeAgent]:
    """Makes scripted agents; they end with the test."""
    agents: list[ScriptedAgent] = []

    def make(script: Script | Sequence[Step] = (), **options: Any) -> ScriptedAgent:
        from dragoman.testing.scripted_agent import ScriptedAgent

        agents.append(ScriptedAgent(script, **options))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()
