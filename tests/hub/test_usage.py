"""What stored sessions have used: by day, agent, project and model, and what is unknown."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page.seeding import Teller, told_session
from support.examples import EXAMPLES

from dragoman.hub.cluster.owner import this_process
from dragoman.hub.stored.spent import used_turns
from dragoman.hub.stored.usage_report import Grouping, UsageRow, usage_rows
from dragoman.session.content import Text
from dragoman.session.events import (
    ConfigChanged,
    Event,
    LimitReached,
    ToolCallUpdated,
    TurnEnded,
    TurnStarted,
    UsageChanged,
)
from dragoman.session.facts import ConfigOption, Cost, ReachedLimit, TokensOf, TokenUsage
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending import Meter, Spending, Tokens
from dragoman.store.archive import exported, import_session, read_archive
from dragoman.store.open import open_store
from dragoman.store.records import decode_event, encode_event

DAY = 86400.0


async def _turn(
    teller: Teller,
    turn_id: str,
    *between: Event,
    tokens: int | None = None,
    days_ago: float = 0.0,
    of: TokensOf = "turn",
) -> None:
    usage = None if tokens is None else TokenUsage(tokens, tokens, 0, counted=of)
    events = [TurnStarted(turn_id, [Text("hi")]), *between, TurnEnded(turn_id, "end_turn", usage)]
    await teller.tell(events, at=time.time() - days_ago * DAY)


def _paid(amount: float) -> Event:
    return UsageChanged(10, 100, Cost(amount, "USD"))


def _model(name: str) -> Event:
    return ConfigChanged([ConfigOption(id="m", name="Model", value=name, category="model")])


async def _rows(
    home: Path, by: Grouping, *, days: float = 30, prices: Prices | None = None
) -> list[UsageRow]:
    store = await open_store(home)
    try:
        turns = used_turns(store, time.time() - days * DAY, prices or {})
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
    assert (row.spent.turns_without_tokens, row.spent.turns_without_cost) == (1, 2)
    assert row.spent.tokens == Tokens(5, 5)
    assert row.spent.cost == {}


async def test_a_prompt_that_was_not_sent_is_no_turn_of_any_model(tmp_path: Path) -> None:
    reached = ReachedLimit("cost", "session", 1.0, 2.0, "not_sent", "b", "USD", "--max-cost")
    async with told_session(tmp_path, "s", tmp_path) as teller:
        await _turn(teller, "a", _model("big"), _paid(2.0))
        began = time.time()
        await teller.tell([_model("small"), TurnStarted("b", [Text("hi")])], at=began)
        ends = [LimitReached("no", "error", limit=reached), TurnEnded("b", "cancelled")]
        await teller.tell(ends, at=began + 0.5)
    (row,) = await _rows(tmp_path, "model")
    assert (row.spent.turns, row.spent.cost) == (1, {"USD": 2.0})


async def test_tokens_of_the_session_so_far_count_once(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        for turn_id, tokens in (("1", 110), ("2", 220), ("3", 440)):
            await _turn(teller, turn_id, tokens=tokens, of="session")
    (row,) = await _rows(tmp_path, "agent")
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


# ── what is recorded more than once ───────────────────────────────────────────────────────────


async def test_a_file_that_is_imported_again_counts_once(tmp_path: Path) -> None:
    async with told_session(tmp_path, "mine", tmp_path) as teller:
        await _turn(teller, "1", _paid(2.0), tokens=10)
    store = await open_store(tmp_path)
    try:
        lines = [line async for line in exported(store, "mine")]
        for name in ("s-1", "s-2"):
            await import_session(store, read_archive(lines), name, this_process())
    finally:
        await store.aclose()
    (row,) = await _rows(tmp_path, "agent")
    assert _brief(row)[1:] == (1, 10, {"USD": 2.0})
    assert [row.name for row in await _rows(tmp_path, "session")] == ["mine"]


class _Turn(NamedTuple):
    tokens: int
    cents: int


_AGAIN = "the agent sends again all that happened so far"
_lives = st.lists(
    st.one_of(st.builds(_Turn, st.integers(0, 1000), st.integers(1, 500)), st.just(_AGAIN)),
    max_size=12,
)


def _told(life: list[_Turn | str], of: TokensOf) -> list[Event]:
    """What an agent tells in such a life. Money is always that of the session so far."""
    events: list[Event] = []
    tokens = cents = 0
    for at, step in enumerate(life):
        if isinstance(step, str):
            again = [decode_event(encode_event(event)) for event in events if not event.replay]
            for event in again:
                event.replay = True
            events += again
            continue
        tokens, cents = tokens + step.tokens, cents + step.cents
        told = tokens if of == "session" else step.tokens
        usage = TokenUsage(told, told, 0, counted=of)
        paid, ended = _paid(cents / 100), TurnEnded(f"t{at}", "end_turn", usage)
        events += [TurnStarted(f"t{at}", [Text("hi")]), ToolCallUpdated("call"), paid, ended]
    return events


@EXAMPLES
@given(_lives, st.sampled_from(("turn", "session")))
def test_the_sum_is_what_was_used_whatever_is_told_again(
    life: list[_Turn | str], of: TokensOf
) -> None:
    events = _told(life, of)
    meter, resumed = Meter(), Meter()
    for event in events:
        meter.see(event)
        resumed.see(decode_event(encode_event(event)))  # by another process, from the record
    turns = [step for step in life if isinstance(step, _Turn)]
    spent = meter.session
    assert (spent.turns, spent.tool_calls) == (len(turns), len(turns))
    assert (spent.tokens or Tokens()).total == sum(turn.tokens for turn in turns)
    assert sum(spent.cost.values()) == pytest.approx(sum(turn.cents for turn in turns) / 100)
    assert (spent.turns_without_tokens, spent.turns_without_cost) == (0, 0)
    assert resumed.session == spent


@EXAMPLES
@given(_lives, st.integers(0, 48))
def test_a_fork_counts_what_came_after_it(life: list[_Turn | str], at: int) -> None:
    """Wherever it was made: what it has of its parent is as if the agent had sent it again."""
    events = _told(life, "turn")
    parent, child = Meter(), Meter()
    for number, event in enumerate(events):
        copy = decode_event(encode_event(event))
        copy.replay |= number < at
        child.see(copy)
        if number < at:
            parent.see(event)
    whole = Meter()
    for event in events:
        whole.see(event)
    both = sum(parent.session.cost.values()) + sum(child.session.cost.values())
    assert both == pytest.approx(sum(whole.session.cost.values()))
    assert parent.session.turns + child.session.turns == whole.session.turns
