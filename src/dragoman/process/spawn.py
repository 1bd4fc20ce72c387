"""Start a program, contained where the system can do it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence

from dragoman.errors import StartError
from dragoman.process import contained, portable, zygote_client
from dragoman.process.child import Process
from dragoman.process.start_order import Order, checked

_log = logging.getLogger(__name__)


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: int,
    stdout: int,
    stderr: int,
    tty: bool = False,
) -> Process:
    """Start a program with exactly this environment, connected to these descriptors.

    The descriptors stay the caller's, to close as soon as this returns. With `tty`, the first
    of them that is a terminal becomes the program's controlling terminal. Raises
    `CommandNotFound`, or `StartError` with the reason.
    """
    order = checked(argv, env, cwd, tty=tty)
    if sys.platform == "win32":
        raise StartError(order.command, "agents run on Linux and macOS; on Windows, use WSL")
    try:
        return await _spawn(order, (stdin, stdout, stderr))
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(order.command, f"the system refused ({reason})") from error


async def _spawn(order: Order, stdio: Sequence[int]) -> Process:
    if zygote_client.available():
        try:
            return await contained.spawn(order, stdio)
        except contained.ZygoteFailed as error:
            _log.warning(
                "descendants of agents cannot be contained, no zygote can run here: %s", error
            )
    return await portable.spawn(order, stdio)
