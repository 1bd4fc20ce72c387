"""Endpoints for hosts: the list of them, where a session is, and moving it to another."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import UnknownHost
from dragoman.hub.cluster.host_directory import HostDirectory, judged
from dragoman.hub.cluster.owner import is_gone
from dragoman.store.records import HostRecord, Owner, SessionRecord, utc
from dragoman.web.context import Server
from dragoman.web.placement import plain
from dragoman.web.shapes.server_shapes import (
    HostList,
    HostShape,
    MoveBody,
    SessionHost,
)


async def list_hosts(server: Server) -> HostList:
    return HostList(hosts=[_shape(server, host) for host in await server.hub.hosts.all()])


def _shape(server: Server, host: HostRecord) -> HostShape:
    return HostShape(
        id=host.id,
        name=host.name,
        alive=host.alive,
        here=host.id == server.hub.owner.id,
        address=host.address or None,
        cwd=host.cwd,
        agents=host.agents,
        sessions=host.sessions,
        turns=host.turns,
        version=host.version,
        seen_at=utc(host.seen_at),
    )


class Whereabouts:
    """Where sessions are, according to the hosts at one moment."""

    def __init__(self, server: Server, known: Sequence[HostRecord]) -> None:
        self._owner = server.hub.owner
        self._hosts = server.hub.hosts
        self._known = judged(known)

    def of(self, record: SessionRecord, owner: Owner | None) -> SessionHost | None:
        """None for a session that does not run and can run anywhere."""
        if owner is not None and (owner.id == self._owner.id or not is_gone(owner)):
            name = next((host.name for host in self._known if host.id == owner.id), owner.label)
            return SessionHost(name=name, alive=True, here=owner.id == self._owner.id)
        if record.home is None or self._hosts.home is None:
            return None
        hosts = [host for host in self._known if host.home == record.home]
        living = [host for host in hosts if host.alive]
        return SessionHost(
            name=next((host.name for host in (*living, *hosts)), record.home),
            alive=bool(living),
            here=self._hosts.has(record),
        )

    def offered(self, record: SessionRecord, at: SessionHost | None) -> list[str]:
        """The hosts that could continue a session whose own is not live."""
        if at is None or at.alive:
            return []
        return [host.name for host in self._known if host.alive and record.agent in host.agents]


async def move_session(server: Server, session_id: str, body: MoveBody) -> None:
    """Raises UnknownHost, SessionOwned, and what opening it there raises."""
    hub = server.hub
    record = await hub.record(session_id)
    cwd = None if body.cwd is None else plain(body.cwd)
    host = await _destination(hub.hosts, record, body.host)
    await hub.elsewhere.move(record, host, cwd, "new" if body.reset else "fail")


async def _destination(hosts: HostDirectory, record: SessionRecord, word: str | None) -> HostRecord:
    if word is not None:
        return await hosts.named(word)
    able = await hosts.able(record.agent)
    if not able:
        raise UnknownHost(record.agent, f"no live host offers agent {record.agent}")
    return able[0]
