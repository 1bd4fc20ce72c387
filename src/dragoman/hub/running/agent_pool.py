"""The agents that run here, shared or one per session, and those that a killed hub left running.

This is the second line of defence: with a keeper for each child, there is nothing left to find.
Only a process with exactly the noted pid and start time is ended, never one that reused the pid.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from dragoman.agents.settings.project_settings import ProjectTerms
from dragoman.agents.sign_ins import AuthStatus
from dragoman.client.capabilities import SessionInfo
from dragoman.client.client import Client
from dragoman.client.client_options import Archived
from dragoman.client.mcp import McpServer
from dragoman.data_directory import make_private
from dragoman.errors import DragomanError, RemoteError
from dragoman.hub.cluster.owner import is_gone, started
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running.activity import Activity
from dragoman.hub.running.caller import caller_of, with_caller
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.session.facts import EVERYTHING, Offer, SystemPrompt
from dragoman.store.records import Owner, SessionRecord

logger = logging.getLogger("dragoman.hub")

_LOOKS = 3


class Launcher(Protocol):
    """How to start an agent by its name."""

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        """A client that is not connected yet, and offers at most this. Raises ConfigError or
        UnknownAgent."""
        ...

    def is_shared(self, agent: str) -> bool:
        """Whether one process serves all sessions of this agent that are offered the same."""
        ...

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        """What a session brings along."""
        ...

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        """The one of the settings for new sessions of an agent in a folder; with None, the one for
        all agents. Raises ConfigError."""
        ...

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        """What applies to its sessions in a folder in addition to what its clients have. Raises
        ConfigError."""
        ...


class PooledAgent:
    """One agent process and the number of sessions that use it; call `started_again` after a
    restart. While a recorder in `behind` has much to store, the agent is not read."""

    def __init__(
        self,
        client: Client,
        started_again: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self._clock = clock
        self.started_again = started_again
        self.behind: set[EventRecorder] = set()
        client.read_at(self._pace)
        self.users = 0
        self._heard = self._looks = 0
        self.reset_idle()

    def reset_idle(self) -> None:
        """From now on nobody uses it, or one less does."""
        self.idle_since = self._quiet_at = self._clock()
        self._heard, self._looks = self.client.strays, 0

    def is_unused_for(self, seconds: float) -> bool:
        return self._clock() - self.idle_since >= seconds

    def goes_on(self, seconds: float) -> bool:
        """Whether it sent something between each two looks for so long, though it has no session:
        what is on its way when a session is closed comes in once, and what the agent still has to
        put in order takes a moment."""
        before, self._heard = self._heard, self.client.strays
        if self._heard == before:
            self._looks, self._quiet_at = 0, self._clock()
            return False
        self._looks += 1
        return self._looks >= _LOOKS and self._clock() - self._quiet_at >= seconds

    def _pace(self) -> Awaitable[None] | None:
        return self._until_stored() if self.behind else None

    async def _until_stored(self) -> None:
        while self.behind:
            await next(iter(self.behind)).caught_up()


class AgentPool:
    """Starts agents when a session needs one, and ends those that have not been used for a while.

    `on_change` gets the clients that run whenever there is one more or less. With `attended`, what
    agents ask waits for an answer, inside sessions and outside. `on_question` is called when there
    is one more or less to answer outside of sessions.
    """

    def __init__(
        self,
        launcher: Launcher,
        on_change: Callable[[Sequence[Client]], None] | None = None,
        *,
        limits: HubLimits,
        attended: bool = False,
        on_auth: Callable[[str, AuthStatus], None] | None = None,
        on_question: Callable[[], None] | None = None,
    ) -> None:
        self._on_question = on_question
        self._on_auth = on_auth
        self._asking: set[asyncio.Task[None]] = set()
        self._limits = limits
        self._attended = attended
        self.activity = Activity()
        self.launcher = launcher
        self._on_change = on_change
        self._running: list[PooledAgent] = []
        self._shared: dict[tuple[str, Offer], PooledAgent] = {}
        """Of those that run, the one that new sessions of an agent share. What a process is offered
        holds for all its sessions: those that are offered something else have another one."""
        self._starting: dict[tuple[str, Offer], asyncio.Lock] = {}

    def servers(self, running: PooledAgent, record: SessionRecord) -> list[McpServer]:
        """The MCP servers of a session; `dragoman mcp` is given what the session may do."""
        return with_caller(
            self.launcher.mcp_servers(record.id), lambda: caller_of(record, running.client)
        )

    async def use(
        self,
        agent: str,
        cwd: str,
        offer: Offer = EVERYTHING,
        more: Sequence[str] = (),
        *,
        on_start: Callable[[Client], None] = lambda _: None,
    ) -> PooledAgent:
        """An agent that is connected; give it back with `leave`. If it has to be started,
        `on_start` is called just before.

        Raises whatever entering a client raises.
        """

        async def start() -> PooledAgent:
            client = self._client(agent, cwd, offer, more)
            on_start(client)
            return await self._started(client)

        if offer.fence != "off" or not self.launcher.is_shared(agent):
            return _used(await start())
        key = (agent, offer)
        async with self._starting.setdefault(key, asyncio.Lock()):
            running = self._shared.get(key)
            if running is not None and running.client.connection_error is not None:
                # It has died; those who still use it end it when they leave.
                if not running.users:
                    await self._end(running)
                running = None
            if running is None:
                running = self._shared[key] = await start()
            return _used(running)

    def _client(self, agent: str, cwd: str, offer: Offer, more: Sequence[str]) -> Client:
        client = self.launcher.client(agent, cwd, offer)
        if client.fence is not None:
            client.fence.roots += more
        client.questions = "wait" if self._attended else "refuse"
        if self._on_auth is not None:
            client.on_auth = partial(self._on_auth, agent)
        client.on_question = self._on_question
        return client

    async def _started(self, client: Client) -> PooledAgent:
        running = PooledAgent(client, self._changed)
        await client.__aenter__()
        if client.capabilities.auth_status:
            self._asking.add(task := asyncio.create_task(_ask_auth(client)))
            task.add_done_callback(self._asking.discard)
        self._running.append(running)
        self._changed()
        return running

    def clients(self, agent: str | None) -> list[Client]:
        """Those of this agent that run; of all agents for None."""
        running = (each.client for each in self._running)
        return [client for client in running if agent in (None, client.name)]

    async def leave(self, running: PooledAgent, *, spent: bool = False) -> None:
        """A session no longer needs it; no other can use one that is `spent`."""
        running.users -= 1
        running.reset_idle()
        if spent and running.users == 0:
            self.retire(running)
        if running.users == 0 and running not in self._shared.values():
            await self._end(running)

    def retire(self, running: PooledAgent) -> None:
        """No new session shares it; it ends when the last that does leaves it."""
        self._shared = {key: one for key, one in self._shared.items() if one is not running}

    async def stop_idle(self, seconds: float) -> None:
        """End shared agents that were unused for so long, or that continue without a session."""
        for key, running in list(self._shared.items()):
            # Ending one takes a while: another may have come in the place of the next meanwhile.
            if running.users or self._shared.get(key) is not running:
                continue
            if running.goes_on(self._limits.stray_seconds) or running.is_unused_for(seconds):
                del self._shared[key]
                await self._end(running)

    async def aclose(self) -> None:
        self._shared.clear()
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*map(self._end, list(self._running)))

    async def _end(self, running: PooledAgent) -> None:
        with suppress(DragomanError):
            await running.client.aclose()
        if running in self._running:
            self._running.remove(running)
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change([running.client for running in self._running])


class KnownSession(msgspec.Struct, frozen=True):
    """A session that an agent keeps; `status` is its word for whether it is loaded, if it says."""

    info: SessionInfo
    status: str | None


async def known_sessions(
    client: Client, cwd: str | None, *, archived: Archived | None, limit: int
) -> list[KnownSession]:
    """The first of those that the agent lists. Raises Unsupported."""
    found: list[SessionInfo] = []
    async for info in client.list_sessions(cwd, archived=archived):
        found.append(info)
        if len(found) == limit:
            break
    statuses = await asyncio.gather(*(_status(client, info.id) for info in found))
    return list(map(KnownSession, found, statuses))


async def _status(client: Client, session_id: str) -> str | None:
    """None too for one that is gone meanwhile."""
    if client.capabilities.status:
        with suppress(RemoteError):
            return await client.session_status(session_id)
    return None


async def _ask_auth(client: Client) -> None:
    """Nobody waits for it: an agent that cannot say it is prompted like any other."""
    with suppress(DragomanError):
        await client.auth_status()


def _used(running: PooledAgent) -> PooledAgent:
    running.users += 1
    return running


class _Child(msgspec.Struct):
    pid: int
    started: str


class _Note(msgspec.Struct):
    owner: Owner
    children: list[_Child]


class Orphans:
    """The notes of all hubs on this machine, a file each in `directory`."""

    def __init__(self, directory: Path, owner: Owner) -> None:
        self._directory = directory
        self._owner = owner
        self._file = directory / f"{owner.id}.json"

    def note(self, pids: Sequence[int]) -> None:
        """These run now; what was noted before no longer counts."""
        if not pids:
            self._file.unlink(missing_ok=True)
            return
        children = [_Child(pid, started(pid)) for pid in pids]  # raises OSError, as writing does
        make_private(self._directory)
        fresh = self._file.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_Note(self._owner, children)))
        fresh.replace(self._file)

    def sweep(self) -> list[int]:
        """End what hubs that are gone have left; the pids that were ended."""
        ended: list[int] = []
        for file in self._directory.glob("*.json"):
            note = _read(file)
            if note is not None and is_gone(note.owner):
                ended += [child.pid for child in note.children if _end(child)]
                file.unlink(missing_ok=True)
        return ended


def _read(file: Path) -> _Note | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Note)
    except (OSError, msgspec.DecodeError):
        return None


def _still_runs(child: _Child) -> bool:
    try:
        return started(child.pid) == child.started
    except OSError:
        return False  # nobody knows: better a process too many than the wrong one killed


def _end(child: _Child) -> bool:
    if not child.started or not _still_runs(child):
        return False
    logger.warning("killing leftover process %d", child.pid)
    with suppress(ProcessLookupError, PermissionError):
        # Agents lead a group of their own, and what they started is in it.
        if os.getpgid(child.pid) == child.pid:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            os.kill(child.pid, signal.SIGKILL)
    return True
