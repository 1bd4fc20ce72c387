"""One child process, contained or portable: what it gets, and how its end comes about."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from process.running import ENV, fence, output_of, python, running
from process.survivors import exists

from dragoman.errors import CommandNotFound
from dragoman.process.child import ExitStatus, Process
from dragoman.process.spawn import spawn

# Two that glibc keeps to itself and lets nobody set.
C_LIBRARY_SIGNALS = 0b11 << 31
IGNORES_TERM = "trap '' TERM; echo up; while :; do sleep 0.05; done"


async def test_a_program_gets_exactly_its_environment_and_directory(
    kind: type[Process], tmp_path: Path
) -> None:
    env = {"PATH": "/nowhere", "KEY": "väl\nue"}
    assert await output_of("/usr/bin/env", env=env) == "PATH=/nowhere\nKEY=väl\nue\n"
    assert await output_of("pwd", "-P", cwd=str(tmp_path)) == f"{tmp_path}\n"
    async with running("true") as (process, _):
        assert type(process) is kind


@pytest.mark.usefixtures("kind")
async def test_a_program_gets_no_descriptor_but_the_three() -> None:
    inherited = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    listing = await output_of(*python("import os; print(sorted(os.listdir('/proc/self/fd')))"))
    os.close(inherited)
    assert listing.strip() == "['0', '1', '2', '3']"  # 3 is the listing itself


@pytest.mark.usefixtures("kind")
async def test_a_program_starts_with_default_signals_in_a_session_of_its_own() -> None:
    status = await output_of("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")
    changed = [int(line.split()[1], 16) & ~C_LIBRARY_SIGNALS for line in status.splitlines()]
    assert changed == [0, 0]
    same = await output_of(*python("import os; print(os.getsid(0) == os.getpid())"))
    assert same == "True\n"


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", ExitStatus(0, None)),
        ("exit 77", ExitStatus(77, None)),
        ("kill -SEGV $$", ExitStatus(None, "SIGSEGV")),
    ],
)
async def test_the_end_of_a_program_is_known(script: str, status: ExitStatus) -> None:
    async with running("sh", "-c", script) as (process, _):
        assert await process.wait() == status
        assert process.status == status


@pytest.mark.usefixtures("kind")
async def test_large_arguments_and_environments_arrive() -> None:
    words = ["x" * 100_000] * 5
    env = ENV | {f"V{number}": "y" * 100_000 for number in range(5)}
    code = """if True:
        import os, sys
        values = [os.environ[f"V{number}"] for number in range(5)]
        print(len("".join(sys.argv[1:])), len("".join(values)))
        """
    assert await output_of(*python(code), *words, env=env) == "500000 500000\n"


@pytest.mark.usefixtures("kind")
async def test_a_command_is_looked_up_in_the_path_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    assert await output_of("greet", env={"PATH": f"/nowhere:{tmp_path}"}) == "hello\n"
    assert await output_of("./greet", cwd=str(tmp_path)) == "hello\n"
    with pytest.raises(CommandNotFound):
        await output_of("greet")


@pytest.mark.usefixtures("kind")
async def test_a_signal_reaches_the_whole_tree() -> None:
    code = """if True:
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        name = b"child\\n" if os.fork() == 0 else b"parent\\n"
        os.write(1, b"up\\n")
        signal.sigwait([signal.SIGUSR1])
        os.write(1, name)
        signal.pause()
        """
    async with running(*python(code)) as (process, output):
        assert [await output.readline() for _ in range(2)] == [b"up\n"] * 2
        process.signal(signal.SIGUSR1)
        heard = {await output.readline() for _ in range(2)}
    assert heard == {b"parent\n", b"child\n"}


@pytest.mark.usefixtures("kind")
async def test_stopping_lets_a_program_end_by_itself() -> None:
    async with running("sh", "-c", "trap '' TERM; sleep 0.2; exit 5") as (process, _):
        await process.stop(exit_within=10)
        assert process.status == ExitStatus(5, None)


@pytest.mark.usefixtures("kind")
async def test_stopping_asks_with_term_even_a_stopped_program() -> None:
    async with running("sh", "-c", "trap 'exit 6' TERM; echo up; kill -STOP $$") as (process, out):
        await out.readline()
        await process.stop(exit_within=0.1, term_within=10)
        assert process.status == ExitStatus(6, None)


@pytest.mark.usefixtures("kind")
async def test_stopping_kills_who_ignores_term() -> None:
    async with running("sh", "-c", IGNORES_TERM) as (process, output):
        await output.readline()
        await process.stop(exit_within=0.1, term_within=0.1)
        assert process.status == ExitStatus(None, "SIGKILL")
        assert not exists(process.pid)
        await process.stop()  # again: nothing to do


@pytest.mark.usefixtures("kind")
async def test_cancelling_a_stop_kills_at_once() -> None:
    async with running("sh", "-c", IGNORES_TERM) as (process, output):
        await output.readline()
        stopping = asyncio.create_task(process.stop(exit_within=1000, term_within=1000))
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert process.status == ExitStatus(None, "SIGKILL")
        assert not exists(process.pid)


@pytest.mark.usefixtures("kind")
async def test_a_program_can_have_a_controlling_terminal() -> None:
    ours, theirs = os.openpty()
    nothing = os.open(os.devnull, os.O_RDONLY)
    code = "import os; os.write(os.open('/dev/tty', os.O_RDWR), b'on tty'); os.read(1, 1)"
    process = await spawn(
        python(code),
        env=ENV,
        stdin=nothing,
        stdout=theirs,
        stderr=theirs,
        tty=True,
        fence=fence(),
    )
    os.close(theirs)
    os.close(nothing)
    assert await asyncio.to_thread(os.read, ours, 100) == b"on tty"
    os.write(ours, b"\x03")  # Ctrl-C reaches the program through its terminal
    assert await process.wait() in (ExitStatus(1, None), ExitStatus(None, "SIGINT"))
    await process.stop()
    os.close(ours)


@pytest.mark.usefixtures("kind")
async def test_a_program_can_start_in_a_folder_that_is_named_by_a_descriptor(
    tmp_path: Path,
) -> None:
    folder = os.open(tmp_path, os.O_PATH)
    try:
        printed = await output_of("pwd", cwd=f"/proc/{os.getpid()}/fd/{folder}")
    finally:
        os.close(folder)
    assert printed == f"{tmp_path}\n"
