"""The server's log: warnings and errors on standard error, one per line.

A line has no content of sessions, and no traceback: of an error that was not expected it names the
type, of what an agent or another program said it tells nothing.

Nothing waits for a reader: with Ctrl-S in a terminal, a pager or a hung ssh, lines are dropped and
counted.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from dragoman.errors import RemoteError
from dragoman.safe_text import sanitise

_LONGEST = 500
_QUIET_SECONDS = 60.0
_REMEMBERED = 200
_SAID_BY_US = ("psycopg",)
"""Libraries that warn of what Dragoman reports itself, such as a lost connection."""
_ROOM = 1 << 20
"""Bytes that wait for a reader."""
_LAST_SECONDS = 1.0
"""For the lines that are left when the process ends."""


class Lines:
    """Writes lines to a descriptor from a thread of its own: call it with each. As a context
    manager it writes what is left at the end, as long as that takes no more than a second."""

    def __init__(self, descriptor: int, room: int = _ROOM) -> None:
        self._descriptor = descriptor
        self._room = room
        self._waiting: deque[bytes] = deque()
        self._dropped = 0
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def __enter__(self) -> Lines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_LAST_SECONDS)

    def __call__(self, line: str) -> None:
        self.write(f"{line}\n")

    def write(self, text: str) -> None:
        """For the handlers of `logging` too."""
        data = text.encode(errors="replace")
        with self._changed:
            if len(data) > self._room:
                self._dropped += 1
                return
            self._room -= len(data)
            self._waiting.append(data)
            self._changed.notify()

    def flush(self) -> None:
        """There is nothing to do: the thread writes as soon as it can."""

    def _run(self) -> None:
        # Not through `sys.stderr`: its lock would be held by a write that nobody reads, and Python
        # wants it at exit.
        while data := self._next():
            with suppress(OSError):  # the reader has gone, or the disk is full for now
                _write_all(self._descriptor, data)

    def _next(self) -> bytes:
        """The next line; b"" when there is none left and the process ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._dropped or self._closing)
            if self._waiting:
                data = self._waiting.popleft()
                self._room += len(data)
                return data
            dropped, self._dropped = self._dropped, 0
        return _told_dropped(dropped) if dropped else b""


def _told_dropped(count: int) -> bytes:
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return f"{_now()} {lines} dropped: the log was not being read\n".encode()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # another program on the terminal has set that
            select.select((), (descriptor,), ())


def keep_journal(log: Lines, *, debug: bool) -> None:
    """From now on; with `debug` everything is logged already, tracebacks included."""
    if not debug:
        logging.root.addHandler(Journal(log))
        return
    for handler in logging.root.handlers:
        if getattr(handler, "stream", None) is sys.stderr:
            cast("logging.StreamHandler[Any]", handler).setStream(log)


class Journal(logging.Handler):
    """The same line is not told again within a minute."""

    def __init__(self, log: Callable[[str], None], quiet_seconds: float = _QUIET_SECONDS) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._quiet_seconds = quiet_seconds
        self._told: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _SAID_BY_US:
            return
        text = _line(record)
        if not self._is_news(text, time.monotonic()):
            return
        self._log(f"{_now()} {record.levelname} {text}")

    def _is_news(self, text: str, now: float) -> bool:
        if now - self._told.get(text, -self._quiet_seconds) < self._quiet_seconds:
            return False
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told[text] = now
        return True


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _line(record: logging.LogRecord) -> str:
    text = _sentence(record).partition("\n")[0].rstrip()
    error = record.exc_info[0] if record.exc_info else None
    if error is not None:
        text = f"{text}: {error.__name__} (--debug shows where)"
    return sanitise(text)[:_LONGEST]


def _sentence(record: logging.LogRecord) -> str:
    """In full where it is ours; what others fill in may be anything."""
    if record.name.partition(".")[0] == "dragoman":
        return record.msg % tuple(map(_shown, _arguments(record))) if record.args else record.msg
    is_plain = all(isinstance(each, int | float) for each in _arguments(record))
    return f"{record.name}: {record.getMessage() if is_plain else record.msg}"


def _arguments(record: logging.LogRecord) -> tuple[Any, ...]:
    return record.args if isinstance(record.args, tuple) else ()


def _shown(argument: Any) -> Any:
    """The words of an agent are content."""
    return type(argument).__name__ if isinstance(argument, RemoteError) else argument
