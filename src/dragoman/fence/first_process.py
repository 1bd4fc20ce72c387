"""Process 1 of a fenced program's own world: builds the fence, starts the program, buries the dead.

Nobody inside can signal, stop or trace it, and nobody outside is visible to them. When it ends, the
kernel ends everything inside with it. It ends when its keeper does, or when nothing is left.

It reports to the keeper on `status`: `here`, then the program itself `program` (the kernel tells
the keeper who that is, in its own numbers), then `exited CODE` or `signalled NUMBER`.
"""

from __future__ import annotations

import os

from . import kernel_calls as calls
from . import namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from .plan import FencePlan


def fork() -> int:
    """Fork into new namespaces; 0 in the new process, as `os.fork` has it. Raises OSError."""
    return calls.clone(namespaces.NAMESPACES)


def build(plan: FencePlan, user: tuple[int, int], terminal: int | None) -> None:
    """Build the fence around this process, which stays in its folder. Raises OSError; one that is
    not to be seen inside does not exist."""
    namespaces.map_user(*user)
    name = None if terminal is None else os.fsencode(os.ttyname(terminal))
    before, path = os.stat("."), os.getcwdb()
    namespaces.build(plan, name)
    # What was open before is a way around what was mounted since: entered again, by name.
    os.chdir(path)
    if not os.path.samestat(before, os.stat(".")):
        raise FileNotFoundError(2, "the folder is not inside the fence")
    namespaces.close_off()


def bury(main: int, status: socket) -> None:
    """Collect the dead until none is left; say how the program ended."""
    while True:
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if pid == main:
            main = 0  # the number may come back, in a descendant
            status.send(report_of(os.waitstatus_to_exitcode(ended)).encode())


def report_of(code: int) -> str:
    return f"exited {code}" if code >= 0 else f"signalled {-code}"
