"""`dragoman wait`: until a session is idle, with the answer and the code of its last turn."""

from __future__ import annotations

import subprocess
import time

from support.command import Dragoman


def output(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.read().decode()


def wait_until_at_work(user: Dragoman) -> None:
    deadline = time.monotonic() + 60
    while '"status": "running"' not in user("sessions", "list", "--json").out:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_idle_session_is_not_waited_for(user: Dragoman) -> None:
    assert user("-a", "memo", "--session", "s", "hello").code == 0
    done = user("wait", "s")
    assert (done.code, done.out) == (0, "1. hello\n")


def test_the_turn_of_another_process_is_waited_for(user: Dragoman) -> None:
    with user.started("-a", "memo", "--session", "s", "work"):
        wait_until_at_work(user)
        late = user("wait", "s", "--timeout", "1s")
        assert (late.code, late.out) == (3, "")
        assert "is still at work" in late.err
        with user.started("wait", "s") as waiting:
            (user.workspace / "go").touch()
            assert waiting.wait(120) == 0
            assert output(waiting) == "working\nworked\n"


def test_a_turn_that_was_cancelled_or_cut_off_has_its_code(user: Dragoman) -> None:
    with user.started("-a", "memo", "--session", "s", "--", "wait") as running:
        wait_until_at_work(user)
        assert user("cancel", "s").code == 0
        assert running.wait(120) == 130
    assert user("wait", "s").code == 130
    with user.started("-a", "memo", "--session", "s", "--", "wait") as running:
        wait_until_at_work(user)
        running.kill()
        running.wait(120)
        done = user("wait", "s")
    assert done.code == 1
    assert "interrupted" in done.err


def test_what_was_refused_or_does_not_exist_has_its_code(user: Dragoman) -> None:
    assert user("-a", "memo", "--session", "s", "ask").code == 5
    done = user("wait", "s")
    assert (done.code, "every permission request was refused" in done.err) == (5, True)
    assert user("wait", "nothing").code == 4
