"""`dragoman` in a process of its own that need not import anything first, which is most of what a
short command does. It is forked by `programs/warm.py`."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile

_PROGRAM = Path(__file__).parent / "programs" / "warm.py"
_FORKED = _PROGRAM.with_name("forked_dragoman.py")


class WarmProcess:
    """One command, as `subprocess.Popen` has it."""

    def __init__(self, told: socket.socket) -> None:
        self._socket = told
        self._told = told.makefile()
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and select.select([self._socket], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            self._socket.settimeout(seconds)
            self.returncode = int(self._told.readline())
        return self.returncode

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)
            self.wait()
        self._told.close()
        self._socket.close()


class WarmCommand:
    """Where the commands come from."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", _PROGRAM], stdin=theirs.fileno(), stdout=subprocess.DEVNULL
            )

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, streams: Sequence[int]
    ) -> WarmProcess:
        """Not waited for. The caller closes the streams, and what this returns."""
        ours, told = socket.socketpair()
        with TemporaryFile("w+") as order, told:
            json.dump({"argv": list(argv), "env": dict(env), "cwd": str(cwd)}, order)
            order.seek(0)
            socket.send_fds(self._orders, [b"x"], [order.fileno(), told.fileno(), *streams])
        return WarmProcess(ours)

    def put_on_path(self, folder: Path, command: Path) -> tuple[int, dict[str, str]]:
        """Make a `dragoman` for scripts in the folder: the descriptor and the variables that a
        script needs for it. `command` is the real one."""
        program = folder / "dragoman"
        program.write_text(f"#!{sys.executable} -IS\n{_FORKED.read_text()}")
        program.chmod(0o755)
        number = self._orders.fileno()
        name = os.readlink(f"/proc/self/fd/{number}")
        path = f"{folder}:{command.parent}:{os.environ['PATH']}"
        return number, {"PATH": path, "WARM_COMMAND": f"{command} {number} {name}"}

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, data: bytes, seconds: float
    ) -> tuple[int, bytes, bytes]:
        """Its exit code, and all it printed on standard output and on standard error."""
        (stdin, feed), (read_out, stdout), (read_err, stderr) = (os.pipe() for _ in range(3))
        theirs = stdin, stdout, stderr
        with ThreadPoolExecutor(3) as pool, closing(self.start(argv, env, cwd, theirs)) as process:
            for each in theirs:
                os.close(each)
            fed = pool.submit(_feed, feed, data)
            out, err = (pool.submit(_all_of, each) for each in (read_out, read_err))
            fed.result(seconds)
            said = out.result(seconds), err.result(seconds)
            return process.wait(seconds), *said

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


def _feed(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb") as pipe:  # it need not read all of it
        pipe.write(data)


def _all_of(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read()


_commands: list[WarmCommand] = []


def warm_command() -> WarmCommand:
    """The one of this process, started when it is first wanted."""
    if not _commands:
        _commands.append(WarmCommand())
    return _commands[0]


def close_warm_command() -> None:
    while _commands:
        _commands.pop().close()
