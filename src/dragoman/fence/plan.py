"""A fence in the kernel's terms: paths and nothing else, so that it can be handed to a helper."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Paths: TypeAlias = tuple[bytes, ...]
    Packed: TypeAlias = tuple[tuple[str, str | bytes | bool | Paths | tuple[int, ...]], ...]
    """A plan as `marshal` takes it."""
    Listen: TypeAlias = Callable[[int, Sequence[str], str], None]


class FencePlan:
    """What to build. Every path is absolute and real: no component of it is a link."""

    def __init__(
        self,
        way: str,
        *,
        temporary: bytes,
        writable: Paths = (),
        read_only: Paths = (),
        pinned: Paths = (),
        covered: Paths = (),
        kept: Paths = (),
        network: tuple[int, ...] = (),
        sockets: tuple[int, ...] = (),
        gate: str = "",
        listen: Listen | None = None,
    ) -> None:
        self.way = way
        """`namespaces` or `landlock`."""
        self.temporary = temporary
        """The private folder: writable, and also what `/tmp` and `/var/tmp` are."""
        self.writable = writable
        self.read_only = read_only
        """Inside a writable folder, and still not to be changed."""
        self.pinned = pinned
        """Folders above those, which must not be moved away."""
        self.covered = covered
        """Empty for the program."""
        self.kept = kept
        """Inside a covered folder, and still to be read."""
        self.network = network
        """The host's descriptors of the namespaces in whose network the program lives; none for
        the network of the machine."""
        self.sockets = sockets
        """The only kinds of sockets that may be made; none for all of them."""
        self.gate = gate
        """What the kernel asks the host about: `exec`, `write` for that and opening files for
        writing, or nothing."""
        self.listen = listen
        """Takes the descriptor on which the kernel asks, and the words and the folder of the
        program; stays in the host."""

    def take(self, listener: int, argv: Sequence[str], cwd: str) -> None:
        """For the host: the kernel asks here, as soon as the program is about to start."""
        if self.listen is None:
            os.close(listener)  # what is asked about fails then
        else:
            self.listen(listener, argv, cwd)

    def packed(self) -> Packed:
        return tuple(each for each in vars(self).items() if each[0] != "listen")

    @classmethod
    def unpacked(cls, packed: Packed) -> FencePlan:
        plan = cls.__new__(cls)
        vars(plan).update(packed)
        return plan
