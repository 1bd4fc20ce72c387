"""`--continue`: the session of this directory that was used last."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support.command import COMMAND, Dragoman, refused
from support.screen import needs_tmux, on_screen


def said(done: Any) -> str:
    assert done.code == 0, done
    return done.out


def test_it_continues_the_session_that_was_used_last(user: Dragoman) -> None:
    said(user("--session", "older", "-o", "simple", "one"))
    said(user("--session", "newer", "-o", "simple", "one"))
    assert said(user("--continue", "-o", "simple", "two")) == "2. two\n"
    assert said(user("--session", "older", "-o", "simple", "two")) == "2. two\n"
    assert said(user("-c", "-o", "simple", "three")) == "3. three\n"
    turns = {name: said(user("sessions", "show", name)).count("›") for name in ("older", "newer")}
    assert turns == {"older": 3, "newer": 2}


def test_sessions_of_other_directories_and_agents_are_left_alone(
    user: Dragoman, tmp_path: Path
) -> None:
    said(user("--session", "fix", "-o", "simple", "one"))
    done = user("-c", "-o", "simple", "two", cwd=tmp_path)
    refused(done, f"there is no session in {tmp_path} to continue", code=4)
    done = user("-c", "-a", "lethe", "-o", "simple", "two")
    refused(done, f"there is no session of lethe in {user.workspace} to continue", code=4)
    assert len(json.loads(user("sessions", "list", "--json").out)) == 1


def test_closed_and_archived_sessions_are_passed_over(user: Dragoman) -> None:
    for name in ("first", "second", "third"):
        said(user("--session", name, "-o", "simple", "one"))
    said(user("sessions", "archive", "third"))
    said(user("sessions", "close", "second"))
    assert said(user("-c", "-o", "simple", "two")) == "2. two\n"
    assert said(user("sessions", "show", "first")).count("›") == 2


def test_a_running_turn_is_steered_without_naming_its_session(user: Dragoman) -> None:
    said(user("--session", "fix", "-o", "simple", "one"))
    done = user("-c", "--steer", "also this")
    refused(done, "is not running, so there is no turn to steer", code=1)
    refused(user("--steer", "also this"), "--session NAME, --resume ID or --continue")


def test_it_goes_with_no_other_option_that_names_a_session(user: Dragoman) -> None:
    refused(user("-c", "--session", "x", "hi"), "not allowed with argument")
    refused(user("-c", "--no-store", "hi"), "--continue needs the store; remove --no-store")


def test_a_session_is_not_continued_without_one_of_its_folders(user: Dragoman) -> None:
    (more := user.home / "more").mkdir()
    said(user("--session", "fix", "--add-dir", str(more), "one"))
    more.rmdir()
    gone = user("--session", "fix", "two")
    refused(gone, "cannot be continued", f"{more} does not exist", code=4)
    more.mkdir()
    assert "2. two" in said(user("--session", "fix", "two"))


@needs_tmux
def test_a_chat_begins_with_a_prompt_and_continues_the_last_session(user: Dragoman) -> None:
    said(user("--session", "fix", "-o", "simple", "one"))
    command = [str(COMMAND), "chat", "--continue", "and two"]
    with on_screen(command, env=user.env, cwd=user.workspace, width=100) as terminal:
        drawn = terminal.wait_for("2. and two")
        assert re.search(r"session s-\w+ continues, 1 turn so far: one\n", drawn)
        assert drawn.count("› and two\n") == 1
        assert drawn.index("/help lists") < drawn.index("› and two")
        terminal.enter("three")
        terminal.wait_for("3. three")
        terminal.press("C-d")
        assert terminal.exit_code() == 0


def test_a_second_word_for_a_chat_is_told_apart(user: Dragoman) -> None:
    refused(user("chat", "explain", "this"), "put the prompt in quotes")
