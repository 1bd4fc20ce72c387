"""What an owner left that ended without doing so itself: recovered by the next process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from store.stores import cut_short
from support.clients import until
from support.descriptor_shortage import no_descriptors
from support.hosting import Place
from support.hubs import TestLauncher, dead_process, hub_with, stored, stored_events
from support.postgres import empty_database

from dragoman.errors import CommandRefused, DragomanError, SessionNotContinued, StoreFull
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import has_ended, is_gone, this_process
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import Maintenance
from dragoman.hub.opener import Opener
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import PermissionOption
from dragoman.session.reduce import reduce
from dragoman.session.state import ENDED, SessionState, loose_ends
from dragoman.store.archive import Archive, import_session
from dragoman.store.base import Store
from dragoman.store.outage import Outbox
from dragoman.store.records import (
    Batch,
    Lease,
    Owner,
    SessionChange,
    SessionFilter,
    SessionRecord,
    encode_event,
)
from dragoman.store.store_limits import StoreLimits
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say


def left_behind() -> list[e.Event]:
    """A turn in the midst of a question, with a command running and a prompt queued."""
    events: list[e.Event] = [
        e.SessionOpened("theirs", "/", "new"),
        e.TurnStarted("turn-1", [Text("go on")]),
        e.PromptQueued("turn-2", [Text("and then")]),
        e.TerminalStarted("term-1", ["sleep", "100"]),
        e.PermissionRequested("ask-1", [PermissionOption(id="y", name="Yes", kind="allow_once")]),
        e.ElicitationRequested("ask-2", "Your name?", "form"),
    ]
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return events


async def abandon(store: Store, owner: Owner, session_id: str = "s-1") -> Lease:
    now = time.time()
    record = SessionRecord(
        id=session_id, agent="it", cwd="/", created_at=now, updated_at=now, status="running"
    )
    await store.create_session(record)
    lease = await store.acquire(session_id, owner, seconds=60, gone=lambda _: False)
    events = [encode_event(event) for event in left_behind()]
    await store.append(lease, Batch(first_seq=1, events=events))
    return lease


async def test_what_a_killed_process_kept_is_stored_before_its_session_is_taken_over(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as store:
        lease = await abandon(store, dead_process())
        last = len(left_behind())
        word = kept_back(Outbox(tmp_path / "store", "sqlite"), lease)
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
            events = await stored_events(hub, "s-1")
        assert events[last] == word
        assert isinstance(events[-1], e.TurnEnded)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert not (tmp_path / "store" / "undelivered").exists()


def kept_back(box: Outbox, lease: Lease) -> e.Event:
    """What its process could not deliver any more."""
    seq = len(left_behind()) + 1
    word = e.AgentMessage(Text("the last word"), seq=seq)
    box.keep([(lease, Batch(first_seq=seq, events=[encode_event(word)]))])
    box.close()
    return word


async def test_what_a_killed_process_kept_in_another_home_is_stored_before_others_take_over(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, empty_database())
    async with place.store("two") as store, Hub(store, TestLauncher({}), home="two") as two:
        lease = await abandon(store, msgspec.structs.replace(dead_process(), home="one"))
        word = kept_back(Outbox(tmp_path / "homes" / "one", store.id), lease)
        await two.maintenance.recover()
        owner = await store.owner("s-1")
        assert owner is not None
        assert is_gone(owner), "in every answer, at once"
        async with place.store("one") as theirs, Hub(theirs, TestLauncher({}), home="one") as one:
            await one.maintenance.recover()
        events = await stored_events(two, "s-1")
    assert events[len(left_behind())] == word
    assert isinstance(events[-1], e.TurnEnded)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert not (tmp_path / "homes" / "one" / "undelivered").exists()


async def test_a_session_of_another_home_to_which_nobody_comes_back_is_taken_over_after_its_lease(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, empty_database())
    async with place.store("two") as store, Hub(store, TestLauncher({}), home="two") as two:
        dead = msgspec.structs.replace(dead_process(), home="one")
        await abandon(store, dead)
        two.limits.silence_seconds = -1.0
        await two.maintenance.recover()
        assert await store.owner("s-1") is not None, "its lease has not run out"
        await store.renew(dead, seconds=-1)
        await two.maintenance.recover()
        assert await store.owner("s-1") is None
        assert (await two.record("s-1")).status == "interrupted"


def test_loose_ends_end_everything_that_was_open() -> None:
    state = SessionState()
    for event in left_behind():
        reduce(state, event)
    for event in loose_ends(state):
        reduce(state, event)
    assert state.turn is None
    assert state.turns[-1].error == "interrupted: the process that ran the session ended"
    assert not state.pending
    assert not state.terminals["term-1"].running
    assert [prompt.id for prompt in state.queue] == ["turn-2"]
    assert loose_ends(state) == []


async def test_a_cut_turn_is_interrupted_by_the_first_sweep_of_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = asyncio.Event()
    recover = Maintenance.recover

    async def recover_and_say(self: Maintenance) -> None:
        await recover(self)
        swept.set()

    monkeypatch.setattr(Maintenance, "recover", recover_and_say)
    async with stored(tmp_path) as store:
        await abandon(store, dead_process())
        async with Hub(store, TestLauncher({})):
            await swept.wait()
            record = await store.session("s-1")
        assert record is not None
        assert record.status == "interrupted"
        state = await stored_state(store, "s-1")
        assert state.turns[-1].error is not None
        assert await store.owner("s-1") is None


async def test_a_session_whose_owner_lives_is_left_alone(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        await abandon(store, this_process())
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
            state = await stored_state(store, "s-1")
            assert state.turn is not None
            assert state.last_seq == len(left_behind())


async def test_nobody_recovers_sessions_of_its_own(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, Hub(store, TestLauncher({})) as hub:
        await abandon(store, msgspec.structs.replace(hub.owner, started="it cannot be told"))
        await hub.maintenance.recover()
        assert (await stored_state(store, "s-1")).last_seq == len(left_behind())


async def test_a_process_without_descriptors_takes_nothing_over(tmp_path: Path) -> None:
    here = this_process()
    async with stored(tmp_path) as store, Hub(store, TestLauncher({})) as hub:
        await abandon(store, here)
        with no_descriptors():
            assert not is_gone(here)
            assert has_ended(here) is None
            with pytest.raises(DragomanError, match="descriptor"):
                await hub.maintenance.recover()
        assert (await stored_state(store, "s-1")).last_seq == len(left_behind())


async def test_two_that_start_at_once_put_it_right_once(tmp_path: Path) -> None:
    async with stored(tmp_path) as ours, stored(tmp_path) as theirs:
        await abandon(ours, dead_process())
        async with Hub(ours, TestLauncher({})) as a, Hub(theirs, TestLauncher({})) as b:
            await a.maintenance.recover()
            await b.maintenance.recover()
        events = [each.decode() for each in await ours.events("s-1")]
        assert sum(isinstance(event, e.TurnEnded) for event in events) == 1
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_one_session_that_cannot_be_recovered_does_not_keep_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store:
        dead = dead_process()
        for name in ("s-1", "s-2", "s-3"):
            await abandon(store, dead, name)
        real = Opener.recovered

        async def recovered(self: Opener, lease: Lease, reason: str = ENDED) -> Any:
            if lease.session_id == "s-2":
                raise ZeroDivisionError
            return await real(self, lease, reason)

        monkeypatch.setattr(Opener, "recovered", recovered)
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
            assert (await hub.record("s-1")).status == "interrupted"
            assert (await hub.record("s-3")).status == "interrupted"


async def test_what_another_process_took_is_not_tried_for_ever(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: True)
        live.recording.fail(StoreFull("here", "no space left"))
        await hub.running.until_free(live.id)
        assert hub.running.has_leases
        await hub.maintenance.recover()
        assert not hub.running.has_leases


async def test_an_event_that_nobody_understands_is_passed_over(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        dead = dead_process()
        await abandon(store, dead)
        lease = Lease("s-1", "dead", 1)
        strange = [b'{"type":"of another version","seq":7}', b"not even JSON"]
        await store.append(lease, Batch(first_seq=7, events=strange))
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
            state = await hub.state("s-1")
            assert state.turn is None
            assert state.last_seq == (await hub.record("s-1")).last_seq > 8


async def test_a_session_whose_maker_was_killed_before_it_was_one_is_gone(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        dead, now = dead_process(), time.time()
        for name, parent in (("s-new", None), ("s-fork", "s-parent")):
            record = SessionRecord(
                id=name, agent="it", cwd="/", created_at=now, updated_at=now, parent=parent
            )
            await store.create_session(record)
            await store.acquire(name, dead, seconds=60, gone=lambda _: False)
        await abandon(store, this_process(), "s-parent")
        await store.copy_events("s-parent", Lease("s-fork", "dead", 1))
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
        assert [record.id for record in await store.sessions(SessionFilter())] == ["s-parent"]


async def test_a_fork_whose_maker_was_killed_while_it_copied_is_gone(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path, StoreLimits(portion_bytes=1)) as store:
        await abandon(store, this_process(), "s-parent")
        await store.create_session(
            SessionRecord(
                id="s-fork", agent="it", cwd="/", created_at=1, updated_at=1, parent="s-parent"
            )
        )
        dead = dead_process()
        lease = await store.acquire("s-fork", dead, seconds=60, gone=lambda _: False)
        await cut_short(store, store.copy_events("s-parent", lease), 2)
        assert await store.size_of("s-fork") > 0
        assert await store.events("s-fork") == []
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
        assert [record.id for record in await store.sessions(SessionFilter())] == ["s-parent"]
        left = await store.all_events()
        assert {event.session_id for event in left} == {"s-parent"}


async def test_half_a_fork_is_not_taken_for_its_parent(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        await abandon(store, this_process(), "s-parent")
        record = SessionRecord(
            id="s-fork", agent="it", cwd="/", created_at=1, updated_at=1, parent="s-parent"
        )
        await store.create_session(record)
        lease = await store.acquire("s-fork", this_process(), seconds=60, gone=lambda _: False)
        await store.copy_events("s-parent", lease)
        await store.release(lease)
        async with Hub(store, TestLauncher({"it": ScriptedAgent()})) as hub:
            with pytest.raises(SessionNotContinued):
                await hub.open("s-fork")


async def test_what_was_asked_of_a_dead_owner_is_refused(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        await abandon(store, dead_process())
        command_id = await store.send("s-1", c.encode_command(c.Prompt("a secret")))
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
        with pytest.raises(CommandRefused) as refused:
            c.decode_result("s-1", (await store.outcome(command_id)).body)
        assert refused.value.code == "owner_gone"


async def test_a_hub_that_is_closed_leaves_nothing_to_recover(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await until(lambda: live.record.last_seq)
    async with stored(tmp_path) as store:
        assert await store.owned() == []
        assert loose_ends(await stored_state(store, live.id)) == []


def test_this_process_is_not_gone() -> None:
    assert not is_gone(this_process())


def test_a_later_process_with_the_same_pid_is_another() -> None:
    here = this_process()
    assert is_gone(Owner("x", here.machine, os.getpid(), "earlier"))


def test_of_a_stranger_we_cannot_tell() -> None:
    assert not is_gone(Owner("x", "another machine", 1, "once"))


def test_a_process_here_that_is_silent_is_gone_on_a_store_that_others_have_too() -> None:
    shared, alone = this_process(alone=False), this_process()
    assert not is_gone(shared)
    assert is_gone(msgspec.structs.replace(shared, alive=False))
    # A file needs no word of it: the process is there.
    assert not is_gone(msgspec.structs.replace(alone, alive=False))


FILE = Archive(
    SessionRecord(id="x", agent="it", cwd="/", created_at=1, updated_at=1, agent_session_id="a"),
    [encode_event(event) for event in left_behind()[:1]],
)


async def half_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Owner, lease_seconds: float = 15
) -> None:
    """As a killed process leaves it, before there is a hub."""

    def first(batches: Iterable[Batch]) -> Iterator[Batch]:
        yield next(iter(batches))
        raise StoreFull("disk", "full")

    async def killed(*_: object) -> int:
        raise StoreFull("disk", "full")

    async with stored(tmp_path) as store:
        fill = store.fill

        async def by_half(lease: Lease, batches: Iterable[Batch], change: SessionChange) -> int:
            return await fill(lease, first(batches), change)

        with monkeypatch.context() as patch:
            patch.setattr(store, "fill", by_half)
            patch.setattr(store, "delete_session", killed)
            with pytest.raises(StoreFull):
                await import_session(
                    store, FILE, "s-1", owner, cwd=str(tmp_path), lease_seconds=lease_seconds
                )
        assert await store.session("s-1") is not None


async def test_what_is_left_of_an_import_that_was_killed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await half_imported(tmp_path, monkeypatch, dead_process())
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        await hub.maintenance.recover()
        assert await hub.store.session("s-1") is None
        done = await import_session(hub.store, FILE, "s-2", this_process())
        assert (done.last_seq, done.agent_session_id) == (1, "a")


async def test_what_is_left_of_an_import_that_was_killed_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its importer cannot be seen from here, so that nobody has removed it yet."""
    elsewhere = Owner("gone", "another machine", 1, "yesterday")
    await half_imported(tmp_path, monkeypatch, elsewhere, lease_seconds=0)
    launcher = TestLauncher({"it": ScriptedAgent([say("hello")])})
    async with stored(tmp_path) as store, Hub(store, launcher) as hub:
        with pytest.raises(SessionNotContinued, match="its import was cut short: import the file"):
            await hub.open("s-1", on_reset="new")
        assert launcher.started == []
        await hub.maintenance.recover()
        assert await store.session("s-1") is None
