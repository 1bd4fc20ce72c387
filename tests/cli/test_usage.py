"""`dragoman usage`, as a person and as a program sees it."""

from __future__ import annotations

import json
import re

import pytest
from support.command import Dragoman, refused


@pytest.fixture
def used(dragoman: Dragoman) -> Dragoman:
    assert dragoman("-a", "demo", "--yolo", "hi").code == 0
    assert dragoman("x", agent="quiet").code == 0
    return dragoman


def test_a_line_for_each_and_their_sum(used: Dragoman) -> None:
    lines = used("usage", "--by", "agent").out.splitlines()
    assert lines[0].split() == ["AGENT", "TURNS", "CALLS", "TIME", "WAITED", "TOKENS", "COST"]
    demo, other, total = (re.split(r"  +", line) for line in lines[1:])
    assert demo[0] == "demo"
    assert re.fullmatch(r"\d+", demo[5])
    assert re.fullmatch(r"0\.\d{4} USD", demo[6])
    assert other[5:] == ["unknown", "unknown"]
    assert total[:2] == ["total", "2"]
    assert total[5:] == [f"{demo[5]} + unknown", f"{demo[6]} + unknown"]


def test_programs_get_every_number(used: Dragoman) -> None:
    rows = json.loads(used("usage", "--by", "agent", "--json").out)
    demo = rows[0]
    assert demo["name"] == "demo"
    assert demo["turnsWithoutCost"] == 0
    assert demo["spent"]["tokens"]["total"] > 0
    assert rows[1]["spent"] | {"seconds": 0} == {
        "turns": 1, "toolCalls": 0, "seconds": 0, "waited": 0.0, "tokens": None, "cost": {},
    }  # fmt: skip


def test_nothing_was_used_yet(dragoman: Dragoman) -> None:
    assert dragoman("usage").out == "nothing was used\n"
    assert json.loads(dragoman("usage", "--json").out) == []


def test_a_bad_time_gets_one_clear_line(dragoman: Dragoman) -> None:
    refused(dragoman("usage", "--since", "week"), "--since: expected a time such as 90d")
