"""The fence of one client: built before its agent starts, around the agent and its terminals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman.errors import FenceError
from dragoman.fence.plan import FencePlan
from dragoman.host.fence.covered_paths import listening_sockets, without_sockets
from dragoman.host.fence.fence_terms import FenceMode, NetworkTerms
from dragoman.host.fence.floor import FenceWay, Floor
from dragoman.host.fence.kernel_support import support
from dragoman.host.fence.network.fence_network import WITHOUT_NAMESPACES, FenceNetwork
from dragoman.host.fence.overseer import Overseer
from dragoman.host.fence.private_folder import PrivateFolder
from dragoman.host.fence.tree_gate import TreeGate
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.roots import Workspace
from dragoman.session.events import Event


class Fence:
    """Around programs that work in `roots`. `floor` is called with those when it is built, since it
    looks at the disk."""

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
        """To be added to before it is built."""
        self._make_floor = floor
        self._folder: PrivateFolder | None = None
        self._opening = asyncio.Lock()
        self.floor: Floor | None = None
        self.way: FenceWay | None = None
        """How it is held; None before it is built, or if it cannot be."""
        self.problem = ""
        """Why there is none, if it was wanted."""
        self.no_gate = ""
        """Why nobody can tell what runs inside, if nobody can."""
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
        plan.offline = self.network.terms == "none"
        return plan

    async def _build(self) -> None:
        # The data directory exists from here on, and so is covered.
        folder = await asyncio.to_thread(PrivateFolder)
        try:
            floor = await asyncio.to_thread(self._make_floor, self.roots)
            found = await support(folder.path)
            if found.way == "namespaces":
                await self.network.open()
        except BaseException:
            folder.close()
            raise
        if found.way is None:
            folder.close()
            self.problem = found.reason
            return
        if found.way == "landlock" and self.network.terms != "all":
            self.network.problem = WITHOUT_NAMESPACES
        self._folder, self.way = folder, found.way
        self.floor = msgspec.structs.replace(floor, temporary=folder.path)
        self.no_gate = found.no_gate
        if not found.no_gate:
            self.gate = TreeGate(self.floor, self._overseer)

    def _overseer(self, record: Callable[[Event], None]) -> Overseer:
        """Who judges before there is a session."""
        workspace = Workspace("", self.roots[0], tuple(self.roots[1:]))
        return Overseer(workspace, agent=self.agent, policy=self.policy, record=record)

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
    """Every socket with a name in the file system that is in use now."""
    try:
        return listening_sockets(Path("/proc/net/unix").read_text(errors="surrogateescape"))
    except OSError:
        return []
