"""An agent as a process whose end, and what is left of it, can be watched."""

from __future__ import annotations

import os

from dragoman.conformance.probing.wait_limit import WaitLimit
from dragoman.process import process_tree
from dragoman.process.child import ExitStatus
from dragoman.transport.stdio import StdioTransport

_DEAD = (b"", b"Z", b"X")


class WatchedTransport(StdioTransport):
    """A connection to a process of this machine."""

    _left = False

    @property
    def stderr(self) -> str:
        """The end of what it printed on standard error."""
        return self._errors.text()

    async def end_input(self, limit: WaitLimit) -> ExitStatus | None:
        """Close the agent's input; how it ended, None if it did not in that time. The second time,
        it is not waited for."""
        if self._left:
            return self._process.status
        self._left = True
        self._input.finish()
        return await self.end(limit)

    async def end(self, limit: WaitLimit) -> ExitStatus | None:
        """How it ended, None if it did not in that time."""
        await limit.happens(self._process.wait)
        return self._process.status

    def keeper(self) -> int:
        """The process that has everything below it that the agent starts; 0 if that is ours."""
        parent = process_tree.state(self.pid).parent
        return 0 if parent == os.getpid() else parent

    async def aclose(self, *, exit_within: float = 2.0, term_within: float = 3.0) -> None:
        """As always; an agent that has had its time to end gets no more."""
        within = 0.0 if self._left else exit_within
        await super().aclose(exit_within=within, term_within=term_within)


def left_below(keeper: int) -> dict[int, str]:
    """The processes that live on, with their names, once the agent itself has ended."""
    if not keeper:
        return {}
    found = {pid: process_tree.state(pid) for pid in process_tree.descendants(keeper)}
    return {
        pid: each.name.decode("utf-8", "replace")
        for pid, each in found.items()
        if each.state not in _DEAD
    }
