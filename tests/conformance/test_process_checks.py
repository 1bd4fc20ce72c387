"""The checks of an agent's process, with processes that end as they should, or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.conformance.catalogue import select, table
from dragoman.conformance.examination.agent_examination import examine_agent
from dragoman.conformance.examination.verdict import ConformanceReport
from dragoman.testing import ScriptedAgent
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.transport import Transport

PROGRAM = Path(__file__).parents[1] / "support" / "programs" / "leaving_agent.py"
CHECKS = select(table("agent"), ["process"])
MUTANTS = {
    "process.exits": "stays",
    "process.exit-code": "exits-badly",
    "process.exits-in-a-turn": "stays-in-turn",
    "process.half-frame": "stays-at-half",
    "process.terminates": "ignores-term",
    "process.leaves-nothing": "leaves-child",
}


async def examined(fault: str = "", only: str = "process") -> ConformanceReport:
    agent = AgentCommand(sys.executable, ("-S", str(PROGRAM), fault))
    checks = select(CHECKS, [only])
    return await examine_agent(agent, checks, name="leaving", exit_seconds=1.0)


def failed(report: ConformanceReport) -> list[str]:
    return [each.id for each in report.verdicts if each.outcome == "fail"]


async def test_an_agent_that_leaves_in_order_passes() -> None:
    report = await examined()
    assert {each.outcome for each in report.verdicts} == {"pass"}, report.verdicts


@pytest.mark.parametrize("key", MUTANTS)
async def test_a_process_check_fails_its_mutant(key: str) -> None:
    assert failed(await examined(MUTANTS[key], key)) == [key]


@pytest.mark.soak
@pytest.mark.parametrize("key", MUTANTS)
async def test_a_process_mutant_fails_no_other_check(key: str) -> None:
    assert failed(await examined(MUTANTS[key])) == [key]


async def test_an_agent_without_a_process_here_is_not_examined_for_its_end() -> None:
    agent = ScriptedAgent()

    async def start() -> Transport:
        return agent.connect()

    report = await examine_agent(start, CHECKS, name="in memory")
    assert {each.outcome for each in report.verdicts} == {"skip"}
