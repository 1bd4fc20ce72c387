"""The time after a run in which its agent stays: this process only waits for others to use it.

It is an owner like any other. What was asked for in its own run alone no longer holds: neither its
rules, nor its terminal. It ends when nobody has used the session for long enough, when the login
session ends, on a signal, when another process wants the session for itself, and when there
is nothing left to keep.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dragoman.cli.warm.start_terms import could_write, start_hash
from dragoman.hub.cluster.owner import started
from dragoman.hub.cluster.warm_notes import WarmNote, remove_note, write_note

if TYPE_CHECKING:
    from dragoman.cli.run.job import Job
    from dragoman.hub.hub import Hub
    from dragoman.hub.running.running_session import RunningSession

_LOOK_SECONDS = 0.5
_LEADER_SECONDS = 5.0


def note_for(hub: Hub, live: RunningSession, job: Job, *, attended: bool) -> WarmNote:
    """Of a process whose run has just ended; `attended` says whether someone answered questions in
    it. Raises OSError."""
    salt = os.urandom(16).hex()
    return WarmNote(
        owner=hub.owner,
        session=live.id,
        since=time.time(),
        seconds=job.stays,
        salt=salt,
        start=start_hash(job, salt),
        writes=could_write(job, attended=attended),
        person=attended,
    )


class Keeping:
    """One session, for as long as its agent stays. Make it when the run has ended."""

    def __init__(self, hub: Hub, live: RunningSession, job: Job, note: WarmNote) -> None:
        self._hub = hub
        self._live = live
        self._note = note
        self._ending = asyncio.Event()
        self._told = False
        job.policy.forget_given()
        live.session.gate.consent.attended = True  # of a prompt that does not say what it wants
        hub.limits.idle_seconds = max(hub.limits.idle_seconds, note.seconds + 60)
        hub.on_give_up = self._ending.set

    async def last(self, leader: int | None) -> None:
        """Until it is over; `leader` is the process with which the login session ends. What was
        asked for until then is done, unless this process has to stop."""
        try:
            logging.getLogger("dragoman").addHandler(logging.StreamHandler())
            write_note(self._note)
            with _called_on_signals(self._stop), _called_at_end_of(leader, self._stop):
                await self._until_unused()
                remove_note(self._hub.owner.id)
                await self._hub.refuse()
                while not self._told and self._is_there and not self._live.idle:
                    await self._look()
        finally:
            remove_note(self._hub.owner.id)

    def _stop(self) -> None:
        self._told = True
        self._ending.set()

    async def _until_unused(self) -> None:
        while self._is_there and not self._told:
            if self._live.idle and (self._ending.is_set() or self._is_unused):
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
    def _is_there(self) -> bool:
        """Whether there is anything to keep: someone may have closed the session, and the agent may
        have ended."""
        is_ours = self._hub.live.get(self._live.id) is self._live
        return is_ours and self._live.agent.client.connection_error is None

    @property
    def _is_unused(self) -> bool:
        return time.monotonic() - self._live.used_at >= self._note.seconds


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
def _called_at_end_of(leader: int | None, stop: Callable[[], None]) -> Generator[None]:
    """Without one, nothing but the time ends it."""
    if leader is None:
        yield
        return
    watching = asyncio.create_task(_wait_for_end_of(leader))
    watching.add_done_callback(lambda task: None if task.cancelled() else stop())
    try:
        yield
    finally:
        watching.cancel()


async def _wait_for_end_of(leader: int) -> None:
    try:
        is_leader = os.getsid(leader) == leader
        since = started(leader)
    except OSError:
        return  # it has ended before
    if not is_leader:
        return
    if sys.platform == "linux" and (descriptor := _pidfd(leader)) is not None:
        await _readable(descriptor)
        return
    # To be found out only by looking repeatedly.
    while await asyncio.sleep(_LEADER_SECONDS, _is_still(leader, since)):
        pass


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel before 5.3, or it has ended: then that is seen by looking
        return None


async def _readable(descriptor: int) -> None:
    """Until it is; it is closed then."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _is_still(pid: int, since: str) -> bool:
    try:
        return started(pid) == since
    except OSError:
        return True  # nobody knows
