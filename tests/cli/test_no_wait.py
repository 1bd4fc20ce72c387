"""`--no-wait`: the run goes on in the background once its prompt was sent."""

from __future__ import annotations

import re
import time

import pytest
from support.command import Dragoman, refused
from support.screen import needs_tmux, on_screen


def sent(user: Dragoman, *words: str) -> str:
    """The id that is printed, and nothing else."""
    done = user("--no-wait", *words)
    assert done.code == 0
    assert re.fullmatch(r"s-[0-9a-f]{16}\n", done.out)
    return done.out.strip()


def test_the_turn_continues_in_the_background_and_can_be_waited_for(user: Dragoman) -> None:
    session = sent(user, "--session", "s", "work")
    assert sent(user, "--session", "s", "later") == session  # into the queue of the same process
    assert user("wait", session, "--timeout", "1s").code == 3
    (user.workspace / "go").touch()
    done = user("wait", session)
    assert (done.code, done.out) == (0, "2. later\n")
    shown = user("sessions", "show", "s").out
    assert re.findall(r"^› (\w+)$", shown, re.MULTILINE) == ["work", "later"]


def test_questions_are_refused_or_wait_for_another_window(user: Dragoman) -> None:
    assert user("wait", sent(user, "ask")).code == 5
    session = sent(user, "--on-ask", "wait", "ask")
    deadline = time.monotonic() + 60
    while user("sessions", "answer", session, "allow_once").code:  # it has to be asked first
        assert time.monotonic() < deadline
    done = user("wait", session)
    assert (done.code, done.out) == (0, "I have a question.\n\nchosen=allow\n")


def test_what_goes_wrong_before_the_prompt_is_sent_is_told_with_its_code(user: Dragoman) -> None:
    done = user("--no-wait", "--agent-command", "/nowhere/agent", "hi")
    assert (done.code, done.out) == (1, "")
    assert "could not start '/nowhere/agent'" in done.err
    refused(user("--no-wait", "--resume", "s-nothing", "hi"), "cannot be continued", code=4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-o", "result", "hi"), "remove -o result"),
        (("--list-modes", "hi"), "remove the --list options"),
        (("--no-store", "hi"), "remove --no-store"),
        (("--on-ask", "prompt", "hi"), "use --on-ask wait or reject"),
        (("-c", "--steer", "hi"), "remove --no-wait"),
    ],
)
def test_what_needs_someone_who_waits_is_refused(
    user: Dragoman, words: tuple[str, ...], sentence: str
) -> None:
    refused(user("--no-wait", *words), sentence)


@needs_tmux
def test_ctrl_c_before_the_prompt_is_sent_ends_the_run(dragoman: Dragoman) -> None:
    command = dragoman.command("--no-wait", "hi", agent="deaf")
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as terminal:
        terminal.wait_for("starting ")
        terminal.press("C-c")
        assert terminal.exit_code() == 130
    assert dragoman("sessions", "list").out == "no sessions\n"
