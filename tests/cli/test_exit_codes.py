"""What the exit code says, for each way a run can end."""

from __future__ import annotations

import json

import pytest
from support.command import Dragoman


@pytest.mark.parametrize(
    ("agent", "words", "code"),
    [
        ("quiet", (), 0),
        ("refusing", (), 1),
        ("quiet", ("--mode", "x"), 2),
        ("deaf", ("--timeout", "0.3"), 3),
        ("writing", (), 5),
        ("asking", (), 5),
        ("writing_or_failing", (), 5),
        ("insisting", (), 5),
        ("writing", ("--write",), 0),
        ("early_stop", (), 7),
        ("declining", (), 7),
        ("signed_out", (), 8),
    ],
)
def test_the_code_says_how_it_ended(
    dragoman: Dragoman, agent: str, words: tuple[str, ...], code: int
) -> None:
    done = dragoman(*words, "notes.txt", agent=agent)
    assert done.code == code, done.err
    assert "Traceback" not in done.err


def test_five_only_when_all_of_it_was_refused(dragoman: Dragoman) -> None:
    assert dragoman("true", agent="writing_and_running").code == 5
    assert dragoman("--exec", "true", agent="writing_and_running").code == 0


def test_a_refusal_by_a_deny_rule_counts(dragoman: Dragoman) -> None:
    rules = {"rules": [{"effect": "deny", "operation": "write"}]}
    (dragoman.home / "deny.json").write_text(json.dumps(rules))
    done = dragoman("--policy", str(dragoman.home / "deny.json"), "--yolo", "x", agent="writing")
    assert done.code == 5


def test_a_session_that_timed_out_was_cancelled(dragoman: Dragoman) -> None:
    done = dragoman("--timeout", "2", "-j", "x", agent="silent")
    assert done.code == 3
    assert [f["method"] for f in done.frames if "method" in f].count("session/cancel") == 1
    assert done.err == "dragoman: the agent made no progress for 2 s\n"


@pytest.mark.parametrize(
    "words",
    [
        ("--nonsense",),
        ("one", "two"),
        ("-o", "yaml", "x"),
        ("--timeout", "soon", "x"),
        ("--timeout", "0", "x"),
        ("--timeout", "nan", "x"),
        ("--on-ask", "maybe", "x"),
        ("-a", "demo", "--agent-command", "true", "x"),
        ("--set", "noequals", "x"),
        ("--agent-command", "", "x"),
        ("--agent-command", "'open", "x"),
        ("",),
        ("  \n",),
    ],
)
def test_misuse_is_two(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    done = dragoman(*words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("dragoman: ") == 1


def test_a_second_argument_is_explained(dragoman: Dragoman) -> None:
    done = dragoman("fix", "the", "test")
    assert "unexpected argument 'the': put the prompt in quotes, it is one argument" in done.err
