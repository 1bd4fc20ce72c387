"""What is counted of the events of a session."""

from __future__ import annotations

import pytest

from dragoman.hub.running.activity import Activity
from dragoman.session import events as e
from dragoman.session.content import Content, Text
from dragoman.session.facts import Cost, Decision, TokenUsage
from dragoman.session.state import ContextUsage, SessionState

GO: list[Content] = [Text("go")]


def counted(*events: e.Event, history: SessionState | None = None) -> dict[str, float]:
    activity = Activity()
    activity.of("a", history).take(events)
    return {
        f"{count.name} {' '.join(value for _, value in count.labels)}": amount
        for count, amount in activity.counts.items()
    }


def test_a_turn_is_counted_with_its_outcome_and_how_long_it_took() -> None:
    assert counted(
        e.TurnStarted("t", GO, at=10.0), e.TurnEnded("t", stop_reason="end_turn", at=14.5)
    ) == {"turns_total a end_turn": 1, "turn_seconds_sum a": 4.5, "turn_seconds_count a": 1}


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (e.TurnEnded("t", stop_reason="cancelled"), "cancelled"),
        (e.TurnEnded("t", error="no"), "failed"),
        (e.TurnEnded("t", error="gone", interrupted=True), "interrupted"),
        (e.TurnEnded("t"), "ended"),
    ],
)
def test_an_outcome_says_how_a_turn_ended(ended: e.TurnEnded, outcome: str) -> None:
    assert counted(ended) == {f"turns_total a {outcome}": 1}


def test_history_is_not_counted() -> None:
    told = [e.TurnStarted("t", GO, replay=True), e.TurnEnded("t", replay=True)]
    assert counted(*told) == {}


def test_a_tool_call_counts_once_however_often_it_changes() -> None:
    calls = [e.ToolCallUpdated("c"), e.ToolCallUpdated("c"), e.ToolCallUpdated("d")]
    assert counted(*calls) == {"tool_calls_total a": 2}


def test_of_a_cost_what_it_grew_by_counts() -> None:
    costs = [e.UsageChanged(1, 2, Cost(amount, "USD")) for amount in (0.5, 0.75, 0.25)]
    assert counted(*costs) == {"cost_total a USD": 1.0}  # 0.75, and 0.25 after it started over


def test_what_a_session_had_cost_before_does_not_count() -> None:
    history = SessionState(usage=ContextUsage(1, 2, Cost(3.0, "USD")))
    found = counted(e.UsageChanged(1, 2, Cost(3.25, "USD")), history=history)
    assert found == {"cost_total a USD": 0.25}


def test_tokens_of_the_session_so_far_count_once() -> None:
    def ended(output: int, counts: str) -> e.TurnEnded:
        usage = TokenUsage(total=output, input=0, output=output, counted=counts)  # pyright: ignore[reportArgumentType]
        return e.TurnEnded("t", usage=usage)

    by_session = counted(ended(10, "session"), ended(15, "session"))
    assert by_session["tokens_total a output"] == 15
    by_turn = counted(ended(10, "turn"), ended(15, "turn"))
    assert by_turn["tokens_total a output"] == 25


def test_how_long_a_queued_prompt_and_a_question_waited() -> None:
    settled = e.PermissionSettled("q", None, Decision("deny", "no"), at=9.0)
    found = counted(
        e.PromptQueued("p", GO, at=1.0),
        e.PromptUnqueued("p", at=4.0),
        e.PermissionRequested(request_id="q", options=[], at=7.0),
        settled,
    )
    assert found == {
        "queued_prompt_seconds_sum a": 3.0,
        "queued_prompt_seconds_count a": 1,
        "questions_total a deny": 1,
        "question_seconds_sum a": 2.0,
        "question_seconds_count a": 1,
    }
