"""The gate of a fence: answers for what programs inside do by themselves, and records it.

The kernel has each start of a program wait for us, and with `ask` also each file that is opened for
writing. A thread for each tree of programs reads what they want; rules and people are asked on the
event loop, while the thread continues. The gate is not a boundary, the fence is: what passes
here still meets the fence, and a program can change its words after they were read.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from dragoman.fence import seccomp
from dragoman.fence.caller_memory import Unreadable
from dragoman.fence.kernel_calls import open_exactly
from dragoman.fence.seccomp_listener import Call, Gone, Listener
from dragoman.host.fence import traced_process
from dragoman.host.fence.floor import Floor
from dragoman.host.fence.overseer import MOST_PARENTS, Overseer, ProgramStart
from dragoman.host.fence.refusal_count import MOST_TOLD, RefusalCount, times
from dragoman.host.rules.access import normalise
from dragoman.process import descriptors
from dragoman.session.events import AccessDecided, Event
from dragoman.session.facts import Decision

logger = logging.getLogger("dragoman.host")

MOST_READ = 32 << 10
"""Characters of the words of a program."""
MOST_WATCHED = 128
"""Programs whose end is waited for, of one fence."""
MOST_ASKED = 16
"""Writes that wait for a person at once, of one fence; more are refused."""
MOST_EARLY = 20
"""Events from before there is a session."""
MOST_KNOWN = 4096
"""Programs whose names are kept for those below them, and folders that are known to be real."""
SECONDS_REFUSED = 60.0
"""How long a refusal counts for the same file: many programs try again."""

_FLAGS = (
    os.O_ACCMODE
    | os.O_CREAT
    | os.O_EXCL
    | os.O_TRUNC
    | os.O_APPEND
    | os.O_NONBLOCK
    | os.O_SYNC
    | os.O_DSYNC
    | os.O_CLOEXEC
)
"""Those that matter for a file."""
_EXECS = (seccomp.EXECVE, seccomp.EXECVEAT)
_PRIVATE = ("/tmp/", "/var/tmp/", "/dev/", "/proc/")


Judge: TypeAlias = Callable[[Callable[[Event], None]], Overseer]
"""Makes one who judges before there is a session, given where to record."""


class Write(NamedTuple):
    """A file that a program wants to open for writing."""

    path: str
    asked: str
    """The name that the program used for it."""
    flags: int
    mode: int


class TreeGate:
    """Of one fence. Its newest session judges; before there is one, `judge` does, and what ran is
    kept for the first."""

    def __init__(self, floor: Floor, judge: Judge) -> None:
        self._loop = asyncio.get_running_loop()
        self._early: list[Event] = []
        self._overseers: list[Overseer] = [judge(self._keep)]
        self._surface = Surface(floor)
        self._watched: set[int] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._refused: dict[str, float] = {}
        self._unasked = RefusalCount()
        self._last: tuple[int, ProgramStart] | None = None

    def take(self, listener: int, argv: Sequence[str], cwd: str) -> None:
        """Answer here from now on, until the last program of the tree has ended. The first is
        known by these words."""
        descriptors.guard(listener)
        first = ProgramStart(tuple(map(_shown, argv)), _shown(os.path.realpath(cwd)))
        # Judged now, so that it does not wait for us later.
        may_start = self._overseers[-1].refusal(first) is None
        thread = _Doorkeeper(self, Listener(listener), listener, self._surface, first, may_start)
        try:
            thread.start()
        except RuntimeError as error:
            descriptors.close(listener)  # the program fails to start
            raise BlockingIOError(errno.EAGAIN, "no thread can be started") from error

    def attach(self, overseer: Overseer) -> None:
        """A session is open, and judges from now on."""
        self._overseers[0].log.flush()
        self._overseers.append(overseer)
        early, self._early = self._early, []
        for event in early:
            overseer.log.record(event)

    def detach(self, overseer: Overseer) -> None:
        overseer.log.close()
        if overseer in self._overseers[1:]:
            self._overseers.remove(overseer)

    def _keep(self, event: Event) -> None:
        """What ran before there was a session belongs to the first one."""
        if len(self._overseers) > 1:
            self._overseers[-1].log.record(event)
        elif len(self._early) < MOST_EARLY:
            self._early.append(event)

    def post(self, what: Callable[..., None], *arguments: object) -> bool:
        """From a thread; whether there is a loop to do it."""
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            return False
        return True

    # ── on the loop ───────────────────────────────────────────────────────────────────────────

    def starting(self, door: _Doorkeeper, call: Call, start: ProgramStart, process: int) -> None:
        """A program is about to start: decide, answer, record."""
        overseer = self._overseers[-1]
        refusal = overseer.refusal(start)
        if refusal is not None:
            door.listener.refuse(call)
            _close(process)
            # The same process tries the next folder of PATH: that is one attempt.
            if self._is_news(call, start):
                overseer.log.add(start, refusal)
            return
        door.let_start(call, start)
        self.started(door, call, start, process)

    def started(self, door: _Doorkeeper, call: Call, start: ProgramStart, process: int) -> None:
        """A program was let through: record it."""
        if not self._is_news(call, start):
            _close(process)
            return
        overseer = self._overseers[-1]
        program_id = overseer.log.add(start)
        self._watch(overseer, program_id, call.pid, process, door)

    def _is_news(self, call: Call, start: ProgramStart) -> bool:
        before, self._last = self._last, (call.pid, start)
        return before != self._last

    def _watch(
        self, overseer: Overseer, program_id: str, pid: int, process: int, door: _Doorkeeper
    ) -> None:
        """Have its end told. A process that starts another program in its place is watched once
        for each."""
        if process < 0 or not program_id or len(self._watched) >= MOST_WATCHED:
            _close(process)
            return

        def ended() -> None:
            self._stop_watching(process)
            door.forget(pid)
            if (status := traced_process.status_of(process, pid)) is not None:
                overseer.log.ended(program_id, status)
            _close(process)

        self._watched.add(process)
        self._loop.add_reader(process, ended)

    def _stop_watching(self, process: int) -> None:
        if process in self._watched:
            self._watched.remove(process)
            self._loop.remove_reader(process)

    def wanted(self, door: _Doorkeeper, call: Call, write: Write, process: int) -> None:
        """A write beyond the fence: ask, and hold up nothing else."""
        overseer = self._overseers[-1]
        if (reason := self._why_not_to_ask(write.path)) is not None:
            door.listener.refuse(call)
            _close(process)
            self._tell_unasked(overseer, write.path, reason)
            return
        task = self._loop.create_task(self._ask(overseer, door, call, write, process))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        if process >= 0:
            self._watched.add(process)
            self._loop.add_reader(process, task.cancel)  # nobody waits for the answer

    def _why_not_to_ask(self, path: str) -> str | None:
        if self._refused.get(path, 0.0) > time.monotonic():
            return "the same write was refused less than a minute ago"
        if len(self._asking) >= MOST_ASKED:
            return f"{MOST_ASKED} other questions of this fence wait for an answer"
        return None

    def _tell_unasked(self, overseer: Overseer, path: str, reason: str) -> None:
        """Each attempt is on record, many of them as one."""
        count = self._unasked.add(path)
        if count is None:
            return
        title = f"Write {path} (outside the fence){times(count)}"
        if count == 0:
            title, path, reason = "further files", "", f"more than {MOST_TOLD} files were refused"
        decision = Decision("deny", reason, by="fence")
        paths = [path] if path else []
        overseer.log.record(AccessDecided("write", decision, paths=paths, title=title))

    async def _ask(
        self, overseer: Overseer, door: _Doorkeeper, call: Call, write: Write, process: int
    ) -> None:
        allowed = False
        try:
            allowed = await overseer.permits(write.path, write.asked)
            if allowed:
                await asyncio.to_thread(door.open, call, write)
            else:
                self._note_refusal(write.path)
        finally:
            self._stop_watching(process)
            _close(process)
            if not allowed:
                door.listener.refuse(call)

    def _note_refusal(self, path: str) -> None:
        now = time.monotonic()
        if len(self._refused) >= MOST_KNOWN:
            self._refused = {each: end for each, end in self._refused.items() if end > now}
        if len(self._refused) < MOST_KNOWN:
            self._refused[path] = now + SECONDS_REFUSED

    async def aclose(self) -> None:
        """To be called when the programs have ended."""
        for task in list(self._asking):
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        for process in list(self._watched):
            self._stop_watching(process)
            _close(process)
        for overseer in reversed(self._overseers):
            overseer.log.close()


class Surface:
    """Where a program inside may write without us: quick to ask, and a mistake asks too little."""

    def __init__(self, floor: Floor) -> None:
        self._free = (*_PRIVATE, f"{floor.temporary}/")
        self._writable = _prefixes(floor.paths("write"))
        self._held = _prefixes(floor.paths("read-only"))
        self._covered = _prefixes(floor.paths("covered"))
        self._with_held = {os.path.dirname(path) for path in floor.paths("read-only")}
        self._borne: set[str] = set()
        """Folders in which every file may be written that is not a link."""

    def bears(self, path: str) -> bool:
        """Whether the fence lets it be written, by a name that is not a link."""
        folder = path.rpartition("/")[0]
        if folder not in self._borne:
            within = f"{path}/"
            if within.startswith(self._free):
                return True
            if not within.startswith(self._writable) or within.startswith(self._held):
                return False
            if not self._is_real(folder):
                return False
            if f"{folder}/".startswith(self._writable) and folder not in self._with_held:
                self._note(folder)
        # The first is quicker about a file that is new, and most files of an installation are.
        return not os.access(path, os.F_OK, follow_symlinks=False) or not os.path.islink(path)

    def _is_real(self, folder: str) -> bool:
        if folder.rpartition("/")[0] in self._borne:
            return not os.path.islink(folder)
        return os.path.realpath(folder) == folder

    def _note(self, folder: str) -> None:
        if len(self._borne) >= MOST_KNOWN:
            self._borne.clear()
        self._borne.add(folder)

    def hides(self, path: str) -> bool:
        """Whether it is covered: an agent never gets it, whatever the rules allow."""
        return f"{path}/".startswith(self._covered)


def _prefixes(paths: list[str]) -> tuple[str, ...]:
    return tuple(f"{path.rstrip('/')}/" for path in paths)


class _Doorkeeper(threading.Thread):
    """Reads what the programs of one tree want."""

    def __init__(
        self,
        gate: TreeGate,
        listener: Listener,
        descriptor: int,
        surface: Surface,
        first: ProgramStart,
        may_start: bool,
    ) -> None:
        super().__init__(name=f"gate-{descriptor}", daemon=True)
        self.listener = listener
        self._gate = gate
        self._descriptor = descriptor
        self._surface = surface
        self._first = first
        self._is_awaited = may_start
        """Whether the first call is to be let through without a look: it is ours."""
        self._names: dict[int, tuple[str, ...]] = {}
        self._mounts = 0
        """The mount namespace of the fence, as the first program saw it."""

    def run(self) -> None:
        try:
            for call in self.listener.calls():
                try:
                    self._serve(call)
                except Gone:
                    continue
        except OSError:
            logger.exception("what runs inside a fence can no longer be asked about")
        finally:
            descriptors.close(self._descriptor)

    def _serve(self, call: Call) -> None:
        if call.name in _EXECS:
            self._exec(call)
        else:
            self._open(call)

    def let_start(self, call: Call, start: ProgramStart) -> None:
        """A process is this program from now on."""
        if len(self._names) >= MOST_KNOWN:
            self._names.clear()
        self._names[call.pid] = (*start.parents, os.path.basename(start.argv[0]))[-MOST_PARENTS:]
        self.listener.let_through(call)

    def forget(self, pid: int) -> None:
        self._names.pop(pid, None)

    # ── programs ──────────────────────────────────────────────────────────────────────────────

    def _exec(self, call: Call) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._start_first(call)
            return
        try:
            path, words, whole = self.listener.program(call, MOST_READ)
        except Unreadable:
            self._post_start(call, self._first)
            return
        self._note_mounts(call)
        if not _could_run(call.pid, path):
            self.listener.let_through(call)  # a folder of PATH that has no such program
            return
        parents = self._parents(call.pid)
        start = ProgramStart(tuple(words) or (path,), self.listener.folder(call), parents, whole)
        self._post_start(call, start)

    def _note_mounts(self, call: Call) -> None:
        if self._mounts <= 0:
            mounts = traced_process.mounts_of(call.pid)
            self.listener.check(call)
            self._mounts = mounts

    def _start_first(self, call: Call) -> None:
        self._note_mounts(call)
        process = self._process(call)
        self.let_start(call, self._first)
        if not self._gate.post(self._gate.started, self, call, self._first, process):
            _close(process)

    def _post_start(self, call: Call, start: ProgramStart) -> None:
        process = self._process(call)
        if not self._gate.post(self._gate.starting, self, call, start, process):
            _close(process)
            self.listener.refuse(call)

    def _process(self, call: Call) -> int:
        """A descriptor of who called, or -1. Raises Gone."""
        process = traced_process.descriptor_of(call.pid)
        try:
            self.listener.check(call)
        except Gone:
            _close(process)
            raise
        return process

    def _parents(self, pid: int) -> tuple[str, ...]:
        """The names of the programs above a process. A fork that started no other program is the
        same one, and one that a process starts in its own place has the same above it."""
        if pid in self._names:
            return self._names[pid][:-1]
        for _ in range(MOST_PARENTS):
            pid = traced_process.parent_of(pid)
            if pid in self._names:
                return self._names[pid]
            if pid <= 1:
                break
        return ()

    # ── files ─────────────────────────────────────────────────────────────────────────────────

    def _open(self, call: Call) -> None:
        try:
            name, flags, mode = self.listener.opened(call)
        except Unreadable:
            self.listener.let_through(call)  # the fence holds
            return
        if not flags & seccomp.WRITES or flags & os.O_PATH or not name.startswith("/"):
            self.listener.let_through(call)
            return
        asked = normalise(name)
        if self._surface.bears(asked):
            self.listener.let_through(call)
            return
        self._note_mounts(call)
        path = os.path.realpath(name)
        if self._is_for_the_kernel(call.pid, path, flags):
            self.listener.let_through(call)
            return
        process = self._process(call)
        write = Write(path, asked, flags & _FLAGS, mode)
        if not self._gate.post(self._gate.wanted, self, call, write, process):
            _close(process)
            self.listener.refuse(call)

    def _is_for_the_kernel(self, pid: int, path: str, flags: int) -> bool:
        """Whether a question makes no sense: the fence lets it through, or hides it; it would fail
        anyway; or the program is in a world of its own making, where the name means another
        file."""
        return (
            self._surface.bears(path)
            or self._surface.hides(path)
            or traced_process.mounts_of(pid) != self._mounts
            or traced_process.root_of(pid) != "/"
            or not _could_write(path, flags)
            or not _is_text(path)
        )

    def open(self, call: Call, write: Write) -> None:
        """Open the one file that was allowed, and hand it over."""
        try:
            umask = traced_process.umask_of(call.pid)
            self.listener.check(call)
            descriptor = _opened(write, write.mode & ~umask)
        except Gone:
            return
        except OSError as error:
            self.listener.refuse(call, error.errno or errno.EACCES)
            return
        try:
            on_exec = bool(write.flags & os.O_CLOEXEC)
            self.listener.hand_over(call, descriptor, close_on_exec=on_exec)
        finally:
            os.close(descriptor)


def _opened(write: Write, mode: int) -> int:
    """By its real name, so that no link put there since leads elsewhere. Raises OSError."""
    flags = write.flags | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = open_exactly(os.fsencode(write.path), flags, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PermissionError(errno.EACCES, "not a file")
    if not write.flags & os.O_NONBLOCK:
        os.set_blocking(descriptor, True)
    return descriptor


def _is_text(path: str) -> bool:
    """Whether it can be shown and stored: a name may be any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _could_write(path: str, flags: int) -> bool:
    """Whether we could, if there were no fence: a file, or a new one where the flags make it."""
    try:
        found = os.lstat(path)
    except OSError:
        return bool(flags & os.O_CREAT) and os.access(os.path.dirname(path), os.W_OK | os.X_OK)
    both = os.O_CREAT | os.O_EXCL
    return stat.S_ISREG(found.st_mode) and flags & both != both and os.access(path, os.W_OK)


def _could_run(pid: int, path: str) -> bool:
    """Whether there is such a program. What only the kernel can tell may be one."""
    if not path.startswith("/") or path.startswith(("/proc/", "/dev/fd/", "/memfd:")):
        return True
    try:
        found = os.stat(f"/proc/{pid}/root{path}")
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111)


def _shown(word: str) -> str:
    return word.encode(errors="surrogateescape").decode(errors="replace")


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        with suppress(OSError):
            descriptors.close(descriptor)
