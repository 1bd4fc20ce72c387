"""`dragoman usage`, as a person and as a program sees it."""

from __future__ import annotations

import json
import re

import pytest
from support.command import MIDDAY, Dragoman, refused
from support.screen import needs_tmux, on_screen


@pytest.fixture
def used(dragoman: Dragoman) -> Dragoman:
    assert dragoman("-a", "demo", "--yolo", "hi").code == 0
    assert dragoman("x", agent="quiet").code == 0
    return dragoman


def test_a_line_for_each_and_their_sum(used: Dragoman) -> None:
    lines = used("usage", "--by", "agent").out.splitlines()
    assert lines[0].split()[:5] == ["AGENT", "TURNS", "CALLS", "TIME", "WAITED"]
    assert lines[0].split()[-2:] == ["TOKENS", "COST"]
    demo, other, total = (re.split(r"  +", line) for line in lines[1:4])
    assert demo[0] == "demo"
    assert re.fullmatch(r"\d+", demo[-2])
    assert re.fullmatch(r"0\.\d{6} USD", demo[-1])
    assert other[-2:] == ["unknown", "unknown"]
    assert total[:2] == ["total", "2"]
    assert total[-2:] == [f"≥ {demo[-2]}", f"≥ {demo[-1]}"]
    assert lines[4:] == [
        "the tokens of 1 turn are not known, or only in part",
        "the cost of 1 turn is not known, or only in part",
    ]


def test_programs_get_every_number(used: Dragoman) -> None:
    rows = json.loads(used("usage", "--by", "agent", "--json").out)
    demo = rows[0]
    assert demo["name"] == "demo"
    assert demo["spent"]["turnsWithoutCost"] == 0
    assert demo["spent"]["tokens"]["total"] > 0
    assert rows[1]["spent"] | {"seconds": 0} == {
        "turns": 1, "toolCalls": 0, "seconds": 0, "waited": 0.0, "parked": 0.0, "tokens": None,
        "cost": {}, "estimated": {}, "turnsWithoutTokens": 1, "turnsWithoutCost": 1,
    }  # fmt: skip


def test_nothing_was_used_yet(dragoman: Dragoman) -> None:
    assert dragoman("usage").out == "nothing was used\n"
    assert json.loads(dragoman("usage", "--json").out) == []


def test_a_bad_time_gets_one_clear_line(dragoman: Dragoman) -> None:
    refused(dragoman("usage", "--since", "week"), "--since: expected a time such as 90d")


# ── money that the agent does not report ──────────────────────────────────────────────────────


def test_tokens_are_charged_at_the_prices_of_the_settings(dragoman: Dragoman) -> None:
    price = {"input": 10, "output": 100, "currency": "EUR"}
    dragoman.write_settings({"prices": {"Tiny": price}})
    assert dragoman("x", agent="priced").code == 0
    (row,) = json.loads(dragoman("usage", "--by", "model", "--json").out)
    assert row["name"] == "shop/tiny-2026-01-01"
    assert row["spent"]["cost"] == row["spent"]["estimated"] == {"EUR": 0.02}
    lines = dragoman("usage", "--by", "session").out.splitlines()
    assert lines[1].endswith("  1,100  0.0200 EUR")
    assert lines[-1] == "0.0200 EUR estimated from the prices of the models"
    dragoman.write_settings({})
    (row,) = json.loads(dragoman("usage", "--json").out)
    assert (row["spent"]["cost"], row["spent"]["turnsWithoutCost"]) == ({}, 1)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ([], "prices: expected an object, not a list"),
        ({"m": 5}, "prices.m: expected an object, not a number"),
        ({"m": {"input": 1}}, "prices.m: expected `input` and `output`, but there is no `output`"),
        ({"m": {"input": -1, "output": 1}}, "prices.m.input: expected what a million tokens cost"),
        ({"m": {"input": "1", "output": 1}}, "a number of at least 0, not '1'"),
        ({"m": {"input": 1, "output": True}}, "prices.m.output: expected what a million tokens"),
        ({"m": {"input": 1, "output": 1e9}}, "prices.m.output: expected what a million tokens"),
        ({"m": {"inptu": 1, "output": 1}}, "prices.m.inptu: expected a known key; did you mean"),
        ({"m": {"input": 1, "output": 1, "currency": 5}}, 'a currency such as "EUR", not 5'),
        ({"m": {"input": 1, "output": 1, "currency": "eur"}}, "such as \"EUR\", not 'eur'"),
    ],
)
def test_a_bad_price_gets_one_clear_line(dragoman: Dragoman, prices: object, words: str) -> None:
    dragoman.write_settings({"prices": prices})
    refused(dragoman("usage"), words)


# ── at the end of a run, and in lists ─────────────────────────────────────────────────────────


def test_programs_see_what_each_session_used(used: Dragoman) -> None:
    listed = json.loads(used("sessions", "list", "--json").out)
    assert [each["spent"]["turns"] for each in listed] == [1, 1]
    assert [each["spent"]["tokens"] is None for each in listed] == [True, False]
    assert "toolCalls" not in listed[1]["spent"], "it made some, and they are not counted here"


@needs_tmux
@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_table_fits_the_terminal(used: Dragoman, width: int) -> None:
    command = used.command("usage", "--by", "project")
    with on_screen(command, env=used.env, cwd=used.workspace, width=width, height=20) as shown:
        lines = shown.wait_for("exit code 0").splitlines()
    (end,) = (at for at, line in enumerate(lines) if line.startswith("the tokens of 1 turn"))
    table = lines[:end]
    assert table[0].split()[0] == "PROJECT"
    assert table[0].split()[-2:] == ["TOKENS", "COST"]
    assert ("CACHED" in table[0], "TIME" in table[0]) == (width >= 120, width >= 60)
    assert len({len(line) for line in table[:3]}) == 1
    assert "…" in table[1] or "workspace" in table[1]


@needs_tmux
def test_a_run_ends_with_what_it_and_the_day_have_used(dragoman: Dragoman) -> None:
    def ending(*words: str) -> str:
        command = dragoman.command(*words, agent="priced")
        with on_screen(command, env=dragoman.env | MIDDAY, cwd=dragoman.workspace) as shown:
            return shown.wait_for("exit code 0")

    first = ending("x")
    said = re.compile(r"dragoman: this session: 1 turn, 1,100 tokens, cost unknown, \d+:\d\d\n")
    assert said.search(first)
    assert "today: " not in first
    again = ending("y")
    assert said.search(again)
    assert "dragoman: today: 2 turns, 2,200 tokens, cost unknown, " in again
    for words in (("-o", "simple", "z"), ("--no-store", "z")):
        assert "this session: " not in ending(*words)
