"""The fast path for updates, which most frames are: decoded in one pass, delivered in batches.

Updates are expected to follow each other. Any other frame, and one that needs the fallback, ends
the batch and takes the slow path after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.wire.messages import SMALL, is_modest

Told = TypeVar("Told")


class Usual(Generic[Told]):
    """Notifications of `method` with params of the type `told`.

    `handle` is given what a run of them tells, and how many bytes each came in. `decoder` makes the
    decoder of a type; it is called only when there is a first one, since that takes milliseconds.
    """

    def __init__(
        self,
        method: str,
        told: type[Told],
        handle: Callable[[list[Told], list[int]], None],
        *,
        decoder: Callable[[Any], msgspec.json.Decoder[Any]],
    ) -> None:
        self.method = method
        self._told = told
        self._handle = handle
        self._decoder = decoder
        self._decode: Callable[[bytes], Any] | None = None
        """There only while another one is expected."""
        self.frames: list[bytes] = []
        """Those of the run."""
        self._run: list[Told] = []

    def expect(self) -> None:
        """One came the long way: the next frame may be another."""
        self._decode = self._decoder(_whole(self.method, self._told)).decode

    def take(self, frames: Iterator[bytes]) -> bytes | None:
        """Add frames to the run, up to one that is something else or cannot be read at once.

        That one is returned, and ends what was expected; None if there is none left.
        """
        decode, run, taken = self._decode, self._run, self.frames
        if decode is None:
            return next(frames, None)
        for frame in frames:
            if len(frame) > SMALL and not is_modest(frame):
                break
            try:
                run.append(decode(frame).params)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                break
            taken.append(frame)
        else:
            return None
        self._decode = None
        return frame

    def hand_over(self) -> None:
        """End the run and have it handled."""
        if self._run:
            run, self._run = self._run, []
            frames, self.frames = self.frames, []
            self._handle(run, list(map(len, frames)))


@cache
def _whole(method: str, told: Any) -> type[msgspec.Struct]:
    """A frame to its end, of this method alone; with any id it would be a request."""
    fields = [("method", Literal[method]), ("params", told), ("id", UnsetType, UNSET)]
    return msgspec.defstruct("Whole", fields, gc=False)
