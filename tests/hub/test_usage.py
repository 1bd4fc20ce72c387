"""What stored sessions have used: by day, agent, project and model, and what is unknown."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest
from page.seeding import Teller, told_session

from dragoman.hub.stored.spent import used_turns
from dragoman.hub.stored.usage_report import Grouping, UsageRow, usage_rows
from dragoman.session.content import Text
from dragoman.session.events import ConfigChanged, Event, TurnEnded, TurnStarted, UsageChanged
from dragoman.session.facts import ConfigOption, Cost, TokenUsage
from dragoman.session.limits.spending import Spending, Tokens
from dragoman.store.open import open_store

DAY = 86400.0


async def _turn(
    teller: Teller, turn_id: str, *between: Event, tokens: int | None = None, days_ago: float = 0.0
) -> None:
    usage = None if tokens is None else TokenUsage(total=tokens, input=tokens, output=0)
    events = [TurnStarted(turn_id, [Text("hi")]), *between, TurnEnded(turn_id, "end_turn", usage)]
    await teller.tell(events, at=time.time() - days_ago * DAY)


def _paid(amount: float) -> Event:
    return UsageChanged(10, 100, Cost(amount, "USD"))


def _model(name: str) -> Event:
    return ConfigChanged([ConfigOption(id="m", name="Model", value=name, category="model")])


async def _rows(
    home: Path, by: Grouping, *, days: float = 30, sums: bool = False
) -> list[UsageRow]:
    store = await open_store(home)
    try:
        turns = used_turns(store, time.time() - days * DAY, lambda agent: sums)
        return await usage_rows(turns, by)
    finally:
        await store.aclose()


def _brief(row: UsageRow) -> tuple[str, int, int | None, dict[str, float]]:
    tokens = row.spent.tokens
    cost = {name: round(amount, 6) for name, amount in row.spent.cost.items()}
    return row.name, row.spent.turns, None if tokens is None else tokens.total, cost


async def test_each_turn_belongs_to_the_day_on_which_it_began(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path, created_at=1.0) as teller:
        await _turn(teller, "1", _paid(1.0), tokens=10, days_ago=2)
        await _turn(teller, "2", _paid(1.5), tokens=20)
    days = [datetime.fromtimestamp(time.time() - ago * DAY) for ago in (2, 0)]
    assert [_brief(row) for row in await _rows(tmp_path, "day")] == [
        (days[0].date().isoformat(), 1, 10, {"USD": 1.0}),
        (days[1].date().isoformat(), 1, 20, {"USD": 0.5}),
    ]
    assert [_brief(row)[1:] for row in await _rows(tmp_path, "day", days=1)] == [
        (1, 20, {"USD": 0.5})
    ]


async def test_each_turn_belongs_to_the_model_with_which_it_began(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        await teller.tell([_model("small")], at=time.time())
        await _turn(teller, "1", tokens=10)
        await teller.tell([_model("large")], at=time.time())
        await _turn(teller, "2", tokens=20)
    assert [_brief(row)[:3] for row in await _rows(tmp_path, "model")] == [
        ("large", 1, 20),
        ("small", 1, 10),
    ]


async def test_sessions_in_one_folder_are_added_up(tmp_path: Path) -> None:
    for name, folder in (("a", tmp_path / "x"), ("b", tmp_path / "x"), ("c", tmp_path / "y")):
        async with told_session(tmp_path, name, folder) as teller:
            await _turn(teller, "1", tokens=10)
    assert [_brief(row)[:3] for row in await _rows(tmp_path, "project")] == [
        (str(tmp_path / "x"), 2, 20),
        (str(tmp_path / "y"), 1, 10),
    ]


async def test_what_was_not_reported_is_unknown(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        await _turn(teller, "1")
        await _turn(teller, "2", tokens=5)
    (row,) = await _rows(tmp_path, "agent")
    assert (row.turns_without_tokens, row.turns_without_cost) == (1, 2)
    assert row.spent.tokens == Tokens(5, 5)
    assert row.spent.cost == {}


async def test_tokens_of_the_session_so_far_count_once(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        for turn_id, tokens in (("1", 110), ("2", 220), ("3", 440)):
            await _turn(teller, turn_id, tokens=tokens)
    (row,) = await _rows(tmp_path, "agent", sums=True)
    assert row.spent.tokens == Tokens(440, 440)


async def test_what_a_fork_was_made_of_counts_once(tmp_path: Path) -> None:
    async with told_session(tmp_path, "parent", tmp_path, created_at=1.0) as teller:
        await _turn(teller, "1", _paid(2.0), tokens=10, days_ago=0.01)
    async with told_session(tmp_path, "child", tmp_path, parent="parent") as teller:
        await _turn(teller, "1", _paid(2.0), tokens=10, days_ago=0.01)
        await _turn(teller, "2", _paid(2.25), tokens=1)
    (row,) = await _rows(tmp_path, "agent")
    assert _brief(row)[1:] == (2, 11, {"USD": 2.25})


def test_unknown_and_unknown_stay_unknown() -> None:
    spent = Spending(turns=1)
    spent.add(Spending(turns=1))
    assert spent == Spending(turns=2)
    assert pytest.approx(spent.seconds) == 0
