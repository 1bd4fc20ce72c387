"""The zygote: a small process which forks a keeper for each program the host wants to run.

It has no state of the host's but one control socket (its standard input at the start), holds
no descriptor of any child, reaps its keepers, and ends when the host and all keepers are gone.
A keeper that was itself killed leaves orphans; they come to the zygote, which kills them.
"""

from __future__ import annotations

import gc
import os
import select
from _socket import MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket

from .keeper import IGNORED, adopt_orphans, clear, close_all_but, keep, wake_on_child
from .tree import children, kill_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

# The life socket, the order, and the program's standard input, output and error.
DESCRIPTORS = 5
_SPACE = 256
_RETRY_MS = 20


def main(descriptors: str | None = None) -> None:
    """`descriptors` is the soft limit of what is started here, where the host has raised its
    own."""
    control = _set_up()
    if descriptors is not None:
        _limit(int(descriptors))
    Zygote(control).serve()


def _set_up() -> socket:
    control = socket(fileno=os.dup(0))
    os.dup2(1, 0)
    close_all_but([control.fileno()])
    os.chdir("/")
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans(b"dragoman-zygote")
    gc.disable()
    gc.freeze()
    return control


def _limit(descriptors: int) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


class Zygote:
    def __init__(self, control: socket) -> None:
        self._control = control
        self._keepers: set[int] = set()
        self._wake = wake_on_child()
        self._poll = select.poll()

    def serve(self) -> None:
        """Fork keepers on request; after the host's end wait for the last of them."""
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._control.fileno(), select.POLLIN)
        attended = True
        strays = False
        while attended or self._keepers or strays:
            ready = [descriptor for descriptor, _ in self._poll.poll(_RETRY_MS if strays else None)]
            if self._control.fileno() in ready and not self._take_request():
                self._poll.unregister(self._control.fileno())
                attended = False
            if self._wake in ready or strays:
                clear(self._wake)
                self._reap()
                strays = self._kill_strays()

    def _take_request(self) -> bool:
        try:
            data, control, _, _ = self._control.recvmsg(16, _SPACE, MSG_CMSG_CLOEXEC)
        except OSError:
            return False
        descriptors = _received(control)
        if len(descriptors) == DESCRIPTORS:
            self._fork_keeper(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return bool(data)

    def _fork_keeper(self, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            os.write(descriptors[0], f"failed fork {error.errno}".encode())
            return
        if pid:
            self._keepers.add(pid)
            return
        try:
            keep(socket(fileno=descriptors[0]), descriptors[1], descriptors[2:])
        finally:
            os._exit(0)

    def _reap(self) -> None:
        """Collect the dead; a keeper that its own program has stopped goes on."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    return
                if not os.WIFSTOPPED(status):
                    self._keepers.discard(pid)
                elif pid in self._keepers:
                    os.kill(pid, signal.SIGCONT)
        except ChildProcessError:
            return

    def _kill_strays(self) -> bool:
        """Kill what came to us from a keeper that could not do its work; whether there was any."""
        if self._keepers.issuperset(children(os.getpid())):
            return False
        kill_tree(os.getpid(), spare=self._keepers)
        return True


def _received(control: list[tuple[int, int, bytes]]) -> list[int]:
    handed = [data for level, kind, data in control if (level, kind) == (SOL_SOCKET, SCM_RIGHTS)]
    return [descriptor for data in handed for descriptor in memoryview(data).cast("i")]
