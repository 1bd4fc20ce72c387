"""The warden and the zygote, the processes between the host and the keepers.

The zygote forks a keeper for each program the host wants to run. It has no state of the host's
but one control socket (its standard input at the start), holds no descriptor of any child, and
ends when the host and all keepers are gone. The warden is its parent and takes no requests.

Both look after the helpers below them. If a program stops a helper, it is continued; if it is
stopped repeatedly, the one above does its work. A killed helper leaves orphans to the next one
above, where keepers continue and programs are killed. When the host is gone, the warden ends
everything below it.
"""

from __future__ import annotations

import gc
import os
import time
from _socket import MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket

from . import helper_watch, inherited_limits
from .keeper import (
    IGNORED,
    adopt_orphans,
    become_helper,
    clear,
    close_all_but,
    keep,
    make_network,
    readable,
    wake_on_child,
)
from .process_tree import OwnChildren, kill_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

# The life socket, the order, and the program's standard input, output and error; then what its
# fence needs of the host.
DESCRIPTORS = 5
NETWORK = b"network"
"""The request for a network of its own, followed by the ports on which it listens; with the socket
on which its descriptors go out."""
_SPACE = 256
_RETRY_SECONDS = 0.02
# How long the keepers may take to end their programs once the host has gone, and to end.
_PROGRAMS_SECONDS = 0.5
_KEEPERS_SECONDS = 3.0


def main(descriptors: str, *given: str) -> None:
    """`descriptors` is the soft limit of what is started here, where the host has raised its
    own; `given` is what the host says that this process inherits."""
    host = os.getppid()
    try:
        adopt_orphans()
    except OSError:
        os._exit(helper_watch.IMPOSSIBLE)
    control = _set_up()
    if descriptors:
        _limit(int(descriptors))
    try:
        pid = os.fork()
    except OSError:
        return  # no process is free
    if pid:
        control.close()
        become_helper(helper_watch.WARDEN)
        Warden(host).serve()
    else:
        become_helper(helper_watch.ZYGOTE)
        Zygote(control, inherited_limits.read(given)).serve()


def _set_up() -> socket:
    control = socket(fileno=os.dup(0))
    os.dup2(1, 0)
    close_all_but([control.fileno()])
    os.chdir("/")
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    gc.freeze()
    return control


def _limit(descriptors: int) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


class Superior:
    """A helper with helpers below it."""

    def __init__(self) -> None:
        self._session = os.getsid(0)
        self._own = OwnChildren()
        self._wake = wake_on_child()
        self._watched = [self._wake]
        self._stops: dict[int, int] = {}

    def look_after(self) -> float | None:
        """Do what is due for those below; when to look again at the latest, in seconds."""
        return _RETRY_SECONDS if self._kill_strays() else None

    def wait(self, seconds: float | None) -> list[int]:
        """Wait for news of a child, or on a descriptor; which descriptors are ready."""
        ready = readable(self._watched, seconds)
        if self._wake in ready:
            clear(self._wake)
        return ready

    def reap(self) -> bool:
        """Collect the dead, and let the stopped continue; whether a child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    return True
                if os.WIFSTOPPED(status):
                    self._resume(pid)
                else:
                    self._stops.pop(pid, None)
        except ChildProcessError:
            return False

    def _resume(self, child: int) -> None:
        if not helper_watch.is_helper(child, self._session):
            return  # a stray, to be killed
        self._stops[child] = self._stops.get(child, 0) + 1
        if self._stops[child] > helper_watch.STOPS:
            self._relieve()
        helper_watch.resume(child, self._session)

    def _relieve(self) -> None:
        try:
            helper_watch.relieve(self._session)
        except OSError:
            return  # no descriptor is free to look around with

    def _kill_strays(self) -> bool:
        """Kill what came to us from a keeper that could not do its work; whether there was any."""
        spare = helper_watch.spared(self._session)
        if all(map(spare, self._own.pids())):
            return False
        kill_tree(os.getpid(), spare)
        self._own.kill(spare)
        return True


class Warden(Superior):
    """The helper above the zygote: nothing but a watch over the others."""

    def __init__(self, host: int, keepers: float = _KEEPERS_SECONDS) -> None:
        super().__init__()
        self._host = host
        self._keepers = keepers
        self._alone_since: float | None = None

    def serve(self) -> None:
        """Look after the others until none is left."""
        while self.reap():
            self.wait(self.look_after())

    def look_after(self) -> float | None:
        pause = super().look_after()
        if os.getppid() == self._host:
            return pause
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        try:
            self._end_all(now - self._alone_since)
        except OSError:
            # No descriptor is free to look around with. The children of whom we kill come to us.
            self._own.kill()
        return _RETRY_SECONDS

    def _end_all(self, alone: float) -> None:
        if alone > _PROGRAMS_SECONDS:
            helper_watch.end_all(self._session)
        if alone > self._keepers:
            self._kill_helpers()

    def _kill_helpers(self) -> None:
        for helper in helper_watch.helpers(self._session):
            if helper != os.getpid():
                helper_watch.kill(helper, self._session)


class Zygote(Superior):
    """The helper that starts keepers."""

    def __init__(self, control: socket, given: inherited_limits.Traits) -> None:
        super().__init__()
        self._control = control
        self._given = given
        self._watched.append(control.fileno())

    def serve(self) -> None:
        """Fork keepers on request; after the host's end wait for the last of them."""
        attended = True
        pause = None
        while self.reap() or attended:
            ready = self.wait(pause)
            if self._wake in ready or pause is not None:
                pause = self.look_after()
            if self._control.fileno() in ready and not self._take_request():
                self._watched.remove(self._control.fileno())
                attended = False

    def _take_request(self) -> bool:
        try:
            data, control, _, _ = self._control.recvmsg(_SPACE, _SPACE, MSG_CMSG_CLOEXEC)
        except OSError:
            return False
        descriptors = _received(control)
        if len(descriptors) >= DESCRIPTORS:
            self._serve_request(descriptors)
        elif data.startswith(NETWORK) and descriptors:
            self._fork_maker(descriptors[0], list(map(int, data.split()[1:])))
        for descriptor in descriptors:
            os.close(descriptor)
        return bool(data)

    def _serve_request(self, descriptors: list[int]) -> None:
        if name := inherited_limits.changed(self._given):
            os.write(descriptors[0], f"changed {name}".encode())
        else:
            self._fork_keeper(descriptors)

    def _fork_keeper(self, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            os.write(descriptors[0], f"failed fork {error.errno}".encode())
            return
        if pid:
            return
        try:
            life, order, *given = descriptors
            keep(socket(fileno=life), order, given[:3], given[3:])
        finally:
            os._exit(0)

    def _fork_maker(self, out: int, ports: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            os.write(out, b"%d" % (error.errno or 0))
            return
        if pid:
            return
        try:
            make_network(out, ports)
        finally:
            os._exit(0)


def _received(control: list[tuple[int, int, bytes]]) -> list[int]:
    handed = [data for level, kind, data in control if (level, kind) == (SOL_SOCKET, SCM_RIGHTS)]
    return [descriptor for data in handed for descriptor in memoryview(data).cast("i")]
