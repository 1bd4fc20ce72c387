"""Limits that an agent reports, on the command line: parked, asked about, failed."""

from __future__ import annotations

from support.command import Dragoman, refused


def test_a_parked_run_waits_and_ends_as_usual(dragoman: Dragoman) -> None:
    done = dragoman("--on-limit", "park", "hello", agent="limited_once")
    assert done.code == 0
    assert done.lines[-1] == "done"
    assert "continues at" in done.err


def test_a_run_that_is_to_ask_ends_with_code_6_and_what_to_do(dragoman: Dragoman) -> None:
    asked = dragoman("--session", "fix", "--on-limit", "ask", "hello", agent="limited_once")
    assert asked.code == 6
    assert "waits for you" in asked.err
    listed = dragoman("sessions", "list", "--status", "waiting", "--names")
    assert "fix" in listed.out
    refused(
        dragoman("sessions", "hand-over", "fix", "demo"),
        "only a `dragoman serve` can run the new session",
    )
    left = dragoman("sessions", "continue", "fix")
    assert (left.code, left.err.count("`dragoman serve` sends the prompt")) == (0, 1)
    assert "fix" in dragoman("sessions", "list", "--status", "parked", "--names").out
    assert dragoman("sessions", "drop", "fix").code == 0
    refused(dragoman("sessions", "drop", "fix"), "no prompt is parked")


def test_without_the_option_the_run_fails(dragoman: Dragoman) -> None:
    failed = dragoman("hello", agent="limited_once")
    assert failed.code == 1
    assert failed.err.startswith("dragoman: Rate limit exceeded")
    assert failed.err.count("\n") == 1
