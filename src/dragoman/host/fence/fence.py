"""The fence of one client: built before its agent starts, around the agent and its terminals.

Also its temporary folder, and which kind of fence the kernel of this system can hold.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from dragoman.data_directory import data_directory, make_private
from dragoman.errors import FenceError, StartError
from dragoman.fence.plan import FencePlan
from dragoman.fence.seccomp_listener import let_all_through
from dragoman.host.fence.covered_paths import listening_sockets, without_sockets
from dragoman.host.fence.fence_terms import NetworkTerms
from dragoman.host.fence.floor import FenceWay, Floor
from dragoman.host.fence.network.fence_network import FenceNetwork
from dragoman.host.fence.overseer import Overseer, ProgramLog
from dragoman.host.fence.tree_gate import TreeGate
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.roots import Workspace
from dragoman.process.spawn import spawn
from dragoman.session.events import Event
from dragoman.session.facts import FenceMode


class Fence:
    """A fence around programs that work in `roots`. `floor` is called with these folders when the
    fence is built, because it looks at the disk."""

    def __init__(
        self,
        mode: FenceMode,
        roots: Sequence[str],
        floor: Callable[[Sequence[str]], Floor],
        network: NetworkTerms = "all",
    ) -> None:
        self.mode: FenceMode = mode
        self.network = FenceNetwork(network)
        self.roots = list(roots)
        """May be added to until the fence is built."""
        self._make_floor = floor
        self._folder: PrivateFolder | None = None
        self._opening = asyncio.Lock()
        self.floor: Floor | None = None
        self.way: FenceWay | None = None
        """How it is enforced; None until it is built, or if it cannot be built."""
        self.problem = ""
        """Why no fence was built, if one was wanted."""
        self.no_gate = ""
        """Why the programs inside cannot be recorded, if they cannot."""
        self.policy, self.agent = Policy(), ""
        """Whose rules apply inside before there is a session; to be set before it is built."""
        self.gate: TreeGate | None = None

    async def open(self, command: str) -> FencePlan | None:
        """Build it for this program, once; None if this system has none.

        Raises FenceError if it is required, ConfigError if its paths make no sense.
        """
        async with self._opening:
            if self.mode != "off" and self.floor is None and not self.problem:
                await self._build()
        if self.mode == "require" and (problem := self.problem or self.network.problem):
            await self.aclose()
            raise FenceError(command, problem)
        return self.plan

    @property
    def plan(self) -> FencePlan | None:
        if self.floor is None or self.way is None:
            return None
        plan = self.floor.plan(self.way)
        if self.gate is not None:
            plan.gate = "write" if self.mode == "ask" else "exec"
            plan.listen = self.gate.take
        plan.network = self.network.spaces
        plan.sockets = self.network.sockets
        return plan

    async def _build(self) -> None:
        # The data directory exists from here on, and so is covered.
        folder = await asyncio.to_thread(PrivateFolder)
        try:
            floor = await asyncio.to_thread(self._make_floor, self.roots)
            found = await support(folder.path)
            await self.network.open(found.way)
        except BaseException:
            folder.close()
            raise
        if found.way is None:
            folder.close()
            self.problem = found.reason
            return
        self._folder, self.way = folder, found.way
        self.floor = msgspec.structs.replace(floor, temporary=folder.path)
        self.no_gate = found.no_gate
        if not found.no_gate:
            self.gate = TreeGate(self.floor, self._overseer)

    def _overseer(self, record: Callable[[Event], None]) -> Overseer:
        """Who judges before there is a session."""
        workspace = Workspace("", self.roots[0], tuple(self.roots[1:]))
        log = ProgramLog(record)
        return Overseer(workspace=workspace, agent=self.agent, policy=self.policy, log=log)

    def holds(self, folder: str) -> bool:
        """Whether a session may work in this folder."""
        if self.way is None or self.floor is None:
            return True
        real = os.path.realpath(folder)
        return any(
            real == path or real.startswith(f"{path}/") for path in self.floor.paths("write")
        )

    @property
    def folder(self) -> str | None:
        """The private temporary folder, as long as it is there."""
        return None if self._folder is None else self._folder.path

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Of a program inside: what leads outside is taken out, and temporary files go into the
        private folder."""
        if self._folder is None:
            return dict(env)
        folder = self._folder.path
        return {
            **self.network.environment(without_sockets(env)),
            **dict.fromkeys(("TMPDIR", "TMP", "TEMP", "TEMPDIR"), folder),
            "XDG_RUNTIME_DIR": self._folder.runtime,
        }

    async def aclose(self) -> None:
        """Remove the temporary folder and the network; to be called when the programs have
        ended."""
        await self.network.aclose()
        gate, self.gate = self.gate, None
        if gate is not None:
            await gate.aclose()
        folder, self._folder = self._folder, None
        self.floor = None
        if folder is not None:
            await asyncio.to_thread(folder.close)


def sockets_of_others() -> list[str]:
    """Every socket with a name in the file system that is in use now, in whichever network: one
    that is found by its name can be connected to from any of them."""
    names = {name for table in _socket_tables() for name in listening_sockets(table)}
    return sorted(filter(_is_socket, names))


def _socket_tables() -> Iterator[str]:
    """The kernel's list for each network namespace that a process is in."""
    seen: set[int] = set()
    for process in ("self", *filter(str.isdecimal, _names("/proc"))):
        table = Path(f"/proc/{process}/net/unix")
        with suppress(OSError):  # the process has ended
            if (identity := table.stat().st_ino) not in seen:
                seen.add(identity)
                yield table.read_text(errors="surrogateescape")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_socket(path: str) -> bool:
    """By this name here: a process may have files of its own, where it names another one."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


# ── the temporary folder ────────────────────────────────────────────────────────────────────────

# The temporary folder of a fence: private, and gone with it.
#
# It is locked as long as its owner lives; what a killed owner left is removed by the next one
# that makes such a folder.


class PrivateFolder:
    """Owns a new folder until `close`. Raises OSError."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = make_private(data_directory() / "fences" if parent is None else parent)
        _sweep(parent)
        # A short name: programs make sockets in it, whose addresses are limited.
        self.path = str(parent / os.urandom(4).hex())
        os.mkdir(self.path, 0o700)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(self.runtime, 0o700)

    @property
    def runtime(self) -> str:
        """For the sockets that programs make for each other."""
        return os.path.join(self.path, "run")

    def close(self) -> None:
        """Remove it, with all that is in it."""
        if self._lock >= 0:
            _remove(self.path)
            lock, self._lock = self._lock, -1
            os.close(lock)

    def __del__(self) -> None:
        if getattr(self, "_lock", -1) >= 0:
            os.close(self._lock)


def _sweep(parent: Path) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with suppress(OSError):  # it is in use, or just being removed
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(descriptor)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        _make_removable(path)
        shutil.rmtree(path, ignore_errors=True)


def _make_removable(path: str) -> None:
    """A folder may have been made that not even its owner can read; links are not followed."""
    with suppress(OSError):
        os.chmod(path, 0o700)
    for folder, folders, _ in os.walk(path):
        for name in folders:
            inner = os.path.join(folder, name)
            if not os.path.islink(inner):
                with suppress(OSError):
                    os.chmod(inner, 0o700)


# ── what the kernel can do ──────────────────────────────────────────────────────────────────────

# Which kind of fence this system can build, found out by building one around a program that ends.
#
# Asked once for each user, before the first fence: a start that needs one must not try in vain.


_WAYS: tuple[FenceWay, ...] = ("namespaces", "landlock")


class Support(NamedTuple):
    """The best way there is, or None and why there is none."""

    way: FenceWay | None
    reason: str = ""
    no_gate: str = ""
    """Why the kernel cannot ask us about what programs inside do, if it cannot."""


_found: dict[int, Support] = {}


async def support(temporary: str) -> Support:
    """`temporary` is a folder that the trial may use."""
    if sys.platform != "linux":
        return Support(None, "a fence needs Linux")
    if (user := os.geteuid()) not in _found:
        _found[user] = await _tried(temporary)
    return _found[user]


async def _tried(temporary: str) -> Support:
    reasons: list[str] = []
    for way in _WAYS:
        place = os.fsencode(temporary)
        no_gate = ""
        try:
            try:
                await _build(FencePlan(way, temporary=place, gate="exec", listen=let_all_through))
            except StartError as error:
                no_gate = error.reason
                await _build(FencePlan(way, temporary=place))
        except StartError as error:
            reasons.append(f"{way}: {error.reason}")
        else:
            return Support(way, "; ".join(reasons), no_gate)
    return Support(None, "; ".join(reasons))


async def _build(plan: FencePlan) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        process = await spawn(
            ["/bin/sh", "-c", ":"],
            env={},
            cwd="/",
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            fence=plan,
        )
        await process.wait()
        await process.stop(exit_within=0, term_within=0)
    finally:
        os.close(nothing)
