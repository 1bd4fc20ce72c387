"""Chooses the host for a new session: the one that is named, else the least busy suitable one.

On a store of this machine alone other processes are not other machines: there it starts here.
"""

from __future__ import annotations

import asyncio
import os

import msgspec

from dragoman.errors import CommandRefused
from dragoman.hub.session_records import RecordOptions
from dragoman.session.facts import EVERYTHING, Offer, SystemPrompt
from dragoman.session.limits.spending_limits import NO_LIMITS, SessionLimits
from dragoman.store.records import HostRecord
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed

_TRY_THE_NEXT = ("no_workspace", "owner_gone", "host_gone")
"""Refusals after which nothing has been done, and that another host may not have."""


class WantedPlace(msgspec.Struct, kw_only=True, frozen=True):
    """Where a new session should run; by default, with this server's agent and in its host's
    folder."""

    agent: str | None = None
    cwd: str | None = None
    host: str | None = None
    session_id: str | None = None
    name: str | None = None
    additional_directories: list[str] = []
    offer: Offer = EVERYTHING
    system_prompt: SystemPrompt | None = None
    own_limits: SessionLimits = NO_LIMITS

    def options(self, folders: list[str]) -> RecordOptions:
        """What the session is given, with its additional `folders` as they are called there."""
        return {
            "session_id": self.session_id,
            "name": self.name,
            "additional_directories": folders,
            "offer": self.offer,
            "system_prompt": self.system_prompt,
            "limits": self.own_limits,
        }


def system_prompt_from(said: str | SystemPrompt | None) -> SystemPrompt | None:
    """A text is added to the agent's own instructions. Raises RequestFailed."""
    try:
        return SystemPrompt(said) if isinstance(said, str) else said
    except ValueError as error:
        raise RequestFailed(400, "invalid", str(error)) from None


async def begin(server: Server, wanted: WantedPlace) -> str:
    """Start it; its id. Raises UnknownHost, Failure, and what starting a session raises."""
    agent = wanted.agent
    if agent is None:
        agent = server.default_agent(wanted.cwd, wanted.host)
    failure: CommandRefused | None = None
    for host in await _candidates(server, agent, wanted):
        try:
            return await _begin_on(server, host, agent, wanted)
        except CommandRefused as error:
            if error.code not in _TRY_THE_NEXT:
                raise
            failure = failure or error
    if failure is not None:
        raise failure
    return await _begin_here(server, agent, wanted)


async def _candidates(server: Server, agent: str, wanted: WantedPlace) -> list[HostRecord]:
    """None where only this server comes into question."""
    hosts = server.hub.hosts
    if wanted.host is not None:
        return [await hosts.named(wanted.host)]
    if hosts.home is None:
        return []
    # Of the others only they themselves know which folders they have.
    has_folder = wanted.cwd is None or await asyncio.to_thread(os.path.isdir, wanted.cwd)
    able = await hosts.able(agent)
    return [host for host in able if has_folder or host.id != server.hub.owner.id]


async def _begin_on(server: Server, host: HostRecord, agent: str, wanted: WantedPlace) -> str:
    if host.id == server.hub.owner.id:
        return await _begin_here(server, agent, wanted)
    return await server.hub.create_on(
        host,
        agent,
        plain(wanted.cwd or host.cwd),
        **wanted.options([plain(path) for path in wanted.additional_directories]),
    )


async def _begin_here(server: Server, agent: str, wanted: WantedPlace) -> str:
    live = await server.hub.create(
        agent,
        folder(server.cwd if wanted.cwd is None else wanted.cwd),
        **wanted.options([folder(path) for path in wanted.additional_directories]),
    )
    # With what its agent said about it.
    await live.recording.stored()
    return live.id


def folder(path: str) -> str:
    """Raises Failure for what is not the absolute path of a folder here."""
    if not os.path.isdir(found := plain(path)):
        word = "not a folder" if os.path.exists(found) else "no such folder"
        raise _no_folder(path, f"{path}: {word}")
    return found


def plain(path: str) -> str:
    """The same for a folder that may be on another host: it is not looked for."""
    if not os.path.isabs(path):
        raise _no_folder(path, f"expected the absolute path of a folder, not {path!r}")
    return os.path.normpath(path)


def _no_folder(path: str, sentence: str) -> RequestFailed:
    """With the path, so that a form can say it at the field where it was typed."""
    return RequestFailed(400, "invalid", sentence, {"path": path})
