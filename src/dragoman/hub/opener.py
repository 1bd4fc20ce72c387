"""Opens a session in this process: leases it, recovers it, reads its history, starts its agent.

The caller may be cancelled at any moment: what is not finished then is undone, in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.client.capabilities import lacking_for
from dragoman.client.client import Client
from dragoman.client.dialects.dialect import Place
from dragoman.client.sessions.folder_tracker import FolderTracker
from dragoman.client.sessions.parking import PARKING, WANTED, parking_when_cut
from dragoman.client.sessions.session import Session
from dragoman.errors import (
    AuthRequired,
    DragomanError,
    SessionElsewhere,
    SessionNotContinued,
    UnknownSession,
    Unsupported,
)
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_directory import HostDirectory
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running.agent_pool import AgentPool, PooledAgent
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.hub.running.restores import Restores, read_history
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.session_records import with_more, workspace_of
from dragoman.hub.stored.ledger import StoreLedger
from dragoman.hub.stored.spent import count_stored
from dragoman.hub.stored.stored_sessions import state_to_go_on, status_of
from dragoman.session.events import Event
from dragoman.session.facts import Continuity, SystemPrompt
from dragoman.session.limits.delivery import Delivery
from dragoman.session.limits.output_quota import OutputLimits, OutputQuota
from dragoman.session.reduce import reduce
from dragoman.session.state import ENDED, FORKED, SessionState, loose_ends
from dragoman.store.base import LEASE_SECONDS, Store, events_of_types
from dragoman.store.records import (
    Batch,
    Lease,
    Owner,
    SessionChange,
    SessionFilter,
    SessionRecord,
    StoredCommand,
    encode_events,
    readable_events,
)

logger = logging.getLogger("dragoman.hub")

OnReset: TypeAlias = Literal["fail", "new"]
"""What to do when the agent does not remember the session."""
Begin: TypeAlias = Callable[[Client, Place], Awaitable[Session]]


class Move(msgspec.Struct, frozen=True):
    """A move of a session to this host; `cwd` if its folder is a different one here."""

    cwd: str | None = None


class Way(msgspec.Struct, frozen=True):
    """How a stored session is opened: what happens when its agent does not remember it, whether it
    may come from another host, what is added to its folders, and another system prompt."""

    on_reset: OnReset = "fail"
    move: Move | None = None
    more_directories: Sequence[str] = ()
    system_prompt: SystemPrompt | None = None


class ForkPoint(msgspec.Struct, frozen=True):
    """Where a fork leaves its parent: after this message of the agent, and the event `seq`."""

    seq: int
    message_id: str


class Opener:
    """Makes the live sessions of one owner; `on_stored` gets the id of each with more to read."""

    def __init__(
        self,
        store: Store,
        agents: AgentPool,
        owner: Owner,
        hosts: HostDirectory,
        *,
        on_stored: Callable[[str], None],
        output_limits: OutputLimits,
        limits: HubLimits,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._ledger = StoreLedger(store, seconds=limits.spent_seconds)
        self._snapshots = snapshots
        self._reading: set[asyncio.Task[None]] = set()
        self._limits = limits
        self._output_limits = output_limits
        self.to_recover: dict[str, str] = {}
        """Sessions that are ours but do not run here, and why they were cut short: they must be
        recovered before they are released, and the store has not accepted that yet."""
        self._store = store
        self._agents = agents
        self._owner = owner
        self._hosts = hosts
        self._on_stored = on_stored

    # ── leases ────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def holding(self, session_id: str) -> AsyncGenerator[Lease]:
        """The session is ours for as long as this lasts. Raises UnknownSession, SessionOwned."""
        taking = self._taking(session_id)
        try:
            yield await asyncio.shield(taking)
        finally:
            await _to_its_end(self._release_taken(taking))

    def _taking(self, session_id: str) -> asyncio.Task[Lease]:
        """Shielded, since a lease that was taken for one who is gone would stay forever."""

        def gone(owner: Owner) -> bool | None:
            ours = owner.id == self._owner.id and session_id in self.to_recover
            return ours or self._hosts.has_ended(owner)

        async def taken() -> Lease:
            # What a process kept that was killed: once its session is ours, nobody may store it.
            await self._store.deliver_left()
            return await self._store.acquire(
                session_id, self._owner, seconds=LEASE_SECONDS, gone=gone
            )

        return asyncio.create_task(taken())

    async def _release_taken(self, taking: asyncio.Task[Lease]) -> None:
        with suppress(DragomanError):
            lease = await taking
            if lease.session_id not in self.to_recover:
                await self.release(lease)

    async def release(self, lease: Lease) -> None:
        """Give the lease back; when that fails, it is tried again."""
        try:
            await self._store.release(lease)
        except DragomanError as error:
            logger.warning("a session could not be released: %s", error)
            self.to_recover.setdefault(lease.session_id, ENDED)

    # ── the ways to begin ─────────────────────────────────────────────────────────────────────

    async def create(self, record: SessionRecord, continuity: Continuity = "new") -> RunningSession:
        """A new session. When the agent cannot be started there is no trace of it. Raises
        Unsupported for a system prompt that the agent does not accept."""
        record.system_prompt = self._prompt_of(record)

        async def begin(client: Client, place: Place) -> Session:
            return await client.openings.new(place, continuity)

        return await self._first(record, begin)

    def _prompt_of(self, record: SessionRecord) -> SystemPrompt | None:
        """Its own; of one that begins now, else that of the settings."""
        has_begun = record.last_seq or record.agent_session_id is not None
        if record.system_prompt is not None or has_begun or record.parent is not None:
            return record.system_prompt
        return self._agents.launcher.system_prompt(record.agent, record.cwd)

    async def adopt(
        self, agent_session_id: str, record: SessionRecord, on_reset: OnReset
    ) -> RunningSession:
        """A session that the agent knows and we do not: what it tells of its history is stored."""
        return await self._first(record, _continued(agent_session_id, record, on_reset))

    async def fork(
        self,
        agent_session_id: str,
        record: SessionRecord,
        parent: SessionRecord | None,
        at: ForkPoint | None = None,
    ) -> RunningSession:
        """A new session that remembers what another did, all or until `at`; the events of a parent
        that is stored come before its own. Raises Unsupported."""
        return await self._first(record, _as_fork(agent_session_id, at), parent, at)

    async def reopen(self, session_id: str, way: Way) -> RunningSession:
        """A session that is stored, continued; one that was never begun is begun.

        Raises SessionOwned, SessionElsewhere unless it is to move here, CommandRefused when it has
        no workspace, and SessionNotContinued when the agent does not remember it.
        """
        taking = self._taking(session_id)
        try:
            lease = await asyncio.shield(taking)
            record, history = await self.recovered(lease)
            self._must_be_whole(record)
            workspace_of(record, None if way.move is None else way.move.cwd)
            known = await self._known_here(record, way.on_reset)
            async with self._here(record, way):
                if _is_new_fork(record):
                    return await self._begin_fork(record, lease)
                begin = _continued(known, record, _on_reset(way, record, history))
                if way.system_prompt is not None or not record.last_seq:
                    begin = self._accepting(record, begin)
                return await self._begin(record, lease, history, begin)
        except BaseException:
            await _to_its_end(self._release_taken(taking))
            raise

    def _must_be_whole(self, record: SessionRecord) -> None:
        """Of an import that was killed, events are stored that nobody sees, and no others may take
        their places: it is left to the next recovery, which deletes it."""
        if _is_half_import(record):
            self.to_recover.setdefault(record.id, ENDED)
            raise SessionNotContinued(record.id, "its import was cut short: import the file again")

    async def _known_here(self, record: SessionRecord, on_reset: OnReset) -> str | None:
        """Raises SessionNotContinued where its conversation is another session's."""
        known = await self.conversation_of(record)
        if known is None and record.agent_session_id is not None and on_reset == "fail":
            raise SessionNotContinued(record.id, _TAKEN if record.imported is None else _NOT_ITS)
        return known

    async def conversation_of(self, record: SessionRecord) -> str | None:
        """What the agent calls a session; None where that means another one on this host. An
        agent's ids may be unique on one machine only; and one that a file names may since have been
        given to another session."""
        agent_id = record.agent_session_id
        if agent_id is None or (record.imported is None and self._hosts.has(record)):
            return agent_id
        wanted = SessionFilter(agent=record.agent, agent_session_id=agent_id)
        others = (each for each in await self._store.sessions(wanted) if each.id != record.id)
        return None if any(each.home == self._hosts.home for each in others) else agent_id

    async def recorded(self, agent: str, agent_session_id: str) -> SessionRecord | None:
        """The session that is stored of one that an agent knows; of several the one used last."""
        wanted = SessionFilter(agent=agent, agent_session_id=agent_session_id, limit=1)
        return next(iter(await self._store.sessions(wanted)), None)

    @asynccontextmanager
    async def _here(self, record: SessionRecord, way: Way) -> AsyncGenerator[None]:
        """From now on the session belongs here, unless what is done meanwhile fails."""
        move = way.move
        if move is None and not self._hosts.has(record):
            raise SessionElsewhere(record.id, await self._hosts.name_of(record.home))
        before = SessionChange(
            home=record.home,
            cwd=record.cwd,
            additional_directories=record.additional_directories,
            name=record.name,
            system_prompt=record.system_prompt,
        )
        after = msgspec.structs.replace(
            before,
            home=self._hosts.home or record.home,
            cwd=record.cwd if move is None or move.cwd is None else move.cwd,
            additional_directories=with_more(record.additional_directories, way.more_directories),
            system_prompt=way.system_prompt or self._prompt_of(record),
        )
        if after == before:
            yield
            return
        moved = await self._store.change_session(record.id, after)
        record.home, record.cwd = moved.home, moved.cwd
        record.additional_directories = moved.additional_directories
        record.system_prompt = moved.system_prompt
        try:
            yield
        except BaseException:
            with suppress(DragomanError):
                await self._store.change_session(record.id, before)
            raise

    async def _begin_fork(self, record: SessionRecord, lease: Lease) -> RunningSession:
        """One that another host has left to us. When it fails, what was copied until then must not
        be taken for a session: it is left, and deleted by the next recovery. Not at once, since its
        caller could not learn why."""
        try:
            parent = await self._store.session(record.parent or "")
            known = None if parent is None else await self.conversation_of(parent)
            if parent is None or known is None:
                raise SessionNotContinued(record.id, "the session it was forked from is gone")
            history = await self._copied(parent, record, lease)
            return await self._begin(record, lease, history, _as_fork(known))
        except BaseException:
            self.to_recover.setdefault(lease.session_id, ENDED)
            raise

    async def _copied(
        self,
        parent: SessionRecord,
        record: SessionRecord,
        lease: Lease,
        at: ForkPoint | None = None,
    ) -> SessionState:
        await self._store.copy_events(parent.id, lease, None if at is None else at.seq)
        copied, history = await self.recovered(lease, FORKED)
        record.last_seq, record.copied = copied.last_seq, copied.copied
        return history

    async def recovered(
        self, lease: Lease, reason: str | None = None
    ) -> tuple[SessionRecord, SessionState]:
        """What is stored, after ending what an owner before us left open."""
        why = self.to_recover.setdefault(lease.session_id, ENDED)
        # Read under the lease: until then another owner may have changed it.
        record = await self._store.session(lease.session_id)
        if record is None or record.status not in ("running", "waiting"):
            self.to_recover.pop(lease.session_id, None)
        if record is None:
            raise UnknownSession(lease.session_id)
        state = await state_to_go_on(self._store, lease) if record.last_seq else SessionState()
        if record.parent is None and record.imported is None:
            # The owner may have ended before it could write down what the agent calls it.
            record.agent_session_id = record.agent_session_id or state.session_id or None
        if ends := loose_ends(state, reason or why):
            if reason is None and (turn := state.turn) is not None:
                told = await self._told(record, PARKING)
                told += await self._told(record, WANTED, after=turn.seq) if told else []
                cut = parking_when_cut(state, told)
                ends = ends if cut is None else [cut, *ends]
            await self._append(lease, state, ends)
        record.last_seq = state.last_seq
        self.to_recover.pop(lease.session_id, None)
        return record, state

    async def _told(
        self, record: SessionRecord, types: Sequence[str], after: int = 0
    ) -> list[Event]:
        """The stored events of these types."""
        events = events_of_types(self._store, record.id, types, after=after)
        return list(readable_events([each.body async for each in events]))

    async def _append(self, lease: Lease, state: SessionState, events: list[Any]) -> None:
        first, now = state.last_seq + 1, time.time()
        for seq, event in enumerate(events, first):
            event.seq, event.at = seq, now
            reduce(state, event)
        change = SessionChange(status=status_of(state), updated_at=self._store.now())
        batch = Batch(first_seq=first, events=encode_events(events), change=change)
        await self._store.append(lease, batch)
        self._on_stored(lease.session_id)

    async def recover(self, session_id: str) -> None:
        """Recover a session whose owner has ended. Raises UnknownSession, SessionOwned."""
        async with self.holding(session_id) as lease:
            record, state = await self.recovered(lease)
            # What it was asked for, it did not do; and nobody else should.
            await self._say(c.Refusal("owner_gone", ENDED), await self._store.take([lease]))
            if _is_nothing_yet(record, state):
                await self._store.delete_session(session_id, lease)

    async def put_down(self, session_id: str, event: Callable[[SessionState], Event]) -> None:
        """Append an event to the record of a session that nobody runs, without starting its agent.
        Raises as `recover` does, and what `event` raises."""
        async with self.holding(session_id) as lease:
            _, state = await self.recovered(lease)
            await self._append(lease, state, [event(state)])

    async def refuse(self, session_id: str, refusal: c.Refusal) -> None:
        """Say no to all that a session that nobody runs is asked for. Raises as `recover` does."""
        async with self.holding(session_id) as lease:
            commands = await self._store.take([lease])
        # Released before that: the caller may at once try something else.
        await self._say(refusal, commands)

    async def _say(self, refusal: c.Refusal, commands: Sequence[StoredCommand]) -> None:
        for command in commands:
            await self._store.settle(command.id, c.encode_result(refusal))

    # ── what they share ───────────────────────────────────────────────────────────────────────

    async def _first(
        self,
        record: SessionRecord,
        begin: Begin,
        parent: SessionRecord | None = None,
        at: ForkPoint | None = None,
    ) -> RunningSession:
        record.created_at = record.updated_at = self._store.now()
        begin = self._accepting(record, begin)
        begun = self._store.begin_session(record, self._owner, seconds=LEASE_SECONDS)
        creating = asyncio.create_task(begun)
        try:
            lease = await asyncio.shield(creating)
            history = None if parent is None else await self._copied(parent, record, lease, at)
            return await self._begin(record, lease, history, begin)
        except BaseException:
            await _to_its_end(self._uncreate(creating))
            raise

    async def _uncreate(self, creating: asyncio.Task[Lease]) -> None:
        with suppress(DragomanError):
            lease = await creating
            self.to_recover.setdefault(lease.session_id, ENDED)
            await self._store.delete_session(lease.session_id, lease)
            self.to_recover.pop(lease.session_id, None)

    def _accepting(self, record: SessionRecord, begin: Begin) -> Begin:
        """The same, but not without the system prompt that was asked for. What the settings say for
        all agents is not demanded of each: then the session has a notice."""

        async def checked(client: Client, place: Place) -> Session:
            prompt = record.system_prompt
            general = self._agents.launcher.system_prompt(None, record.cwd)
            if prompt is not None and prompt != general:
                lacking = lacking_for(prompt, client.capabilities)
                if lacking is not None:
                    raise Unsupported(lacking)
            return await begin(client, place)

        return checked

    async def _begin(
        self, record: SessionRecord, lease: Lease, history: SessionState | None, begin: Begin
    ) -> RunningSession:
        running = await self._agents.use(
            record.agent,
            record.cwd,
            record.offer,
            record.additional_directories,
            on_start=partial(self._read_ahead, record),
        )
        last_before, home = record.last_seq, self._hosts.home
        recording = EventRecorder(
            self._store,
            record,
            lease,
            on_stored=self._on_stored,
            behind=running.behind,
            limits=self._limits,
            activity=self._agents.activity.of(record.agent, history),
        )
        try:
            place = self._place_of(running, record, recording, history)
            await self._count(running.client, place, record, is_new=history is None)
            place.delivery = await self._delivery(record, history)
            session = await begin(running.client, place)
        except BaseException as error:
            await _to_its_end(self._undo_opening(recording, running, error))
            raise
        live = RunningSession(
            self._store, recording, running, session, last_before=last_before, home=home
        )
        if self._snapshots is not None and session.files_are_here:
            await self._track(live, self._snapshots)
        session.parking.start()
        return live

    def _read_ahead(self, record: SessionRecord, client: Client) -> None:
        """Its folders, while its agent starts, so that the first prompt waits for less."""
        if self._snapshots is not None and client.files_are_here:
            roots = [*map(os.path.realpath, (record.cwd, *record.additional_directories))]
            reading = asyncio.create_task(self._snapshots.read_ahead(roots))
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)

    async def _count(
        self, client: Client, place: Place, record: SessionRecord, *, is_new: bool
    ) -> None:
        """What was used so far, for its limits."""
        openings = client.openings
        place.ledger = self._ledger.of(record)
        if openings.limits_in(place) and not is_new:
            place.meter = openings.new_meter()
            await count_stored(self._store, record, place.meter)

    async def _delivery(
        self, record: SessionRecord, history: SessionState | None
    ) -> Delivery | None:
        if history is None or history.parked is None or not history.parked.is_doubted:
            return None
        return Delivery(history, await self._told(record, PARKING))

    async def _track(self, live: RunningSession, snapshots: Snapshots) -> None:
        """Have its folders read around each turn, beginning now: the first time takes longest."""
        known = (await read_history(self._store, live.record)).timeline
        tracker = FolderTracker(live.session, snapshots, live.id, known)
        live.session.tracker = tracker
        live.restores = Restores(live.session, tracker)
        tracker.prepare()

    async def _undo_opening(
        self, recording: EventRecorder, running: PooledAgent, error: BaseException
    ) -> None:
        await recording.seal()
        # Many agents look only at their start for who has signed in.
        await self._agents.leave(running, spent=isinstance(error, AuthRequired))

    def _place_of(
        self,
        running: PooledAgent,
        record: SessionRecord,
        recording: EventRecorder,
        history: SessionState | None,
    ) -> Place:
        """Raises ValueError for folders that cannot be, SessionNotContinued for those of a session
        that there was before."""
        try:
            place = running.client.openings.place(
                record.cwd,
                additional_directories=record.additional_directories,
                mcp_servers=self._agents.servers(running, record),
                system_prompt=record.system_prompt,
            )
        except ValueError as error:
            if history is None:
                raise
            raise SessionNotContinued(record.id, str(error)) from error
        place.history, place.recorder = history, recording.take
        project = self._agents.launcher.of_project(record.agent, record.cwd)
        place.limits = (*record.limits.limits, *project.limits)
        place.on_limit = record.limits.on_limit or project.on_limit
        place.question_timeout = project.question_timeout
        place.quota = OutputQuota(self._output_limits)
        return place


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Even when the caller is cancelled once more."""
    await asyncio.shield(asyncio.create_task(work))


def _is_new_fork(record: SessionRecord) -> bool:
    """A fork of which nothing is there yet but its record."""
    return record.parent is not None and record.agent_session_id is None and not record.last_seq


def _is_half_import(record: SessionRecord) -> bool:
    """All of its events are seen, or none."""
    events = 0 if record.imported is None else record.imported.events
    return record.parent is None and events > 0 and not record.last_seq


def _is_nothing_yet(record: SessionRecord, state: SessionState) -> bool:
    """Whether its owner ended while it made the session. One that was imported has its history,
    whatever became of an attempt to continue it."""
    if record.agent_session_id is not None:
        return False
    if record.imported is not None and record.parent is None:
        return not record.last_seq
    return record.parent is not None or not state.turns


def _as_fork(agent_session_id: str, at: ForkPoint | None = None) -> Begin:
    async def begin(client: Client, place: Place) -> Session:
        after = None if at is None else at.message_id
        return await client.openings.fork(agent_session_id, place, after)

    return begin


def _on_reset(way: Way, record: SessionRecord, history: SessionState) -> OnReset:
    """Agents may keep nothing of a session without prompts, such as one that a rewind has begun:
    it says already that it was reset, and nothing is forgotten."""
    is_blank = history.continuity == "reset" and not history.turns and record.imported is None
    return "new" if is_blank else way.on_reset


def _continued(agent_session_id: str | None, record: SessionRecord, on_reset: OnReset) -> Begin:
    async def begin(client: Client, place: Place) -> Session:
        if agent_session_id is not None:
            allow_new = on_reset == "new"
            try:
                return await client.openings.ensure(agent_session_id, place, allow_new=allow_new)
            except SessionNotContinued as error:
                if record.agent_session_id is None:
                    raise  # nobody has another name for it
                raise SessionNotContinued(record.name or record.id, error.reason) from error
        if not record.last_seq:
            return await client.openings.new(place, "new")
        if on_reset == "fail":
            reason = "it was never opened in an agent" if record.imported is None else _NOT_ITS
            raise SessionNotContinued(record.id, reason)
        return await client.openings.new(place, "reset")

    return begin


_TAKEN = "the agent on this host has another session of that id"
_NOT_ITS = "it was imported, and its conversation belongs to another session here"
NOT_RECORDED = "the session could not be recorded"
