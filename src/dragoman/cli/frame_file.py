"""`--record`: every frame of a run in a file that `replay` and `policy explain` read.

The file is made when the agent is started, so that a run which never comes to that leaves an older
recording as it is; one file has the frames of all the agent's processes. What MCP servers are
started and called with is blanked: that is of the settings, and may be secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.cli.guard import UsageError, tell

if TYPE_CHECKING:
    from dragoman.rpc import Tap
    from dragoman.testing.recording import Recorder

_BLANK = "•••"
_SECRETIVE = ("args", "env", "headers")


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

        def both(direction: Literal["sent", "received"], frame: bytes) -> None:
            self._record(direction, frame)
            if tap is not None:
                tap(direction, frame)

        return both

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def _record(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder(direction, _without_secrets(frame) if direction == "sent" else frame)
        except OSError as error:  # the run itself goes on
            self.close()
            tell(f"--record {self.path}: {_reason(error)}; what follows is not recorded")


def _recorder(path: str) -> Recorder:
    from dragoman.testing.recording import Recorder

    try:
        return Recorder(path)
    except OSError as error:
        raise UsageError(f"--record {path}: {_reason(error)}") from error


def _without_secrets(frame: bytes) -> bytes:
    if b'"mcpServers"' not in frame:
        return frame
    message: Any = msgspec.json.decode(frame)
    match message:
        case {"params": {"mcpServers": [*servers]}}:
            message["params"]["mcpServers"] = [_blanked(server) for server in servers]
            return msgspec.json.encode(message)
        case _:
            return frame


def _blanked(server: dict[str, Any]) -> dict[str, Any]:
    """The names of variables and headers stay: they tell what was passed."""
    hidden = {key: [_hidden(each) for each in server[key]] for key in _SECRETIVE if key in server}
    return server | hidden


def _hidden(value: Any) -> Any:
    return _BLANK if isinstance(value, str) else value | {"value": _BLANK}


def _reason(error: OSError) -> str:
    return (error.strerror or "error").lower()
