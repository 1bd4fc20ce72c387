"""Processes under keepers, beside each other, and when a keeper or the owner fails."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import select
import signal
import subprocess
import threading
from contextlib import suppress
from typing import cast

import pytest
from process.running import ENV, fence, gone, keeper_of, output_of, running
from process.survivors import descendants, exists

from dragoman.process import contained, descriptors
from dragoman.process.child import ExitStatus
from dragoman.process.contained import ContainedProcess
from dragoman.process.spawn import spawn
from dragoman.process.zygote_client import ZygoteClient


@pytest.mark.usefixtures("both_ways")
async def test_processes_do_not_hold_each_others_descriptors() -> None:
    async with running("cat", "/dev/zero") as (first, output), running("sleep", "60"):
        await first.stop(exit_within=0, term_within=0)
        await asyncio.wait_for(drain(output), 60)


async def drain(output: asyncio.StreamReader) -> None:
    while await output.read(1 << 20):
        pass


async def test_how_it_ended_is_known_though_the_keeper_left_an_order_unread() -> None:
    ours, keeper = descriptors.socketpair()
    ours.setblocking(False)
    process = ContainedProcess(os.getpid(), ours.detach())
    process.signal(signal.SIGCONT)
    keeper.send(b"exited 5")
    keeper.send(b"gone")
    keeper.close()
    assert await asyncio.wait_for(process.wait(), 60) == ExitStatus(5, None)
    process.release()


@pytest.mark.usefixtures("both_ways")
async def test_one_process_is_stopped_and_the_others_live() -> None:
    async with running("sleep", "60") as (first, _), running("sleep", "60") as (second, _):
        await first.stop(exit_within=0)
        assert not exists(first.pid)
        assert exists(second.pid)
        assert second.status is None


@pytest.mark.usefixtures("both_ways")
async def test_many_processes_start_at_once() -> None:
    printed = await asyncio.gather(*(output_of("echo", str(number)) for number in range(40)))
    assert printed == [f"{number}\n" for number in range(40)]


@pytest.mark.usefixtures("both_ways")
async def test_a_keeper_that_was_killed_leaves_nothing() -> None:
    script = "setsid sleep 60 & setsid sh -c 'sleep 60 & sleep 60' & echo up; wait"
    async with running("sh", "-c", script) as (process, output):
        await output.readline()
        tree = {process.pid, *await grown(process.pid, 4)}
        os.kill(keeper_of(process.pid), signal.SIGKILL)
        assert await process.wait() == ExitStatus(None, "SIGKILL")
        await gone(*tree)


@pytest.mark.usefixtures("both_ways")
async def test_a_keeper_that_is_stopped_again_and_again_has_its_program_ended() -> None:
    async with running("sleep", "60") as (process, _):
        keeper = keeper_of(process.pid)
        async with asyncio.timeout(30):  # only a hang takes that long
            while process.status is None:
                with suppress(
                    ProcessLookupError
                ):  # it has ended, and its last report is to be read
                    os.kill(keeper, signal.SIGSTOP)
                await asyncio.sleep(0.001)
        assert process.status == ExitStatus(None, "SIGKILL")
        await gone(process.pid)


class HeldZygote:
    """One that never gets on; nothing but the host looks after it."""

    session = 0

    def __init__(self) -> None:
        self.done: list[str] = []

    def progress(self) -> tuple[bool, bool, list[bytes]]:
        return True, False, []

    def resume(self) -> None:
        self.done.append("resume")

    def kill(self) -> None:
        self.done.append("kill")


def watch(zygote: HeldZygote) -> contained._Watch:  # pyright: ignore[reportPrivateUsage]
    patience = contained.Patience(idle_looks=3)
    return contained._Watch(cast("ZygoteClient", zygote), patience)  # pyright: ignore[reportPrivateUsage]


def test_the_host_itself_has_a_stopped_zygote_go_on_and_at_last_ends_it() -> None:
    zygote = HeldZygote()
    watching = watch(zygote)
    for _ in range(3):
        watching.look()
    assert zygote.done == ["resume"] * 3
    with pytest.raises(contained.ZygoteHeld):
        watching.look()
    assert zygote.done == ["resume"] * 3 + ["kill"]


def test_the_host_itself_ends_a_stopped_keeper_with_what_is_below_it() -> None:
    script = "sleep 3600 & echo $!; kill -STOP $$"
    zygote = HeldZygote()
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    ) as keeper:
        assert keeper.stdout is not None
        program = os.pidfd_open(int(keeper.stdout.readline()))
        os.waitid(os.P_PID, keeper.pid, os.WSTOPPED | os.WNOWAIT)
        zygote.session = keeper.pid
        watching = watch(zygote)
        watching.keeper = keeper.pid
        for _ in range(3):
            watching.look()
        with pytest.raises(contained.ZygoteHeld):
            watching.look()
        ended, _, _ = select.select([program], [], [], 60)
        if not ended:
            signal.pidfd_send_signal(program, signal.SIGKILL)
        os.close(program)
        assert ended, "its program lives"
        assert keeper.wait(60) == -signal.SIGKILL


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("milliseconds", [0, 1, 2, 3, 4, 6, 10])
async def test_a_program_whose_start_is_cancelled_is_not_left(milliseconds: int) -> None:
    await output_of("true")
    known = descendants(os.getpid())
    starting = asyncio.create_task(output_of("sleep", "3600"))
    await asyncio.sleep(milliseconds / 1000)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await output_of("true")  # the zygote works in order: the cancelled request is behind it now
    await gone(*(descendants(os.getpid()) - known))


@pytest.mark.usefixtures("both_ways")
def test_the_host_process_is_not_changed() -> None:
    def snapshot() -> tuple[object, ...]:
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        subreaper = ctypes.c_int()
        ctypes.CDLL(None).prctl(37, ctypes.byref(subreaper), 0, 0, 0)
        return (
            handlers,
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            subreaper.value,
            os.getcwd(),
            len(os.listdir("/proc/self/fd")),
            dict(os.environ),
        )

    def run(*words: str) -> None:
        asyncio.run(output_of(*words))
        for thread in threading.enumerate():
            if thread.name.startswith("gate-"):
                thread.join()  # it ends with the program

    run("true")  # the zygote and its socket are there to stay
    before, threads = snapshot(), set(threading.enumerate())
    run("echo", "x")
    assert snapshot() == before
    assert set(threading.enumerate()) <= threads  # one of an earlier test may end meanwhile


@pytest.mark.usefixtures("both_ways")
def test_a_process_nobody_stopped_is_ended_with_a_warning() -> None:
    async def forget() -> int:
        nothing = os.open(os.devnull, os.O_RDWR)
        process = await spawn(
            ["sleep", "60"],
            env=ENV,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            fence=fence(),
        )
        os.close(nothing)
        return process.pid

    def forget_and_collect() -> int:
        pid = asyncio.run(forget())
        gc.collect()
        return pid

    with pytest.warns(ResourceWarning, match="unclosed <ContainedProcess"):
        pid = forget_and_collect()
    asyncio.run(gone(pid))


async def grown(pid: int, count: int) -> set[int]:
    async with asyncio.timeout(60):
        while len(found := descendants(pid)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found
