"""Every check of clients lets the reference client pass, and fails the mutant made for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conformance.client_mutants import MUTANTS
from support.mutant_link import Mutation
from support.reference_client import OFFERS, ReferenceClient

from dragoman.conformance.catalogue import table
from dragoman.conformance.check import Check
from dragoman.conformance.client_stage.client_command import ClientCommand
from dragoman.conformance.client_stage.stage import ClientStage
from dragoman.conformance.examination.client_examination import examine_client
from dragoman.conformance.examination.verdict import ConformanceReport

PROGRAM = Path(__file__).parents[1] / "support" / "programs" / "starting_client.py"
OF_PROCESSES = {
    "ending.no-agent": "succeeds",
    "ending.stderr": "drowns",
    "ending.stubborn": "trusts",
    "ending.children": "spares-group",
    "ending.grandchildren": "spares-strays",
}
CHECKS: list[Check[ClientStage]] = [each for each in table("client") if each.id not in OF_PROCESSES]
STARTS: list[Check[ClientStage]] = [each for each in table("client") if each.id in OF_PROCESSES]
IN_REAL_TIME = [each for each in CHECKS if each.id.startswith("terminals.")]
IN_OWN_TIME = [each for each in CHECKS if each not in IN_REAL_TIME]
REAL = [each.id for each in IN_REAL_TIME if each.id != "terminals.not-offered"]


async def examined(key: str, checks: list[Check[ClientStage]]) -> ConformanceReport:
    """The report on a mutant, or on the client as it is."""
    offers = {} if key.endswith("not-offered") else OFFERS
    client = ReferenceClient(MUTANTS.get(key, Mutation), offers)
    return await examine_client(client, checks, name="reference", patience=5.0, at_once=1)


def failed(report: ConformanceReport) -> dict[str, str]:
    return {each.id: each.text for each in report.verdicts if each.outcome == "fail"}


def skipped(report: ConformanceReport) -> list[str]:
    return [each.id for each in report.verdicts if each.outcome == "skip"]


@pytest.mark.own_time
async def test_the_reference_client_passes_every_check() -> None:
    report = await examined("", IN_OWN_TIME)
    assert failed(report) == {}
    assert skipped(report) == ["files.not-offered", "forms.not-offered"]


async def test_the_reference_client_passes_every_check_of_terminals() -> None:
    report = await examined("", IN_REAL_TIME)
    assert failed(report) == {}
    assert skipped(report) == ["terminals.not-offered"]


@pytest.mark.own_time
async def test_a_client_without_files_terminals_and_forms_passes() -> None:
    report = await examined("x.not-offered", CHECKS)
    assert failed(report) == {}
    passed = {each.id for each in report.verdicts if each.outcome == "pass"}
    assert {"files.not-offered", "terminals.not-offered", "forms.not-offered"} <= passed


@pytest.mark.own_time
@pytest.mark.parametrize("key", [key for key in MUTANTS if key not in REAL])
async def test_a_check_fails_its_mutant(key: str) -> None:
    report = await examined(key, [each for each in CHECKS if each.id == key])
    assert list(failed(report)) == [key]
    assert report.verdicts[0].frames


@pytest.mark.parametrize("key", REAL)
async def test_a_check_of_terminals_fails_its_mutant(key: str) -> None:
    client = ReferenceClient(MUTANTS[key])
    checks = [each for each in CHECKS if each.id == key]
    # A second is enough for a command to print a word, and too short for one that sleeps.
    report = await examine_client(client, checks, name="reference", patience=2.0)
    assert list(failed(report)) == [key]


@pytest.mark.own_time
@pytest.mark.parametrize("key", [key for key in MUTANTS if not key.startswith("terminals.")][::9])
async def test_a_mutant_fails_no_other_check(key: str) -> None:
    assert list(failed(await examined(key, IN_OWN_TIME))) == [key]


@pytest.mark.soak
@pytest.mark.parametrize("key", MUTANTS)
async def test_no_mutant_fails_another_check(key: str) -> None:
    assert list(failed(await examined(key, CHECKS))) == [key]


# ── clients that are processes ────────────────────────────────────────────────────────────────


async def started(fault: str, checks: list[Check[ClientStage]]) -> ConformanceReport:
    client = ClientCommand([sys.executable, "-S", str(PROGRAM), "{agent}", fault])
    return await examine_client(client, checks, name="starting", patience=5.0)


async def test_a_client_that_ends_what_it_starts_passes() -> None:
    report = await started("", STARTS)
    assert failed(report) == {}
    assert skipped(report) == []


@pytest.mark.soak
@pytest.mark.parametrize("key", OF_PROCESSES)
async def test_a_client_that_leaves_something_fails(key: str) -> None:
    report = await started(OF_PROCESSES[key], [each for each in STARTS if each.id == key])
    assert list(failed(report)) == [key]


@pytest.mark.soak
@pytest.mark.parametrize("key", OF_PROCESSES)
async def test_a_client_that_leaves_something_fails_no_other_check(key: str) -> None:
    assert list(failed(await started(OF_PROCESSES[key], STARTS))) == [key]
