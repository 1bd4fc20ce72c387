"""A chat in a session that another process runs."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from support.command import COMMAND, Dragoman
from support.screen import Screen, needs_tmux, on_screen

pytestmark = needs_tmux

JOINED = "another process runs it, and its rules apply, too"
LEFT = "your next prompt continues it here"


def chat(user: Dragoman, *words: str) -> AbstractContextManager[Screen]:
    command = [str(COMMAND), "chat", "--session", "fix", *words]
    return on_screen(command, env=user.env, cwd=user.workspace)


def started(screen: Screen) -> Screen:
    screen.wait_for("/help lists")
    return screen


def prompts(screen: Screen, text: str) -> int:
    """How often it stands there as something that was asked."""
    return len(re.findall(rf"^› {re.escape(text)} *$", screen.text(), re.MULTILINE))


def test_two_chats_share_a_session_and_the_second_continues_it(user: Dragoman) -> None:
    with chat(user) as one:
        started(one).enter("hello")
        one.wait_for("1. hello")
        with chat(user) as two:
            assert "continues, 1 turn so far: hello" in two.wait_for(JOINED)
            assert "› hello\n  1. hello\n" in started(two).text()
            two.enter("there")
            for screen in (one, two):
                screen.wait_for("2. there")
                assert prompts(screen, "there") == 1
            two.enter("ask")
            one.wait_for("choose 1-3:")
            two.wait_for("choose 1-3:")
            two.enter("1")
            one.wait_for("answered in another window: Allow")
            assert "2. there\n\n› ask\n" in two.wait_for("chosen=allow")  # room between two turns
            one.press("C-d")
            assert one.exit_code() == 0
            two.wait_for(LEFT)
            two.enter("more")
            two.wait_for("4. more")
            two.press("C-d")
            assert two.exit_code() == 0


def test_a_running_turn_is_shown_from_its_beginning_and_cancelled_from_a_second_chat(
    user: Dragoman,
) -> None:
    with chat(user) as one:
        started(one).enter("wait")
        one.wait_for("started")
        with chat(user) as two:
            two.wait_for("› wait\nstarted")
            two.enter("later")
            two.wait_for("queued: 1 waiting")
            two.enter(":queue")
            two.wait_for("1. later")
            two.enter(":drop")
            two.wait_for("dropped; 0 left in the queue")
            two.press("Escape")
            for screen in (one, two):
                screen.wait_for("the turn was cancelled")
            assert prompts(two, "later") == 1
            two.press("C-d")
            assert two.exit_code() == 0


def test_what_a_second_chat_has_queued_is_sent_by_it_when_the_first_one_ends(
    user: Dragoman,
) -> None:
    with chat(user) as one:
        started(one).enter("wait")
        one.wait_for("started")
        with chat(user) as two:
            two.wait_for("› wait\nstarted")
            two.enter("later")
            two.wait_for("queued: 1 waiting")
            one.kill()
            two.wait_for("2. later")


def test_a_second_chat_that_quits_leaves_the_turn_to_the_first(user: Dragoman) -> None:
    with chat(user) as one:
        started(one).enter("hello")
        one.wait_for("1. hello")
        with chat(user) as two:
            two.wait_for(JOINED)
            started(two).enter("work")
            one.wait_for("working")
            two.wait_for("working")
            two.enter("/exit")
            two.wait_for("the turn continues where the session is running")
            assert two.exit_code() == 0
        (user.workspace / "go").touch()
        one.wait_for("worked")


def test_a_second_chat_is_refused_what_only_the_first_could_do(user: Dragoman) -> None:
    with chat(user) as one:
        started(one).enter("hello")
        one.wait_for("1. hello")
        with chat(user, "--proxy", "cat") as two:
            two.wait_for("another process is running this session without this proxy")
            assert two.exit_code() == 2


def test_another_session_is_joined_and_left_without_quitting(user: Dragoman) -> None:
    with chat(user) as one:
        started(one).enter("hello")
        one.wait_for("1. hello")
        other = [str(COMMAND), "chat", "--session", "other"]
        with on_screen(other, env=user.env, cwd=user.workspace) as two:
            started(two).enter("/resume fix")
            two.wait_for(JOINED)
            two.enter("there")
            one.wait_for("2. there")
            two.enter("/new")
            two.wait_for("a new session")
            two.enter("alone")
            two.wait_for("1. alone")
            assert "alone" not in one.text()
