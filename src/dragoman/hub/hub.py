"""The hub: opens sessions, owns them, and passes commands on to them.

A session has one owner. What is asked of a session that another process owns goes into its inbox in
the store, and the answer comes back the same way: a caller need not know where a session runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec
from msgspec import UNSET

from dragoman.agents.sign_ins import SignInNotes
from dragoman.client.client import Client
from dragoman.errors import (
    CommandRefused,
    DragomanError,
    NameTaken,
    SessionElsewhere,
    SessionOwned,
    UnknownSession,
    Unsupported,
)
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.command_inbox import Inbox
from dragoman.hub.cluster.host_directory import HostDirectory
from dragoman.hub.cluster.host_service import Hosting, Presence
from dragoman.hub.cluster.owner import is_gone, this_process
from dragoman.hub.cluster.remote_sessions import Elsewhere
from dragoman.hub.cluster.warm_notes import note_of
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.maintenance import Maintenance
from dragoman.hub.opener import Move, OnReset, Opener, Way
from dragoman.hub.parked_sessions import ParkedSessions
from dragoman.hub.running.agent_pool import AgentPool, Launcher, Orphans
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.running.running_sessions import RunningSessions
from dragoman.hub.session_folders import Folders
from dragoman.hub.session_records import (
    RecordOptions,
    RecordReach,
    fork_record,
    missing_folder,
    must_lack_folder,
    new_record,
    with_more,
    workspace_of,
)
from dragoman.hub.stored.deletion import Deletion
from dragoman.hub.stored.event_readers import News, Tail, watch_all, watch_session
from dragoman.hub.stored.stored_sessions import Past, StoredStates, whole_thread
from dragoman.process import descriptors
from dragoman.session.facts import EVERYTHING, Continuity, Offer, SystemPrompt
from dragoman.session.limits.output_quota import OutputLimits
from dragoman.session.state import AnyEntry, SessionState
from dragoman.store.base import Store
from dragoman.store.records import (
    HostRecord,
    Lease,
    SessionChange,
    SessionRecord,
    Standing,
    StoredEvent,
)

if TYPE_CHECKING:
    from dragoman.hub.cluster.sealed_box import Key
    from dragoman.hub.cluster.warm_notes import WarmOwner

logger = logging.getLogger("dragoman.hub")


class Hub:
    """The sessions of one process. Use it as a context manager; leaving it ends what runs here,
    with everything stored.

    With `attended`, someone always answers questions; else only the person a client's provider
    asks. In `notes`, a folder, stands what runs here, for the next hub if this one is killed.
    `home` is the id of this machine in a store that others have too, `label` what people call it.
    Terminal output beyond `output_limits` is not recorded. `sign_ins` notes who is signed in.
    """

    def __init__(
        self,
        store: Store,
        launcher: Launcher,
        *,
        attended: bool = True,
        notes: Path | None = None,
        home: str | None = None,
        label: str | None = None,
        output_limits: OutputLimits = OutputLimits(),  # noqa: B008 - it cannot change
        limits: HubLimits | None = None,
        snapshots: Snapshots | None = None,
        sign_ins: SignInNotes | None = None,
    ) -> None:
        self.store = store
        self.limits = limits or HubLimits()
        self.owner = this_process(label, alone=store.is_local, home=home)
        self.hosts = HostDirectory(store, self.owner, home)
        self.news = News()
        self._orphans = None if notes is None else Orphans(notes, self.owner)
        self._agents = AgentPool(
            launcher,
            self._agents_changed,
            limits=self.limits,
            attended=attended,
            on_auth=None if sign_ins is None else sign_ins.note,
            on_question=self.news.tell_all,
        )
        self.activity = self._agents.activity
        self._opener = Opener(
            store,
            self._agents,
            self.owner,
            self.hosts,
            on_stored=self.news.tell,
            output_limits=output_limits,
            limits=self.limits,
            snapshots=snapshots,
        )
        self._inbox = Inbox(store, self._leases, self._serve)
        self.running = RunningSessions(self._opener, self._agents, self._told, self.limits)
        self.live = self.running.by_id
        """The sessions that run in this process, by their ids."""
        self.maintenance = Maintenance(self, self._opener, self._agents)
        self.elsewhere = Elsewhere(self)
        self.past = Past(store)
        self.folders = Folders(self, self._opener, snapshots)
        self.parked = ParkedSessions(self, self._opener)
        self.deletion = Deletion(self, self._opener)
        self.warm: WarmOwner | None = None
        """In a run whose agent stays: what is asked of it after the run."""
        self._states = StoredStates(store)
        self._home = home
        self._hosting = Hosting(self, self._opener)

    # ── its life ──────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Hub:
        descriptors.raise_limit()
        if self._orphans is not None:
            self._orphans.sweep()
        changed, called = self.store.on_change(self._changed), self.store.on_command(self._called)
        self._unsubscribe = [changed, called]
        self._inbox.start()
        self.maintenance.start()
        self.folders.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _changed(self) -> None:
        self.news.tell_all(but=self.live)

    def _called(self, session_id: str | None) -> None:
        self._inbox.look(session_id)
        if session_id not in self.live:
            self._hosting.look()

    async def be_host(self, presence: Presence) -> str:
        """From now on run what others call this process for; the name it is called by. Raises
        UnknownHost when another host has the name, StoreError when the store has no room for one
        host more."""
        await self.store.hold()
        return await self._hosting.start(presence)

    async def refuse(self) -> None:
        """Take no more prompts from other processes: this one is about to leave."""
        await self._inbox.refuse()

    async def aclose(self) -> None:
        """Cancel what runs, store all of it, end the agents and give the sessions up."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self.past.forget()
        await self._states.aclose()
        await self._hosting.aclose()
        await self.folders.aclose()
        await self.maintenance.aclose()
        await self._inbox.aclose()
        await self.running.aclose()

    # ── opening ───────────────────────────────────────────────────────────────────────────────

    async def create(
        self,
        agent: str,
        cwd: str,
        *,
        continuity: Continuity = "new",
        **options: Unpack[RecordOptions],
    ) -> RunningSession:
        """A new session, whose agent is offered this much of the machine, now and later. Raises
        NameTaken, and what starting the agent raises."""
        record = new_record(self._home, agent, cwd, **options)
        return await self.running.begin(record.id, lambda: self._opener.create(record, continuity))

    async def create_on(
        self, host: HostRecord, agent: str, cwd: str, **options: Unpack[RecordOptions]
    ) -> str:
        """A new session on another host, in a folder there; its id. Raises NameTaken, and
        CommandRefused when the host cannot."""
        record = new_record(self._home, agent, cwd, **options)
        await self.elsewhere.begin(record, host)
        return record.id

    async def adopt(
        self,
        agent: str,
        agent_session_id: str,
        cwd: str,
        *,
        on_reset: OnReset = "fail",
        **reach: Unpack[RecordReach],
    ) -> RunningSession:
        """A session that only the agent knew. Raises SessionNotContinued where it cannot be."""
        record = new_record(self._home, agent, cwd, **reach)
        return await self.running.begin(
            record.id, lambda: self._opener.adopt(agent_session_id, record, on_reset)
        )

    async def fork(
        self,
        session_id: str,
        *,
        name: str | None = None,
        cwd: str | None = None,
        more_directories: Sequence[str] = (),
        offer: Offer = EVERYTHING,
        system_prompt: SystemPrompt | None = None,
    ) -> RunningSession:
        """A new session that remembers another, in its folders and `more_directories`, and is
        offered no more than that one; in `cwd` where that one has no folder. Raises UnknownSession,
        Unsupported, CommandRefused without any folder, and SessionElsewhere: then `elsewhere.fork`
        does it."""
        if (live := self.live.get(session_id)) is not None:
            await live.recording.stored()
        parent = await self.record(session_id)
        if not self.hosts.has(parent):
            raise SessionElsewhere(parent.id, await self.hosts.name_of(parent.home))
        folder = parent.cwd or workspace_of(parent, cwd)
        if (known := await self._opener.conversation_of(parent)) is None:
            raise Unsupported("forking a session that has no conversation with an agent")
        record = fork_record(parent, self._home, cwd=folder, name=name)
        record.additional_directories = with_more(record.additional_directories, more_directories)
        record.offer = parent.offer.within(offer)
        record.system_prompt = system_prompt or parent.system_prompt
        return await self.running.begin(record.id, lambda: self._opener.fork(known, record, parent))

    async def fork_known(
        self, agent: str, agent_session_id: str, cwd: str, **reach: Unpack[RecordReach]
    ) -> RunningSession:
        """The same for a session that only the agent knows. Raises Unsupported."""
        record = new_record(self._home, agent, cwd, **reach)
        return await self.running.begin(
            record.id, lambda: self._opener.fork(agent_session_id, record, None)
        )

    async def open(
        self,
        session_id: str,
        *,
        on_reset: OnReset = "fail",
        more_directories: Sequence[str] = (),
        system_prompt: SystemPrompt | None = None,
    ) -> RunningSession:
        """Have a stored session run here; `more_directories` are added to its folders permanently,
        a `system_prompt` takes the place of its own.

        Raises UnknownSession, SessionOwned when another process runs it, SessionElsewhere when its
        workspace is on another host, and SessionNotContinued when its agent does not remember it,
        unless `on_reset` is new.
        """
        way = Way(on_reset, more_directories=more_directories, system_prompt=system_prompt)
        return await self.running.open(session_id, way)

    async def open_here(
        self, session_id: str, *, cwd: str | None = None, on_reset: OnReset = "fail"
    ) -> RunningSession:
        """The same for a session that may belong to another host; from now on it belongs here.

        Raises CommandRefused with `no_workspace` when there is no such folder here.
        """
        record = await self.record(session_id)
        folders = (workspace_of(record, cwd), *record.additional_directories)
        if (missing := await asyncio.to_thread(missing_folder, folders)) is not None:
            sentence = f"no directory {missing} on {self.owner.label}"
            raise CommandRefused(session_id, "no_workspace", sentence)
        return await self.running.open(session_id, Way(on_reset, Move(cwd)))

    async def give_folder(self, session_id: str, cwd: str) -> None:
        """Let an imported session work in a folder here, from now on; without its name where
        another session there has it.

        Raises UnknownSession, SessionOwned, and CommandRefused when it has a folder.
        """
        must_lack_folder(await self.record(session_id))
        async with self.running.opening(session_id), self._opener.holding(session_id):
            record = await self.record(session_id)
            must_lack_folder(record)
            given = SessionChange(cwd=cwd, home=self.hosts.home, name=record.name)
            try:
                await self.store.change_session(session_id, given)
            except NameTaken:
                nameless = msgspec.structs.replace(given, name=None)
                await self.store.change_session(session_id, nameless)
        self.news.tell(session_id)

    async def detach(self, live: RunningSession) -> None:
        """Stop running a session here; it is stored, and can be opened again anywhere."""
        self.running.detach(live)
        await self.running.until_free(live.id)

    def clients(self, agent: str | None) -> list[Client]:
        """The clients of this agent that run here; of all agents for None."""
        return self._agents.clients(agent)

    @asynccontextmanager
    async def using(
        self,
        agent: str,
        cwd: str,
        offer: Offer = EVERYTHING,
        more_directories: Sequence[str] = (),
    ) -> AsyncGenerator[Client]:
        """The agent itself, started if it does not run; it stays for as long as this lasts. Its
        fence, if it has one, is around `cwd` and `more_directories`."""
        running = await self._agents.use(agent, cwd, offer, more_directories)
        try:
            yield running.client
        finally:
            await self._agents.leave(running)

    # ── asking for things ─────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, command: c.Command, *, opens: bool = True) -> c.Reply:
        """Have a session do something, wherever it runs. Where it runs here and the store is away,
        the reply says what is `delayed`. A session that no process runs is opened here, unless it
        is only to undo what it did; without `opens` it is refused as `owner_gone` instead.

        Raises CommandRefused when it cannot, UnknownSession, and what opening it raises.
        """
        await self.running.until_free(session_id)
        if (live := self.live.get(session_id)) is not None:
            return await self._do(live, command)
        at = await self.store.standing(session_id)
        if (record := at.record) is None:
            raise UnknownSession(session_id)
        is_ours = self.hosts.has(record)
        may_run = not is_ours and self.hosts.may_be_cut_off(record, at)
        if (at.owner is None or is_gone(at.owner)) and not may_run:
            if isinstance(command, c.NEED_A_LIVE_ONE):
                return c.nothing_runs(session_id, command)
            if isinstance(command, c.DropParked | c.Note) and is_ours:
                return await self.parked.put_down(session_id, command)
            if isinstance(command, c.Close):
                await self.store.change_session(session_id, SessionChange(status="closed"))
                return {}
            if is_ours and not opens:
                raise CommandRefused(session_id, "owner_gone", "no process is running it")
        if not (is_ours and opens):
            return await self.elsewhere.ask(record, at, command)
        try:
            if (reply := await self.folders.revert_stored(session_id, command)) is not None:
                return reply
            live = await self.open(session_id)
        except (SessionOwned, SessionElsewhere):
            if (reply := await self._ask_owner(record, at, command)) is not None:
                return reply
            live = await self.open(session_id)
        return await self._do(live, command)

    async def _ask_owner(
        self, record: SessionRecord, at: Standing, command: c.Command
    ) -> c.Reply | None:
        """Ask its owner. None if that only kept an agent warm and has just ended: nothing was done
        then."""
        is_warm = note_of(at.owner) is not None
        try:
            return await self.elsewhere.ask(record, at, command)
        except CommandRefused as error:
            is_ending = is_warm and error.code == "owner_gone"
            if not is_ending or not await self.elsewhere.take_from_warm(record.id):
                raise
        return None

    async def _do(
        self, live: RunningSession, command: c.Command, *, patiently: bool = False
    ) -> c.Reply:
        match command:
            case c.Close():
                await self._close(live)
            case c.Kill(force):
                return await self._kill(live, force=force)
            case c.AskKey():
                return {"key": self._key.public}
            case c.Sealed():
                return await self._do(live, self._opened(live, command), patiently=patiently)
            case c.Leave():
                if not live.idle:
                    raise CommandRefused(live.id, "session_owned", "it is active")
                await self.detach(live)
            case c.GiveUp() | c.Stay():
                self._ask_warm(live, command)
            case c.Prompt() | c.RuledPrompt() if self.warm is not None:
                self.warm.check()
                reply = await live.execute(command, patiently=patiently)
                self.warm.took(reply["turn"], command.sender)
                return reply
            case c.Open(host) if host == self.owner.id:
                pass
            case c.Open() | c.Delete():
                sentence = f"session {live.id} is now running on {self.owner.label}"
                raise CommandRefused(live.id, "conflict", sentence)
            case _:
                return await live.execute(command, patiently=patiently)
        return {}

    def _ask_warm(self, live: RunningSession, command: c.GiveUp | c.Stay) -> None:
        match command:
            case c.GiveUp():
                if self.warm is None or not self.warm.give_up():
                    raise CommandRefused(live.id, "session_owned", "it is active")
            case c.Stay(seconds):
                if self.warm is None:
                    raise CommandRefused(live.id, "unsupported", "its agent is not kept warm")
                self.warm.stay(seconds)

    def _opened(self, live: RunningSession, command: c.Sealed) -> c.Command:
        try:
            return c.opened(command, self._key)
        except ValueError:
            sentence = "the process that asked has ended; nothing is pending"
            raise CommandRefused(live.id, "settled", sentence) from None

    @cached_property
    def _key(self) -> Key:
        from dragoman.hub.cluster.sealed_box import Key

        return Key()

    async def _serve(self, session_id: str, command: c.Command) -> c.Reply:
        """A command from another process."""
        live = self.live.get(session_id)
        if live is None:
            raise CommandRefused(session_id, "failed", "the session is no longer running here")
        return await self._do(live, command, patiently=True)

    async def _close(self, live: RunningSession) -> None:
        """End it in order, on the agent's side too; the record says that it is closed."""
        if self.store.away is not None:
            await self.store.last_position()  # raises, before anything is done by half
        self.running.detach(live, partial(self._end, live))
        await self.running.until_free(live.id)

    async def _end(self, live: RunningSession) -> None:
        await live.give_up_restores()
        try:
            await live.agent.client.close_session(live.session.id)
        except DragomanError as error:
            logger.warning("closing session %s: %s", live.id, error)
        if live.session.left_at_work and live.agent.client.connection_error is None:
            await self._end_agent(live)
        await live.recording.seal()

    async def _end_agent(self, live: RunningSession) -> None:
        """Of a session that was closed and that it does not stop working for: nobody would see what
        it does. Others that would lose by it keep their process, and are its last."""
        if others := [each for each in self.running.beside(live) if each.loses_by_a_kill]:
            names = ", ".join(each.id for each in others)
            sentence = "the agent of session %s does not stop; its process ends when %s leave it"
            logger.warning(sentence, live.id, names)
            self._agents.retire(live.agent)
        else:
            logger.warning("the agent of session %s does not stop, and is killed", live.id)
            await live.agent.client.kill("another session's turn could not be stopped")

    async def _kill(self, live: RunningSession, *, force: bool) -> c.Reply:
        beside = self.running.beside(live)
        if not force and beside:
            if await live.stop_alone():
                await live.recording.stored()
                return {}
            if others := [each.in_brief for each in beside if each.loses_by_a_kill]:
                return {"others": others}
        await live.agent.client.kill("the agent was stopped on request")
        await live.recording.stored()
        return {}

    async def rename(self, session_id: str, title: str) -> None:
        """Give it a title that the agent's does not replace; the agent is notified where it runs,
        and is not started for it. Raises UnknownSession, CommandRefused."""
        await self.record(session_id)
        owner = await self.store.owner(session_id)
        if session_id in self.live or (owner is not None and not is_gone(owner)):
            await self.send(session_id, c.Rename(title))
        else:
            await self.store.change_session(session_id, SessionChange(title=title, renamed=True))

    async def name(self, session_id: str, name: str) -> None:
        """Give it a name, unique in its folder. Raises UnknownSession, NameTaken."""
        record = await self.store.change_session(session_id, SessionChange(name=name))
        if (live := self.live.get(session_id)) is not None:
            live.record.name = record.name

    async def archive(self, session_id: str, *, archived: bool) -> None:
        """Put it out of sight, or back: then it is used, and not pruned. Raises UnknownSession."""
        used = UNSET if archived else self.store.now()
        change = SessionChange(archived=archived, updated_at=used)
        record = await self.store.change_session(session_id, change)
        if (live := self.live.get(session_id)) is not None:
            live.record.archived = record.archived

    async def delete(self, session_id: str, *, local: bool = False) -> None:
        """Forget a session: here, and by its agent where that is offered, unless `local`. Raises
        UnknownSession, SessionOwned when another process runs it, StoreFull with nothing done."""
        record = await self.record(session_id)
        await self.maintenance.renew()  # a write, which a full disk refuses
        if (live := self.live.get(session_id)) is not None:
            await self._close(live)
        await self.running.until_free(session_id)
        await self.elsewhere.take_from_warm(session_id)
        await self.deletion.delete(record, local=local)

    # ── looking ───────────────────────────────────────────────────────────────────────────────

    async def record(self, session_id: str) -> SessionRecord:
        """Raises UnknownSession."""
        live = self.live.get(session_id)
        record = live.record if live is not None else await self.store.session(session_id)
        if record is None:
            raise UnknownSession(session_id)
        return record

    async def state(self, session_id: str) -> SessionState:
        """What the session is now, wherever it runs, as far as it is stored. Raises
        UnknownSession."""
        if (live := self.live.get(session_id)) is not None:
            await live.recording.shown()
            if live.is_stored:
                return live.state
        return await self._states.of(await self.record(session_id))

    async def thread(self, session_id: str) -> AsyncGenerator[AnyEntry]:
        """Every entry of a session, also those that its state has let go. Raises
        UnknownSession."""
        state = await self.state(session_id)
        if not state.entries_before:
            for entry in list(state.entries):
                yield entry
            return
        async with aclosing(whole_thread(self.store, session_id)) as entries:
            async for entry in entries:
                yield entry

    def watch(self, session_id: str, after: int = 0) -> AsyncIterator[list[StoredEvent]]:
        """The stored events behind `after`, and those to come; ends when the session is deleted,
        and with an error when this process runs it and can no longer store it."""
        before = self.running.failures.get(session_id)

        def tail() -> Tail | None:
            # A later reader reads what there is: another process may continue it.
            error = self.running.failures.get(session_id)
            if error is not None and error is not before:
                raise error
            live = self.live.get(session_id)
            return None if live is None else live.recording.tail

        return watch_session(self.store, self.news, session_id, after, tail)

    def watch_all(self, after: int) -> AsyncIterator[list[StoredEvent]]:
        """The stored events of all sessions behind a position, and those to come."""
        return watch_all(self.store, self.news, after)

    # ── and the rest ──────────────────────────────────────────────────────────────────────────

    def _agents_changed(self, clients: Sequence[Client]) -> None:
        if self._orphans is None:
            return
        try:
            self._orphans.note([pid for client in clients for pid in client.pids])
        except OSError as error:
            logger.warning("running processes could not be recorded: %s", error)

    def _told(self, session_id: str) -> None:
        self.news.tell(session_id)
        self._inbox.look()

    def _leases(self) -> list[Lease]:
        return [live.recording.lease for live in self.live.values()]
