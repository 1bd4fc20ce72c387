"""Prepares what the process was given: its standard streams, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # that of `typing` would cost every command the import
if TYPE_CHECKING:
    from typing import NoReturn


def prepare() -> None:
    """Have all three, and have no text fail for want of a character in the terminal's encoding."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by our parent. Otherwise the next opened file would get that number.
            _occupy(descriptor)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _occupy(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)


def given_descriptors() -> set[int]:
    """Those that are open, without the standard streams. If nothing was opened yet, our parent left
    them to us: its locks and pipes must not be held by a process that stays in the background."""
    try:
        found = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return set()
    return {number for number in found if number > 2 and _is_open(number)}


def leave(inherited: set[int], errors: int | None = None) -> None:
    """Keep nothing of what this process was given, as it continues in the background: nobody who
    reads its output must wait for it. What goes wrong later is written to `errors`, if any."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, target in ((0, nothing), (1, nothing), (2, nothing if errors is None else errors)):
        os.dup2(target, number)
    for number in (nothing, *inherited):
        try:
            os.close(number)
        except OSError:
            continue  # it was closed before


def end_as(status: int) -> NoReturn:
    """For everyone who looks, this process ended as its child with this status did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _is_open(number: int) -> bool:
    """Not the one by which the folder was listed."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def settle() -> None:
    """Flush; output that nobody reads must not fail again when Python exits. Output that has no
    room ends the process with code 1."""
    is_lost = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            is_lost = is_lost or not isinstance(error, BrokenPipeError)
    if is_lost:
        raise SystemExit(1)


def terminal_width() -> int:
    """The columns to use now; people resize windows. A terminal that nobody looks at says 0."""
    told = os.environ.get("COLUMNS", "")
    found = [int(told)] if told.isdecimal() else []
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            found.append(os.get_terminal_size(stream.fileno()).columns if stream else 0)
        except (OSError, ValueError):
            continue
    return max(20, next(filter(None, found), 80))


RELAYED = getattr(signal, "SIGUSR1", signal.SIGINT)
"""What a Ctrl-C is to a process to which another one passes it on."""
_interrupt = [signal.SIGINT]


def interrupt_signal() -> signal.Signals:
    """What a Ctrl-C is to this process."""
    return _interrupt[-1]


def interrupted_by_relay() -> None:
    """From now on a Ctrl-C is what another process passes on; one that comes from the terminal too
    is nothing. What this process starts is interrupted as ever: a handler is not inherited."""
    before = signal.getsignal(signal.SIGINT)
    _interrupt.append(RELAYED)
    signal.signal(RELAYED, before)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _nothing)


def _nothing(number: int, frame: object) -> None:
    pass


def leave_at_once_when_interrupted() -> None:
    """While modules are imported there is nothing to clean up, and nowhere to catch a Ctrl-C: it
    would come out of whatever class or module was half made."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(130)


def raise_when_interrupted() -> None:
    """From here on there may be something to clean up."""
    number = interrupt_signal()
    if signal.getsignal(number) is _leave:
        signal.signal(number, signal.default_int_handler)
