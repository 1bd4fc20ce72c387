"""An agent that stays after a run: who uses it, what it still knows of the run, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from support.command import COMMAND, SECONDS, Dragoman, refused
from support.screen import Screen, needs_tmux, on_screen
from support.staying import Staying, staying

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks around in /proc")

LETHE = ("-a", "lethe", "--session", "s", "-o", "simple")
"""An agent that forgets its sessions when it ends: what it remembers, it was there for."""


@pytest.fixture
def stays(user: Dragoman) -> Generator[Staying]:
    with staying(user) as it:
        yield it


def answered(stays: Staying, *words: str, **variables: str) -> str:
    done = stays(*LETHE, *words, env=variables)
    assert done.code == 0, done
    return done.out


# ── it stays, and is used ─────────────────────────────────────────────────────────────────────


def test_the_next_run_finds_the_agent_of_the_one_before(stays: Staying) -> None:
    assert answered(stays, "one") == "1. one\n"
    assert len(stays.notes()) == 1  # the next run knows at once what the process is
    before = stays.only()
    assert (before["state"], before["name"], before["agent"]) == ("warm", "s", "lethe")
    assert answered(stays, "two") == "2. two\n"
    after = stays.only()
    assert (after["pid"], after["since"]) == (before["pid"], before["since"])
    assert after["endsAt"] > before["endsAt"]
    assert after["memory"] > 1_000_000


def test_continue_and_resume_find_it_too(stays: Staying) -> None:
    assert answered(stays, "one") == "1. one\n"
    session = stays.only()["id"]
    assert stays("-c", "-o", "simple", "two").out == "2. two\n"
    assert stays("--resume", session, "-o", "simple", "three").out == "3. three\n"


def test_a_run_ends_for_everyone_who_reads_its_output(stays: Staying) -> None:
    """Who waits for the end of a pipe need not wait for the agent, whoever gave us the pipe."""
    reader, writer = os.pipe()
    done = subprocess.run(
        [str(COMMAND), *LETHE, "one"],
        env=stays.user.env,
        cwd=stays.user.workspace,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        pass_fds=(writer,),
        timeout=SECONDS,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stdout) == (0, b"1. one\n")
    with open(reader, "rb") as pipe:
        assert pipe.read() == b""
    pid = stays.only()["pid"]
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    streams = [Path(f"/proc/{pid}/fd/{number}").readlink() for number in (0, 1, 2)]
    assert streams == [Path("/dev/null"), Path("/dev/null"), stays.user.state / "warm" / "log"]


@pytest.mark.parametrize("words", [("-o", "result"), ("-o", "events"), ("-o", "text")])
def test_a_warm_run_prints_what_a_cold_one_prints(stays: Staying, words: tuple[str, ...]) -> None:
    cold, warm = (stays(*LETHE[:4], *words, "hello") for _ in range(2))
    assert (cold.code, cold.err) == (warm.code, warm.err)
    assert _shape(cold.out) == _shape(warm.out)


def _shape(out: str) -> list[object]:
    """Which fields a line has, or its words without numbers. A turn in the agent that stays has
    terms of its own: what becomes of its questions."""
    return [
        sorted(json.loads(line).keys() - {"terms"})
        if line.startswith("{")
        else line.lstrip("0123456789")
        for line in out.splitlines()
        if '"commands_changed"' not in line and '"session_opened"' not in line
    ]


def test_the_id_of_the_session_is_written_by_a_warm_run_too(stays: Staying) -> None:
    answered(stays, "one")
    path = stays.user.home / "id"
    answered(stays, "--save-session", str(path), "two")
    assert path.read_text() == f"{stays.only()['id']}\n"


# ── what was asked for in one run does not hold in the next ───────────────────────────────────


def test_rules_of_the_first_run_do_not_hold_later(stays: Staying) -> None:
    """Nor does a run with other rules get an agent that was started with those."""
    same = ("-a", "memo", "--session", "s", "-o", "simple")
    first = stays(*same, "--yolo", "ask")
    assert (first.code, first.out) == (0, "I have a question.\nchosen=allow\n")
    allowed = stays.only()["pid"]
    later = stays(*same, "ask")
    assert (later.code, later.out) == (5, "I have a question.\nchosen=reject\n")
    assert "see --write, --exec, --yolo and --policy" in later.err
    warm = stays(*same, "ask")
    assert (warm.code, warm.out, warm.err) == (later.code, later.out, later.err)
    assert stays.only()["pid"] != allowed


async def test_a_prompt_from_a_page_waits_for_its_answer(stays: Staying) -> None:
    """It brings no rules: what it asks is asked in every window, though the run was unattended."""
    answered(stays, "one")
    assert (await stays.answered("ask", "allow")).endswith("chosen=allow")


def terminal(stays: Staying, *words: str) -> AbstractContextManager[Screen]:
    command = [str(COMMAND), *words]
    return on_screen(command, env=stays.user.env, cwd=stays.user.workspace)


@needs_tmux
def test_a_question_is_asked_where_its_run_is_and_no_terminal_is_held(stays: Staying) -> None:
    with terminal(stays, *LETHE, "ask") as one:
        one.wait_for("choose 1-3:")
        one.enter("1")
        assert one.exit_code() == 0
        pid = stays.only()["pid"]
        opened = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
        assert [each for each in opened if each.startswith(("/dev/pts", "/dev/tty"))] == []
        with terminal(stays, *LETHE, "ask") as two:
            two.wait_for("choose 1-3:")
            two.enter("1")
            assert two.exit_code() == 0
            assert "chosen=allow" in two.text()
            assert (stays.user.state / "warm" / "log").read_text() == ""
            assert "chosen" not in one.text().partition("exit code")[2]
        assert stays.only()["pid"] == pid
    stays.wait_until_gone()


@needs_tmux
def test_a_chat_joins_and_goes_on_when_the_process_ends(stays: Staying) -> None:
    with terminal(stays, "-a", "memo", "--session", "s", "one") as run:
        assert run.exit_code() == 0
        before = stays.only()
        with terminal(stays, "chat", "-a", "memo", "--session", "s") as chat:
            chat.wait_for("1. one")
            chat.enter("two")
            chat.wait_for("2. two")
            assert stays.only()["pid"] == before["pid"]
            assert stays("stop").code == 0
            assert (stays.user.state / "warm" / "log").read_text() == ""
            chat.wait_for("your next prompt continues it here")
            chat.enter("three")
            chat.wait_for("3. three")
            assert not stays.only()["warm"]
            chat.press("C-d")
            assert chat.exit_code() == 0


@needs_tmux
def test_a_chat_takes_the_session_over_from_an_agent_that_it_may_not_use(stays: Staying) -> None:
    assert stays("-a", "memo", "--session", "s", "one").code == 0  # of a script, with nobody to ask
    before = stays.only()
    with terminal(stays, "chat", "-a", "memo", "--session", "s") as chat:
        chat.wait_for("1. one")
        chat.enter("two")
        chat.wait_for("2. two")
        after = stays.only()
        assert (before["warm"], after["warm"]) == (True, False)
        assert before["pid"] not in stays.processes()
        chat.press("C-d")
        assert chat.exit_code() == 0


# ── when it is not used ───────────────────────────────────────────────────────────────────────


def test_another_environment_gets_another_agent(stays: Staying) -> None:
    words = ("-a", "memo", "--session", "s", "-o", "simple")
    pids: list[int] = []
    for text, variables in (
        ("one", {"SECRET": "hunter2"}),
        ("two", {"SECRET": "hunter2", "TERM": "dumb", "SHLVL": "7"}),
        ("three", {"SECRET": "swordfish"}),
    ):
        done = stays(*words, text, env=variables)
        assert done.code == 0, done
        pids.append(stays.only()["pid"])
        [note] = stays.notes()
        assert note.stat().st_mode & 0o777 == 0o600
        assert "hunter2" not in note.read_text()
        assert "swordfish" not in note.read_text()
    assert pids[0] == pids[1] != pids[2]
    assert done.out == "3. three\n"


@pytest.mark.parametrize(
    "words",
    [
        ("--no-terminals",),
        ("--max-turns", "9"),
        ("--timeout", "60"),
        ("--add-dir", "."),
        ("-o", "jsonl"),
        ("--record", "frames.jsonl"),
        ("--list-modes",),
    ],
)
def test_what_the_warm_agent_cannot_do_is_done_by_a_new_one(
    stays: Staying, words: tuple[str, ...]
) -> None:
    same = ("-a", "memo", "--session", "s")
    assert stays(*same, "one").code == 0
    before = stays.only()["pid"]
    done = stays(*same, *words, "two")
    assert done.code == 0, done
    assert before not in stays.processes()
    after = stays(*same, "-o", "simple", "three")
    assert (after.code, after.out) == (0, "3. three\n"), after


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (("--session", "s"), {"CI": "true"}),
        (("--session", "s", "--keep-warm", "0"), {}),
        ((), {}),
        (("--session", "s", "-o", "jsonl"), {}),
        (("--session", "s"), {"HOME": "", "DRAGOMAN_HOME": "", "XDG_DATA_HOME": "{}/data"}),
    ],
)
def test_nothing_stays_of_other_runs(
    stays: Staying, words: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    env = {name: value.format(tmp_path) for name, value in variables.items()}
    stays("-a", "memo", *words, "one", env=env)
    assert stays.processes() == []


def test_the_settings_and_the_option_say_how_long(stays: Staying) -> None:
    settings = json.loads(stays.user.settings.read_text())
    stays.user.write_settings(settings | {"keep_warm": 0})
    assert stays(*LETHE, "one").code == 0
    assert stays.processes() == []
    assert stays("-a", "memo", "--keep-warm", "2m", "one", env={"CI": "1"}).code == 0
    one = stays.only()
    assert one["name"] is None
    [note] = stays.notes()
    assert json.loads(note.read_text())["seconds"] == 120


def test_what_excludes_each_other_is_refused(stays: Staying) -> None:
    for words in (("--no-store",), ("--record", "x"), ("-o", "json"), ("-j",), ("--no-wait",)):
        refused(stays("--keep-warm", "5", *words, "hi"), "--keep-warm", "exclude each other")
    refused(stays("--keep-warm", "soon", "hi"), "--keep-warm", "10m", "'soon'")
    stays.user.write_settings({"keep_warm": -1})
    refused(stays("hi"), "keep_warm: expected a number of seconds", "-1")


# ── how it ends ───────────────────────────────────────────────────────────────────────────────


def test_it_ends_when_nobody_uses_it(stays: Staying) -> None:
    assert answered(stays, "--keep-warm", "0.2", "one") == "1. one\n"
    stays.wait_until_gone()
    assert stays.notes() == []
    assert stays("status").out == "nothing is running\n"


def test_stop_ends_all_or_one(stays: Staying) -> None:
    for name in ("a", "b", "c"):
        assert stays("-a", "memo", "--session", name, "hi").code == 0
    done = stays("stop", "b")
    assert (done.code, done.out.split()[0], done.out.split()[2:]) == (0, "stopped", ["(memo)"])
    assert sorted(each["name"] for each in stays.kept()) == ["a", "c"]
    refused(stays("stop", "b"), "is not kept warm")
    assert stays("stop").out.count("stopped ") == 2
    assert stays.processes() == []
    assert stays("stop").out == "no agent is kept warm\n"


def test_stop_leaves_one_that_works_alone(stays: Staying) -> None:
    answered(stays, "one")
    with stays.user.started(*LETHE, "--", "wait") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"started\n"
        refused(stays("stop"), "is working on a prompt", "--force", code=1)
        assert stays("stop", "--force").code == 0
        run.wait(SECONDS)
    stays.wait_until_gone()


@contextmanager
def login(stays: Staying) -> Generator[Callable[[], None]]:
    """A shell of its own session, whose script has run once; what it gives ends the shell. A script
    in it does not end what stays."""
    script = f'sh -c \'"$0" "$@"; :\' {COMMAND} {" ".join(LETHE)} one; read line'
    shell = subprocess.Popen(
        ["sh", "-c", script],
        env=stays.user.env,
        cwd=stays.user.workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout is not None
    assert shell.stdout.readline() == b"1. one\n"
    assert stays.only()["state"] == "warm"
    yield lambda: _end(shell)
    _end(shell)


def _end(shell: subprocess.Popen[bytes]) -> None:
    if shell.poll() is None:
        shell.communicate(b"\n", SECONDS)


def test_it_ends_with_the_login_session(stays: Staying) -> None:
    with login(stays) as end:
        end()
        stays.wait_until_gone()
        assert stays.notes() == []


def test_what_another_login_session_asked_for_is_finished(stays: Staying) -> None:
    with login(stays) as end, stays.user.started(*LETHE, "--", "work") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"working\n"
        end()
        (stays.user.workspace / "go").touch()
        assert run.stdout.readline() == b"worked\n"
        assert run.wait(SECONDS) == 0
        stays.wait_until_gone()


def test_a_question_for_any_window_does_not_outlast_the_login_session(stays: Staying) -> None:
    with login(stays) as end:
        asyncio.run(stays.asked("ask"))
        end()
        stays.wait_until_gone()


@pytest.mark.parametrize("words", [("close",), ("delete",)])
def test_it_leaves_a_session_that_is_closed_or_deleted(
    stays: Staying, words: tuple[str, ...]
) -> None:
    answered(stays, "one")
    session = stays.only()["id"]
    done = stays("sessions", *words, session)
    assert done.code == 0, done
    stays.wait_until_gone()
    assert stays.notes() == []


def test_it_ends_when_its_agent_has_ended(stays: Staying) -> None:
    answered(stays, "one")
    owner = stays.only()["pid"]
    [agent] = set(stays.processes()) - {owner}
    os.kill(agent, signal.SIGKILL)
    stays.wait_until_gone()
    assert stays.notes() == []


# ── killed and interrupted ────────────────────────────────────────────────────────────────────


def test_a_killed_one_takes_its_agent_along_and_the_next_run_goes_on(stays: Staying) -> None:
    same = ("-a", "memo", "--session", "s", "-o", "simple")
    assert stays(*same, "one").out == "1. one\n"
    os.kill(stays.only()["pid"], signal.SIGKILL)
    stays.wait_until_gone()
    assert len(stays.notes()) == 1
    done = stays(*same, "two")
    assert (done.code, done.out) == (0, "2. two\n")
    assert stays.only()["state"] == "warm"
    assert len(stays.notes()) == 1


def test_a_run_that_is_killed_leaves_nothing(stays: Staying) -> None:
    with stays.user.started(*LETHE, "--", "wait") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"started\n"
        assert len(stays.processes()) > 2
        run.kill()
        run.wait(SECONDS)
        stays.wait_until_gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_ends_by_the_signal_that_it_was_sent(stays: Staying, number: int) -> None:
    with stays.user.started(*LETHE, "--", "wait") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"started\n"
        run.send_signal(number)
        assert run.wait(SECONDS) == -number
    stays.wait_until_gone()


@pytest.mark.parametrize("to_all", [False, True], ids=["alone", "with its group"])
def test_a_ctrl_c_counts_once(stays: Staying, *, to_all: bool) -> None:
    """A terminal sends it to both processes. A second one would end the agent at once."""
    run = subprocess.Popen(
        [str(COMMAND), *LETHE, "linger"],
        env=stays.user.env,
        cwd=stays.user.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert run.stdout is not None
    assert run.stderr is not None
    assert run.stdout.readline() == b"started\n"
    if to_all:
        os.killpg(run.pid, signal.SIGINT)
    else:
        run.send_signal(signal.SIGINT)
    assert b"cancelling; Ctrl-C again" in run.stderr.readline()
    (stays.user.workspace / "go").touch()
    _, errors = run.communicate(timeout=SECONDS)
    assert (run.returncode, errors) == (130, b"")
    # In order: a second one would have stopped the process, and the record would say so.
    shown = stays("sessions", "show", "s", "--json").out
    assert [turn["stopReason"] for turn in json.loads(shown)["turns"]] == ["cancelled"]
    assert "was stopped" not in shown
    assert stays.processes() == []
