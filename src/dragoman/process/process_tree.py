"""The processes below a process, found through /proc, and signals to all of them.

Runs in the host and in the zygote's processes, so it imports little. A pid is signalled only
after it was pinned by a pidfd and seen to belong to the tree: a recycled pid is never hit.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Mapping
else:
    import _signal as signal  # the public module imports enum, which doubles our start-up time

# A tree that cannot be frozen in so many rounds grows faster than we walk it: kill what we have.
_FREEZE_ROUNDS = 100
_LONGEST_PAUSE = 0.1

if TYPE_CHECKING:
    Spare = Callable[[int], bool]
"""Whether to leave a process alone with all below it; asked again when it is about to be signalled,
since a list of processes is out of date as soon as it is made."""

_KERNEL_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")


def nobody(_pid: int) -> bool:
    return False


def children(pid: int) -> list[int]:
    """The direct children of `pid`, dead but unreaped ones too."""
    return _lookup()(pid)


def descendants(root: int, spare: Spare = nobody) -> list[int]:
    """Every process below `root`, parents first, without what is spared."""
    return walk(root, _lookup(), spare)


def living(root: int) -> list[int]:
    """Every process below `root` that is not dead."""
    return [pid for pid in descendants(root) if state(pid).state not in (b"Z", b"X", b"")]


def walk(root: int, below: Callable[[int], list[int]], spare: Spare = nobody) -> list[int]:
    """Everything under `root` by a function that gives the children of one."""
    found = [root]
    seen = {root}
    for parent in found:
        fresh = [pid for pid in below(parent) if pid not in seen and not spare(pid)]
        seen.update(fresh)
        found += fresh
    return found[1:]


def by_parents(parents: Mapping[int, int]) -> Callable[[int], list[int]]:
    """A function for `walk` from a table of everyone's parent."""
    return lambda pid: [child for child, parent in parents.items() if parent == pid]


def signal_tree(root: int, number: int, spare: Spare = nobody) -> None:
    """Send a signal once to every process below `root`."""
    found = descendants(root, spare)
    family = {root, *found}
    for pid in found:
        _send(pid, number, family, spare)


class OwnChildren:
    """The children of this process, to be listed even when no descriptor is free.

    A program of the same user may take all descriptors from a helper (`prlimit`). Then nothing of
    /proc can be opened, but a list that is already open can be read again.
    """

    def __init__(self) -> None:
        self._list = -1
        if _KERNEL_LISTS_CHILDREN:
            self._list = os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)

    def pids(self) -> list[int]:
        if self._list < 0:
            return children(os.getpid())
        os.lseek(self._list, 0, os.SEEK_SET)
        return [int(child) for child in _contents(self._list).split()]

    def kill(self, spare: Spare = nobody) -> None:
        """Kill them, once. What was below them comes to a subreaper as children of its own."""
        for pid in self.pids():
            if not spare(pid):
                _kill_child(pid)


def end_tree(own: OwnChildren, nothing_left: Callable[[], bool]) -> None:
    """Kill everything below this process repeatedly, until `nothing_left` (which reaps) agrees."""
    pause = 0.001
    while not nothing_left():
        kill_tree(os.getpid())
        own.kill()
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def kill_tree(root: int, spare: Spare = nobody) -> None:
    """Kill everything below `root`, once."""
    _freeze(root, spare)
    signal_tree(root, signal.SIGKILL, spare)


def _kill_child(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)  # until we reap it, the number is its own
    except (ProcessLookupError, PermissionError):
        return  # it came and went, or a set-user-id program


def _freeze(root: int, spare: Spare) -> None:
    """Stop every process below `root`, so that none can fork away from the kill that follows."""
    stopped: set[int] = set()
    for _ in range(_FREEZE_ROUNDS):
        found = descendants(root, spare)
        fresh = [pid for pid in found if pid not in stopped]
        if not fresh:
            return
        for pid in fresh:
            _send(pid, signal.SIGSTOP, {root, *found}, spare)
        stopped.update(fresh)


def send(pid: int, number: int, is_ours: Callable[[], bool]) -> None:
    """Send a signal if the process is the one that was meant, which is asked once it is pinned."""
    try:
        pinned = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        # No pidfd here (an old kernel, a sandbox): the check and the signal are one step apart.
        _deliver(is_ours, lambda: os.kill(pid, number))
        return
    try:
        _deliver(is_ours, lambda: signal.pidfd_send_signal(pinned, number))
    finally:
        os.close(pinned)


def _deliver(is_ours: Callable[[], bool], deliver: Callable[[], None]) -> None:
    try:
        if is_ours():
            deliver()
    except (ProcessLookupError, PermissionError):
        # Gone meanwhile, or a set-user-id program that is not ours to signal.
        return


def _send(pid: int, number: int, family: Collection[int], spare: Spare) -> None:
    send(pid, number, lambda: state(pid).parent in family and not spare(pid))


class State:
    """A process as /proc shows it; of one that is gone, everything is empty."""

    def __init__(self, stat: bytes) -> None:
        # The name, in parentheses, may hold anything; the fields start after the last one.
        head, _, rest = stat.rpartition(b")")
        fields = rest.split()
        self.name = head.partition(b"(")[2]
        self.state = fields[0] if fields else b""
        self.parent = int(fields[1]) if fields else 0
        self.born = fields[19] if fields else b""
        self.work = fields[7:13]
        """Page faults and processor time: they grow while it does anything."""


def state(pid: int) -> State:
    return State(_read(f"/proc/{pid}/stat"))


def _lookup() -> Callable[[int], list[int]]:
    return _listed_children if _KERNEL_LISTS_CHILDREN else by_parents(_parents())


def _listed_children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    lists = (_read(f"/proc/{pid}/task/{thread}/children") for thread in threads)
    return [int(child) for listed in lists for child in listed.split()]


def _parents() -> dict[int, int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    return {int(name): state(int(name)).parent for name in names if name.isdecimal()}


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return _contents(file)
    except OSError:
        return b""
    finally:
        os.close(file)


def _contents(file: int) -> bytes:
    return b"".join(iter(lambda: os.read(file, 65536), b""))
