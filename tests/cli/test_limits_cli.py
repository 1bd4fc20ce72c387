"""`--max-…` and the limits of the settings, as a person meets them."""

from __future__ import annotations

import json

import pytest
from support.command import MIDDAY, Dragoman, refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--max-tool-calls", "1"),
            "has used 1 tool call, and --max-tool-calls allows 1 tool call",
        ),
        (("--max-cost", "0.000001"), "and --max-cost allows 0.000001 USD"),
        (("--max-cost", "9EUR"), "the agent reports its cost in USD, and --max-cost is in EUR"),
        (("--max-cost", "9EUR"), "to continue, give --max-cost in USD and send another prompt"),
    ],
)
def test_a_limit_stops_the_turn_with_a_code_of_its_own(
    dragoman: Dragoman, words: tuple[str, ...], says: str
) -> None:
    done = dragoman("-a", "demo", "--yolo", "-o", "simple", *words, "make a file")
    assert done.code == 6, done.err
    assert "dragoman: the turn was stopped: " in done.err
    assert says in done.err
    assert "cancelled" not in done.err


def test_the_session_says_how_many_turns_it_had_in_all(dragoman: Dragoman) -> None:
    words = ("-a", "demo", "--yolo", "--session", "it", "--max-turns", "1", "hi")
    assert dragoman(*words).code == 0
    done = dragoman(*words)
    assert done.code == 6
    assert done.err == (
        "dragoman: the prompt was not sent: this session has used 1 turn, and --max-turns allows "
        "1 turn; to continue, raise --max-turns, or start a new session\n"
    )
    assert dragoman(*words[:-2], "2", "hi").code == 0


def test_a_limit_that_was_passed_at_the_very_end_is_told(dragoman: Dragoman) -> None:
    done = dragoman("-a", "demo", "--yolo", "--max-tokens", "1", "hi")
    assert done.code == 0
    assert done.err.count("and --max-tokens allows 1 token") == 1


def test_the_settings_have_limits_too(dragoman: Dragoman) -> None:
    limits = [{"tool_calls": 1, "per": "turn", "agent": "de*"}, {"cost": 9, "then": "warn"}]
    dragoman.write_settings({"limits": limits})
    done = dragoman("-a", "demo", "--yolo", "make a file")
    assert done.code == 6
    assert "limits[0].tool_calls of the settings allows 1 tool call" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--max-cost", "-1"), "--max-cost: expected an amount such as 2.50 or 2.50EUR, not '-1'"),
        (("--max-cost", "2 dollars"), "expected an amount such as 2.50 or 2.50EUR"),
        (("--max-time", "5x"), "--max-time: expected a time such as 90s, 10m or 2h, not '5x'"),
        (("--max-time", "-5m"), "--max-time: expected a time such as 90s, 10m or 2h, not '-5m'"),
        (("--max-tokens", "0"), "--max-tokens: expected a whole number of at least 1, not 0"),
        (("--max-cost", "9" * 20), "--max-cost: expected at most 1,000,000,000,000 USD"),
        (("--max-tokens", "9" * 20), "expected at most 1,000,000,000,000 tokens"),
        (("--max-tokens", "9" * 400), "--max-tokens: expected at most 1,000,000,000,000 tokens"),
        (("--max-time", "9" * 20 + "h"), "--max-time: expected at most 1,000,000,000,000 seconds"),
        (("--max-cost", "nan"), "expected an amount such as 2.50 or 2.50EUR, not 'nan'"),
        (("--max-cost", "1/week"), "expected one of /session, /turn, /day, /agent, /project"),
        (("--max-turns", "1/turn"), "--max-turns: a turn has no turns; leave out /turn"),
        (("--max-cost", "1/day", "--no-store"), "so it needs the store: remove --no-store"),
        (("--at-max", "ask"), "--at-max needs a limit, such as --max-cost"),
        (
            ("-a", "gemini", "--max-cost", "1"),
            "gemini does not report what it costs; limit",
        ),
    ],
)
def test_a_bad_limit_gets_one_clear_line(
    dragoman: Dragoman, words: tuple[str, ...], says: str
) -> None:
    refused(dragoman(*words, "hi"), says)


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({}, "limits[0]: expected one of cost, tokens, time, tool_calls, turns"),
        ({"cost": -1}, "limits[0].cost: expected a number above 0, not -1"),
        ({"cost": 1e300}, "limits[0].cost: expected at most 1,000,000,000,000 USD"),
        ({"turns": 10**400}, "limits[0].turns: expected at most 1,000,000,000,000 turns"),
        ({"time": "9" * 20 + "h"}, "limits[0].time: expected at most 1,000,000,000,000 seconds"),
        ({"cost": "2"}, "limits[0].cost: expected a number above 0, not '2'"),
        ({"tokens": 1.5}, "limits[0].tokens: expected a whole number, not 1.5"),
        ({"cost": 1, "currency": "eur"}, 'limits[0].currency: expected a currency such as "EUR"'),
        ({"cost": 1, "currency": "credits"}, "expected a currency such as \"EUR\", not 'credits'"),
        ({"cost": 1, "currency": 5}, 'expected a currency such as "EUR", not 5'),
        ({"time": 5}, 'limits[0].time: expected a time such as "90s", "10m" or "2h", not 5'),
        ({"turns": 1, "per": "turn"}, "limits[0].turns: expected a limit of more than a turn"),
        ({"turns": 1, "per": "week"}, '"day", "agent" or "project", not \'week\''),
        ({"turns": 1, "then": "park"}, 'expected "stop", "ask" or "warn", not \'park\''),
        ({"turns": 1, "instead": {"time": "1m"}}, "to stand next to cost or tokens"),
        ({"cost": 1, "instead": {"cost": 2}}, "limits[0].instead: expected an object with some of"),
        ({"cost": 1, "instead": {"time": "1x"}}, "limits[0].instead.time: expected a time such"),
        ({"turns": 1, "agent": "cluade"}, "limits[0].agent: expected the name of an agent"),
        ({"turns": 1, "project": "app"}, "limits[0].project: expected the absolute path"),
        ({"turn": 1}, "limits[0].turn: expected a known key; did you mean turns?"),
    ],
)
def test_a_bad_limit_in_the_settings_gets_one_clear_line(
    dragoman: Dragoman, limit: dict[str, object], says: str
) -> None:
    dragoman.write_settings({"limits": [limit]})
    refused(dragoman("-a", "demo", "hi"), says)


def test_a_policy_file_has_limits_too(dragoman: Dragoman) -> None:
    policy = dragoman.home / "policy.json"
    policy.write_text(json.dumps({"limits": [{"tool_calls": 1}]}))
    done = dragoman("-a", "demo", "--yolo", "--policy", str(policy), "make a file")
    assert done.code == 6
    assert f"limits[0].tool_calls of {policy} allows 1 tool call" in done.err
    checked = dragoman("policy", "check", str(policy))
    assert checked.out == f"{policy}: 0 rules and 1 limit, all valid\n"


def test_a_bad_limit_in_a_policy_file_gets_one_clear_line(dragoman: Dragoman) -> None:
    policy = dragoman.home / "policy.toml"
    policy.write_text("rules = []\n[[limits]]\ncost = -1\n")
    says = f"{policy}: limits[0].cost: expected a number above 0, not -1"
    refused(dragoman("-a", "demo", "--policy", str(policy), "hi"), says)
    refused(dragoman("policy", "check", str(policy)), says)
    policy.write_text("limits = 1\n")
    refused(dragoman("policy", "check", str(policy)), f"{policy}: limits: expected a list")


def test_with_nobody_to_ask_a_limit_that_asks_stops_the_turn(dragoman: Dragoman) -> None:
    words = ("--max-tool-calls", "1", "--at-max", "ask")
    done = dragoman("-a", "demo", "--yolo", *words, "make a file")
    assert done.code == 6
    assert "dragoman: the turn was stopped: this session has used 1 tool call" in done.err


def test_a_limit_of_a_day_holds_for_the_next_session(dragoman: Dragoman) -> None:
    words = ("-a", "demo", "--yolo", "--max-turns", "1/day", "hi")
    assert dragoman(*words, env=MIDDAY).code == 0
    done = dragoman(*words, env=MIDDAY)
    assert done.code == 6
    assert "sessions have used 1 turn today, and --max-turns allows 1 turn" in done.err


def test_what_the_agent_does_not_report_is_limited_by_what_is_counted(
    dragoman: Dragoman,
) -> None:
    """Until the agent has reported a cost, the other limit holds."""
    limits = [{"cost": 9, "instead": {"tool_calls": 1}}]
    dragoman.write_settings({"limits": limits})
    done = dragoman("-a", "demo", "--yolo", "make a file")
    assert done.code == 6
    assert "limits[0].instead.tool_calls of the settings allows 1 tool call" in done.err


@pytest.mark.parametrize("by_settings", [True, False])
def test_a_question_that_nobody_answers_in_time_is_refused(
    dragoman: Dragoman, by_settings: bool
) -> None:
    words = [] if by_settings else ["--question-timeout", "0.1s"]
    if by_settings:
        dragoman.write_settings({"question_timeout": "0.1s"})
    done = dragoman("-a", "demo", "--on-ask", "wait", *words, "make a file")
    assert done.code == 5
    assert "nobody answered within 0.1 seconds" in done.out


def test_a_bad_question_timeout_gets_one_clear_line(dragoman: Dragoman) -> None:
    refused(dragoman("--question-timeout", "5", "hi"), "expected a time such as 90s, 10m or 2h")
    dragoman.write_settings({"question_timeout": 5})
    refused(dragoman("hi"), 'question_timeout: expected a time such as "90s", "10m" or "2h"')
