"""`--no-wait`: a run that continues in the background once its prompt was sent.

It is two processes from the start, before anything else is imported, so that nothing has to be
handed over: the one that the shell waits for, which prints the session's id and ends, and the run.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from dragoman.cli import standard_streams

TYPE_CHECKING = False  # that of `typing` would cost the import
if TYPE_CHECKING:
    from typing import NoReturn

_departures: list[Departure] = []


def part() -> None:
    """From here on this is the run. The process that was started does not return."""
    ours, theirs = os.pipe()
    inherited = standard_streams.given_descriptors() - {ours, theirs}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    if run := os.fork():
        os.close(theirs)
        signal.signal(signal.SIGINT, lambda number, frame: os.kill(run, signal.SIGINT))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _wait_for(run, ours)
    os.close(ours)
    os.setsid()  # a Ctrl-C comes from the other process alone, and the end of the terminal is none
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _departures.append(Departure(theirs, inherited))


def let_go(session_id: str) -> None:
    """The prompt was sent: the process that waits prints this id and ends."""
    if _departures:
        _departures.pop().let_go(session_id)


class Departure:
    """The end of the wait, as the run sees it."""

    def __init__(self, link: int, inherited: set[int]) -> None:
        self._link = link
        self._inherited = inherited

    def let_go(self, session_id: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        standard_streams.leave(self._inherited)
        with suppress(OSError):  # who waited has been killed
            os.write(self._link, f"{session_id}\n".encode())
        os.close(self._link)


def _wait_for(run: int, link: int) -> NoReturn:
    told = b""
    while not told.endswith(b"\n") and (piece := os.read(link, 100)):
        told += piece
    if told:
        sys.stdout.write(told.decode())
        sys.stdout.flush()
        os._exit(0)
    standard_streams.end_as(os.waitpid(run, 0)[1])
