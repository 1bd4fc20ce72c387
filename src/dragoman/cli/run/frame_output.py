"""Frames of a run, byte for byte: in a file (`--record`) or on standard output (`-o jsonl`).

The file is made when the agent is started, so that a run which never comes to that leaves an older
recording as it is; one file has the frames of all the agent's processes. What may be secret in them
is blanked, as it is wherever we keep frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.render.status_line import Status
from dragoman.client.redaction import Direction, Requests, blanked
from dragoman.wire import messages

if TYPE_CHECKING:
    from dragoman.rpc import Tap
    from dragoman.testing.recordings.recording import Recorder


class FrameFile:
    """`path` is None where nothing is to be recorded."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._recorder: Recorder | None = None

    def beside(self, tap: Tap | None) -> Tap | None:
        """A tap that records, and that passes frames on to another. Raises UsageError."""
        if self.path is None:
            return tap
        if self._recorder is None:
            self._recorder = _recorder(self.path)
        requests = Requests()  # each process has ids of its own

        def both(direction: Direction, frame: bytes) -> None:
            self._record(direction, frame, requests)
            if tap is not None:
                tap(direction, frame)

        return both

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def _record(self, direction: Direction, frame: bytes, requests: Requests) -> None:
        if self._recorder is None:
            return
        asked = requests.asked(direction, messages.decode(frame))
        try:
            self._recorder(direction, blanked(frame, asked))
        except OSError as error:  # the run itself continues
            self.close()
            tell(f"--record {self.path}: {_reason(error)}; what follows is not recorded")


def _recorder(path: str) -> Recorder:
    from dragoman.testing.recordings.recording import Recorder

    try:
        return Recorder(path)
    except OSError as error:
        raise UsageError(f"--record {path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or "error").lower()


class FrameTap:
    """Writes frames as they pass, behind one line that says which agent was chosen.

    `on_failure` is called when they can no longer be written: nobody sees what a tap raises. With
    `directions`, each frame is a line as in a recording.
    """

    def __init__(
        self,
        out: BinaryIO,
        status: Status,
        on_failure: Callable[[OSError], None],
        *,
        directions: bool,
    ) -> None:
        self._begun = time.monotonic() if directions else None
        self._out = out
        self._status = status
        self._on_failure = on_failure

    def announce(self, name: str, command: str) -> None:
        """Neither arguments nor environment: they may hold secrets."""
        params = {"name": name, "command": command}
        line = {"jsonrpc": "2.0", "method": "client/selected_agent", "params": params}
        self._write(msgspec.json.encode(line) + b"\n")

    def frame(self, direction: Direction, frame: bytes) -> None:
        try:
            self._write(self._line(direction, frame))
        except OSError as error:
            self._on_failure(error)

    def _line(self, direction: Direction, frame: bytes) -> bytes:
        if self._begun is None:
            return frame + b"\n"
        from dragoman.testing.recordings.recording import recorded_line

        return recorded_line(time.monotonic() - self._begun, direction, frame)

    def _write(self, line: bytes) -> None:
        self._status.wipe()
        self._out.write(line)
        self._out.flush()
