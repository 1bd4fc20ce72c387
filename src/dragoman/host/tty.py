"""Reads what a command prints, from a PTY or a pipe, straight on the event loop.

The PTY changes nothing on its way (no echo, no carriage returns) and gives whoever reads from
it the end of the file at once: nobody is there to type. Knows bytes only, and no processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from dragoman.process import forks

COLUMNS, ROWS = 120, 30

# A PTY gives about 4 KiB a read whatever the size; a pipe gives it all.
_READ_SIZE = 16 * 1024
# Then others get their turn, and what was read is told as one piece.
_READS_A_WAKE = 16
# More than a PTY or a pipe can hold: all that was printed before somebody ended.
_LAST_READS = 256


if sys.platform == "win32":

    def _open(use_pty: bool) -> tuple[int, int]:
        raise NotImplementedError

else:

    def _open(use_pty: bool) -> tuple[int, int]:
        """Our side, which does not block, and the command's."""
        ours, theirs = os.openpty() if use_pty else forks.pipe()
        try:
            if use_pty:
                _set_modes(theirs)
            os.set_blocking(ours, False)
        except BaseException:
            forks.close(ours)
            forks.close(theirs)
            raise
        return ours, theirs

    def _set_modes(terminal: int) -> None:
        import termios

        modes = termios.tcgetattr(terminal)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON)
        # Not line by line, no byte awaited, for no time: a read returns at once with nothing.
        modes[6][termios.VMIN] = modes[6][termios.VTIME] = 0
        termios.tcsetattr(terminal, termios.TCSANOW, modes)
        termios.tcsetwinsize(terminal, (ROWS, COLUMNS))


class Output:
    """What a command prints; `take` gets it in pieces. `theirs` is the side for the command.

    Until `let_go` that side is held open here as well: on a PTY that nobody holds, reading
    fails, though the command may still open it again by its name.
    """

    def __init__(self, take: Callable[[bytes], None], *, use_pty: bool) -> None:
        self._ours, self.theirs = _open(use_pty)
        self._take = take
        self._loop = asyncio.get_running_loop()

    @property
    def is_open(self) -> bool:
        return self._ours >= 0

    def begin(self) -> None:
        """Take what is printed from now on, until the end or `close`."""
        self._loop.add_reader(self._ours, self._drain, _READS_A_WAKE)

    def let_go(self) -> None:
        """Leave the command's side to those who have it; reading ends when they close it."""
        if self.theirs >= 0:
            theirs, self.theirs = self.theirs, -1
            forks.close(theirs)

    def drain(self) -> None:
        """Take now what was printed up to now."""
        if self.is_open:
            self._drain(_LAST_READS)

    def close(self) -> None:
        self.let_go()
        if self.is_open:
            ours, self._ours = self._ours, -1
            self._loop.remove_reader(ours)
            forks.close(ours)

    def _drain(self, reads: int) -> None:
        pieces: list[bytes] = []
        piece = None
        for _ in range(reads):
            piece = self._read()
            if not piece:
                break
            pieces.append(piece)
        if piece == b"":
            self.close()
        if pieces:
            self._take(b"".join(pieces))

    def _read(self) -> bytes | None:
        """What is there, `b""` at the end, None when there is nothing now."""
        try:
            return os.read(self._ours, _READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:  # EIO: a PTY whose other side is closed
            return b""

    def __del__(self) -> None:
        for descriptor in (getattr(self, "_ours", -1), getattr(self, "theirs", -1)):
            if descriptor >= 0:
                forks.close(descriptor)
