"""The memory of a process whose system call waits for us.

It may be a file of the caller's own making, so that reading waits for as long as the caller likes.
"""

from __future__ import annotations

import ctypes
import errno
import os

_PAGE = 4096

# Lets go of the interpreter's lock during a call.
_read_from = ctypes.CDLL(None, use_errno=True)["process_vm_readv"]
_read_from.restype = ctypes.c_ssize_t
_read_from.argtypes = (
    ctypes.c_int,
    *(ctypes.c_void_p, ctypes.c_ulong) * 2,
    ctypes.c_ulong,
)


class Unreadable(Exception):
    """Who called waits, but its memory cannot be read: it is a helper of ours, soon the program."""


class CallerMemory:
    """Of one caller after the other; for one thread."""

    def __init__(self, *, quick: bool = True) -> None:
        """`quick` is to try the call that some kernels and filters do not have."""
        self._quick = quick
        self._pid = 0
        self._pointer = 8
        self._page = (ctypes.c_char * _PAGE)()
        self._view = memoryview(self._page).cast("B")
        # A piece of ours, then one of theirs: where it begins, and how long it is.
        self._pieces = (ctypes.c_uint64 * 4)(ctypes.addressof(self._page))
        self._ours = ctypes.addressof(self._pieces)
        self._theirs = self._ours + 16

    def turn_to(self, pid: int, pointer: int) -> None:
        """Read this process from now on, whose addresses have so many bytes."""
        self._pid = pid
        self._pointer = pointer

    def read(self, address: int, size: int) -> bytes:
        """As much of it as there is, and no more than a page. Raises Unreadable."""
        return bytes(self._view[: self._fetch(address, min(size, _PAGE))])

    def _fetch(self, address: int, size: int) -> int:
        """How much of it is in our page now."""
        if not self._quick:
            return self._fetch_from_file(address, size)
        pieces = self._pieces
        pieces[1] = pieces[3] = size
        pieces[2] = address
        got = _read_from(self._pid, self._ours, 1, self._theirs, 1, 0)
        if got >= 0:
            return got
        return 0 if ctypes.get_errno() == errno.EFAULT else self._fetch_from_file(address, size)

    def _fetch_from_file(self, address: int, size: int) -> int:
        try:
            file = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise Unreadable from None
        try:
            return os.preadv(file, [self._view[:size]], address) if address < 1 << 63 else 0
        except OSError:
            return 0
        finally:
            os.close(file)

    def text(self, address: int, most: int) -> bytes:
        """Up to a NUL, or so many bytes; never reads beyond a page that ends it."""
        found = b""
        while len(found) <= most:
            got = self._fetch(address, _PAGE - address % _PAGE)
            piece = self._page.value[:got]
            found += piece
            if len(piece) < got or not got:
                break
            address += got
        return found[:most]

    def words(self, address: int, most: int) -> tuple[list[bytes], bool]:
        """The texts of a list of addresses, and whether these are all of them."""
        found: list[bytes] = []
        room = most
        while room > 0:
            piece = self.read(address, _PAGE - address % _PAGE)
            if len(piece) < self._pointer:
                return found, True
            for at in range(0, len(piece) // self._pointer * self._pointer, self._pointer):
                pointer = int.from_bytes(piece[at : at + self._pointer], "little")
                if not pointer:
                    return found, True
                word = self.text(pointer, room)
                room -= len(word) + 1
                found.append(word)
                if room <= 0:
                    break
            address += len(piece)
        return found, False
