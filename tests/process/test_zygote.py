"""The zygote: one for the host, replaced when needed, invisible to the host."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from process.running import ENV, gone, keeper_of, output_of, parent, running
from process.survivors import exists
from support.descriptor_shortage import limited

from dragoman.errors import StartError
from dragoman.process import contained, helper_watch, inherited_limits, zygote_client
from dragoman.process.spawn import PortableProcess
from dragoman.process.zygote_client import ZygoteClient, warm_up


@pytest.mark.usefixtures("both_ways")
async def test_a_zygote_that_died_is_replaced_and_its_programs_stay_contained() -> None:
    async with running("sleep", "60") as (survivor, _):
        zygote = zygote_client.zygote()
        os.kill(zygote.session, signal.SIGKILL)
        assert await output_of("echo", "still here") == "still here\n"
        await gone(zygote.session)
        await dismissed(zygote)
        await survivor.stop(exit_within=0)
        assert not exists(survivor.pid)


async def dismissed(zygote: ZygoteClient) -> None:
    """The thread that has seen its end need not be the first to run."""
    async with asyncio.timeout(60):
        while zygote_client.zygote() is zygote:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("who", ["warden", "zygote", "both"])
async def test_a_stopped_zygote_goes_on(who: str) -> None:
    await output_of("true")
    zygote = zygote_client.zygote()
    for pid in superiors(zygote.session)[slice(who == "zygote", 1 if who == "warden" else 2)]:
        os.kill(pid, signal.SIGSTOP)
    assert await output_of("echo", "still here") == "still here\n"
    assert zygote_client.zygote() is zygote


@pytest.mark.usefixtures("both_ways")
async def test_programs_that_run_survive_the_end_of_a_zygote_under_its_warden() -> None:
    async with running("sleep", "60") as (survivor, _):
        warden, zygote = superiors(zygote_client.zygote().session)
        os.kill(zygote, signal.SIGKILL)
        assert await output_of("echo", "still here") == "still here\n"
        assert parent(keeper_of(survivor.pid)) == warden
        assert survivor.status is None
    await gone(warden)


async def test_where_all_helpers_are_killed_at_once_the_host_ends_the_programs_session() -> None:
    """Neither the program nor what it has started, unless that has a session of its own."""
    async with running("sh", "-c", "sleep 60 & echo $!; exec sleep 60") as (process, output):
        started = int(await output.readline())
        keeper = keeper_of(process.pid)
        for helper in (*superiors(zygote_client.zygote().session), keeper):
            os.kill(helper, signal.SIGKILL)
        await gone(process.pid, started)


async def test_a_zygote_that_does_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    await output_of("true")
    zygote = zygote_client.zygote()
    with held(zygote, monkeypatch, for_good=False):
        assert await output_of("echo", "still here") == "still here\n"
        assert zygote_client.zygote() is not zygote


async def test_who_keeps_stopping_the_zygote_gets_a_sentence_and_others_go_on_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await output_of("true")
    with (
        held(zygote_client.zygote(), monkeypatch, for_good=True),
        pytest.raises(StartError) as failed,
    ):
        await output_of("true")
    assert "stops them" in str(failed.value)
    assert await output_of("echo", "again") == "again\n"


@contextmanager
def held(
    zygote: ZygoteClient, monkeypatch: pytest.MonkeyPatch, *, for_good: bool
) -> Generator[None]:
    """Nobody lets this zygote go on, nor any that comes after it."""
    sleepers: list[ZygoteClient] = []

    def stop(each: ZygoteClient) -> None:
        for pid in superiors(each.session):
            os.kill(pid, signal.SIGSTOP)
        sleepers.append(each)

    with monkeypatch.context() as patched:
        patched.setattr(contained, "PATIENCE", contained.Patience(look=0.02, idle_looks=3))
        patched.setattr(helper_watch, "resume", _no_use)
        stop(zygote)
        if for_good:
            usual = zygote_client.zygote
            patched.setattr(zygote_client, "zygote", lambda: _stopped(usual(), sleepers, stop))
        yield
    for each in sleepers:
        each.resume()


def _no_use(_helper: int, _session: int) -> None:
    """In place of what lets a helper go on."""


def _stopped(
    zygote: ZygoteClient, sleepers: list[ZygoteClient], stop: Callable[[ZygoteClient], None]
) -> ZygoteClient:
    if zygote not in sleepers:
        stop(zygote)
    return zygote


def superiors(session: int) -> list[int]:
    """The warden and the zygote, once both are there."""
    deadline = time.monotonic() + 60  # only a failure takes that long
    while len(found := helper_watch.superiors(helper_watch.helpers(session))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return sorted(found, key=lambda pid: pid != session)


async def test_where_the_system_has_no_subreapers_programs_still_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    zygote_client.dismiss(zygote_client.zygote())
    before = "from dragoman.process import keeper; keeper._prctl = lambda *_: -1; "
    monkeypatch.setattr(zygote_client, "BOOT", boot_after(before))
    monkeypatch.setattr(zygote_client, "_worked", False)
    with caplog.at_level(logging.WARNING):
        async with running("sleep", "60") as (process, _):
            assert type(process) is PortableProcess
    assert "cannot be contained" in caplog.text


def boot_after(code: str) -> str:
    """The zygote's first steps, with something that happens to it before it comes to its work."""
    ready, imported, rest = zygote_client.BOOT.partition("from dragoman.process.zygote")
    return ready + code + imported + rest


@pytest.mark.parametrize(
    "happens",
    [
        "sys.exit(1); ",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); ",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20)); ",
        "sys.modules['ctypes'] = None; ",
    ],
)
async def test_a_helper_that_is_made_to_fail_at_its_start_gets_no_program_out_of_its_containment(
    happens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    zygote_client.dismiss(zygote_client.zygote())
    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "BOOT", boot_after(happens))
        patched.setattr(zygote_client, "_worked", False)
        with pytest.raises(StartError, match="failed 4 times"):
            await output_of("echo", "uncontained")
    assert await output_of("echo", "again") == "again\n"


async def test_an_interpreter_that_cannot_be_started_gets_no_program_out_of_its_containment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    zygote_client.dismiss(zygote_client.zygote())
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(tmp_path / "python"))
        patched.setattr(zygote_client, "_worked", False)
        with pytest.raises(StartError, match="could not be started"):
            await output_of("echo", "uncontained")


async def test_where_proc_was_never_mounted_programs_run_uncontained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(path: str, mode: str) -> NoReturn:
        raise FileNotFoundError(path)

    zygote_client.dismiss(zygote_client.zygote())
    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "open", missing, raising=False)
        with pytest.raises(StartError, match="/proc is not mounted"):
            await output_of("echo", "contained before")
        patched.setattr(zygote_client, "_worked", False)
        assert await output_of("echo", "uncontained") == "uncontained\n"


LIMITS = ["CPU", "FSIZE", "DATA", "STACK", "CORE", "NPROC", "NOFILE", "AS", "SIGPENDING"]


def lowered(name: str) -> Callable[[int], None]:
    """Lowers a limit as any program of the same user may, to no less than is needed here."""

    def lower(pid: int) -> None:
        number = getattr(resource, f"RLIMIT_{name}")
        soft, hard = resource.prlimit(pid, number)
        least = 1 << 40 if hard == resource.RLIM_INFINITY else max(hard - 1, 0)
        resource.prlimit(pid, number, (least if soft < 0 else min(soft, least), least))

    return lower


CHANGES: dict[str, Callable[[int], object]] = {
    **{f"RLIMIT_{name}": lowered(name) for name in LIMITS},
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "scheduling": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "processors": lambda pid: os.sched_setaffinity(pid, sorted(os.sched_getaffinity(pid))[:1]),
    "io_priority": lambda pid: ctypes.CDLL(None).syscall(
        {"x86_64": 251, "aarch64": 30}[os.uname().machine], 1, pid, 3 << 13
    ),
    "oom_score_adj": lambda pid: _oom_score(pid).write_text("777"),
}

SHOW = [
    "sh",
    "-c",
    "ulimit -a; nice; cut -d' ' -f41 /proc/self/stat; ionice; cat /proc/self/oom_score_adj",
]


def _oom_score(pid: int) -> Path:
    return Path(f"/proc/{pid}/oom_score_adj")


@pytest.mark.parametrize("name", CHANGES)
async def test_what_was_changed_of_a_zygote_reaches_no_program(name: str) -> None:
    usual = await output_of(*SHOW)
    zygote = zygote_client.zygote()
    pid, before = superiors(zygote.session)[1], traits_of(zygote)
    CHANGES[name](pid)
    if traits_of(zygote) == before:
        pytest.skip("it has this already")
    assert await output_of(*SHOW) == usual
    assert zygote_client.zygote() is not zygote


def traits_of(zygote: ZygoteClient) -> list[object]:
    pid = superiors(zygote.session)[1]
    limits = [resource.prlimit(pid, getattr(resource, f"RLIMIT_{name}")) for name in LIMITS]
    nice, policy = os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)
    number = {"x86_64": 252, "aarch64": 31}[os.uname().machine]
    disk = ctypes.CDLL(None).syscall(number, 1, pid) >> 13
    return [limits, nice, policy, os.sched_getaffinity(pid), disk, _oom_score(pid).read_text()]


def test_a_zygote_compares_its_control_group() -> None:
    """Only who may write to control groups can move a process, so here it is only told that it
    was in another."""
    given = inherited_limits.traits()
    assert given["cgroup"] == Path("/proc/self/cgroup").read_text()
    assert inherited_limits.changed(given) is None
    assert inherited_limits.changed(given | {"cgroup": "0::/elsewhere\n"}) == "cgroup"


@pytest.mark.parametrize(
    ("happens", "name"),
    [
        ("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); ", "RLIMIT_FSIZE"),
        ("import os; os.nice(3); ", "priority"),
        ("open('/proc/self/oom_score_adj', 'w').write('777'); ", "oom_score_adj"),
    ],
)
async def test_who_keeps_changing_the_zygote_gets_a_sentence(
    happens: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    zygote_client.dismiss(zygote_client.zygote())
    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "BOOT", boot_after(happens))
        with pytest.raises(StartError, match=f"changed its {name}"):
            await output_of("touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()
    assert await output_of("echo", "again") == "again\n"


@pytest.mark.parametrize("worked", [True, False])
async def test_who_keeps_killing_the_zygote_gets_no_program_out_of_its_containment(
    monkeypatch: pytest.MonkeyPatch, worked: bool
) -> None:
    zygote_client.dismiss(zygote_client.zygote())
    usual, killed = zygote_client.zygote, list[ZygoteClient]()

    def zygote_to_be_killed() -> ZygoteClient:
        killed.append(usual())
        for pid in sorted(helper_watch.helpers(killed[-1].session)):  # the warden first
            os.kill(pid, signal.SIGKILL)
        return killed[-1]

    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "_worked", worked)
        patched.setattr(zygote_client, "zygote", zygote_to_be_killed)
        with pytest.raises(StartError, match="kills it"):
            await output_of("echo", "uncontained")
    assert len(set(killed)) == 4
    assert await output_of("echo", "again") == "again\n"


async def test_once_a_zygote_has_run_programs_are_never_started_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await output_of("true")
    zygote_client.dismiss(zygote_client.zygote())
    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "BOOT", "import sys; sys.exit(1)")
        with pytest.raises(StartError, match="failed 4 times"):
            await output_of("echo", "uncontained")
    assert await output_of("echo", "again") == "again\n"


@pytest.mark.parametrize("executable", ["", "/opt/app/embeds-python"])
async def test_a_python_without_an_executable_has_no_zygote(
    monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    async with running("sleep", "60") as (process, _):
        assert type(process) is PortableProcess


async def test_programs_have_the_umask_the_host_has_now() -> None:
    await output_of("true")
    before = os.umask(0o027)
    try:
        assert await output_of("sh", "-c", "umask") == "0027\n"
    finally:
        os.umask(before)


def test_several_loops_one_after_another_and_in_threads() -> None:
    assert asyncio.run(output_of("echo", "1")) == "1\n"
    assert asyncio.run(output_of("echo", "2")) == "2\n"
    printed: list[str] = []
    threads = [
        threading.Thread(target=lambda: printed.append(asyncio.run(output_of("echo", "3"))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert printed == ["3\n"] * 4


# The test runner's threads hold no lock that the fork needs.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_the_host_can_start_programs_of_its_own() -> None:
    asyncio.run(output_of("true"))
    pid = os.fork()
    if pid == 0:
        _exit_as_a_fork_that_starts_a_program()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _exit_as_a_fork_that_starts_a_program() -> None:
    printed = ""
    try:
        printed = asyncio.run(output_of("echo", "forked"))
    finally:  # whatever happened, a second test runner must not go on from here
        os._exit(0 if printed == "forked\n" else 1)


async def test_the_zygote_is_beyond_the_reach_of_the_terminal() -> None:
    warm_up()
    zygote = zygote_client.zygote()
    assert os.getsid(zygote.session) == zygote.session
    await output_of("true")
    assert zygote_client.zygote() is zygote


async def test_the_zygote_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "canary-of-the-host")
    zygote_client.dismiss(zygote_client.zygote())
    async with running("sleep", "60", env=ENV | {"TOKEN": "canary-of-the-agent"}) as (process, _):
        for pid in (zygote_client.zygote().session, parent(process.pid)):
            assert b"canary" not in shown(pid)


@pytest.mark.parametrize(
    ("soft", "hard", "raised"), [(256, 512, "512"), (256, 1_024, "700"), (800, 1_024, "800")]
)
def test_programs_have_the_limit_that_the_host_was_given(soft: int, hard: int, raised: str) -> None:
    ended = subprocess.run(
        [sys.executable, Path(__file__).parent / "programs" / "limited.py"],
        preexec_fn=limited(soft, hard),
        capture_output=True,
        check=True,
        text=True,
    )
    assert ended.stdout.split() == [raised, *(str(soft), str(hard)) * 2]


def shown(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))
