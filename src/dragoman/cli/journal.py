"""What a server has to tell whoever runs it: warnings and errors on standard error, a line each.

A line has no content of sessions, and no traceback: of an error that was not expected it names the
type, of what an agent or another program said it tells nothing.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from dragoman.cli.address import log
from dragoman.errors import RemoteError
from dragoman.safe_text import sanitise

_LONGEST = 500
_QUIET_SECONDS = 60.0
_REMEMBERED = 200


def keep_journal(*, debug: bool) -> None:
    """From now on; with `debug` everything is logged already, tracebacks included."""
    if not debug:
        logging.root.addHandler(Journal())


class Journal(logging.Handler):
    """The same line is not told again within a minute."""

    def __init__(self, quiet_seconds: float = _QUIET_SECONDS) -> None:
        super().__init__(logging.WARNING)
        self._quiet_seconds = quiet_seconds
        self._told: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text = _line(record)
        if not self._is_news(text, time.monotonic()):
            return
        log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {record.levelname} {text}")

    def _is_news(self, text: str, now: float) -> bool:
        if now - self._told.get(text, -self._quiet_seconds) < self._quiet_seconds:
            return False
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told[text] = now
        return True


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
