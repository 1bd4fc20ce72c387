"""`-o jsonl`: every frame of both directions on standard output, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Literal

import msgspec

from dragoman.cli.status import Status


class FrameTap:
    """Writes frames as they pass, behind one line that says which agent was chosen.

    `on_failure` is told when nobody takes them any more: what a tap raises is heard by no one.
    """

    def __init__(
        self, out: BinaryIO, status: Status, on_failure: Callable[[OSError], None]
    ) -> None:
        self._out = out
        self._status = status
        self._on_failure = on_failure

    def announce(self, name: str, command: str) -> None:
        """Neither arguments nor environment: they may hold secrets."""
        params = {"name": name, "command": command}
        line = {"jsonrpc": "2.0", "method": "client/selected_agent", "params": params}
        self._write(msgspec.json.encode(line))

    def frame(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        try:
            self._write(frame)
        except OSError as error:
            self._on_failure(error)

    def _write(self, frame: bytes) -> None:
        self._status.wipe()
        self._out.write(frame + b"\n")
        self._out.flush()
