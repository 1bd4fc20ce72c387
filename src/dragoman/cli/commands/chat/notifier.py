"""Notifications of a chat whose window nobody looks at: when it asks, and when a long turn ends."""

from __future__ import annotations

import sys
import time
from typing import Literal, TypeAlias

from dragoman.safe_text import single_line
from dragoman.session import events as e

Notify: TypeAlias = Literal["off", "bell", "osc9", "osc777"]

_LONG_SECONDS = 10.0
_MOST = 120


class Notifier:
    """Writes what the terminal turns into a sound or a notification; nothing if it is off."""

    def __init__(self, how: Notify, agent: str, *, after: float = _LONG_SECONDS) -> None:
        """The end of a turn is worth it `after` so many seconds."""
        self._how: Notify = how
        self._agent = agent
        self._after = after
        self._begun = 0.0

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.TurnStarted):
            self._begun = time.monotonic()
        elif isinstance(event, e.TurnEnded) and time.monotonic() - self._begun >= self._after:
            self._tell(f"{self._agent} is done")

    def asked(self) -> None:
        self._tell(f"{self._agent} waits for your answer")

    def _tell(self, words: str) -> None:
        out = sys.__stdout__
        if out is not None and (text := sequence(self._how, words)):
            out.write(text)
            out.flush()


def sequence(how: Notify, words: str) -> str:
    """The control sequence; the words cannot end it early."""
    words = single_line(words, _MOST).replace(";", ",")
    match how:
        case "bell":
            return "\a"
        case "osc9":
            return f"\x1b]9;Dragoman: {words}\x1b\\"
        case "osc777":
            return f"\x1b]777;notify;Dragoman;{words}\x1b\\"
        case "off":
            return ""
