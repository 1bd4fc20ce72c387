"""Several runs on one session: each prompt is sent once, in order, and no option is ignored."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Timer
from typing import Any

import pytest
from support.command import COMMAND, SECONDS, Dragoman
from support.screen import needs_tmux, on_screen

from dragoman.hub.cluster.commands import Refusal, encode_result
from dragoman.hub.cluster.owner import this_process
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import Lease, SessionFilter

AT_ONCE = 6
TRIES = 6


def state_of(user: Dragoman, session: str) -> dict[str, Any]:
    return json.loads(user("sessions", "show", session, "--json").out)


def asked(user: Dragoman, session: str) -> list[str]:
    entries = state_of(user, session)["entries"]
    return ["".join(each["pieces"]) for each in entries if each["type"] == "user"]


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def running(user: Dragoman, *words: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return user.started(*words, stdin=subprocess.DEVNULL)


@contextmanager
def owning(user: Dragoman) -> Generator[subprocess.Popen[bytes]]:
    """A process in the midst of a turn that only a cancel ends."""
    with running(user, "--session", "s", "--", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process


def heard(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """Its standard error up to a line with these words; it is killed if it never says them."""
    assert process.stderr is not None
    lines = b""
    hanging = Timer(SECONDS, process.kill)
    hanging.start()
    try:
        for line in process.stderr:
            lines += line
            if words in line:
                return lines
    finally:
        hanging.cancel()
    raise AssertionError(lines)


# ── at the same time ──────────────────────────────────────────────────────────────────────────


def test_no_prompt_is_lost_when_many_begin_at_once(user: Dragoman) -> None:
    words = [f"prompt {number}" for number in range(AT_ONCE)]
    with ExitStack() as stack:
        runs = [
            stack.enter_context(running(user, "--session", "same", "-o", "simple", text))
            for text in words
        ]
        for text, run in zip(words, runs, strict=True):
            code, out, err = ended(run)
            assert code == 0, err
            # The answer to its own prompt, and nothing of the others.
            assert out.count("\n") == 1
            assert out.endswith(f". {text}\n")
    assert sorted(asked(user, "same")) == words


async def test_a_run_tries_again_for_as_long_as_others_are_quicker(user: Dragoman) -> None:
    """One owner after the other is about to leave and takes no prompt any more."""
    assert user("--session", "s", "one").code == 0
    store = await open_store(user.state)
    try:
        [record] = await store.sessions(SessionFilter(name="s"))
        lease = await store.acquire(record.id, this_process(), seconds=60, gone=lambda _: False)
        with running(user, "--session", "s", "-o", "simple", "two") as run:
            async with asyncio.timeout(60):
                await refused(store, lease, TRIES)
            await store.release(lease)
            assert await asyncio.to_thread(ended, run) == (0, "2. two\n", "")
    finally:
        await store.aclose()


async def refused(store: Store, lease: Lease, tries: int) -> None:
    while tries:
        for command in await store.take([lease]):
            await store.settle(command.id, encode_result(Refusal("owner_gone", "just ended")))
            tries -= 1
        await asyncio.sleep(0.01)


def test_those_who_wait_keep_their_place_when_the_owner_is_killed(user: Dragoman) -> None:
    with ExitStack() as stack:
        owner = stack.enter_context(owning(user))
        heirs: list[subprocess.Popen[bytes]] = []
        for text in ("first", "second", "third"):
            run = stack.enter_context(running(user, "--session", "s", "-o", "simple", text))
            heard(run, b"queued")
            heirs.append(run)
        owner.send_signal(signal.SIGKILL)
        done = [ended(run) for run in heirs]
        assert [code for code, _, _ in done] == [0, 0, 0], done
        assert [out for _, out, _ in done] == ["2. first\n", "3. second\n", "4. third\n"]
    assert asked(user, "s") == ["wait", "first", "second", "third"]


def test_what_waits_from_before_is_sent_first(user: Dragoman) -> None:
    with owning(user) as owner, running(user, "--session", "s", "before") as waiting:
        heard(waiting, b"queued")
        waiting.send_signal(signal.SIGKILL)
        waiting.wait()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    done = user("--session", "s", "-o", "simple", "after")
    assert (done.code, done.out) == (0, "3. after\n")
    assert "a prompt waits from before: it is sent first" in done.err
    assert asked(user, "s") == ["wait", "before", "after"]


# ── what is asked of a process that runs elsewhere ────────────────────────────────────────────


@pytest.mark.parametrize("option", ["--yolo", "--exec", "--policy"])
def test_the_rules_of_a_run_hold_for_its_turn_in_another_process(
    user: Dragoman, option: str
) -> None:
    file = user.workspace / "rules.json"
    file.write_text('{"rules": [{"effect": "allow", "operation": "execute"}]}')
    given = [option, "rules.json"] if option == "--policy" else [option]
    with running(user, "--session", "s", "work") as owner, ExitStack() as stack:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"working\n"
        words = (*given, "-o", "simple", "--on-ask", "reject", "ask")
        ruled = stack.enter_context(running(user, "--session", "s", *words))
        heard(ruled, b"queued")
        plain = stack.enter_context(
            running(user, "--session", "s", "-o", "simple", "--on-ask", "reject", "ask")
        )
        heard(plain, b"queued")
        (user.workspace / "go").touch()
        code, out, err = ended(ruled)
        assert (code, out) == (0, "I have a question.\nchosen=allow\n")
        assert f"asked for {' '.join(given)} --on-ask reject in this turn" in err
        assert ended(plain)[:2] == (5, "I have a question.\nchosen=reject\n")
        assert ended(owner)[0] == 0


@pytest.mark.parametrize("option", ["--no-files", "--no-terminals"])
def test_what_an_agent_is_offered_cannot_be_changed_by_another_process(
    user: Dragoman, option: str
) -> None:
    with owning(user):
        done = user("--session", "s", option, "next")
        assert (done.code, done.out) == (2, "")
        assert f"what it is offered: remove {option}, or" in done.err
        assert state_of(user, "s").get("queue", []) == []


@pytest.mark.parametrize(
    "option", ["--fence", "--fence=require", "--fence=off", "--fence-network=none"]
)
def test_a_fence_cannot_be_put_around_an_agent_of_another_process(
    user: Dragoman, option: str
) -> None:
    with owning(user):
        done = user("--session", "s", option, "next")
        assert (done.code, done.out) == (2, "")
        assert f"process or none: remove {option.partition('=')[0]}, or" in done.err
        assert state_of(user, "s").get("queue", []) == []


def test_limits_are_those_of_the_process_that_runs_the_session(user: Dragoman) -> None:
    with running(user, "--session", "s", "--max-turns", "1", "work") as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"working\n"
        done = user("--session", "s", "--max-turns", "9", "next")
        assert (done.code, done.out) == (2, "")
        assert "with limits of its own: remove --max-turns, or" in done.err
        with running(user, "--session", "s", "next") as waiting:
            heard(waiting, b"queued")
            (user.workspace / "go").touch()
            code, out, err = ended(waiting)
            assert (code, out) == (6, "")
            assert "the prompt was not sent: this session has used 1 turn" in err
        assert ended(owner)[0] == 0


def test_writes_that_the_process_does_not_offer_are_refused_in_a_sentence(user: Dragoman) -> None:
    """It was started without --write and asks nobody: its agent was told that it cannot write."""
    with owning(user):
        done = user("--session", "s", "--write", "next")
        assert (done.code, done.out) == (2, "")
        assert "does not offer fs/write_text_file to its agent, so --write allows" in done.err
        assert state_of(user, "s").get("queue", []) == []


def test_a_run_in_the_background_waits_for_an_answer_from_another_window(user: Dragoman) -> None:
    words = ("--session", "s", "--on-ask", "wait", "-o", "simple", "ask")
    with running(user, *words) as run:
        told = heard(run, b"is waiting for an answer").decode()
        assert "dragoman sessions answer s-" in told
        assert user("sessions", "answer", "s", "allow_once").code == 0
        code, out, _ = ended(run)
        assert (code, out) == (0, "I have a question.\nchosen=allow\n")
    # And where another process runs the session that would refuse by itself.
    with running(user, "--session", "s", "work") as owner, ExitStack() as stack:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"working\n"
        run = stack.enter_context(running(user, *words))
        heard(run, b"queued")
        (user.workspace / "go").touch()
        heard(run, b"is waiting for an answer")
        assert user("sessions", "answer", "s", "allow_once").code == 0
        assert ended(run)[:2] == (0, "I have a question.\nchosen=allow\n")
        assert ended(owner)[0] == 0


def test_a_run_gives_up_when_nothing_happens_where_the_session_runs(user: Dragoman) -> None:
    with owning(user):
        done = user("--session", "s", "--timeout", "1", "next")
        assert done.code == 3, done
        assert "no progress" in done.err
        # And its prompt is not sent behind its back.
        assert state_of(user, "s").get("queue", []) == []


@needs_tmux
def test_a_question_elsewhere_is_told_of_and_can_be_refused_unasked(user: Dragoman) -> None:
    chat = [str(COMMAND), "chat", "--session", "s"]
    with on_screen(chat, env=user.env, cwd=user.workspace) as owner:
        owner.wait_for("/help lists the commands")
        refused = user("--session", "s", "--on-ask", "reject", "-o", "simple", "ask")
        assert (refused.code, refused.out) == (5, "I have a question.\nchosen=reject\n")
        with running(user, "--session", "s", "-o", "simple", "ask") as asking:
            told = heard(asking, b"is waiting for an answer").decode()
            assert "dragoman sessions answer s-" in told
            assert user("sessions", "answer", "s", "allow_once").code == 0
            code, out, _ = ended(asking)
            assert (code, out) == (0, "I have a question.\nchosen=allow\n")
