"""The identity of this process as an owner, and whether another owner is still alive.

On one machine a process is known by its pid and the time it started; a process on another machine,
or in another container, cannot be seen from here: there the lease decides, by the store's clock.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from dragoman.store.records import Owner


def this_process(label: str | None = None, *, alone: bool = True, home: str | None = None) -> Owner:
    """This process, as an owner that was never there before; called as the machine is, unless
    there is another `label`. On a store that other machines have too it is not `alone`, and has a
    `home`."""
    pid = os.getpid()
    return Owner(
        id=os.urandom(8).hex(),
        machine=_machine() if alone else _machine_since_boot(),
        pid=pid,
        started=started(pid),
        label=label or socket.gethostname(),
        home=home,
    )


def is_gone(owner: Owner) -> bool:
    """Whether nothing can be asked of it: the one rule, for everyone who shows or asks. One that
    cannot be seen from here may still work, cut off from the store; `has_ended` tells."""
    if not is_here(owner):
        return not owner.alive
    return has_stopped(owner) or _is_silent(owner)


def has_ended(owner: Owner, home: str | None = None) -> bool | None:
    """For a process that wants to take its place: None when its lease has to decide, since nobody
    here can tell. That another hub of this process is there does not say that it works. One with
    another `home` may have left events there: the next process there has the first chance."""
    if not is_here(owner):
        return None
    if has_stopped(owner):
        return True if owner.home in (None, home) else None
    return None if owner.pid == os.getpid() or _is_silent(owner) else False


def has_stopped(owner: Owner) -> bool:
    """Whether the process is known to have ended, by its number and its start: neither a lease that
    ran out nor a clock says so. Not while the system does not let us look."""
    if not is_here(owner):
        return False
    try:
        return started(owner.pid) != owner.started
    except OSError:
        return False


def _is_silent(owner: Owner) -> bool:
    """On a store that other machines have too, one that was paused is as gone as one of theirs; the
    epoch of its successor shuts it out when it wakes."""
    return owner.machine != _machine() and not owner.alive


def is_here(owner: Owner) -> bool:
    """Whether its number is that of a process which can be seen from here."""
    return owner.machine in (_machine(), _machine_since_boot())


def started(pid: int) -> str:
    """When a process started, in the system's own way to say so; "" when there is none.

    Raises OSError when the system does not say: that does not mean that the process has ended.
    """
    if sys.platform == "linux":
        with suppress(FileNotFoundError, ProcessLookupError):
            # Behind the name in brackets, which may hold anything, the 20th field.
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return "" if stat[0] in "ZX" else f"{_boot()}-{stat[19]}"
        return ""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode not in (0, 1):  # 1 is what it says of a pid that is not there
        raise OSError(f"ps ended with {listed.returncode}")
    return listed.stdout.strip()


@cache
def _machine() -> str:
    """The same for all processes that can see each other's pids, and for no others."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            # Images for containers have it empty.
            if machine := Path(name).read_text().strip():
                break
    else:
        machine = socket.gethostname()
    namespace = ""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{machine} {namespace}".strip()


def _machine_since_boot() -> str:
    """Machines that were cloned have all in common but this; the price is that after a restart of
    the machine leases have to run out."""
    return f"{_machine()} {_boot()}"


@cache
def _boot() -> str:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    return ""
