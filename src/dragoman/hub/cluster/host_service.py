"""The host service: announces this process regularly, and runs what other hosts send it.

A call is a command for a session that nobody runs. The session is opened here, and its inbox then
has the command like any other; what cannot be opened is refused to the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dragoman._version import __version__
from dragoman.errors import (
    AuthRequired,
    CommandNotFound,
    CommandRefused,
    DragomanError,
    NameTaken,
    SessionError,
    SessionNotContinued,
    SessionOwned,
    UnknownAgent,
    UnknownHost,
    UnknownSession,
    Unsupported,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.opener import Opener
from dragoman.store.base import LEASE_SECONDS
from dragoman.store.outage import failure_logged
from dragoman.store.records import HostRecord, StoredCommand

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

logger = logging.getLogger("dragoman.hub")

ANNOUNCE_SECONDS = 5.0
_BETWEEN_LOOKS = 0.02
_BETWEEN_TRIES = 0.5


@dataclass(frozen=True, kw_only=True)
class Presence:
    """What a server announces; `agents` are those it can start now. With `renamed`, it takes
    another name if a live host has this one."""

    name: str
    agents: Callable[[], Sequence[str]]
    address: str = ""
    cwd: str = ""
    renamed: bool = False


class Hosting:
    """The host service of one hub, from `start` to `aclose`."""

    def __init__(self, hub: Hub, opener: Opener) -> None:
        self._hub = hub
        self._opener = opener
        self._fresh = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._answering: dict[str, asyncio.Task[None]] = {}

    async def start(self, presence: Presence) -> str:
        """Be there for others; the name that was had. Raises UnknownHost when it is taken."""
        presence = await self._with_free_name(presence)
        await self._announce(presence)
        self._tasks = [
            asyncio.create_task(self._keep_announcing(presence)),
            asyncio.create_task(self._keep_answering()),
        ]
        self._hub.parked.are_taken_up = True
        return presence.name

    async def aclose(self) -> None:
        """Be called no more; what is being opened is left to the hub."""
        self._hub.parked.are_taken_up = False
        for task in (*self._tasks, *self._answering.values()):
            task.cancel()
        if self._tasks:
            await asyncio.wait((*self._tasks, *self._answering.values()))
            if self._hub.store.away is None:  # else it is seen that this process has ended
                with suppress(DragomanError):
                    await self._hub.store.depart(self._hub.owner.id)

    def look(self) -> None:
        """Someone may have called."""
        self._fresh.set()

    # ── being there ───────────────────────────────────────────────────────────────────────────

    async def _with_free_name(self, presence: Presence) -> Presence:
        taken = {
            host.name
            for host in await self._hub.hosts.all()
            if host.alive and (host.home is None or host.home != self._hub.hosts.home)
        }
        if presence.name not in taken:
            return presence
        if not presence.renamed:
            raise UnknownHost(presence.name, f"another host is already named {presence.name}")
        name = f"{presence.name}-{self._hub.owner.id[:4]}"
        return Presence(
            name=name, agents=presence.agents, address=presence.address, cwd=presence.cwd
        )

    async def _keep_announcing(self, presence: Presence) -> None:
        while True:
            await asyncio.sleep(ANNOUNCE_SECONDS)
            self.look()  # should a hint have been lost
            with failure_logged("other hosts cannot see this one", logger):
                await self._announce(presence)

    async def _announce(self, presence: Presence) -> None:
        host = HostRecord(
            id=self._hub.owner.id,
            home=self._hub.hosts.home,
            name=presence.name,
            address=presence.address,
            cwd=presence.cwd,
            agents=await asyncio.to_thread(lambda: list(presence.agents())),
            turns=sum(live.session.busy for live in self._hub.live.values()),
            version=__version__,
            owner=self._hub.owner,
        )
        await self._hub.store.announce(host, seconds=LEASE_SECONDS)

    # ── being called ──────────────────────────────────────────────────────────────────────────

    async def _keep_answering(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            await self._look()
            await asyncio.sleep(_BETWEEN_LOOKS)

    async def _look(self) -> None:
        calls: Sequence[StoredCommand] = ()
        with failure_logged("requests from other hosts could not be read", logger):
            calls = await self._hub.store.calls(self._hub.owner.id)
        for call in calls:
            if call.session_id not in self._answering:
                task = asyncio.create_task(self._answer(call))
                self._answering[call.session_id] = task
                task.add_done_callback(lambda _, key=call.session_id: self._answered(key))

    def _answered(self, session_id: str) -> None:
        del self._answering[session_id]
        self.look()  # more may have come for it

    async def _answer(self, call: StoredCommand) -> None:
        """Once, whatever comes of it: a call that stays would be answered repeatedly."""
        try:
            await self._obey(call.session_id, c.decode_command(call.body))
        except UnknownSession:
            return
        except SessionOwned:
            # It is its owner's now; one that does not get to it is not waited for in a loop.
            await asyncio.sleep(_BETWEEN_TRIES)
        except (DragomanError, msgspec.DecodeError) as error:
            await self._refuse(call.session_id, _refusal(error))
        except Exception as error:
            logger.exception("a call failed")
            await self._refuse(call.session_id, c.Refusal("failed", str(error)))

    async def _obey(self, session_id: str, command: c.Command) -> None:
        match command:
            case c.Delete(local):
                await self._hub.delete(session_id, local=local)
            case c.Open(cwd=cwd, on_reset=on_reset):
                await self._hub.open_here(session_id, cwd=cwd, on_reset=on_reset)
            case _:
                await self._hub.open(session_id)

    async def _refuse(self, session_id: str, refusal: c.Refusal) -> None:
        try:
            async with self._hub.running.opening(session_id):
                await self._opener.refuse(session_id, refusal)
        except SessionError:
            pass  # it is its owner's now, or nobody's
        except DragomanError as error:
            logger.warning("a request could not be refused: %s", error)
            await asyncio.sleep(1.0)  # it will be found again


_CODES: dict[type[Exception], str] = {
    SessionNotContinued: "not_continued",
    UnknownAgent: "unknown_agent",
    CommandNotFound: "agent_missing",
    AuthRequired: "auth_required",
    NameTaken: "name_taken",
    Unsupported: "unsupported",
    msgspec.DecodeError: "unsupported",
}


def _refusal(error: Exception) -> c.Refusal:
    if isinstance(error, CommandRefused):
        return c.Refusal(error.code, str(error), error.detail)
    if isinstance(error, msgspec.DecodeError):
        return c.Refusal("unsupported", "the host runs another version of dragoman")
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "failed")
    return c.Refusal(code, str(error))
