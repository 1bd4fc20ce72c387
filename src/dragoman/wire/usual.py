"""The notification that nearly every frame is: read in one pass, and handed over in runs.

One is expected behind another. What turns out to be something else, or needs a second look, takes
the long way, behind the run that it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from dragoman.wire.messages import SMALL, is_modest

Told = TypeVar("Told")
Told_co = TypeVar("Told_co", covariant=True)


class Whole(Protocol[Told_co]):
    """A frame that is the notification and nothing else, with what it tells."""

    @property
    def params(self) -> Told_co: ...


class Usual(Generic[Told]):
    """Notifications of `method`; `handle` is given what a run of them tells, and its bytes.

    `decoder` is asked, once there is one, for what decodes a whole frame; that raises
    msgspec.DecodeError for any other.
    """

    def __init__(
        self,
        method: str,
        decoder: Callable[[], Callable[[bytes], Whole[Told]]],
        handle: Callable[[list[Told], int], None],
    ) -> None:
        self.method = method
        self._decoder = decoder
        self._handle = handle
        self._decode: Callable[[bytes], Whole[Told]] | None = None
        """None while nothing is expected."""
        self._run: list[Told] = []
        self._size = 0

    def expect(self) -> None:
        """One came the long way: the next frame may be another."""
        self._decode = self._decoder()

    def take(self, frame: bytes) -> bool:
        """Add a frame to the run, if it is one and can be read at once."""
        if self._decode is None:
            return False
        if len(frame) <= SMALL or is_modest(frame):
            try:
                self._run.append(self._decode(frame).params)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
            else:
                self._size += len(frame)
                return True
        self._decode = None
        return False

    def hand_over(self) -> None:
        """End the run and have it handled."""
        if self._run:
            run, self._run = self._run, []
            size, self._size = self._size, 0
            self._handle(run, size)
