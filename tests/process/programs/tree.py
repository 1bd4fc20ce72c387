"""An agent that does nothing but be difficult to end: `tree.py SHAPE MARKER PIDFILE`.

A shape `attack:stop_zygote,kill_keeper` attacks those who look after it, step by step, once
PIDFILE.go is there; PIDFILE.attacked says that it is done.

Each process of the tree writes its pid and start time into PIDFILE, so that a test can look for
it without trusting the code under test. PIDFILE.ready appears when all of them are there.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable

SHAPE, MARKER, PIDFILE = sys.argv[1:4]
DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


def register() -> None:
    with open("/proc/self/stat", encoding="utf-8") as stat:
        started = stat.read().rpartition(")")[2].split()[19]
    file = os.open(PIDFILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()} {started}\n".encode())
    os.close(file)


def ready(others: int) -> None:
    """Say so when this process and so many others are registered."""
    deadline = time.monotonic() + 60
    while registered() < others + 1:
        if time.monotonic() > deadline:
            sys.exit(f"{SHAPE}: only {registered()} processes of {others + 1}")
        time.sleep(0.005)
    open(f"{PIDFILE}.ready", "x").close()


def registered() -> int:
    with open(PIDFILE, "rb") as file:
        return file.read().count(b"\n")


def deafen() -> None:
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_IGN)


def sleep_for_ever() -> None:
    while True:
        time.sleep(1000)


def child(work: Callable[[], object], *, session: bool = False) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        if session:
            os.setsid()
        register()
        work()
    finally:
        os._exit(0)


def deaf_sleep() -> None:
    deafen()
    sleep_for_ever()


def plain(others: int = 0) -> None:
    ready(others)
    while os.read(0, 4096):
        pass


def deaf() -> None:
    deafen()
    ready(0)
    sleep_for_ever()


def setsid() -> None:
    child(deaf_sleep, session=True)
    ready(1)
    sleep_for_ever()


def daemon() -> None:
    """Double fork, own session, no environment, no descriptors: nothing ties it to us."""
    words = [sys.executable, "-I", "-S", __file__, "daemon_itself", MARKER, PIDFILE]
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execve(sys.executable, words, {})
        os._exit(0)
    os.waitpid(pid, 0)
    plain(others=1)


def daemon_itself() -> None:
    deafen()
    sleep_for_ever()


def hydra() -> None:
    """Every TERM makes another child, in a session of its own, that ignores it."""

    def grow(_number: int, _frame: object) -> None:
        child(deaf_sleep, session=True)

    signal.signal(signal.SIGTERM, grow)
    ready(0)
    sleep_for_ever()


def respawner() -> None:
    """A supervisor: whatever dies is started again."""
    deafen()
    child(sleep_for_ever)
    ready(1)
    while True:
        os.wait()
        child(sleep_for_ever)


def stopped() -> None:
    child(lambda: os.kill(os.getpid(), signal.SIGSTOP), session=True)
    ready(1)
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep_for_ever()


def chain(length: int = 20) -> None:
    def link(left: int) -> None:
        if left:
            child(lambda: link(left - 1))
        deaf_sleep()

    child(lambda: link(length - 1))
    ready(length)
    sleep_for_ever()


def wide(count: int = 20) -> None:
    for number in range(count):
        child(deaf_sleep, session=number % 2 == 0)
    ready(count)
    sleep_for_ever()


def holder() -> None:
    """Ends when asked, but a child keeps its standard output and error open."""
    child(deaf_sleep, session=True)
    plain(others=1)


def closer() -> None:
    deafen()
    ready(0)
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    sleep_for_ever()


def blocker() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child(sleep_for_ever)
    ready(1)
    sleep_for_ever()


def noisy() -> None:
    deafen()
    ready(0)
    while True:
        os.write(2, b"complaint " * 1000)


def talker() -> None:
    """Floods its standard output; nobody reads."""
    deafen()
    ready(0)
    while True:
        os.write(1, b"nothing " * 1000)


def zombies(count: int = 10) -> None:
    deafen()
    for _ in range(count):
        child(lambda: None)
    ready(count)
    sleep_for_ever()


def nested() -> None:
    """A descendant that adopts orphans itself."""
    import ctypes

    def adopt() -> None:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        orphaner = child(lambda: child(deaf_sleep, session=True))
        os.waitpid(orphaner, 0)
        deaf_sleep()

    child(adopt, session=True)
    ready(3)
    sleep_for_ever()


def threads() -> None:
    """Children of a thread that is not the main one."""
    import threading

    threading.Thread(target=lambda: (child(deaf_sleep, session=True), sleep_for_ever())).start()
    ready(1)
    sleep_for_ever()


def storm() -> None:
    """Never stops forking children that outlive their parents for a while."""
    deafen()
    ready(0)

    def leave_an_orphan() -> None:
        deafen()
        if os.fork() == 0:
            register()
            time.sleep(0.1)

    while True:
        child(leave_an_orphan, session=True)
        os.wait()
        time.sleep(0.01)


def comet() -> None:
    """Never to be found where it was: it forks, changes the session, and the parent ends."""
    deafen()
    burnt_out = time.monotonic() + 180
    if os.fork() == 0:
        while os.fork() == 0 and time.monotonic() < burnt_out:
            os.setsid()
        os._exit(0)
    ready(0)
    sleep_for_ever()


def stopper() -> None:
    """Does not let its keeper run, if it has one."""
    keeper = os.getppid()

    def keep_it_stopped() -> None:
        deafen()
        while name_of(keeper) == "dragoman-keeper\n":
            os.kill(keeper, signal.SIGSTOP)
            time.sleep(0.002)
        sleep_for_ever()

    child(keep_it_stopped, session=True)
    ready(1)
    deaf_sleep()


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
            return name.read()
    except OSError:
        return ""


def quitter() -> None:
    """Exits by itself as soon as it is there, and leaves children."""
    child(deaf_sleep, session=True)
    child(deaf_sleep)
    ready(2)
    os._exit(3)


def attack(steps: str) -> None:
    """Has a daemon, a child in another session, and one that fights its keeper."""
    targets = guards()
    child(deaf_sleep, session=True)
    child(lambda: fight(targets, steps.split(",")), session=True)
    daemon_beside(3)
    deaf_sleep()


def daemon_beside(others: int) -> None:
    words = [sys.executable, "-I", "-S", __file__, "daemon_itself", MARKER, PIDFILE]
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execve(sys.executable, words, {})
        os._exit(0)
    os.wait()
    ready(others)


def guards() -> dict[str, list[int]]:
    """The keeper, the zygote above it, and whatever else of Dragoman's is above that."""
    above = [os.getppid()]
    while name_of(parent := parent_of(above[-1])).startswith("dragoman-"):
        above.append(parent)
    return {"keeper": above[:1], "zygote": above[1:2], "warden": above[2:], "all": above}


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def fight(targets: dict[str, list[int]], steps: list[str]) -> None:
    deafen()
    while not os.path.exists(f"{PIDFILE}.go"):
        time.sleep(0.005)
    for step in steps:
        deed, _, whom = step.partition("_")
        strike(deed, targets.get(whom, []))
    open(f"{PIDFILE}.attacked", "x").close()
    sleep_for_ever()


def strike(deed: str, pids: list[int]) -> None:
    match deed:
        case "pause":
            time.sleep(0.3)
        case "hold":
            child(lambda: hold(pids), session=True)
        case "starve":
            for pid in pids:
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))
        case _:
            for pid in pids:
                os.kill(pid, {"stop": signal.SIGSTOP, "kill": signal.SIGKILL}[deed])


def hold(pids: list[int]) -> None:
    """Stop them again and again, as fast as can be."""
    deafen()
    until = time.monotonic() + 180
    while time.monotonic() < until:
        for pid in pids:
            if name_of(pid).startswith("dragoman-"):
                os.kill(pid, signal.SIGSTOP)
    sleep_for_ever()


if __name__ == "__main__":
    register()
    name, *arguments = SHAPE.split(":")
    globals()[name](*arguments)
