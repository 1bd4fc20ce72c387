"""How much of what terminals print goes on record.

Pure. What runs in the terminal continues, and the agent reads its output as before.
"""

from __future__ import annotations

import msgspec

from dragoman.session.events import Event, SubagentEvent, TerminalExited, TerminalOutput
from dragoman.session.state_limits import ID, LIMITS, drop_oldest

_MIB = 1024 * 1024
_TAIL = 64 * 1024
"""Characters of its end that are recorded when a terminal that printed too much has ended."""
_CONCERNED = frozenset((TerminalOutput, TerminalExited, SubagentEvent))


class OutputLimits(msgspec.Struct, frozen=True):
    """Bytes of output on record."""

    terminal: int = 16 * _MIB
    """Of each terminal."""
    session: int = 128 * _MIB
    """Of all terminals of a session, for as long as one process runs it."""


class OutputQuota:
    """What one session has recorded so far."""

    def __init__(self, limits: OutputLimits) -> None:
        self._limits = limits
        self._left = limits.session
        self._printed: dict[str, _Printed] = {}

    def within(self, events: list[Event]) -> list[Event]:
        """Those that go on record, with a note where some do not."""
        if _CONCERNED.isdisjoint(map(type, events)):
            return events
        kept: list[Event] = []
        for event in events:
            if isinstance(event, SubagentEvent):
                told = self._told(event.event, f"{event.session_id[:ID]} ")
                kept += [msgspec.structs.replace(event, event=each) for each in told]
            else:
                kept += self._told(event)
        return kept

    def _told(self, event: Event, prefix: str = "") -> list[Event]:
        """Two subagents may call their terminals the same."""
        match event:
            case TerminalOutput():
                return self._output(event, prefix + event.terminal_id[:ID])
            case TerminalExited():
                return [*self._rest_of(event, prefix + event.terminal_id[:ID]), event]
            case _:
                return [event]

    def _output(self, event: TerminalOutput, key: str) -> list[Event]:
        printed = self._printed_by(key)
        size = _size(event.data)
        if printed.missing is None and size <= min(printed.left, self._left):
            printed.left -= size
            self._left -= size
            return [event]
        told = printed.missing is not None
        printed.drop(event, size)
        if self._left < _TAIL:
            printed.forget()  # its end would not be recorded either
        return [] if told else [_note(event, self._why)]

    def _printed_by(self, key: str) -> _Printed:
        """An agent may tell of terminals without end: the first is forgotten for the newest."""
        if (printed := self._printed.get(key)) is None:
            printed = self._printed[key] = _Printed(self._limits.terminal)
            drop_oldest(self._printed, LIMITS.others)
        return printed

    @property
    def _why(self) -> str:
        terminal, session = self._limits.terminal / _MIB, self._limits.session / _MIB
        limits = f"{terminal:g} MiB for a terminal, {session:g} MiB for a session"
        return f"more output is not recorded: the limit is {limits}"

    def _rest_of(self, event: TerminalExited, key: str) -> list[Event]:
        printed = self._printed.pop(key, None)
        if printed is None or printed.missing is None:
            return []
        tail = printed.tail
        if _size(tail) > self._left:
            tail = ""
        self._left -= _size(tail)
        missing = (printed.missing - _size(tail)) / _MIB
        return [_note(event, f"{missing:.1f} MiB of output not recorded", tail)]


class _Printed:
    """What a terminal may still have recorded; once there was more, how much is missing."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.missing: int | None = None
        self._pieces: list[str] = []
        self._length = 0

    def drop(self, event: TerminalOutput, size: int) -> None:
        self.missing = (self.missing or 0) + size
        if event.replaces:
            self._pieces, self._length = [], 0
        self._pieces.append(event.data)
        self._length += len(event.data)
        # Cut when twice too long, so that the copying is paid for by what was printed.
        if self._length > 2 * _TAIL:
            self._pieces, self._length = [self.tail], _TAIL

    def forget(self) -> None:
        self._pieces, self._length = [], 0

    @property
    def tail(self) -> str:
        return "".join(self._pieces)[-_TAIL:]


def _note(event: TerminalOutput | TerminalExited, sentence: str, tail: str = "") -> TerminalOutput:
    text = f"\r\n[{sentence}]\r\n{tail}"
    return TerminalOutput(event.terminal_id, text, replay=event.replay)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
