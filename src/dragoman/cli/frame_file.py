"""`--record`: every frame of a run in a file that `replay` and `policy explain` read.

The file is made when the agent is started, so that a run which never comes to that leaves an older
recording as it is; one file has the frames of all the agent's processes. What may be secret in them
is blanked, as it is wherever we keep frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.cli.guard import UsageError, tell
from dragoman.client.blanking import Direction, Requests, blanked
from dragoman.wire import messages

if TYPE_CHECKING:
    from dragoman.rpc import Tap
    from dragoman.testing.recording import Recorder


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
        except OSError as error:  # the run itself goes on
            self.close()
            tell(f"--record {self.path}: {_reason(error)}; what follows is not recorded")


def _recorder(path: str) -> Recorder:
    from dragoman.testing.recording import Recorder

    try:
        return Recorder(path)
    except OSError as error:
        raise UsageError(f"--record {path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or "error").lower()
