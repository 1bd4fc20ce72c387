"""Whether an agent has a prompt, by the history it tells."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Parking
from dragoman.session.limits.delivery import Delivery
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState

PROMPT, CONTINUE = "fix it", "Continue where you stopped"


def parked_as(turn_id: str, *, is_doubted: bool = False, text: str = PROMPT) -> Parking:
    return Parking(turn_id, [Text(text)], "rate", resumes_at=1.0, is_doubted=is_doubted)


def limited(turn_id: str, *, is_doubted: bool = False) -> e.TurnLimited:
    parked = parked_as(turn_id, is_doubted=is_doubted)
    return e.TurnLimited("limit", turn_id=turn_id, kind="rate", parked=parked)


def changed(parking_id: str, outcome: str, turn_id: str) -> e.ParkingChanged:
    return e.ParkingChanged(
        outcome,
        parking_id=parking_id,
        outcome=outcome,  # pyright: ignore[reportArgumentType]
        turn_id=turn_id,
        resumes_at=1.0 if outcome == "waiting" else None,
    )


def answered(turn_id: str, text: str) -> list[e.Event]:
    said = e.AgentMessage(Text("done"))
    return [e.TurnStarted(turn_id, [Text(text)]), said, e.TurnEnded(turn_id, "end_turn")]


def refused(turn_id: str, text: str = PROMPT) -> list[e.Event]:
    started = e.TurnStarted(turn_id, [Text(text)])
    return [started, limited(turn_id), e.TurnEnded(turn_id, error="limit")]


def cut(turn_id: str, text: str = PROMPT) -> list[e.Event]:
    started = e.TurnStarted(turn_id, [Text(text)])
    return [started, e.TurnEnded(turn_id, error="gone", interrupted=True)]


def in_doubt(turn_id: str, before: str, text: str = PROMPT) -> list[e.Event]:
    """Sent again in this turn, whose process was killed then."""
    started = e.TurnStarted(turn_id, [Text(text)])
    end = e.TurnEnded(turn_id, error="gone", interrupted=True)
    return [
        started,
        changed(before, "continued", turn_id),
        limited(turn_id, is_doubted=True),
        end,
    ]


def found(events: Sequence[e.Event], heard: Sequence[str], *, loads: bool = True) -> bool | None:
    for seq, event in enumerate(events, 1):
        event.seq = seq
    told = [each for each in events if isinstance(each, e.TurnLimited | e.ParkingChanged)]
    delivery = Delivery(fold(SessionState(), events), told)
    for text in heard:
        delivery.hear(e.UserMessage(Text(text)))
        delivery.hear(e.AgentMessage(Text("Rate limit exceeded")))
    if loads:
        delivery.complete()
    return delivery.has_arrived


ONCE = [*answered("1", "hello"), *refused("2"), *in_doubt("3", "2")]
FIRST = [*refused("1"), *in_doubt("2", "1")]
TWICE = [*refused("1"), *refused("2"), *in_doubt("3", "2")]
ASKED_TO_CONTINUE = [*refused("1"), *in_doubt("2", "1", CONTINUE)]


@pytest.mark.parametrize(
    ("events", "heard", "expected"),
    [
        (ONCE, ["hello", PROMPT, PROMPT], True),
        (ONCE, ["hello", PROMPT], False),
        (ONCE, ["hello"], False),
        (ONCE, [PROMPT, PROMPT], None),
        (ONCE, ["hello", PROMPT, PROMPT, PROMPT], None),
        (ONCE, ["hello", PROMPT, "and something else"], None),
        (ONCE, ["summary of the session", PROMPT], None),
        (ONCE, [], None),
        (FIRST, [PROMPT, PROMPT], True),
        (FIRST, [PROMPT], False),
        (FIRST, [], False),
        (FIRST, ["context", PROMPT], None),
        (TWICE, [PROMPT] * 3, True),
        (TWICE, [PROMPT] * 2, False),
        (TWICE, [PROMPT], None),
        (TWICE, [], False),
        (ASKED_TO_CONTINUE, [PROMPT, CONTINUE], True),
        (ASKED_TO_CONTINUE, [PROMPT], False),
    ],
)
def test_the_end_of_the_history_says_whether_the_prompt_is_in_it(
    events: list[e.Event], heard: list[str], expected: bool | None
) -> None:
    assert found(events, heard) is expected


def test_pieces_and_spaces_make_no_difference() -> None:
    assert found(ONCE, ["hel", "lo\n", "fix", " it\n\n", " fix it"]) is True


def test_a_history_that_was_not_loaded_says_nothing() -> None:
    assert found(ONCE, ["hello", PROMPT, PROMPT], loads=False) is None


def test_what_an_earlier_process_did_not_send_does_not_count() -> None:
    """It was killed before the prompt went out, or the history has said so."""
    before = [*refused("1"), *cut("2"), changed("1", "waiting", "2"), *in_doubt("3", "1")]
    again = [*before, changed("3", "waiting", "3"), *in_doubt("4", "3")]
    for events in (before, again):
        assert found(events, [PROMPT, PROMPT]) is True
        assert found(events, [PROMPT]) is False


def test_a_turn_that_nobody_knows_about_leaves_it_open() -> None:
    """The agent may have had that prompt, too."""
    events = [*cut("1"), *refused("2"), *in_doubt("3", "2")]
    for times in range(4):
        assert found(events, [PROMPT] * times) is None


def test_words_that_end_alike_leave_it_open() -> None:
    events = [*answered("1", "aa"), *refused("2", "a"), *in_doubt("3", "2", "a")]
    assert found(events, ["aa", "a"]) is None


def test_a_prompt_without_words_leaves_it_open() -> None:
    assert found([*refused("1", ""), *in_doubt("2", "1", "")], []) is None


def test_what_left_the_state_leaves_it_open() -> None:
    events = [*FIRST]
    for seq, event in enumerate(events, 1):
        event.seq = seq
    state = fold(SessionState(), events)
    state.entries_before = 1
    told = [each for each in events if isinstance(each, e.TurnLimited | e.ParkingChanged)]
    delivery = Delivery(state, told)
    delivery.hear(e.UserMessage(Text(PROMPT)))
    delivery.complete()
    assert delivery.has_arrived is None


def test_no_more_is_kept_than_is_compared() -> None:
    for seq, event in enumerate(ONCE, 1):
        event.seq = seq
    told = [each for each in ONCE if isinstance(each, e.TurnLimited | e.ParkingChanged)]
    delivery = Delivery(fold(SessionState(), ONCE), told)
    for _ in range(1000):
        delivery.hear(e.UserMessage(Text("x" * 1000)))
    for text in ("hello", PROMPT):
        delivery.hear(e.UserMessage(Text(text)))
    delivery.complete()
    assert delivery.has_arrived is False
    assert len(delivery._heard) < 100  # pyright: ignore[reportPrivateUsage]
