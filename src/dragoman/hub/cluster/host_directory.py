"""Which hosts there are, which of them has a session's workspace, and which is least busy.

A host is a process that takes sessions from others, on one store with them. A session belongs to
its `home`: the machine with its workspace and with what its agent remembers of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.data_directory import home_id
from dragoman.errors import UnknownHost
from dragoman.hub.cluster.owner import has_ended, is_gone
from dragoman.store.base import Store
from dragoman.store.records import HostRecord, Owner, SessionRecord, Standing


def home_of(store: Store, directory: Path) -> str | None:
    """What this machine's data directory is called in a store; the same at every start.

    None where the store is a file: a host that has it has the workspaces next to it.
    """
    return None if store.is_local else home_id(directory)


def is_there(host: HostRecord) -> bool:
    """By the same rule as the owners of sessions."""
    return host.alive and (host.owner is None or not is_gone(host.owner))


def judged(hosts: Sequence[HostRecord]) -> list[HostRecord]:
    """As this process sees them: one on this machine that has ended is gone at once."""
    return [msgspec.structs.replace(host, alive=is_there(host)) for host in hosts]


def host_of(record: SessionRecord, hosts: Sequence[HostRecord]) -> HostRecord | None:
    """The host that has a session's workspace, when it is there."""
    if record.home is None:
        return None
    return next((host for host in hosts if host.home == record.home and is_there(host)), None)


def name_of(home: str | None, hosts: Sequence[HostRecord]) -> str:
    """What people call a home: as its last host was called."""
    return next((host.name for host in hosts if host.home == home), f"with the id {home}")


class HostDirectory:
    """The hosts as seen from a process with this home; None for a store that needs no homes."""

    def __init__(self, store: Store, owner: Owner, home: str | None) -> None:
        self.home = home
        self._store = store
        self._owner = owner

    def has(self, record: SessionRecord) -> bool:
        """Whether this process may run a session: its workspace is here, or anywhere."""
        return self.home is None or record.home in (None, self.home)

    def has_ended(self, owner: Owner) -> bool | None:
        """Whether its place can be taken by this process; None where its lease has to decide."""
        return has_ended(owner, self.home)

    def may_be_cut_off(self, record: SessionRecord, at: Standing) -> bool:
        """Whether a session of another host may run there, or there may be more of it to store,
        though that host is gone."""
        is_left = at.owner is not None and not self.has_ended(at.owner)
        return is_left and host_of(record, at.hosts) is None

    async def all(self) -> list[HostRecord]:
        return judged(await self._store.hosts())

    async def named(self, word: str) -> HostRecord:
        """The one that is there and called so, by its name or its id. Raises UnknownHost."""
        found = [host for host in await self.all() if word in (host.name, host.id)]
        there = [host for host in found if host.alive]
        if len(there) == 1:
            return there[0]
        if there:
            raise UnknownHost(word, f"{len(there)} hosts are named {word}")
        left = f"the host {word} is not live"
        raise UnknownHost(word, left if found else f"no such host: {word}")

    async def able(self, agent: str) -> list[HostRecord]:
        """Those that are there and have an agent, the least busy first; of equals this one."""
        found = [host for host in await self.all() if host.alive and agent in host.agents]
        return sorted(found, key=lambda host: (_burden(host), host.id != self._owner.id, host.name))

    async def name_of(self, home: str | None) -> str:
        return name_of(home, await self._store.hosts())


def _burden(host: HostRecord) -> int:
    """A turn that runs weighs as much as a session that is open."""
    return host.sessions + host.turns
