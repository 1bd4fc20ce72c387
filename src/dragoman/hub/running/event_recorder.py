"""Writes the events of one session to the store: no reader sees an event before it is durable.

While a batch is being committed the next one gathers, so a lone event is stored at once and a flood
in large batches. A store that is slow is still given the next batch: it may be away, and keep on
this disk what it cannot deliver yet. An agent that sends more than the store can take has to wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman.errors import DragomanError, StoreError
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running.activity import SessionActivity
from dragoman.hub.stored.event_readers import Tail
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.store.records import (
    Batch,
    Lease,
    Said,
    SessionChange,
    SessionRecord,
    encode_event,
    encode_events,
)
from dragoman.store.search_texts import Texts

MUCH_BYTES = 16 * 1024 * 1024
"""An agent with more than that to be stored is not read until there is less, unless the store is
away: that may last."""
MAX_SAID = 8 * 1024 * 1024
"""Characters for search that wait with the next batch: what is said beyond them is on the record,
and not found."""
_MAX_BATCH_EVENTS = 5_000
_SLOW_SECONDS = 0.25
"""A store that has not answered by then is not waited for before it is sent more."""
_LOOK_SECONDS = 0.5
_SHOWN_TRIES = 3
"""How often a reader waits: what was read with the last events comes in once more, and what we do
ourselves for the agent may never end."""


class EventRecorder:
    """Records one session: `take` accepts events, and `on_stored` is called when readers can read
    more. A recorder with much left to store adds itself to `behind`, which the sessions of one
    agent share.

    When the store fails, `error` is set, `on_failed` is called with it, and no more is accepted.
    """

    def __init__(
        self,
        store: Store,
        record: SessionRecord,
        lease: Lease,
        *,
        on_stored: Callable[[str], None],
        behind: set[EventRecorder] | None = None,
        limits: HubLimits | None = None,
        activity: SessionActivity | None = None,
    ) -> None:
        self.limits = limits or HubLimits()
        self._activity = activity
        self.record = record
        self.lease = lease
        self.tail = Tail(record.id, record.last_seq)
        self.error: DragomanError | None = None
        self.on_failed: Callable[[DragomanError], None] | None = None
        self.on_much: Callable[[], None] | None = None
        """Called once in an outage, when much waits for the store."""
        self.describe: Callable[[], SessionChange] = SessionChange
        """What to write about the session along with its events."""
        self._store = store
        self._on_stored = on_stored
        self._texts = Texts()
        self._waiting: list[bytes] = []
        self._said: list[Said] = []
        self._said_size = 0
        self._size = 0
        self._unstored = 0
        self._readers = 0
        """Those who wait for a state that is all stored."""
        self._behind = set[EventRecorder]() if behind is None else behind
        self._first_seq = record.last_seq + 1
        self._last_seq = record.last_seq
        self._stale = False
        self._sealed = False
        self._has_much = False
        self._writing: asyncio.Task[None] | None = None
        self._written = asyncio.Event()
        """Set, and replaced, when the batch that is being written is durable, or has failed."""

    def take(self, events: Sequence[e.Event]) -> None:
        """Accept events of one read; the first must follow the last one accepted."""
        if self._sealed:
            return
        # Encoded at once: what an event holds becomes part of the state, and changes with it.
        try:
            bodies = encode_events(events)
        except Exception:
            self._refuse(events)
            return
        if not self._waiting:
            self._first_seq = events[0].seq
        self._last_seq = events[-1].seq
        self._waiting += bodies
        for said in self._texts.feed(events):
            self._note_said(said)
        if self._activity is not None:
            self._activity.take(events)
        self._note_size(sum(map(len, bodies)))

    def _refuse(self, events: Sequence[e.Event]) -> None:
        """One of them cannot be encoded, and without it the next one would take its number."""
        for event in events:
            try:
                encode_event(event)
            except Exception as error:
                reason = f"event {event.seq} cannot be stored: {error}"
                self.fail(StoreError(f"session {self.record.id}", reason))
                return

    def _note_size(self, size: int) -> None:
        self._size += size
        self._unstored += size
        if self._unstored > MUCH_BYTES:
            self._behind.add(self)
        if self._size > self.limits.waiting_bytes:
            most = self.limits.waiting_bytes
            reason = f"more than {most} bytes of events were waiting to be stored"
            self.fail(StoreError(f"session {self.record.id}", reason))
            return
        if self._size > self.limits.waiting_bytes // 2 and not self._has_much:
            self._note_much()
        self._begin_writing()

    def _note_said(self, said: Said) -> None:
        if self._said_size + len(said.text) <= MAX_SAID:
            self._said_size += len(said.text)
            self._said.append(said)

    def _note_much(self) -> None:
        if self._store.away is not None and self.on_much is not None:
            self._has_much = True
            # Not now: what it records would get in before the events that are being recorded.
            asyncio.get_running_loop().call_soon(self.on_much)

    def refresh(self) -> None:
        """Store what there is to say about the session, though nothing new has happened in it."""
        self._stale = True
        self._begin_writing()

    def _begin_writing(self) -> None:
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        sent: deque[_Sent] = deque()
        try:
            while sent or self._has_more:
                if self._has_more and sum(each.size for each in sent) < self.limits.waiting_bytes:
                    sent.append(_Sent(self._take(), self._store, self.lease))
                await asyncio.wait([sent[0].append], timeout=_SLOW_SECONDS)
                while sent and sent[0].append.done():
                    self._stored(sent.popleft())
        except DragomanError as error:
            self.fail(error)
        except Exception as error:
            reason = f"the store failed: {type(error).__name__}"
            self.fail(StoreError(f"session {self.record.id}", reason))
            raise
        finally:
            self._writing = None
            self._has_much = False
            self._tell_written()

    @property
    def _has_more(self) -> bool:
        return bool(self._waiting or self._stale) and not self._sealed

    def _tell_written(self) -> None:
        written, self._written = self._written, asyncio.Event()
        written.set()

    def _take(self) -> Batch:
        events, self._waiting = self._waiting, []
        if len(events) > _MAX_BATCH_EVENTS:
            self._waiting = events[_MAX_BATCH_EVENTS:]
            del events[_MAX_BATCH_EVENTS:]
        batch = Batch(
            first_seq=self._first_seq, events=events, change=self.describe(), said=self._said
        )
        self._said, self._said_size, self._stale = [], 0, False
        self._first_seq += len(events)
        self._size -= batch.size
        return batch

    def _stored(self, sent: _Sent) -> None:
        batch, last = sent.batch, sent.append.result()
        self._unstored -= batch.size
        if self._activity is not None:
            self._activity.stored(len(batch.events), time.monotonic() - sent.since)
        self._read_on()
        if batch.events:
            self._show(batch, last - len(batch.events) + 1)
        self._tell_written()

    def _show(self, batch: Batch, first: int) -> None:
        self.record.last_seq = batch.first_seq + len(batch.events) - 1
        self.tail.push(first, batch.events, batch.size)
        self._on_stored(self.record.id)

    def fail(self, error: DragomanError) -> None:
        """Take nothing more: it cannot be stored."""
        if self._sealed:
            return
        self._seal()
        self._waiting.clear()
        self._said.clear()
        self.error = error
        if self.on_failed is not None:
            self.on_failed(error)

    async def settled(self) -> None:
        """Wait until all that was taken so far is durable, or the store has failed; not for what
        comes meanwhile, of which there may be no end."""
        last = self._last_seq
        while self._writing is not None and (self._stale or self.record.last_seq < last):
            await self._written.wait()

    async def stored(self) -> bool:
        """The same, but while the store cannot be reached only until it is on this host's disk;
        whether it is durable, or refused."""
        last = self._last_seq
        return await self._settled_unless_away(lambda: self._is_kept(last))

    async def shown(self) -> None:
        """The same for a reader, who gets what is stored while the store is away. The agent is not
        read meanwhile: with one that never stops, the state would never be all stored, and the
        reader's would be made from all its events."""
        self._readers += 1
        self._behind.add(self)
        try:
            for _ in range(_SHOWN_TRIES):
                if self._writing is None or not await self._settled_unless_away(lambda: True):
                    break
        finally:
            self._readers -= 1
            self._read_on()
            self._tell_written()

    def _read_on(self) -> None:
        """Unless something is still waited for."""
        if self._unstored <= MUCH_BYTES and not self._readers:
            self._behind.discard(self)

    async def _settled_unless_away(self, is_enough: Callable[[], bool]) -> bool:
        settling = asyncio.create_task(self.settled())
        try:
            while not (await asyncio.wait([settling], timeout=_LOOK_SECONDS))[0]:
                if self._store.away is not None and is_enough():
                    return False
        finally:
            settling.cancel()
        return True

    def _is_kept(self, seq: int) -> bool:
        return self.record.last_seq >= seq or self._store.has_kept(self.record.id, seq)

    async def seal(self) -> None:
        """Take nothing more; what was taken is stored first, or left to a store that is away."""
        began = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.seal_seconds):
                while self._writing is not None and not self._can_be_left(began):
                    await asyncio.wait([self._writing], timeout=_LOOK_SECONDS)
        self._seal()

    def _can_be_left(self, since: float) -> bool:
        """Whether a store that is away has all of it: on the disk, or in memory for so long that
        the disk will not take it."""
        if self._store.away is None or self._waiting:
            return False
        waited = time.monotonic() - since
        return self._is_kept(self._last_seq) or waited > self.limits.seal_away_seconds

    def _seal(self) -> None:
        self._sealed = True
        self._behind.discard(self)

    async def caught_up(self) -> None:
        """Wait while there is much to store, but not for a store that is away."""
        while self in self._behind and self._store.away is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._written.wait(), _LOOK_SECONDS)
        self._behind.discard(self)


class _Sent:
    """A batch on its way."""

    def __init__(self, batch: Batch, store: Store, lease: Lease) -> None:
        self.batch = batch
        self.size = batch.size + sum(len(each.text) for each in batch.said)
        self.since = time.monotonic()
        self.append = asyncio.create_task(store.append(lease, batch))
        # When an earlier one fails, nobody asks for this one.
        self.append.add_done_callback(lambda done: done.cancelled() or done.exception())
