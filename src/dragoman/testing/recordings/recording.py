"""Recordings: every frame of a connection in a file, written and read back.

One line per frame: `{"t": seconds, "dir": "->" to the agent or "<-" from it, "msg": the frame}`.
The frame is kept byte for byte; one that is not JSON is kept as base64 under `bytes`. Lines with
any other `dir` are notes. Frames hold everything that was said, including files the agent read and
keys of MCP servers: protect a recording as you protect those. The environment and the arguments of
the agent are not recorded.
"""

from __future__ import annotations

import base64
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.testing.recordings.recorded_events import RecordedEvent

TO_AGENT, FROM_AGENT = "->", "<-"


class Recorder:
    """A tap that writes to a file: `Client.start(…, tap=Recorder(path))`.

    Each frame is in the file before it is handled. An existing file is overwritten; only its owner
    can read it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        _make_private(self._file.fileno())
        self._start = time.monotonic()

    def __call__(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        self._file.write(recorded_line(time.monotonic() - self._start, direction, frame))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def recorded_line(seconds: float, direction: Literal["sent", "received"], frame: bytes) -> bytes:
    """A frame as a line of a recording."""
    arrow = TO_AGENT if direction == "sent" else FROM_AGENT
    return b'{"t":%.3f,"dir":"%b",%b}\n' % (seconds, arrow.encode(), _member(frame))


def _make_private(fd: int) -> None:
    """There may have been a file that others can read; a device or a pipe is not ours to change."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.fchmod(fd, 0o600)


def _member(frame: bytes) -> bytes:
    try:
        frame.decode()
        msgspec.json.decode(frame, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b'"bytes":"%b"' % base64.b64encode(frame)
    return b'"msg":%b' % frame


class Line(msgspec.Struct, frozen=True):
    """One line: its time, its direction (or kind of note), and the exact bytes of the frame."""

    t: float
    dir: str
    frame: bytes = b""


class Recording(msgspec.Struct, frozen=True):
    """The lines of a recording, in order, notes included."""

    lines: tuple[Line, ...]

    @property
    def frames(self) -> tuple[Line, ...]:
        """The frames alone, in both directions."""
        return tuple(line for line in self.lines if line.dir in (TO_AGENT, FROM_AGENT))

    def events(self) -> Iterator[RecordedEvent]:
        """The same events that a live client would have seen, each with the state of its session.

        Nothing is executed and no agent is started. Frames that cannot be read give no events.
        """
        from dragoman.testing.recordings.recorded_events import Transcript

        transcript = Transcript()
        for line in self.lines:
            yield from transcript.feed(line)


class _Wire(msgspec.Struct):
    dir: str
    t: float = 0.0
    msg: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    bytes: str | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Wire).decode


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a recording. A last line that was cut off is left out.

    Raises ConfigError for a line that does not belong to a recording, OSError for a file that
    cannot be read.
    """
    name = str(path)
    *whole, rest = Path(path).read_bytes().split(b"\n")
    lines = [_line(data, name, n) for n, data in enumerate(whole, 1) if data.strip()]
    if rest.strip():
        with suppress(ConfigError):
            lines.append(_line(rest, name, len(whole) + 1))
    return Recording(tuple(lines))


def _line(data: bytes, path: str, number: int) -> Line:
    try:
        wire = _decode(data)
        return Line(wire.t, wire.dir, _frame(wire))
    except (msgspec.DecodeError, ValueError) as error:
        expected = "a JSON object with t, dir and msg"
        raise ConfigError(path, f"line {number}", expected) from error


def _frame(wire: _Wire) -> bytes:
    if wire.bytes is not msgspec.UNSET:
        return base64.b64decode(wire.bytes, validate=True)
    return b"" if wire.msg is msgspec.UNSET else bytes(wire.msg)
