"""One command in a terminal: what is kept and told of its output, and how it ends."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from host.watching import DEAF, KILLED, KINDS, OK, POLITE, Told, bench, is_alive, python

from dragoman.host.terminals.provider import TerminalExit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS")


# ── output ─────────────────────────────────────────────────────────────────────────────────────


@KINDS
async def test_the_end_of_the_output_is_kept_up_to_the_limit(tmp_path: Path, use_pty: bool) -> None:
    async with bench(tmp_path, use_pty=use_pty) as b:
        for limit, output in [(4, "world"[1:]), (11, "hello world"), (0, ""), (-5, "")]:
            done = await b.run("printf", "hello world", output_byte_limit=limit)
            assert (done.output, done.truncated) == (output, limit < 11)
        assert b.told.text == "hello world" * 4  # the news are whole
        assert not (await b.run("sh", "-c", ":", output_byte_limit=-5)).truncated


async def test_the_limit_of_the_output_is_in_bytes_and_cuts_no_character(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        done = await b.run("printf", "%s", "€€€", output_byte_limit=8)
        assert (done.output, done.truncated) == ("€€", True)


async def test_there_is_a_default_limit_and_a_largest_one(tmp_path: Path) -> None:
    async with bench(tmp_path, default_output_bytes=5, max_output_bytes=7) as b:
        assert (await b.run("printf", "0123456789")).output == "56789"
        for asked in (8, 2**63):
            done = await b.run("printf", "0123456789", output_byte_limit=asked)
            assert (done.output, done.truncated) == ("3456789", True)


async def test_output_answers_while_the_command_runs(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create("sh", "-c", "printf 'half \\342\\202'; sleep 100")
        await b.told.until("half ")
        snapshot = await b.output(terminal_id)
        # Of the last character only a part is there yet.
        assert (snapshot.output, snapshot.truncated, snapshot.exit) == ("half ", False, None)


@KINDS
async def test_a_character_is_whole_in_the_news_however_it_is_written(
    tmp_path: Path, use_pty: bool
) -> None:
    code = """if True:
        import os, time
        for byte in "ä€🦊".encode():
            os.write(1, bytes([byte]))
            time.sleep(0.01)
    """
    async with bench(tmp_path, use_pty=use_pty) as b:
        assert (await b.run(*python(code))).output == "ä€🦊"
        assert b.told.text == "ä€🦊"


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        done = await b.run("printf", r"a\377b\342\202")
        assert done.output == b.told.text == "a�b�"
        assert b.told.all[-1] == OK


# ── the end ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 7", TerminalExit(7)),
        ("kill -KILL $$", KILLED),
        ("kill -SEGV $$", TerminalExit(None, "SIGSEGV")),
        ("no-such-command", TerminalExit(127)),
    ],
)
async def test_the_end_is_a_code_or_the_name_of_a_signal(
    tmp_path: Path, script: str, ended: TerminalExit
) -> None:
    async with bench(tmp_path) as b:
        assert (await b.run(script)).exit == ended
        assert b.told.ends == [ended]


async def test_many_may_wait_and_one_may_give_up(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create(*python("import os; os.mkfifo('go'); open('go').read()"))
        waiting = [asyncio.create_task(b.wait(terminal_id)) for _ in range(60)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.to_thread(_open_fifo, tmp_path / "go")
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(ends[0], asyncio.CancelledError)
        assert ends[1:] == [OK] * 59
        assert await b.wait(terminal_id) == OK


def _open_fifo(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    path.write_text("go")


@KINDS
async def test_everything_a_command_printed_comes_before_its_end(
    tmp_path: Path, use_pty: bool
) -> None:
    async with bench(tmp_path, use_pty=use_pty) as b:
        for size in (1, 4095, 4096, 70_000, 300_000):
            b.told = Told()
            done = await b.run(*python(f"import os; os.write(1, b'x' * {size}); os._exit(0)"))
            assert len(done.output) == len(b.told.text) == size
            assert b.told.all[-1] == OK


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe that holds a mebibyte")
async def test_what_we_had_no_time_to_read_comes_before_the_end_too(tmp_path: Path) -> None:
    code = """if True:
        import fcntl, os
        fcntl.fcntl(1, 1031, 1 << 20)  # F_SETPIPE_SZ
        os.write(1, b"x" * 1_000_000)
        os.rename("pid", "done")
        """
    async with bench(tmp_path, use_pty=False) as b:
        terminal_id = await b.create("sh", "-c", 'echo $$ >pid; exec "$@"', "sh", *python(code))
        _hold_everything_up_until_gone(tmp_path / "done")
        assert await b.wait(terminal_id) == OK
        assert len(b.told.text) == 1_000_000
        assert b.told.all[-1] == OK


def _hold_everything_up_until_gone(pidfile: Path) -> None:
    deadline = time.monotonic() + 60
    while not pidfile.exists() or is_alive(int(pidfile.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@KINDS
async def test_a_child_that_keeps_the_terminal_does_not_keep_the_end(
    tmp_path: Path, use_pty: bool
) -> None:
    line = "setsid sh -c 'echo $$; while [ ! -e go ]; do sleep 0.02; done; echo late; sleep 100' & "
    async with bench(tmp_path, use_pty=use_pty) as b:
        terminal_id = await b.create("sh", "-c", line + "sleep 0.1; echo done")
        assert await b.wait(terminal_id) == OK
        assert "done" in b.told.text
        assert b.told.all[-1] == OK
        (tmp_path / "go").touch()
        await b.told.until("late")  # what is left behind is still heard
        assert (await b.output(terminal_id)).output == b.told.text
        child = int(b.told.text.split()[0])
        await b.kill(terminal_id)
        assert not is_alive(child)
        assert b.told.ends == [OK]


async def test_a_child_that_floods_the_terminal_does_not_keep_the_end(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create("sh", "-c", "setsid yes & sleep 0.1; exit 3")
        assert await b.wait(terminal_id) == TerminalExit(3)
        await b.release(terminal_id)


async def test_a_command_that_closes_its_output_goes_on(tmp_path: Path) -> None:
    line = "exec >/dev/null 2>&1; sleep 0.1; echo again >/dev/tty; sleep 0.1; exit 7"
    async with bench(tmp_path) as b:
        done = await b.run("sh", "-c", line)
        assert (done.output, done.exit) == ("again\n", TerminalExit(7))


async def test_the_end_is_heard_by_those_who_wait_though_a_watcher_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Told):
        def on_output(self, terminal_id: str, text: str) -> None:
            raise ValueError("a watcher's own mistake")

    async with bench(tmp_path) as b:
        b.told = Broken()
        # The last byte is told as what it is only when the end is known.
        assert (await b.run("printf", r"x\342")).output == "x�"
    assert "a watcher's own mistake" in caplog.text


# ── kill ───────────────────────────────────────────────────────────────────────────────────────


async def test_kill_asks_first_and_the_terminal_stays_valid(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=20) as b:
        terminal_id = await b.create(*python(POLITE))
        await b.told.until("up")
        await b.kill(terminal_id)
        assert await b.wait(terminal_id) == TerminalExit(5)
        assert (await b.output(terminal_id)).output == "up\nbye\n"
        assert b.told.all[-1] == TerminalExit(5)


async def test_kill_kills_what_ignores_the_question(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=0.1) as b:
        terminal_id = await b.create("sh", "-c", DEAF)
        await b.told.until("up")
        await b.kill(terminal_id)
        assert (await b.output(terminal_id)).exit == KILLED


async def test_kill_may_be_repeated_and_comes_too_late_quietly(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        terminal_id = await b.create("sleep", "100")
        await asyncio.gather(*(b.kill(terminal_id) for _ in range(5)))
        await b.kill(terminal_id)
        assert await b.wait(terminal_id) == TerminalExit(None, "SIGTERM")
        finished = await b.create("true")
        await b.wait(finished)
        await b.kill(finished)
        assert (await b.output(finished)).exit == OK
    assert len(b.told.ends) == 2


async def test_kill_goes_on_when_the_one_who_asked_gives_up(tmp_path: Path) -> None:
    async with bench(tmp_path, kill_grace=0.2) as b:
        terminal_id = await b.create("sh", "-c", DEAF)
        await b.told.until("up")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(b.kill(terminal_id), 0.01)
        assert await b.wait(terminal_id) == KILLED
