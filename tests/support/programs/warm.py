"""Runs `dragoman` in forks of a process that has already imported it.

Requests arrive on a socket, which is standard input. Each passes five file descriptors: the order,
a socket for reports about the process, and the standard input, output and error of the process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import dragoman
from dragoman.cli.main import main

FILES = 5
PACKAGES = ("cli", "hub", "store", "testing", "web")
RARE = ("dragoman.cli.commands.chat", "dragoman.store.postgres", "dragoman.testing.plugin")


def import_what_commands_need() -> None:
    for package in PACKAGES:
        path, prefix = [f"{dragoman.__path__[0]}/{package}"], f"dragoman.{package}."
        for module in walk_packages(path, prefix):
            if not module.name.startswith(RARE):
                import_module(module.name)


def wait_for_an_order() -> list[int]:
    """Return in each fork, with the files of its order. The sender receives the fork's process id
    and later its exit code; the id is not reused before that."""
    signal.signal(signal.SIGCHLD, tell_the_end)
    with socket.socket(fileno=os.dup(0)) as orders:
        while True:
            data, files, _, _ = socket.recv_fds(orders, 1, FILES)
            if not data:
                os._exit(0)  # nobody is left who could ask
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            if (pid := os.fork()) == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
                return files
            told[pid] = socket.socket(fileno=files.pop(1))
            told[pid].sendall(b"%d\n" % pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for each in files:
                os.close(each)


told: dict[int, socket.socket] = {}


def tell_the_end(_number: int, _frame: object) -> None:
    while ended := _next_end():
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        if (whom := told.pop(ended.si_pid, None)) is None:
            return  # we interrupt ourselves: who is at it continues with the next
        with whom:
            whom.sendall(b"%d\n" % code)
        os.waitpid(ended.si_pid, 0)


def _next_end() -> os.waitid_result | None:
    with suppress(ChildProcessError):
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None


def become_what_it_says(files: list[int]) -> None:
    """Be as if just started."""
    with open(files[0], closefd=False) as file:
        order = json.load(file)
    for number, each in enumerate(files[2:]):
        os.dup2(each, number)
    os.closerange(3, max(files) + 1)
    _open_streams()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.argv = order["argv"]


def _open_streams() -> None:
    """As Python does at its start, which looks at what they are."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        was = getattr(sys, name)
        mode, buffering = "w" if number else "r", 1 if number == 2 else -1
        stream = os.fdopen(number, mode, buffering, was.encoding, was.errors, "\n", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


class Ending:
    """How Python ends here: the last thing it does leaves the memory as it is, since to take it
    apart would copy all of it first."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(lambda: os._exit(self.code))


import_what_commands_need()
gc.collect()
gc.freeze()
become_what_it_says(wait_for_an_order())
ending = Ending()
try:
    ending.code = main()
except SystemExit as leaving:
    ending.code = leaving.code if isinstance(leaving.code, int) else 1
