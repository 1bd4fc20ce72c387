"""The table of checks is whole, and what is chosen from it is what was asked for."""

from __future__ import annotations

import re

import pytest
from conformance.agent_mutants import MUTANTS as OF_AGENTS
from conformance.client_mutants import MUTANTS as OF_CLIENTS
from conformance.test_client_checks import OF_PROCESSES as OF_STARTERS
from conformance.test_process_checks import MUTANTS as OF_PROCESSES

from dragoman.conformance.catalogue import UnknownCheck, find, select, table
from dragoman.conformance.check import Check, Side

SIDES: dict[Side, set[str]] = {
    "agent": {*OF_AGENTS, *OF_PROCESSES},
    "client": {*OF_CLIENTS, *OF_STARTERS},
}
LEAST: dict[Side, int] = {"agent": 60, "client": 50}
ROWS = [(side, row) for side in SIDES for row in table(side)]


@pytest.mark.parametrize("side", SIDES)
def test_every_check_has_a_mutant_and_every_mutant_a_check(side: Side) -> None:
    assert {row.id for row in table(side)} == SIDES[side]
    assert len(table(side)) >= LEAST[side]


@pytest.mark.parametrize("side", SIDES)
def test_no_two_checks_have_one_id(side: Side) -> None:
    ids = [row.id for row in table(side)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("side", "row"), ROWS, ids=[row.id for _, row in ROWS])
def test_a_row_says_what_it_stands_on(side: Side, row: Check[object]) -> None:
    assert row.side == side
    assert re.fullmatch(r"[a-z0-9]+\.[a-z0-9-]+", row.id)
    assert re.match(r"https://(agentclientprotocol\.com|www\.jsonrpc\.org)/", row.page)
    assert row.says.endswith(".")
    assert not row.does.endswith(".")
    assert not row.expects.endswith(".")


def test_checks_are_chosen_by_id_subject_and_pattern() -> None:
    def ids(*only: str, skip: tuple[str, ...] = ()) -> list[str]:
        return [row.id for row in select(table("agent"), only, skip)]

    assert ids("modes.set") == ["modes.set"]
    assert ids("modes") == ["modes.current", "modes.set", "modes.unknown"]
    assert ids("modes.*", skip=("*.set",)) == ["modes.current", "modes.unknown"]
    assert ids() == [row.id for row in table("agent")]


def test_an_id_that_does_not_exist_is_refused_with_what_was_meant() -> None:
    with pytest.raises(UnknownCheck, match=r"modes\.sat; did you mean modes\.set\?"):
        select(table("agent"), ["modes.sat"])
    with pytest.raises(UnknownCheck):
        select(table("agent"), skip=["nothing"])
    with pytest.raises(UnknownCheck):
        find("nothing", "agent")
    assert find("modes.set", "agent").level == "must"
