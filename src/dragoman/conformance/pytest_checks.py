"""The pytest plugin for agents: `pytest --acp-agent "CMD"` makes a test of each check.

Loaded by pytest wherever Dragoman is installed, so nothing is imported before it is used.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dragoman.conformance.check import Check
    from dragoman.conformance.examination.verdict import CheckVerdict


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("dragoman").addoption(
        "--acp-agent",
        metavar="CMD",
        help="check this agent against the specification of ACP: a command, or an address",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the checks, before `-k` and others choose from the tests."""
    command = config.getoption("--acp-agent")
    if command is None:
        return
    from dragoman.conformance.catalogue import table

    agent = _node(ExaminedAgent, session, "acp-agent", command=command)
    items += [_node(ConformanceTest, agent, check.id, check=check) for check in table("agent")]


def _node(kind: Any, parent: pytest.Collector, name: str, **fields: Any) -> Any:
    """Nodes are made in a way of their own, which is not typed."""
    return kind.from_parent(parent, name=name, **fields)


class ExaminedAgent(pytest.Collector):
    """The agent, and the verdicts on it, once they are wanted."""

    def __init__(self, *, command: str, **rest: Any) -> None:
        super().__init__(**rest)
        self._command = command
        self._verdicts: dict[str, CheckVerdict] | None = None

    def verdict(self, key: str) -> CheckVerdict:
        """The verdict of a check; the first one makes all those that were chosen."""
        if self._verdicts is None:
            self._verdicts = {each.id: each for each in self._examined()}
        return self._verdicts[key]

    def _examined(self) -> list[CheckVerdict]:
        import asyncio

        from dragoman.conformance.examination.agent_examination import examine_agent
        from dragoman.transport.stdio import AgentCommand
        from dragoman.transport.target import RemoteAgent, is_remote

        chosen = [each.check for each in self.session.items if isinstance(each, ConformanceTest)]
        program, *args = shlex.split(self._command)
        remote = is_remote(program)
        agent = RemoteAgent(program) if remote else AgentCommand(program, tuple(args))
        return asyncio.run(examine_agent(agent, chosen, name=program)).verdicts

    def collect(self) -> list[pytest.Item]:
        return []


class Unfit(Exception):
    """The agent has failed a check."""


class ConformanceTest(pytest.Item):
    """One check."""

    def __init__(self, *, check: Check[Any], **rest: Any) -> None:
        super().__init__(**rest)  # pyright: ignore[reportUnknownMemberType]
        self.check = check

    def runtest(self) -> None:
        assert isinstance(self.parent, ExaminedAgent)
        verdict = self.parent.verdict(self.check.id)
        if verdict.outcome == "skip":
            pytest.skip(verdict.text)
        if verdict.outcome == "fail":
            reason = f"{verdict.level}: {verdict.says}\n{verdict.page}\n\n{verdict.text}"
            raise Unfit("\n".join([reason, *verdict.frames]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Unfit):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return "acp-agent", None, f"{self.check.id} ({self.check.level})"
