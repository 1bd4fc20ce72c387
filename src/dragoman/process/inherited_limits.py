"""What programs inherit from the helpers, and what of it other programs can change.

Any program of the same user may lower the limits of a process, its priority or its share of the
machine, and every program started below it would inherit that. So the host writes down what it
gives to a zygote, and the zygote compares before each start. Runs in both, so it imports little.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Traits = dict[str, str]

_RESET_ON_FORK = 0x40000000
_IO_PRIORITY_CALLS = {"x86_64": 252, "aarch64": 31, "riscv64": 31}
_IO_CLASSES = {1: "realtime", 3: "idle"}


def traits(descriptors: int | None = None) -> Traits:
    """What a child of this thread inherits; with another soft limit of descriptors, if given."""
    found = _limits(descriptors)
    for name, read in _READERS.items():
        try:
            found[name] = read()
        except OSError:
            found[name] = ""  # not every system has each of them
    if _is_reset_in_a_child(found["scheduling"]):
        del found["scheduling"], found["priority"]
    return found


def written(known: Traits) -> list[str]:
    """The traits as words of a command line."""
    return [f"{name}={value}" for name, value in known.items()]


def read(words: Iterable[str]) -> Traits:
    return dict(word.split("=", 1) for word in words)


def changed(given: Traits) -> str | None:
    """The first trait of this process that is not what it was given."""
    now = traits()
    return next((name for name, value in given.items() if now.get(name) != value), None)


def _limits(descriptors: int | None) -> Traits:
    import resource

    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    pairs = {name: resource.getrlimit(getattr(resource, name)) for name in names}
    if descriptors is not None:
        for name in ("RLIMIT_NOFILE", "RLIMIT_OFILE"):  # one limit by two names
            pairs[name] = (descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return {name: f"{soft}:{hard}" for name, (soft, hard) in pairs.items()}


def _scheduling() -> str:
    return f"{os.sched_getscheduler(0)}:{os.sched_getparam(0).sched_priority}"


def _is_reset_in_a_child(scheduling: str) -> bool:
    return bool(scheduling) and bool(int(scheduling.partition(":")[0]) & _RESET_ON_FORK)


def _processors() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def _io_priority() -> str:
    """Only the class: the value for no priority varies."""
    import ctypes

    call = _IO_PRIORITY_CALLS.get(os.uname().machine)
    value: int = -1 if call is None else ctypes.CDLL(None).syscall(call, 1, 0)
    return _IO_CLASSES.get(value >> 13, "")


def _content(path: str) -> Callable[[], str]:
    def read() -> str:
        with open(path, "rb") as file:
            return file.read().decode("ascii", "backslashreplace")

    return read


_READERS: dict[str, Callable[[], str]] = {
    "priority": lambda: str(os.getpriority(os.PRIO_PROCESS, 0)),
    "scheduling": _scheduling,
    "processors": _processors,
    "io_priority": _io_priority,
    "cgroup": _content("/proc/thread-self/cgroup"),
    "oom_score_adj": _content("/proc/self/oom_score_adj"),
}
