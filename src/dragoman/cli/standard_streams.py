"""Prepares what the process was given: its standard streams, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper


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


def leave_at_once_when_interrupted() -> None:
    """While modules are imported there is nothing to clean up, and nowhere to catch a Ctrl-C: it
    would come out of whatever class or module was half made."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(130)


def raise_when_interrupted() -> None:
    """From here on there may be something to clean up."""
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, signal.default_int_handler)
