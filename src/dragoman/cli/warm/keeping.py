"""The time after a run in which its agent stays: this process only waits for others to use it.

It is an owner like any other. What was asked for in its own run alone no longer holds: neither its
rules, nor its terminal. A turn that another run asked for ends with that run, however that ends, as
if it had started the agent itself. It ends when nobody has used the session for long enough, when
the login session ends, on a signal, when another process wants the session for itself, and when
there is nothing left to keep.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.warm.start_terms import choices, settled, start_hash
from dragoman.data_directory import store_address
from dragoman.errors import CommandRefused, DragomanError
from dragoman.hub.cluster.held_process import HeldProcess
from dragoman.hub.cluster.owner import is_here
from dragoman.hub.cluster.warm_notes import (
    WarmNote,
    keyed_hash,
    notes,
    remove_note,
    write_note,
)
from dragoman.session.facts import TurnTerms

if TYPE_CHECKING:
    from dragoman.cli.run.job import Job
    from dragoman.client.sessions.turn import Turn
    from dragoman.hub.hub import Hub
    from dragoman.hub.running.running_session import RunningSession
    from dragoman.store.records import Owner

MOST_AT_ONCE = 10
"""How many agents of one user stay in one store: a script may name a session for each file."""
_LOOK_SECONDS = 0.5
_CANCEL_SECONDS = 5.0
"""How long an agent may take to stop a turn whose run has ended."""


class StartHash(msgspec.Struct, frozen=True):
    """With what a run starts its agent, as a hash, before that changes anything."""

    salt: str
    hash: str


def start_of(job: Job, *, attended: bool) -> StartHash:
    """Raises OSError."""
    salt = os.urandom(16).hex()
    return StartHash(salt, start_hash(job, salt, attended=attended))


class Keeping:
    """One session, for as long as its agent stays. Make it when the agent has opened the session;
    the run is over when `last` is called."""

    def __init__(self, hub: Hub, live: RunningSession, job: Job, start: StartHash) -> None:
        self._hub = hub
        self._live = live
        self._job = job
        self._start = start
        self._settled = self._chosen = settled(live.state)
        self._seconds = job.stays
        self._ending = asyncio.Event()
        self._told = False
        self._since = 0.0
        self._is_over = False
        """Whether the run is, and only its agent stays."""
        self._failed = False
        self._bound: set[str] = set()
        """Turns that end with a run in another process."""
        self._watching: set[asyncio.Task[None]] = set()
        hub.warm = self

    def configured(self) -> None:
        """The run has set what it wanted to set in the session."""
        self._chosen = settled(self._live.state)

    @property
    def is_worth_it(self) -> bool:
        """Whether the agent may be used by other runs as it is now: it has not failed, works on
        nothing by itself, and was allowed nothing for always that it alone remembers."""
        state = self._live.state
        at_work = state.activity != "idle" or bool(state.background)
        remembers = self._live.session.gate.consent.is_remembered_there
        parked = state.parked is not None
        return self._is_there and not (self._failed or at_work or remembers or parked)

    # ── asked by the hub ──────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        if not self._is_over or self._is_busy:
            return
        if self._ending.is_set() or not self.is_worth_it:
            self._ending.set()
            raise CommandRefused(self._live.id, "owner_gone", "its agent is just ending")
        self._job.policy.forget_given()  # what a person allowed in another window for the session

    def took(self, turn_id: str, sender: Owner | None) -> None:
        if sender is None or not is_here(sender):
            return  # nobody here can tell when a process of another machine ends
        for turn in self._unfinished:
            if turn.id == turn_id:
                self._bound.add(turn_id)
                self._refuse_unless_asked(turn, sender)
                task = asyncio.create_task(self._with_its_run(turn, sender))
                self._watching.add(task)
                task.add_done_callback(self._watching.discard)

    @property
    def _unfinished(self) -> list[Turn]:
        session = self._live.session
        return [*session.queued, *([] if session.running is None else [session.running])]

    def _refuse_unless_asked(self, turn: Turn, sender: Owner) -> None:
        """A run that does not say who answers has nobody here, once the person at our terminal has
        gone."""
        if not self._is_over:
            return
        terms = turn.terms or TurnTerms(by=f"process {sender.pid}")
        if terms.on_ask is None:
            turn.terms = msgspec.structs.replace(terms, on_ask="reject")

    def give_up(self) -> bool:
        if not self._is_over or self._is_busy:
            return False
        self._ending.set()
        return True

    def stay(self, seconds: float) -> None:
        if seconds != self._seconds:
            self._seconds = seconds
            if self._is_over:
                with suppress(OSError):
                    write_note(self._note)

    async def _with_its_run(self, turn: Turn, sender: Owner) -> None:
        """What a run asked for ends when the run does: nobody else knows what it allowed."""
        over = asyncio.create_task(turn.wait())
        try:
            with HeldProcess.of(sender) as process:
                ended = asyncio.create_task(process.ended())
                await asyncio.wait((over, ended), return_when=asyncio.FIRST_COMPLETED)
                ended.cancel()
        except ProcessLookupError:
            pass  # it has ended already
        except OSError:  # nobody can tell when it ends
            await turn.wait()
        if not turn.done:
            await self._end_turn(turn)
        over.cancel()
        self._bound.discard(turn.id)
        self._failed |= turn.error is not None
        await self._end_terminals()

    async def _end_turn(self, turn: Turn) -> None:
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await turn.cancel()
        except (DragomanError, TimeoutError):
            if self._is_over:
                self._stop()

    async def _end_terminals(self) -> None:
        """Commands that run for the agent end with the run that allowed them."""
        if not self._is_over or self._is_busy:
            return
        gate = self._live.session.gate
        for each in list(self._live.state.terminals.values()):
            if each.ours and each.running:
                with suppress(DragomanError):
                    await gate.providers.terminals.kill(gate.workspace, each.id)

    # ── after the run ─────────────────────────────────────────────────────────────────────────

    @property
    def _note(self) -> WarmNote:
        salt = self._start.salt
        return WarmNote(
            owner=self._hub.owner,
            session=self._live.id,
            since=self._since,
            seconds=self._seconds,
            salt=salt,
            start=self._start.hash,
            store=keyed_hash((store_address() or "").encode(), salt),
            settled=self._settled,
            choices=choices(self._job),
            chosen=self._chosen,
        )

    def begin(self) -> None:
        """The run is over: what was asked for in it no longer holds, and others see that. Raises
        OSError if they cannot; then nothing has changed."""
        self._since = time.time()
        write_note(self._note)
        self._is_over = True
        live, client = self._live, self._live.agent.client
        self._job.policy.forget_given()
        live.session.gate.consent.attended = True  # of a prompt that does not say who answers
        client.timeouts = msgspec.structs.replace(client.timeouts, progress=None)
        self._hub.limits.idle_seconds = float("inf")  # how long it stays is decided here
        for turn in self._unfinished:
            turn.timeout = None
            if turn.id in self._bound:
                self._refuse_unless_asked(turn, self._hub.owner)

    async def last(self, leader: int) -> None:
        """Until it is over; `leader` is the process with which the login session ends. What was
        asked for until then is done, unless this process has to end at once."""
        making_room = asyncio.create_task(self._make_room())
        try:
            logging.getLogger("dragoman").addHandler(logging.StreamHandler())
            await self._end_terminals()
            with _called_on_signals(self._stop), _called_at_end_of(leader, self._ending.set):
                await self._until_unused()
                await self._hub.refuse()
                while not self._told and self._is_there and self._has_to_finish:
                    await self._look()
        finally:
            making_room.cancel()
            for task in self._watching:
                task.cancel()

    def forget(self) -> None:
        """The session is given up. Until then, others must know what the process is."""
        remove_note(self._hub.owner.id)

    async def _make_room(self) -> None:
        """For this one, if many stay: the one that was used longest ago ends, and is asked for
        that."""
        others = [note for note in await asyncio.to_thread(notes) if note.session != self._live.id]
        used = {note.session: await self._used_at(note) for note in others}
        too_many = max(0, len(used) + 1 - MOST_AT_ONCE)
        for session_id in sorted(used, key=used.__getitem__)[:too_many]:
            with suppress(DragomanError):
                await self._hub.elsewhere.take_from_warm(session_id)

    async def _used_at(self, note: WarmNote) -> float:
        record = await self._hub.store.session(note.session)
        return note.since if record is None else max(note.since, record.updated_at)

    def _stop(self) -> None:
        self._told = True
        self._ending.set()

    async def _until_unused(self) -> None:
        while self._is_there and not self._told:
            is_wanted = not self._ending.is_set() and self.is_worth_it and not self._is_unused
            if not is_wanted and not self._has_to_finish:
                return
            await self._look()

    async def _look(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                if self._ending.is_set():
                    await asyncio.sleep(_LOOK_SECONDS / 10)
                else:
                    await self._ending.wait()

    @property
    def _is_busy(self) -> bool:
        """A prompt that is parked keeps others waiting, and the next owner of the session sends
        it."""
        session = self._live.session
        return session.busy or (bool(session.queued) and self._live.state.parked is None)

    @property
    def _has_to_finish(self) -> bool:
        """Whether there is work to do before it may end. Once it should, a question that any window
        may answer does not keep it: nobody may come."""
        running = self._live.session.running
        is_bound = running is not None and running.id in self._bound
        is_asking = bool(self._live.state.pending) and not is_bound
        return self._is_busy and not (is_asking and self._ending.is_set())

    @property
    def _is_there(self) -> bool:
        """Whether there is anything to keep: someone may have closed the session or taken it, and
        the agent may have ended."""
        live = self._live
        is_ours = self._hub.live.get(live.id) is live and live.recording.error is None
        return is_ours and live.agent.client.connection_error is None

    @property
    def _is_unused(self) -> bool:
        return time.monotonic() - self._live.used_at >= self._seconds


@contextmanager
def _called_on_signals(stop: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        # What ends the agent and stores the rest takes a moment: a second signal is for that.
        for number in numbers:
            loop.remove_signal_handler(number)


@contextmanager
def _called_at_end_of(leader: int, stop: Callable[[], None]) -> Generator[None]:
    """`leader` is a descriptor of a process."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(leader)
        stop()

    loop.add_reader(leader, end)
    try:
        yield
    finally:
        loop.remove_reader(leader)
        os.close(leader)
