"""The engine behind every window: opens sessions, owns them, and passes on what is asked of them.

A session has one owner. What is asked of a session that another process owns goes into its inbox in
the store, and the answer comes back the same way: a caller need not know where a session runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.client.client import Client
from dragoman.errors import (
    CommandRefused,
    ConnectionClosed,
    DragomanError,
    ResourceNotFound,
    SessionOwned,
    UnknownSession,
    Unsupported,
)
from dragoman.hub import commands as c
from dragoman.hub.agents import Agents, Launcher
from dragoman.hub.chores import Chores
from dragoman.hub.inbox import Inbox, ask_owner
from dragoman.hub.live import Live
from dragoman.hub.opening import OnReset, Opener
from dragoman.hub.orphans import Orphans
from dragoman.hub.owner import is_gone, this_process
from dragoman.hub.states import stored_state
from dragoman.hub.watching import News, Tail, watch_all, watch_session
from dragoman.session.state import SessionState
from dragoman.store.base import Store
from dragoman.store.records import Lease, SessionChange, SessionRecord, StoredEvent

logger = logging.getLogger("dragoman.hub")

_CANCEL_SECONDS = 5.0
"""How long a turn may take to stop when the hub is closed."""


class Hub:
    """Use it as a context manager; leaving it ends what runs here, and all of it is stored.

    With `attended`, someone always answers questions; else only whoever a client's provider asks.
    In `notes`, a folder, stands what runs here, for the next hub if this one is killed.
    """

    def __init__(
        self,
        store: Store,
        launcher: Launcher,
        *,
        attended: bool = True,
        notes: Path | None = None,
    ) -> None:
        self.store = store
        self.owner = this_process()
        self.news = News()
        self.live: dict[str, Live] = {}
        """The sessions that run in this process, by their ids."""
        self._orphans = None if notes is None else Orphans(notes, self.owner)
        self._agents = Agents(launcher, self._agents_changed)
        self._opener = Opener(
            store, self._agents, self.owner, attended=attended, on_stored=self.news.tell
        )
        self._opening: dict[str, asyncio.Lock] = {}
        self._failures: dict[str, DragomanError] = {}
        self._inbox = Inbox(store, self._leases, self._serve)
        self.chores = Chores(self, self._opener, self._agents)
        self._leaving: dict[str, asyncio.Task[None]] = {}

    # ── its life ──────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Hub:
        self._unsubscribe = self.store.on_change(self._changed)
        self._inbox.start()
        self.chores.start()
        if self._orphans is not None:
            self._orphans.sweep()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _changed(self) -> None:
        self.news.tell_all()
        self._inbox.look()

    async def aclose(self) -> None:
        """Cancel what runs, store all of it, end the agents and give the sessions up."""
        self._unsubscribe()
        await self.chores.aclose()
        await self._inbox.aclose()
        if self._leaving:
            await asyncio.wait(self._leaving.values())
        lives = list(self.live.values())
        self.live.clear()
        await asyncio.gather(*map(self._settle, lives))
        await self._agents.aclose()
        for live in lives:
            await self._release(live)

    async def _settle(self, live: Live) -> None:
        if live.session.busy:
            with suppress(DragomanError, TimeoutError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await live.session.cancel()
        await live.detach(ConnectionClosed("the process that ran the session was closed"))

    async def _release(self, live: Live) -> None:
        try:
            await self.store.release(live.recording.lease)
        except DragomanError as error:
            logger.warning("a session could not be given up: %s", error)

    # ── opening ───────────────────────────────────────────────────────────────────────────────

    async def create(
        self,
        agent: str,
        cwd: str,
        *,
        session_id: str | None = None,
        name: str | None = None,
        additional_directories: Sequence[str] = (),
    ) -> Live:
        """A new session. Raises NameTaken, and what starting the agent raises."""
        record = _record(agent, cwd, session_id, name, additional_directories)
        return self._run(await self._opener.create(record))

    async def adopt(
        self, agent: str, agent_session_id: str, cwd: str, *, on_reset: OnReset = "fail"
    ) -> Live:
        """A session that only the agent knew. Raises SessionNotContinued where it cannot be."""
        record = _record(agent, cwd)
        record.agent_session_id = agent_session_id
        return self._run(await self._opener.adopt(record, on_reset))

    async def fork(self, session_id: str, *, name: str | None = None) -> Live:
        """A new session that remembers another. Raises UnknownSession, Unsupported."""
        parent = await self.record(session_id)
        if parent.agent_session_id is None:
            raise Unsupported("forking a session that was never opened")
        record = _record(parent.agent, parent.cwd, None, name, parent.additional_directories)
        record.parent = parent.id
        return self._run(await self._opener.fork(parent.agent_session_id, record, parent))

    async def fork_known(self, agent: str, agent_session_id: str, cwd: str) -> Live:
        """The same for a session that only the agent knows. Raises Unsupported."""
        record = _record(agent, cwd)
        return self._run(await self._opener.fork(agent_session_id, record, None))

    async def open(self, session_id: str, *, on_reset: OnReset = "fail") -> Live:
        """Have a stored session run here.

        Raises UnknownSession, SessionOwned when another process runs it, and SessionNotContinued
        when its agent does not remember it, unless `on_reset` is new.
        """
        async with self.opening(session_id):
            if (leaving := self._leaving.get(session_id)) is not None:
                await asyncio.wait([leaving])
            if (live := self.live.get(session_id)) is not None:
                return live
            record = await self.record(session_id)
            return self._run(await self._opener.reopen(record, on_reset))

    def opening(self, session_id: str) -> asyncio.Lock:
        """Held by whoever takes a session, so that we do not get in our own way."""
        return self._opening.setdefault(session_id, asyncio.Lock())

    def _run(self, live: Live) -> Live:
        self.live[live.id] = live
        self._failures.pop(live.id, None)
        live.recording.on_failed = lambda error: self._failed(live, error)
        if (error := live.recording.error) is not None:
            self._failed(live, error)
        self._inbox.look()
        return live

    def _failed(self, live: Live, error: DragomanError) -> None:
        """The store does not take the session's events any more: it must not go on unseen."""
        logger.error("session %s is not recorded any more: %s", live.id, error)
        self._failures[live.id] = error
        self.news.tell(live.id)
        self._let_go(live, live.detach(error))

    async def detach(self, live: Live) -> None:
        """Stop running a session here; it is stored, and can be opened again anywhere."""
        await asyncio.shield(self._let_go(live, self._settle(live)))

    def _let_go(self, live: Live, settling: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of its own: whoever wants to open the session again waits for it."""
        self.live.pop(live.id, None)
        task = self._leaving[live.id] = asyncio.create_task(self._leave(live, settling))
        task.add_done_callback(lambda _: self._leaving.pop(live.id, None))
        return task

    async def _leave(self, live: Live, settling: Coroutine[Any, Any, None]) -> None:
        try:
            await settling
            with suppress(DragomanError):
                await live.running.client.close_session(live.session.id)
        finally:
            live.session.gate.forget()
            await self._agents.leave(live.running)
            await self._release(live)

    @asynccontextmanager
    async def using(self, agent: str, cwd: str) -> AsyncGenerator[Client]:
        """The agent itself, started if it does not run; it stays for as long as this lasts."""
        running = await self._agents.use(agent, cwd)
        try:
            yield running.client
        finally:
            await self._agents.leave(running)

    # ── asking for things ─────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, command: c.Command) -> c.Reply:
        """Have a session do something, wherever it runs.

        Raises CommandRefused when it cannot, UnknownSession, and what opening it raises.
        """
        if (live := self.live.get(session_id)) is not None:
            return await self._do(live, command)
        await self.record(session_id)
        owner = await self.store.owner(session_id)
        if owner is None or is_gone(owner):
            if isinstance(command, _NEED_A_LIVE_ONE):
                return _nothing_runs(session_id, command)
            if isinstance(command, c.Close):
                return await self._close_stored(session_id)
        try:
            live = await self.open(session_id)
        except SessionOwned:
            return await ask_owner(self.store, self.news, session_id, command)
        return await self._do(live, command)

    async def _do(self, live: Live, command: c.Command) -> c.Reply:
        match command:
            case c.Close():
                await self._close(live)
                return {}
            case c.Kill():
                return await self._kill(live)
            case _:
                return await live.execute(command)

    async def _serve(self, session_id: str, command: c.Command) -> c.Reply:
        """A command from another process."""
        live = self.live.get(session_id)
        if live is None:
            raise CommandRefused(session_id, "failed", "the session does not run here any more")
        return await self._do(live, command)

    async def _close(self, live: Live) -> None:
        """End it in order, on the agent's side too; the record says that it is closed."""
        await asyncio.shield(self._let_go(live, self._end(live)))

    async def _end(self, live: Live) -> None:
        try:
            await live.running.client.close_session(live.session.id)
        except DragomanError as error:
            logger.warning("closing session %s: %s", live.id, error)
        await live.recording.seal()

    async def _close_stored(self, session_id: str) -> c.Reply:
        await self.store.change_session(session_id, SessionChange(status="closed"))
        return {}

    async def _kill(self, live: Live) -> c.Reply:
        await live.running.client.kill()
        await live.recording.settled()
        return {}

    async def rename(self, session_id: str, title: str) -> None:
        """Give it a title that the agent's does not replace; the agent is told where it runs.

        Raises UnknownSession, CommandRefused.
        """
        await self.record(session_id)
        owner = await self.store.owner(session_id)
        if session_id in self.live or (owner is not None and not is_gone(owner)):
            await self.send(session_id, c.Rename(title))
        else:
            await self.store.change_session(session_id, SessionChange(title=title, renamed=True))

    async def delete(self, session_id: str, *, local: bool = False) -> None:
        """Forget a session: here, and by its agent where that is offered, unless `local`.

        Raises UnknownSession, SessionOwned when another process runs it.
        """
        record = await self.record(session_id)
        if (live := self.live.get(session_id)) is not None:
            await self._close(live)
        if not local and record.agent_session_id is not None:
            await self._delete_remotely(record)
        await self.store.delete_session(session_id)
        self.news.tell(session_id)

    async def _delete_remotely(self, record: SessionRecord) -> None:
        async with self.using(record.agent, record.cwd) as client:
            if client.capabilities.delete and record.agent_session_id is not None:
                with suppress(ResourceNotFound):  # it has forgotten already
                    await client.delete_session(record.agent_session_id)

    # ── looking ───────────────────────────────────────────────────────────────────────────────

    async def record(self, session_id: str) -> SessionRecord:
        """Raises UnknownSession."""
        live = self.live.get(session_id)
        record = live.record if live is not None else await self.store.session(session_id)
        if record is None:
            raise UnknownSession(session_id)
        return record

    async def state(self, session_id: str) -> SessionState:
        """What the session is now, wherever it runs. Raises UnknownSession."""
        if (live := self.live.get(session_id)) is not None:
            return live.state
        await self.record(session_id)
        return await stored_state(self.store, session_id)

    def watch(self, session_id: str, after: int = 0) -> AsyncIterator[list[StoredEvent]]:
        """The stored events behind `after`, and those to come; ends with an error when this process
        ran the session and cannot store it any more."""
        return watch_session(
            self.store, self.news, session_id, after, lambda: self._tail(session_id)
        )

    def _tail(self, session_id: str) -> Tail | None:
        if (error := self._failures.get(session_id)) is not None:
            raise error
        live = self.live.get(session_id)
        return None if live is None else live.recording.tail

    def watch_all(self, after: int) -> AsyncIterator[list[StoredEvent]]:
        """The stored events of all sessions behind a position, and those to come."""
        return watch_all(self.store, self.news, after)

    # ── and the rest ──────────────────────────────────────────────────────────────────────────

    def _agents_changed(self, clients: Sequence[Client]) -> None:
        if self._orphans is None:
            return
        try:
            self._orphans.note([client.pid for client in clients if client.pid is not None])
        except OSError as error:
            logger.warning("what runs could not be noted: %s", error)

    def _leases(self) -> list[Lease]:
        return [live.recording.lease for live in self.live.values()]


_NEED_A_LIVE_ONE = (c.Cancel, c.Answer, c.AnswerElicitation, c.EditQueued, c.Kill)


def _nothing_runs(session_id: str, command: c.Command) -> c.Reply:
    if isinstance(command, c.Cancel):
        return {"cancelled": False}
    if isinstance(command, c.Kill):
        return {}
    raise CommandRefused(session_id, "settled", "the session does not run: nothing waits there")


def _record(
    agent: str,
    cwd: str,
    session_id: str | None = None,
    name: str | None = None,
    additional_directories: Sequence[str] = (),
) -> SessionRecord:
    now = time.time()
    return SessionRecord(
        id=session_id or f"s-{os.urandom(8).hex()}",
        agent=agent,
        cwd=cwd,
        created_at=now,
        updated_at=now,
        name=name,
        additional_directories=list(additional_directories),
    )
