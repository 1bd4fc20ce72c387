"""A program to start, validated and in the system's terms, and why it could not be started."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import CommandNotFound, FenceError, StartError
from dragoman.fence.plan import FencePlan


class Order(NamedTuple):
    """A program to run; everything explicit, nothing inherited but the user's identity."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    tty: bool
    fence: FencePlan | None = None

    @property
    def command(self) -> str:
        return self.argv[0]

    @property
    def paths(self) -> list[str]:
        """The files to try, in order; relative ones start at the program's own `cwd`."""
        if "/" in self.command:
            return [self.command]
        folders = self.env.get("PATH", os.defpath).split(os.pathsep)
        return [os.path.join(folder or ".", self.command) for folder in folders]


def checked(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    *,
    tty: bool,
    fence: FencePlan | None = None,
) -> Order:
    """An order the system can take, or the `StartError` that says what is wrong with it."""
    if not argv or not argv[0]:
        raise CommandNotFound("", "the command is empty")
    command = argv[0]
    if any("\0" in word for word in (*argv, *env, *env.values(), cwd or "")):
        raise StartError(command, "an argument, variable or path contains a NUL character")
    if any(not name or "=" in name for name in env):
        raise StartError(command, "an environment variable has an empty name or one with '='")
    try:
        return Order(tuple(argv), env, os.path.abspath(cwd or "."), tty, fence)
    except OSError as error:
        raise StartError(command, "the current directory no longer exists") from error


def refusal(order: Order, step: str, number: int) -> StartError:
    """The error for a program that did not start: at which step, with which errno."""
    match step:
        case "cwd":
            return StartError(order.command, _cwd_reason(order.cwd, number))
        case "exec":
            return _exec_refusal(order, number)
        case "fence":
            return FenceError(order.command, os.strerror(number))
        case "gate":
            return FenceError(order.command, f"no filter of system calls: {os.strerror(number)}")
        case "fork":
            reason = f"the system allows no more processes ({os.strerror(number)})"
            return StartError(order.command, reason)
        case _:
            return StartError(order.command, f"{step}: {os.strerror(number)}")


def _cwd_reason(cwd: str, number: int) -> str:
    endings = {
        errno.ENOENT: "does not exist",
        errno.ENOTDIR: "is not a directory",
        errno.EACCES: "cannot be entered (permission denied)",
    }
    return f"the working directory {cwd!r} {endings.get(number) or os.strerror(number)}"


def _exec_refusal(order: Order, number: int) -> StartError:
    candidates = [os.path.join(order.cwd, path) for path in order.paths]
    found = next(filter(os.path.lexists, candidates), None)
    if number == errno.E2BIG:
        return StartError(order.command, "its arguments and environment are too large")
    if found is None and number in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
        return CommandNotFound(order.command, _where(order))
    return StartError(order.command, _file_reason(found or order.command, number))


def _where(order: Order) -> str:
    return "no such file" if "/" in order.command else "command not found in PATH"


def _file_reason(path: str, number: int) -> str:
    match number:
        case errno.EACCES if os.path.isdir(path):
            return f"{path!r} is a directory"
        case errno.EACCES if not os.access(path, os.X_OK):
            return f"{path!r} is not executable"
        case errno.ENOENT if not os.path.exists(path):
            return f"{path!r} is a link to a file that does not exist"
        case errno.ENOENT:
            return f"the interpreter of {path!r} does not exist{_shebang(path)}"
        case errno.ENOEXEC:
            return f"{path!r} is not a program this system can run"
        case _:
            return f"{path!r}: {os.strerror(number)}"


def _shebang(path: str) -> str:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            line = file.readline(256)
    except OSError:
        return ""
    named = line[2:].split(maxsplit=1) if line.startswith(b"#!") else []
    return f": {os.fsdecode(named[0])!r}" if named else ""


def _without_waiting(path: str, flags: int) -> int:
    """It may be a FIFO by now."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
