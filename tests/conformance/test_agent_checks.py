"""Every check of agents lets the model agent pass, and fails the mutant that is made for it."""

from __future__ import annotations

import pytest
from conformance.agent_mutants import MUTANTS, MakeMutation
from support.model_agent import model_agent
from support.mutant_link import MutantLink, Mutation

from dragoman.conformance.catalogue import table
from dragoman.conformance.check import Check
from dragoman.conformance.examination.agent_examination import examine_agent
from dragoman.conformance.examination.examinee import Examinee
from dragoman.conformance.examination.verdict import ConformanceReport
from dragoman.testing import ScriptedAgent, faults
from dragoman.transport.transport import Transport

CHECKS: list[Check[Examinee]] = [each for each in table("agent") if "process." not in each.id]


async def examined(make: MakeMutation, checks: list[Check[Examinee]]) -> ConformanceReport:
    agent = model_agent()

    async def start() -> Transport:
        return MutantLink(agent.connect(), make())

    report = await examine_agent(start, checks, name="model", patience=5.0)
    agent.close()
    return report


def failed(report: ConformanceReport) -> dict[str, str]:
    return {each.id: each.text for each in report.verdicts if each.outcome == "fail"}


@pytest.mark.own_time
async def test_the_model_agent_passes_every_check() -> None:
    report = await examined(Mutation, CHECKS)
    assert failed(report) == {}
    assert [each.id for each in report.verdicts if each.outcome == "skip"] == []


@pytest.mark.own_time
@pytest.mark.parametrize("key", MUTANTS)
async def test_a_check_fails_its_mutant(key: str) -> None:
    report = await examined(MUTANTS[key], [each for each in CHECKS if each.id == key])
    assert list(failed(report)) == [key]
    assert report.verdicts[0].frames or "initialize" in key


@pytest.mark.own_time
@pytest.mark.parametrize("key", [*MUTANTS][::13])
async def test_a_mutant_fails_no_other_check(key: str) -> None:
    assert list(failed(await examined(MUTANTS[key], CHECKS))) == [key]


@pytest.mark.soak
@pytest.mark.own_time
@pytest.mark.parametrize("key", MUTANTS)
async def test_no_mutant_fails_another_check(key: str) -> None:
    assert list(failed(await examined(MUTANTS[key], CHECKS))) == [key]


async def test_the_examination_of_an_agent_that_answers_no_prompt_ends() -> None:
    agent = ScriptedAgent([faults.never_answer()])

    async def start() -> Transport:
        return agent.connect()

    checks = [each for each in CHECKS if each.id == "permission.cancelled"]
    report = await examine_agent(start, checks, name="silent", patience=0.2)
    agent.close()
    assert "asked and answered nothing" in failed(report)["permission.cancelled"]
