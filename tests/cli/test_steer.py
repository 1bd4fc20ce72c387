"""`dragoman --session NAME --steer "…"`, from a second terminal."""

from __future__ import annotations

import pytest
from support.command import COMMAND, Dragoman
from support.screen import needs_tmux, on_screen


@needs_tmux
def test_a_turn_is_steered_from_another_terminal(user: Dragoman) -> None:
    command = [str(COMMAND), "--session", "s", "--", "wait"]
    with on_screen(command, env=user.env, cwd=user.workspace) as one:
        one.wait_for("started")
        done = user("--session", "s", "--steer", "rather blue")
        assert done.code == 0
        assert done.out == (
            "queued: it is the next prompt, unless the agent asks for it before the turn ends\n"
        )
        one.wait_for("queued: rather blue")
        assert user("cancel", "s").code == 0


def test_a_session_that_does_not_run_cannot_be_steered(user: Dragoman) -> None:
    user("--session", "s", "hello")
    done = user("--session", "s", "--steer", "more")
    assert done.code == 1
    assert "is not running, so there is no turn to steer; prompt it instead" in done.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--steer", "x"), "--steer needs the session: add --session NAME, --resume ID or"),
        (("--session", "s", "--steer", "x", "hello"), "--steer has the words itself"),
        (("--session", "s", "--steer", " "), "--steer is empty"),
        (("--session", "s", "--steer", "x", "--write"), "a steer brings no rules"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], sentence: str, user: Dragoman
) -> None:
    done = user(*words)
    assert done.code == 2
    assert sentence in done.err
