"""What a session uses is counted from its events, and compared with limits."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import EXAMPLES

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import (
    ConfigOption,
    Cost,
    Decision,
    LimitScope,
    Measure,
    ModelTokens,
    Parking,
    ReachedLimit,
    TokensOf,
    TokenUsage,
)
from dragoman.session.limits.prices import Price, Prices, amount_of, plain_name, price_of
from dragoman.session.limits.spending import Meter, Spending, Tokens
from dragoman.session.limits.spending_limits import (
    OF_THE_SESSION,
    SpendingLimit,
    limits_for,
    seconds_in,
)


def metered(*events: e.Event, prices: Prices | None = None) -> Meter:
    meter = Meter(prices)
    for event in events:
        meter.see(event)
    return meter


def started(turn_id: str, at: float = 0.0) -> e.TurnStarted:
    return e.TurnStarted(turn_id, [Text("hi")], at=at)


def ended(turn_id: str, tokens: int = 0, at: float = 0.0, *, of: TokensOf = "turn") -> e.TurnEnded:
    usage = TokenUsage(total=tokens, input=tokens, output=0, counted=of) if tokens else None
    return e.TurnEnded(turn_id, "end_turn", usage, at=at)


def costs(amount: float, currency: str = "USD", *, replay: bool = False) -> e.UsageChanged:
    return e.UsageChanged(1, 10, Cost(amount, currency), replay=replay)


# ── the meter ─────────────────────────────────────────────────────────────────────────────────


def test_a_turn_and_the_session_are_counted() -> None:
    call = e.ToolCallUpdated("a", status="completed")
    meter = metered(
        started("1", at=10), e.ToolCallUpdated("a"), call, costs(0.5), ended("1", 100, at=13),
        started("2", at=20), e.ToolCallUpdated("a"), costs(0.75), ended("2", 50, at=21),
    )  # fmt: skip
    assert meter.turn == Spending(1, 1, 1.0, 0.0, Tokens(50, 50), {"USD": 0.25})
    assert meter.session == Spending(2, 2, 4.0, 0.0, Tokens(150, 150), {"USD": 0.75})


def test_what_an_agent_does_not_report_is_unknown() -> None:
    spent = metered(started("1"), ended("1")).session
    assert spent.tokens is None
    assert spent.cost == {}


def test_an_agent_that_adds_up_its_tokens_is_counted_once() -> None:
    first = started("1"), ended("1", 110, of="session")
    turns = *first, started("2"), ended("2", 220, of="session"), started("3")
    assert metered(*turns, ended("3", 440, of="session")).session.tokens == Tokens(440, 440)
    again = metered(*turns, ended("3", 10, of="session"))  # it started over
    assert again.session.tokens == Tokens(230, 230)


def test_a_smaller_cost_than_before_means_that_the_agent_started_over() -> None:
    assert metered(started("1"), costs(2.0), costs(0.5)).session.cost == {"USD": 2.5}


def test_what_is_sent_again_was_used_before() -> None:
    call = e.ToolCallUpdated("old", replay=True)
    meter = metered(costs(2.0, replay=True), call, started("1"), costs(2.5))
    assert meter.session.cost == {"USD": 0.5}
    assert meter.session.tool_calls == 0


def test_a_cost_beyond_belief_is_not_counted() -> None:
    assert metered(started("1"), costs(-1.0), costs(float("nan"))).session.cost == {}


def test_the_last_request_is_not_the_turn() -> None:
    spent = metered(started("1"), ended("1", 110, of="request")).session
    assert (spent.tokens, spent.turns_without_tokens) == (Tokens(110, 110), 1)


def test_a_sum_of_0_says_nothing_about_money() -> None:
    spent = metered(started("1"), costs(0.0), ended("1", 100)).session
    assert (spent.cost, spent.turns_without_cost) == ({}, 1)


def test_a_prompt_that_was_not_sent_lacks_nothing() -> None:
    reached = ReachedLimit(
        measure="turns", per="session", most=1, value=2, outcome="not_sent", turn_id="2"
    )
    told = e.LimitReached("no", "error", source="client", limit=reached)
    meter = metered(started("1"), costs(1.0), ended("1", 5), started("2"), told, ended("2"))
    assert meter.session == Spending(1, 0, 0.0, 0.0, Tokens(5, 5), {"USD": 1.0})


def test_waiting_for_a_limit_is_counted() -> None:
    parking = Parking("1", [Text("hi")], "rate", resumes_at=100.0)
    parked = e.TurnLimited("limit", turn_id="1", kind="rate", parked=parking, at=10.0)
    waits = e.ParkingChanged("waits", parking_id="1", outcome="waiting", at=20.0)
    sent = e.ParkingChanged("sent", parking_id="1", outcome="continued", at=70.0)
    meter = metered(started("1"), ended("1"), parked, waits, started("2", at=71), sent)
    assert meter.session.parked == 60.0


# ── money that the agent does not report ──────────────────────────────────────────────────────

PRICES = {
    "big": Price(input=2.0, output=10.0, cached_read=0.2, cached_write=2.5),
    "free": Price(input=0.0, output=0.0),
    "euro": Price(input=1.0, output=1.0, currency="EUR"),
}
MILLION = 1_000_000


def chooses(model: str, *, replay: bool = False) -> e.ConfigChanged:
    option = ConfigOption(id="m", name="Model", value=model, category="model")
    return e.ConfigChanged([option], replay=replay)


def used(turn_id: str, *models: ModelTokens, of: TokensOf = "turn") -> e.TurnEnded:
    total = sum(each.total for each in models)
    usage = TokenUsage(total=total, input=total, output=0, models=list(models), counted=of)
    return e.TurnEnded(turn_id, "end_turn", usage)


def test_tokens_are_charged_at_the_price_of_the_model_that_was_chosen() -> None:
    spent = metered(
        chooses("x/big", replay=True), started("1"), ended("1", MILLION), prices=PRICES
    ).session
    assert spent.cost == spent.estimated == {"USD": 2.0}
    assert spent.turns_without_cost == 0


def test_money_that_is_reported_wins() -> None:
    meter = metered(
        chooses("big"), started("1"), costs(0.5), ended("1", MILLION),
        started("2"), ended("2", MILLION), prices=PRICES,
    )  # fmt: skip
    assert (meter.session.cost, meter.session.estimated) == ({"USD": 0.5}, {})
    assert meter.session.turns_without_cost == 1  # reported in some turns: not at other prices


def test_what_is_reported_later_covers_what_was_estimated() -> None:
    before = chooses("big"), started("1"), ended("1", MILLION), started("2")
    assert metered(*before, costs(5.0), prices=PRICES).session.cost == {"USD": 5.0}
    assert metered(*before, costs(1.0), prices=PRICES).session.cost == {"USD": 2.0}


def test_a_model_without_a_price_costs_an_unknown_amount() -> None:
    spent = metered(chooses("new"), started("1"), ended("1", 9), prices=PRICES).session
    assert (spent.cost, spent.turns_without_cost) == ({}, 1)
    spent = metered(chooses("free"), started("1"), ended("1", 9), prices=PRICES).session
    assert (spent.cost, spent.turns_without_cost) == ({"USD": 0.0}, 0)


def test_each_model_of_a_turn_has_its_own_price() -> None:
    big, euro = ModelTokens("big", MILLION, MILLION, 0), ModelTokens("euro", 500, 500, 0)
    meter = metered(chooses("free"), started("1"), used("1", euro, big), prices=PRICES)
    assert meter.session.cost == {"USD": 2.0, "EUR": 0.0005}
    assert (meter.model, meter.session.turns_without_cost) == ("big", 0)
    other = ModelTokens("new", 5, 5, 0)
    spent = metered(started("1"), used("1", big, other), prices=PRICES).session
    assert (spent.cost, spent.turns_without_cost) == ({"USD": 2.0}, 1)


def test_the_last_request_is_not_the_price_of_the_turn() -> None:
    told = ended("1", MILLION, of="request")
    spent = metered(chooses("big"), started("1"), told, prices=PRICES).session
    assert (spent.cost, spent.turns_without_cost) == ({"USD": 2.0}, 1)


@pytest.mark.parametrize(
    ("usage", "amount"),
    [
        # Claude: the cache is beside the input.
        (TokenUsage(1110, 100, 10, cached_read=900, cached_write=100), 100 * 2 + 100 + 180 + 250),
        # OpenAI: the cache is in the input, thoughts are in the output.
        (TokenUsage(1010, 1000, 10, thought=5, cached_read=900), 100 * 2 + 100 + 180),
        # Google: thoughts are beside the output.
        (TokenUsage(115, 100, 10, thought=5), 100 * 2 + 150),
        # Both are beside.
        (TokenUsage(1015, 100, 10, thought=5, cached_read=900), 100 * 2 + 150 + 180),
        (TokenUsage(5, -5, 10), 100),
    ],
)
def test_cached_tokens_and_thoughts_are_charged_once(usage: TokenUsage, amount: float) -> None:
    assert amount_of(usage, PRICES["big"]) * MILLION == pytest.approx(amount)


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("anthropic/claude-sonnet-5-5-20260915", "claude-sonnet-5-5"),
        ("claude-sonnet-5-5@20260915", "claude-sonnet-5-5"),
        ("us.anthropic.claude-sonnet-5-5-20260915-v1:0", "claude-sonnet-5-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("openrouter/openai/GPT-5-2025-08-07", "gpt-5"),
        ("codestral-latest", "codestral"),
        ("$runtime|openai|qwen3-coder-plus(openai)", "qwen3-coder-plus"),  # as Qwen Code says it
        ("gpt-5-mini", "gpt-5-mini"),
    ],
)
def test_a_model_is_known_without_its_provider_and_date(told: str, name: str) -> None:
    assert plain_name(told) == name


def test_a_similar_name_is_another_model() -> None:
    prices = {"gpt-5": Price(input=1, output=1), "a/special": Price(input=2, output=2)}
    assert price_of("gpt-5.5", prices) is price_of("gpt-5-pro", prices) is None
    assert price_of("special", prices) is None
    assert price_of("A/Special", prices) == Price(input=2, output=2)
    assert price_of("", prices) is None


def test_calls_of_subagents_count() -> None:
    call = e.ToolCallUpdated("a")
    told = [e.SubagentEvent(name, call) for name in ("x", "y", "x")]
    assert metered(started("1"), call, *told).turn.tool_calls == 3


def test_calls_with_very_long_ids_are_told_apart_and_not_kept() -> None:
    meter = metered(started("1"))

    def call(number: int) -> e.ToolCallUpdated:
        return e.ToolCallUpdated("x" * 100_000 + str(number))

    tracemalloc.start()
    try:
        for number in (*range(20), *range(20)):
            meter.see(call(number))
            meter.see(e.SubagentEvent("s" * 100_000, call(number)))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert meter.turn.tool_calls == 40
    assert kept < 100_000


def test_questions_that_wait_together_count_once() -> None:
    asked = [
        e.PermissionRequested(request_id=name, operation="write", title="", options=[], at=at)
        for name, at in (("a", 1), ("b", 2))
    ]
    refused = Decision("deny", "", by="person")
    settled = [
        e.PermissionSettled(name, None, refused, at=at) for name, at in (("a", 4.0), ("b", 6.0))
    ]
    assert metered(started("1"), *asked, *settled).turn.waited == 5.0


def test_a_prompt_that_was_not_sent_is_no_turn() -> None:
    reached = ReachedLimit(
        measure="turns", per="session", most=1, value=2, outcome="not_sent", turn_id="2"
    )
    meter = metered(started("1"), ended("1"), started("2"), e.LimitReached("no", limit=reached))
    assert meter.session.turns == 1


# ── limits ────────────────────────────────────────────────────────────────────────────────────

_SPENT = Spending(turns=3, tool_calls=3, seconds=3, tokens=Tokens(3), cost={"USD": 3.0})


@pytest.mark.parametrize(
    ("measure", "most", "is_reached"),
    [
        ("cost", 3.1, False), ("cost", 3, True), ("cost", 2.9, True),
        ("tokens", 4, False), ("tokens", 3, True),
        ("time", 3.5, False), ("time", 3, True),
        ("tool_calls", 3, False), ("tool_calls", 2, True),
        ("turns", 3, False), ("turns", 2, True),
    ],
)  # fmt: skip
def test_when_a_limit_is_reached(measure: Measure, most: float, is_reached: bool) -> None:
    assert SpendingLimit(measure=measure, most=most).is_reached(_SPENT) is is_reached


def test_a_cost_in_another_currency_cannot_be_compared() -> None:
    limit = SpendingLimit(measure="cost", most=100, currency="EUR", source="--max-cost")
    assert limit.is_reached(_SPENT)
    assert limit.sentence(_SPENT, "stopped") == (
        "the turn was stopped: the agent reports its cost in USD, and --max-cost is in EUR, so "
        "that it cannot be checked; to continue, give --max-cost in USD and send another prompt"
    )


@pytest.mark.parametrize(
    ("per", "words"),
    [
        ("session", "; to continue, start a new session with another limit"),
        ("day", "; to continue, start a new session with another limit"),
        ("turn", "; to continue, send another prompt"),
    ],
)
def test_nobody_is_told_to_raise_what_cannot_be_raised(per: LimitScope, words: str) -> None:
    limit = SpendingLimit(measure="tool_calls", most=2, per=per, source=OF_THE_SESSION)
    for outcome in ("stopped", "not_sent"):
        assert limit.sentence(_SPENT, outcome).endswith(f"allows 2 tool calls{words}")


@pytest.mark.parametrize(
    ("measure", "most", "words"),
    [
        ("cost", 0, "expected a number above 0, not 0"),
        ("cost", -1, "expected a number above 0, not -1"),
        ("time", float("inf"), "expected at most 1,000,000,000,000 seconds"),
        ("cost", float("nan"), "expected a number above 0, not nan"),
        ("turns", 1.5, "expected a whole number, not 1.5"),
    ],
)
def test_a_number_that_cannot_be_a_limit_is_refused(
    measure: Measure, most: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        SpendingLimit(measure=measure, most=most)


def test_a_limit_may_be_for_some_sessions_only() -> None:
    limits = [
        SpendingLimit(measure="turns", most=1, agent="cl*"),
        SpendingLimit(measure="turns", most=2, project="/work/app"),
    ]
    found = {
        (agent, cwd): [limit.most for limit in limits_for(limits, agent, cwd)]
        for agent in ("claude", "codex")
        for cwd in ("/work/app/src", "/work/application")
    }
    assert found == {
        ("claude", "/work/app/src"): [1, 2],
        ("claude", "/work/application"): [1],
        ("codex", "/work/app/src"): [2],
        ("codex", "/work/application"): [],
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1.5m", 90),
        ("2h", 7200),
        ("0s", None),
        ("5", None),
        ("1d", None),
        ("-1s", None),
    ],
)
def test_a_time_has_a_unit(text: str, seconds: float | None) -> None:
    assert seconds_in(text) == seconds


@EXAMPLES
@given(
    st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=6),
    st.integers(1, 200),
)
def test_the_first_update_that_reaches_a_limit_is_found(turns: list[list[int]], most: int) -> None:
    """Whatever is reported, in whatever turns: not one update earlier, not one later."""
    limit = SpendingLimit(measure="cost", most=most)
    meter, total = Meter(), 0
    for number, increases in enumerate(turns):
        meter.see(started(str(number)))
        for increase in increases:
            total += increase
            meter.see(costs(float(total)))
            assert limit.is_reached(meter.session) is (total >= most)
        meter.see(ended(str(number)))
