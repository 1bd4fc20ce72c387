"""Several windows on one session: watched, answered, queued into and cancelled from outside."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from support.command import COMMAND, Dragoman
from support.screen import Screen, needs_tmux, on_screen

pytestmark = needs_tmux

QUESTION = "choose 1-3:"


def terminal(user: Dragoman, *words: str) -> AbstractContextManager[Screen]:
    return on_screen([str(COMMAND), *words], env=user.env, cwd=user.workspace)


def test_a_session_is_watched_answered_queued_into_and_cancelled(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "ask") as one:
        one.wait_for(QUESTION)
        with terminal(user, "watch", "s") as two:
            asked = two.wait_for(QUESTION)
            # What the turn has said so far, and the question as the first window has it.
            assert re.match(r"dragoman: watching s-\w+ \[s\] ask \(Ctrl-C to stop\)\n", asked)
            assert "› ask\nI have a question.\n\n? memo says it wants to run:\n    $ make" in asked
            with terminal(user, "--session", "s", "--", "wait") as three:
                three.wait_for("queued: it will be sent when the running turn ends")
                two.enter("1")
                # The first answer wins: the question is taken back where it was not answered.
                done = one.wait_for("answered in another window: Allow")
                assert "choose 1-3:\ndragoman: queued: wait\n" in done
                assert "already answered in another window" not in two.text()
                one.wait_for("chosen=allow")
                for window in (one, two, three):
                    window.wait_for("started")
                assert "dragoman: queued: wait" in two.text()
                cancelled = user("cancel", "s")
                assert (cancelled.code, cancelled.out) == (0, "cancelled\n")
                assert three.exit_code() == 130
                assert "started\ndragoman: cancelled in another window\n" in three.text()
                # What it was asked for itself was done.
                assert one.exit_code() == 0
                two.wait_for("the turn was cancelled")
            two.press("C-c")
            assert two.exit_code() == 130
    out = user("cancel", "s").out
    assert out.startswith("session s-")
    assert out.endswith(" is not running\n")


def test_watching_ends_when_the_session_is_deleted(user: Dragoman) -> None:
    user("--session", "s", "hello")
    with terminal(user, "watch", "s") as one:
        one.wait_for("Ctrl-C to stop")
        assert user("sessions", "delete", "s").code == 0
        assert one.exit_code() == 0
        assert "the session was deleted" in one.text()


def test_a_cancel_from_another_process_ends_the_first_one_with_130(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "--", "wait") as one:
        one.wait_for("started")
        assert user("cancel", "s").out == "cancelled\n"
        assert one.exit_code() == 130
        assert "started\ndragoman: cancelled in another window\n" in one.text()
        assert user("--session", "s", "-o", "simple", "again").out == "2. again\n"


def test_a_question_is_listed_and_answered_by_a_command(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "ask") as one:
        one.wait_for(QUESTION)
        listed = user("sessions", "answer", "s")
        request = listed.out.partition(":")[0]
        # Where lines are broken depends on how long the folder's name is.
        assert (
            listed.out.split()
            == (
                f"{request}:"
                " ? memo says it wants to run:"
                " $ make"
                f" in {user.workspace}"
                " in its words: Do it"
                " allow_once Allow once"
                " allow_always Always allow"
                " from now on: allow exactly this command in this folder"
                " for memo in this"
                " project; the agent may also remember it"
                " reject_once Reject"
                " remember:this:session Allow this command in this session"
                " remember:this:project Allow this command in this project"
                " remember:commands:session Allow any command in this session"
                " remember:commands:project Allow any command in this project"
            ).split()
        )
        refused = user("sessions", "answer", "s", "nonsense")
        assert (refused.code, refused.out) == (2, "")
        assert "available: allow_once, allow_always, reject_once" in refused.err
        assert user("sessions", "answer", "s", "reject_once", "--request", request).code == 0
        assert "answered in another window: Reject\n\nchosen=reject" in one.wait_for("exit code 5")
    late = user("sessions", "answer", "s", "allow")
    assert (late.code, late.err.count("\n")) == (2, 1)
    assert "has no pending questions" in late.err


def test_a_question_is_listed_with_the_change_it_is_about(user: Dragoman) -> None:
    path = user.workspace / "a.py"
    path.write_text("one\n")
    with terminal(user, "--session", "s", "edit") as one:
        one.wait_for(QUESTION)
        # Where lines are broken depends on how long the folder's name is.
        listed = user("sessions", "answer", "s").out.split()
        assert listed[5:9] == f"wants to write: {path}".split()
        change = f"change of {path}: @@ -1 +1 @@ -one +two".split()
        start = listed.index("change")
        assert listed[start : start + len(change)] == change
        assert user("sessions", "answer", "s", "allow_once").code == 0
        one.wait_for("chosen=allow")


def test_a_misleading_question_is_told_as_it_is_wherever_it_is_asked(user: Dragoman) -> None:
    folder = user.workspace / "sub"
    folder.mkdir()
    shown = (
        "? memo says it wants to run:\n"
        "    $ touch PWNED\n"
        "    … 59 empty lines\n"
        "    $ true\n"
        f"    in {folder}\n"
    )
    yes = "Allow once\n     ! the agent calls this “Reject”, but it allows\n"
    no = "Reject\n     ! the agent calls this “Allow”, but it rejects\n"
    with terminal(user, "--session", "s", "mislead") as one:
        one.wait_for("choose 1-2:")
        with terminal(user, "watch", "s") as two:
            for window in (one, two):
                assert f"{shown}  1. {yes}  2. {no}" in window.wait_for("choose 1-2:")
            listed = user("sessions", "answer", "s")
            assert f"{shown}  allow_once  {yes}  reject_once  {no}  remember:" in listed.out
            refused = user("sessions", "answer", "s", "reject")
            assert refused.code == 2
            assert "but it allows: to choose it, answer allow_once" in refused.err
            assert user("sessions", "answer", "s", "reject_once").code == 0
            assert "chosen=allow" in one.wait_for("exit code 5")


def test_an_offer_is_answered_by_a_command_and_a_dangerous_one_only_if_it_is_confirmed(
    user: Dragoman,
) -> None:
    with terminal(user, "--session", "s", "ask to delete") as one:
        one.wait_for(QUESTION)
        listed = user("sessions", "answer", "s").out
        assert "  ! rm deletes folders and everything in them\n" in listed
        assert (
            "remember:this:project  Allow this command in this project (with --confirm)" in listed
        )
        refused = user("sessions", "answer", "s", "remember:this:project")
        assert (refused.code, refused.out) == (2, "")
        assert "rm deletes folders and everything in them: to allow it from now on" in refused.err
        assert user("sessions", "answer", "s", "remember:this:project", "--confirm").code == 0
        assert one.exit_code() == 0
        assert "rm -rf build" in user("policy", "list").out


def test_always_from_another_window_is_a_stored_rule_that_can_be_revoked(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "ask") as one:
        one.wait_for(QUESTION)
        assert user("sessions", "answer", "s", "always").code == 0
        one.wait_for("chosen=always")
        assert one.exit_code() == 0
    [rule] = json.loads(user("policy", "list", "--json").out)
    where = f"in the folder {user.workspace} for memo in this project"
    assert rule["sentence"] == f"allow running exactly make {where}"
    assert "chosen=allow" in user("--session", "s", "ask").out
    assert user("policy", "revoke", rule["id"]).out == f"revoked {rule['id']}\n"
    assert json.loads(user("policy", "list", "--json").out) == []
    assert user("--session", "s", "ask").code == 5


def test_a_form_is_declined_from_outside(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "fill in") as one:
        one.wait_for("? Who are you?")
        assert "Who are you?" in user("sessions", "answer", "s").out
        assert user("sessions", "answer", "s", "yes").code == 2
        assert user("sessions", "answer", "s", "decline").code == 0
        assert "answer={'action': 'decline'" in one.wait_for("exit code 0")


def test_an_answer_in_the_first_window_takes_the_question_from_the_second(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "ask") as one:
        one.wait_for(QUESTION)
        with terminal(user, "watch", "s", "--until-idle") as two:
            two.wait_for(QUESTION)
            one.enter("3")
            done = two.wait_for("exit code 0")
            assert "answered in another window: Reject\n\nchosen=reject" in done
            assert one.exit_code() == 5


def test_windows_that_begin_a_session_at_the_same_time_share_it(user: Dragoman) -> None:
    words = ("--session", "s", "-o", "simple")
    with user.started(*words, "one") as first, user.started(*words, "two") as second:
        done = [process.communicate(b"", timeout=60) for process in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0), done
    outs = [out.decode() for out, _ in done]
    assert sorted(outs) in (["1. one\n", "2. two\n"], ["1. two\n", "2. one\n"])
    assert len(json.loads(user("sessions", "list", "--json").out)) == 1


def test_a_queued_prompt_is_taken_back_by_ctrl_c(user: Dragoman) -> None:
    with terminal(user, "--session", "s", "work") as one:
        one.wait_for("working")
        with terminal(user, "--session", "s", "never") as two:
            two.wait_for("queued")
            two.press("C-c")
            assert "the prompt was withdrawn before it was sent" in two.wait_for("exit code 130")
        (user.workspace / "go").touch()
        assert one.exit_code() == 0
    assert "2. next" in user("--session", "s", "next").out


@contextmanager
def waiting(user: Dragoman) -> Generator[subprocess.Popen[bytes]]:
    """A process in the midst of a turn."""
    with user.started("--session", "s", "--", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process


def test_a_prompt_that_waits_outlives_the_process_that_ran_the_session(user: Dragoman) -> None:
    with waiting(user) as owner, terminal(user, "--session", "s", "next") as heir:
        heir.wait_for("queued")
        owner.send_signal(signal.SIGKILL)
        assert "2. next" in heir.wait_for("exit code 0")
    shown = user("sessions", "show", "s").out
    assert "started\n\nthe turn failed: interrupted: " in shown
    assert shown.endswith("› next\n2. next\n")


def test_an_owner_that_leaves_hands_over_what_waits(user: Dragoman) -> None:
    with waiting(user) as owner, terminal(user, "--session", "s", "next") as heir:
        heir.wait_for("queued")
        owner.send_signal(signal.SIGINT)
        assert "2. next" in heir.wait_for("exit code 0")
        assert owner.wait(120) == 130
