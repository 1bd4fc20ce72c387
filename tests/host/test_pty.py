"""Terminals on real processes: what a command gets, where it runs, who may ask for it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from host.watching import (
    DEAF,
    KILLED,
    KINDS,
    OK,
    POLITE,
    Bench,
    bench,
    is_alive,
    python,
    until,
)

from dragoman.errors import InternalError, InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.terminals import pty
from dragoman.host.terminals.provider import TerminalExit, TerminalsProvider
from dragoman.host.workspace.held_directory import OpenDirectory
from dragoman.host.workspace.jail import Jail
from dragoman.host.workspace.roots import Workspace
from dragoman.process import helper_watch, zygote_client

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS")

FACTS = """if True:
    import os
    print([os.isatty(number) for number in (0, 1, 2)])
    print(os.getsid(0) == os.getpgrp() == os.getpid())
    print(tuple(os.get_terminal_size(1)) if os.isatty(1) else None)
    print(os.environ["TERM"])
"""


def test_it_is_a_provider() -> None:
    provider: TerminalsProvider = pty.LocalTerminals()
    assert provider


# ── create ─────────────────────────────────────────────────────────────────────────────────────


@KINDS
async def test_a_command_runs_and_its_end_is_told_after_all_it_printed(
    tmp_path: Path, use_pty: bool
) -> None:
    async with bench(tmp_path, use_pty=use_pty) as b:
        terminal_id = await b.create("printf", "%s-", "a", "b c", "$HOME;")
        assert b.told.all == []  # whoever started it knows the id before any news
        assert await b.wait(terminal_id) == OK
        assert b.told.all[-1] == OK
        assert b.told.text == "a-b c-$HOME;-"
        assert b.told.ids == {terminal_id}
        assert await b.output(terminal_id) == pty.TerminalSnapshot("a-b c-$HOME;-", False, OK)


async def test_ids_cannot_be_guessed(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        ids = [await b.create("true") for _ in range(3)]
    assert len({terminal_id[:8] for terminal_id in ids}) == 3
    assert all(len(terminal_id) >= 32 for terminal_id in ids)


async def test_a_command_has_a_terminal_of_its_own(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        done = await b.run(*python(FACTS))
    assert done.output == "[False, True, True]\nTrue\n(120, 30)\nxterm-256color\n"


async def test_a_command_may_have_pipes_instead(tmp_path: Path) -> None:
    async with bench(tmp_path, use_pty=False) as b:
        done = await b.run(*python(FACTS))
    assert done.output == "[False, False, False]\nTrue\nNone\nxterm-256color\n"


async def test_the_terminal_controls_the_command(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        assert (await b.run("echo on it >/dev/tty")).output == "on it\n"


@KINDS
async def test_what_is_printed_arrives_byte_for_byte(tmp_path: Path, use_pty: bool) -> None:
    printed = "a\nb\r\n\x1b[31mred\tX\x08\x04\x03\x11\x13\x1a\x7f\n"
    async with bench(tmp_path, use_pty=use_pty) as b:
        done = await b.run(*python(f"import os; os.write(1, {printed.encode()!r})"))
        assert done.output == b.told.text == printed


@KINDS
async def test_errors_and_output_come_in_the_order_they_were_printed(
    tmp_path: Path, use_pty: bool
) -> None:
    async with bench(tmp_path, use_pty=use_pty) as b:
        assert (await b.run("echo 1; echo 2 >&2; echo 3")).output == "1\n2\n3\n"


async def test_reading_the_input_or_the_terminal_is_at_its_end_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        done = await b.run("cat; cat /dev/tty; read x <&1; echo $?; read -p 'Name? ' y; echo $?")
        assert done.output == "1\n1\n"


async def test_a_line_without_arguments_is_for_a_login_bash(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        line = "shopt -q login_shell && basename $0 | tr a-z A-Z"
        assert (await b.run(line)).output == "BASH\n"
        assert (await b.run("pwd")).output == f"{tmp_path}\n"


async def test_without_bash_a_line_is_for_sh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with bench(tmp_path) as b:
        assert (await b.run("echo $0")).output == "/bin/sh\n"


@pytest.mark.parametrize("line", ["", " ", "\n\t"])
async def test_an_empty_line_is_an_error(tmp_path: Path, line: str) -> None:
    async with bench(tmp_path) as b:
        with pytest.raises(InternalError, match="the command is empty"):
            await b.create(line)


async def test_the_environment_is_ours_with_theirs_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "1")
    monkeypatch.setenv("BOTH", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("PAGER", "less")
    code = "import os; print(*(os.environ.get(n) for n in 'OURS BOTH THEIRS TERM PAGER'.split()))"
    async with bench(tmp_path) as b:
        overlay = {"BOTH": "2", "THEIRS": "2"}
        assert (await b.run(*python(code), env=overlay)).output == "1 2 2 xterm-256color cat\n"
        overlay = {"TERM": "vt100", "PAGER": "more"}
        assert (await b.run(*python(code), env=overlay)).output == "1 1 None vt100 more\n"


async def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    reasons = {
        ("no-such-command", "x"): "could not start 'no-such-command': command not found in PATH",
        ("./data", "x"): f"could not start './data': '{tmp_path}/./data' is not executable",
        (str(tmp_path), "x"): f"could not start '{tmp_path}': '{tmp_path}' is a directory",
        ("a\0b", "x"): "NUL",
    }
    async with bench(tmp_path, max_terminals=1) as b:
        for words, reason in reasons.items():
            with pytest.raises(InternalError) as refused:
                await b.create(*words)
            assert reason in refused.value.message
            assert refused.value.data["reason"] in refused.value.message
        assert (await b.run("echo room for one")).exit == OK
    assert len(b.told.ends) == 1


async def test_a_command_without_a_terminal_left_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "openpty", none_left)
    async with bench(tmp_path) as b:
        with pytest.raises(InternalError, match=r"no terminal for it \(No space left on device\)"):
            await b.create("true")


async def test_on_windows_the_error_says_what_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pty, "sys", SimpleNamespace(platform="win32"))
    async with bench(tmp_path) as b:
        with pytest.raises(InternalError, match="on Windows, use WSL"):
            await b.create("dir")


async def test_it_works_where_processes_cannot_be_contained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zygote_client, "available", lambda: False)
    async with bench(tmp_path, kill_grace=0.1) as b:
        done = await b.run(*python(FACTS))
        assert done.output == "[False, True, True]\nTrue\n(120, 30)\nxterm-256color\n"
        await b.create("sh", "-c", DEAF)
        await b.told.until("up")
        await asyncio.wait_for(b.provider.aclose(), 60)
    assert b.told.ends == [OK, KILLED]


# ── the working directory ──────────────────────────────────────────────────────────────────────


async def test_a_command_runs_in_the_sessions_directory_or_the_one_it_names(
    tmp_path: Path,
) -> None:
    root, added = tmp_path / "root", tmp_path / "added"
    for folder in (root / "sub", added):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(added)
    show = ("sh", "-c", "pwd -P; echo $PWD")
    async with bench(root, added=(str(added),)) as b:
        for cwd, place in [
            (None, root),
            (str(root), root),
            (f"{root}/sub/", root / "sub"),
            (f"{root}/sub/..", root),
            (str(added), added),
            (f"{root}/link", added),
        ]:
            assert (await b.run(*show, cwd=cwd)).output == f"{place}\n{place}\n", cwd


async def test_a_directory_outside_the_roots_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file").write_text("")
    async with bench(root) as b:
        for cwd, kind, reason in [
            (str(outside), InvalidParams, "outside the workspace"),
            (f"{root}/../outside", InvalidParams, "outside the workspace"),
            (f"{root}/link", InvalidParams, "outside the workspace"),
            ("/", InvalidParams, "outside the workspace"),
            ("sub", InvalidParams, "not an absolute path"),
            ("", InvalidParams, "not an absolute path"),
            (f"{root}/a\0b", InvalidParams, "not a valid path"),
            (f"{root}/missing", ResourceNotFound, "no such file or directory"),
            (f"{root}/file", ResourceNotFound, "not a directory"),
        ]:
            with pytest.raises(kind, match=reason):
                await b.create("touch", "here", cwd=cwd)
    assert list(outside.iterdir()) == []
    assert b.told.all == []


async def test_a_directory_outside_can_be_allowed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    async with bench(root, cwd_outside=True) as b:
        assert (await b.run("pwd", cwd=str(outside))).output == f"{outside}\n"
        with pytest.raises(ResourceNotFound):
            await b.create("pwd", cwd=str(tmp_path / "missing"))


@pytest.mark.skipif(sys.platform != "linux", reason="a directory is entered by its descriptor")
@pytest.mark.parametrize("contained", [True, False])
async def test_a_directory_that_is_swapped_after_it_was_opened_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contained: bool
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()

    class Swapped(OpenDirectory):
        def __init__(self, descriptor: int) -> None:
            super().__init__(descriptor)
            (root / "sub").rename(root / "moved")
            (root / "sub").symlink_to(outside)

    monkeypatch.setattr(pty, "OpenDirectory", Swapped)
    if not contained:
        monkeypatch.setattr(zygote_client, "available", lambda: False)
    async with bench(root) as b:
        done = await b.run("sh", "-c", "touch here; pwd -P", cwd=f"{root}/sub")
    assert done.output == f"{root}/moved\n"
    assert list(outside.iterdir()) == []
    assert (root / "moved" / "here").exists()


# ── release ────────────────────────────────────────────────────────────────────────────────────


async def test_after_release_the_terminal_is_gone_and_a_second_release_is_quiet(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        for command in (("true",), ("sleep", "100")):
            terminal_id = await b.create(*command)
            await b.release(terminal_id)
            await b.release(terminal_id)
            for ask in (b.output, b.wait, b.kill):
                with pytest.raises(ResourceNotFound, match=f"{terminal_id}' was released") as said:
                    await ask(terminal_id)
                assert said.value.code == -32002
                assert said.value.data == {"terminalId": terminal_id}


async def test_an_unknown_terminal_is_not_found(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        for ask in (b.output, b.wait, b.kill, b.release):
            with pytest.raises(ResourceNotFound, match="'term_1' does not exist"):
                await ask("term_1")
            with pytest.raises(ResourceNotFound) as said:
                await ask("x" * 1_000_000)
            assert len(said.value.message) < 1000


async def test_a_terminal_of_another_session_is_unknown(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create("sleep", "100")
        other = Bench(b.provider, Workspace("other", str(tmp_path)))
        for ask in (other.output, other.wait, other.kill, other.release):
            with pytest.raises(ResourceNotFound):
                await ask(terminal_id)
        await other.release_all()
        assert (await b.output(terminal_id)).exit is None


async def test_release_ends_the_command_and_those_who_wait_hear_of_it(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=0.1) as b:
        terminal_id = await b.create("sh", "-c", "echo $$; " + DEAF)
        await b.told.until("up")
        waiting = asyncio.create_task(b.wait(terminal_id))
        await asyncio.sleep(0)
        await b.release(terminal_id)
        assert not is_alive(int(b.told.text.split()[0]))
        assert await waiting == KILLED
        assert b.told.ends == [KILLED]


async def test_what_is_printed_on_the_way_out_is_still_told(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=20) as b:
        terminal_id = await b.create(*python(POLITE))
        await b.told.until("up")
        await b.release(terminal_id)
        assert b.told.text == "up\nbye\n"
        assert b.told.all[-1] == TerminalExit(5)


async def test_late_output_is_told_for_a_while_and_no_longer(tmp_path: Path) -> None:
    async with bench(tmp_path, late_output=0.3) as b:
        terminal_id = await b.create("sh", "-c", "ps -o tty= -p $$; sleep 100")
        await b.told.until("\n")
        # Stands for a process that cannot be ended: it has the terminal open from elsewhere.
        stray = os.open(f"/dev/{b.told.text.strip()}", os.O_WRONLY | os.O_NOCTTY)
        try:
            await b.release(terminal_id)
            os.write(stray, b"late\n")
            await b.told.until("late\n")
            await until(lambda: not _can_write(stray))
        finally:
            os.close(stray)
    assert b.told.text.endswith("late\n")


def _can_write(terminal: int) -> bool:
    try:
        return os.write(terminal, b"") == 0 and os.isatty(terminal)
    except OSError:
        return False


# ── limits, sessions, leaks ────────────────────────────────────────────────────────────────────


async def test_a_session_has_so_many_terminals_and_no_more(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        wanted = (b.create("sleep", "100") for _ in range(40))
        made = await asyncio.gather(*wanted, return_exceptions=True)
        ids = [terminal_id for terminal_id in made if isinstance(terminal_id, str)]
        refused = [error for error in made if isinstance(error, RemoteError)]
        assert (len(ids), len(refused)) == (32, 8)
        assert "the limit of 32 terminals" in str(refused[0])
        assert isinstance(refused[0], InternalError)
        other = Bench(b.provider, Workspace("other", str(tmp_path)))
        assert (await other.run("true")).exit == OK
        await b.kill(ids[0])  # ended, but not released
        with pytest.raises(InternalError):
            await b.create("true")
        await b.release(ids[0])
        assert (await b.run("true")).exit == OK


async def test_release_all_leaves_other_sessions_alone(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        other = Bench(b.provider, Workspace("other", str(tmp_path)))
        mine = [await b.create("sleep", "100") for _ in range(3)]
        theirs = await other.create("sleep", "100")
        await b.release_all()
        await b.release_all()
        assert len(b.told.ends) == 3
        for terminal_id in mine:
            with pytest.raises(ResourceNotFound):
                await b.output(terminal_id)
            await b.release(terminal_id)
        assert (await other.output(theirs)).exit is None


async def test_release_all_ends_what_is_just_starting(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=0.1) as b:
        await b.release(await b.create("true"))
        before, seen = _descriptors(), set[str]()
        for step in range(40):
            starting = asyncio.create_task(b.create("sleep", "100"))
            await asyncio.sleep(step / 10_000)
            await b.release_all()
            (outcome,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(outcome, str):
                with pytest.raises(ResourceNotFound):
                    await b.output(outcome)
            else:
                assert "was released before it started" in str(outcome)
            seen.add(type(outcome).__name__)
        await until(lambda: _descriptors() <= before and not _keepers())
    assert seen == {"str", "InternalError"}


async def test_release_all_does_not_wait_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    class Slow(Jail):
        def open_directory(self, path: str) -> int:
            asked.set()
            assert answer.wait(20)
            return super().open_directory(path)

    monkeypatch.setattr(pty, "Jail", Slow)
    async with bench(tmp_path) as b:
        starting = asyncio.create_task(b.create("touch", "here"))
        await asyncio.to_thread(asked.wait, 20)
        await asyncio.wait_for(b.release_all(), 60)
        answer.set()
        with pytest.raises(InternalError, match="released before it started"):
            await starting
    assert not (tmp_path / "here").exists()


async def test_releasing_goes_on_when_the_one_who_asked_gives_up(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=0.1) as b:
        for _ in range(3):
            await b.create("sh", "-c", DEAF)
        await b.told.until("up")
        asked = asyncio.create_task(b.release_all())
        await asyncio.sleep(0)
        asked.cancel()
        await until(lambda: len(b.told.ends) == 3)


async def test_after_the_close_nothing_starts(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create("sleep", "100")
        await b.provider.aclose()
        await b.provider.aclose()
        assert len(b.told.ends) == 1
        with pytest.raises(ResourceNotFound):
            await b.output(terminal_id)
        with pytest.raises(InternalError, match="closing"):
            await b.create("true")


async def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.release(await b.create("true"))
        before = _descriptors()
        for steps in range(12):
            starting = asyncio.create_task(b.create("sleep", "100"))
            for _ in range(steps):
                await asyncio.sleep(0.0005 * (steps > 4))
            starting.cancel()
            ends = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(ends[0], str):
                await b.release(ends[0])
        await until(lambda: _descriptors() <= before and not _keepers())


@KINDS
async def test_fifty_terminals_leave_no_descriptor_task_or_process(
    tmp_path: Path, use_pty: bool
) -> None:
    async with bench(tmp_path, use_pty=use_pty, kill_grace=0.5) as b:
        await b.release(await b.create("true"))
        before = _descriptors()
        for turn in range(5):
            ids = [await b.create(*_leaving(turn)) for _ in range(9)]
            with pytest.raises(InternalError):
                await b.create("no-such-command", "x")
            await asyncio.gather(*(b.release(terminal_id) for terminal_id in ids))
        await until(lambda: _descriptors() <= before and not _keepers())
        assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(b.told.ends) == 46


def _leaving(turn: int) -> tuple[str, ...]:
    return [("true",), ("sleep", "100"), ("printf", "x"), ("setsid sleep 100 & true",), ("yes",)][
        turn
    ]


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def _keepers() -> set[int]:
    if sys.platform != "linux":
        return set()
    helpers = helper_watch.helpers(zygote_client.zygote().session)
    return set(helpers).difference(helper_watch.superiors(helpers))
