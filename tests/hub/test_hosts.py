"""Several hosts on one store: a session belongs to one, and each of them can ask for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from support.hosting import Place, host_of, hosting, two_hosts
from support.hubs import TestLauncher, seen_until, stored_events
from support.peers import SECONDS, soon
from support.postgres import empty_database

from dragoman.errors import (
    CommandRefused,
    LeaseLost,
    SessionElsewhere,
    SessionNotContinued,
    SessionOwned,
    StoreError,
    UnknownHost,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.command_inbox import ask_owner
from dragoman.hub.cluster.host_directory import home_of
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.cluster.owner import started, this_process
from dragoman.hub.hub import Hub
from dragoman.hub.session_records import new_record
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Offer
from dragoman.session.state import UserEntry
from dragoman.store.base import Store
from dragoman.store.records import (
    Batch,
    HostRecord,
    Lease,
    Owner,
    SessionChange,
    SessionFilter,
    encode_event,
)
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import ask, say


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Hosts promise the same on either store."""
    return Place(tmp_path, empty_database() if request.param == "postgresql" else None)


def scripted(word: str = "yes") -> ScriptedAgent:
    return ScriptedAgent([say(word)])


async def said(hub: Hub, session_id: str, text: str = "go") -> None:
    """A turn from its prompt to its end, seen from this hub."""
    after = (await hub.record(session_id)).last_seq
    await soon(hub.send(session_id, c.Prompt(text)))
    await seen_until(hub.watch(session_id, after), e.TurnEnded)


async def at_rest(hub: Hub, session_id: str) -> None:
    """Nobody runs it; its host is there."""
    await hub.detach(hub.live[session_id])


async def called(store: Store, host_id: str) -> None:
    """Until somebody wants something of a host."""
    async with asyncio.timeout(SECONDS):
        while not await store.calls(host_id):
            await a_moment()


async def a_moment() -> None:
    await asyncio.sleep(0.01)


# ── beginning ─────────────────────────────────────────────────────────────────────────────────


async def test_a_session_begins_on_the_host_that_is_named(place: Place) -> None:
    async with two_hosts(place, scripted("one"), scripted("two")) as (one, two):
        host = await one.hosts.named("two")
        session_id = await soon(one.create_on(host, "it", place.cwd, name="far"))
        assert list(two.live) == [session_id]
        assert not one.live
        await said(one, session_id)
        record = await one.record(session_id)
        assert (record.home, record.name, record.title) == ("two", "far", "go")
        answers = [x for x in await stored_events(one, session_id) if isinstance(x, e.AgentMessage)]
        assert [message.content.text for message in answers] == ["two"]


async def test_what_a_host_cannot_begin_leaves_no_trace_and_says_why(place: Place) -> None:
    nowhere = f"{place.cwd}/nowhere"
    async with two_hosts(place, scripted(), scripted()) as (one, two):
        host = await host_of(two)
        with pytest.raises(CommandRefused, match=f"no directory {nowhere} on two") as caught:
            await soon(one.create_on(host, "it", nowhere))
        assert caught.value.code == "no_workspace"
        with pytest.raises(CommandRefused):
            await soon(one.create_on(host, "nobody", place.cwd))
        assert await one.store.sessions(SessionFilter()) == []
        assert await one.store.calls(host.id) == []


async def test_the_least_busy_host_with_the_agent_comes_first(place: Place) -> None:
    async with two_hosts(place, scripted(), scripted()) as (one, two):
        assert [host.name for host in await one.hosts.able("it")] == ["one", "two"]
        assert [host.name for host in await two.hosts.able("it")] == ["two", "one"]
        await one.create("it", place.cwd)
        assert [host.name for host in await one.hosts.able("it")] == ["two", "one"]
        assert await one.hosts.able("another") == []
        async with hosting(place, "three", {"another": scripted()}):
            assert [host.name for host in await one.hosts.able("another")] == ["three"]
        assert await one.hosts.able("another") == []


# ── asking ────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_at_rest_is_woken_where_its_workspace_is(place: Place) -> None:
    async with two_hosts(place, scripted("one"), scripted("two")) as (one, two):
        live = await two.create("it", place.cwd)
        await said(two, live.id)
        await at_rest(two, live.id)
        await said(one, live.id, "again")
        assert not one.live
        assert two.live[live.id].session.continuity == "continued"
        await at_rest(two, live.id)
        with pytest.raises(SessionElsewhere) as caught:
            await one.open(live.id)
        assert caught.value.host == "two"
        assert await two.store.owner(live.id) is None


async def test_what_needs_a_running_session_wakes_nobody(place: Place) -> None:
    async with two_hosts(place, scripted(), scripted()) as (one, two):
        live = await two.create("it", place.cwd)
        await at_rest(two, live.id)
        assert await one.send(live.id, c.Cancel()) == {"cancelled": False}
        await one.rename(live.id, "another name")
        await one.send(live.id, c.Close())
        assert not two.live
        record = await two.record(live.id)
        assert (record.title, record.status) == ("another name", "closed")


async def test_a_fork_begins_on_the_host_of_its_parent(place: Place) -> None:
    async with two_hosts(place, scripted(), scripted()) as (one, two):
        live = await two.create("it", place.cwd, offer=Offer(terminals=False))
        await said(two, live.id, "before")
        with pytest.raises(SessionElsewhere):
            await one.fork(live.id)
        fork_id = await soon(one.elsewhere.fork(await one.record(live.id), "twig"))
        fork = two.live[fork_id]
        assert (fork.record.parent, fork.record.home, fork.record.name) == (live.id, "two", "twig")
        assert fork.record.offer == Offer(terminals=False)
        await said(one, fork_id, "after")
        words = [x.text for x in fork.state.entries if isinstance(x, UserEntry)]
        assert words == ["before", "after"]
        events = await stored_events(one, fork_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_fork_that_fails_says_why_and_goes_though_nobody_asks_any_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_hosts(place, scripted(), scripted()) as (one, two):
        live = await two.create("it", place.cwd)
        await said(two, live.id)
        record = new_record("two", "it", place.cwd)
        record.parent = live.id
        await one.store.create_session(record)
        original = two.store.copy_events

        async def copied_by_half(source: str, lease: Lease, upto: int | None) -> int:
            await original(source, lease, upto)
            raise StoreError("here", "the disk failed")

        monkeypatch.setattr(two.store, "copy_events", copied_by_half)
        to = two.owner.id
        with pytest.raises(CommandRefused, match="the disk failed"):
            await soon(ask_owner(one.store, one.news, record.id, c.Open(host=to), to=to))
        async with asyncio.timeout(SECONDS):
            while await one.store.session(record.id) is not None:
                await a_moment()
        assert await one.store.session(live.id) is not None


async def test_a_session_is_deleted_by_the_host_whose_agent_remembers_it(place: Place) -> None:
    there = scripted()
    async with two_hosts(place, scripted(), there) as (one, two):
        live = await two.create("it", place.cwd)
        with pytest.raises(SessionOwned):
            await soon(one.delete(live.id))
        await at_rest(two, live.id)
        await soon(one.delete(live.id))
        assert await two.store.session(live.id) is None
        assert ("session/delete", live.session.id) in [
            (method, params.get("sessionId")) for method, params in there.received
        ]


# ── when a host is gone ───────────────────────────────────────────────────────────────────────


async def test_a_session_of_a_host_that_is_gone_waits_for_it_or_moves(place: Place) -> None:
    memory = scripted("still here")
    async with hosting(place, "one", {"it": memory}) as one:
        async with hosting(place, "two", {"it": memory}) as two:
            live = await two.create("it", place.cwd, name="kept")
            await said(two, live.id)
        record = await one.record(live.id)
        with pytest.raises(CommandRefused, match="is on the host two, which is gone") as caught:
            await soon(one.send(live.id, c.Prompt("again")))
        assert caught.value.code == "host_gone"
        await one.elsewhere.move(record, await host_of(one), None, "fail")
        await said(one, live.id, "again")
        moved = await one.record(live.id)
        assert (moved.home, one.live[live.id].session.continuity) == ("one", "continued")
        [kept] = await one.store.sessions(SessionFilter(name="kept"))
        assert kept.home == "one"


async def test_a_session_moves_from_a_host_on_this_machine_that_was_stopped(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, empty_database())
    async with hosting(place, "one", {"it": scripted()}) as one:
        # A process that is there, and says nothing more: as after SIGSTOP.
        pid, shared = os.getppid(), this_process(alone=False)
        stopped = Owner("stopped", shared.machine, pid, started(pid), home="two")
        record = new_record("two", "it", place.cwd)
        lease = await one.store.begin_session(record, stopped, seconds=60)
        opened = e.SessionOpened("theirs", place.cwd, "new", seq=1)
        asked = e.TurnStarted("t", [Text("go")], seq=2)
        bodies = [encode_event(event) for event in (opened, asked)]
        change = SessionChange(agent_session_id="theirs", status="running")
        await one.store.append(lease, Batch(first_seq=1, events=bodies, change=change))
        here = await host_of(one)
        with pytest.raises(SessionOwned):
            await soon(one.open_here(record.id, on_reset="new"))
        await one.store.renew(stopped, seconds=-1)
        with pytest.raises(CommandRefused, match="can be moved to another") as caught:
            await soon(one.send(record.id, c.Prompt("again")))
        assert caught.value.code == "owner_gone"
        await soon(one.elsewhere.move(record, here, None, "new"))
        await said(one, record.id, "again")
        with pytest.raises(LeaseLost):
            await one.store.append(lease, Batch(first_seq=3, events=bodies))


async def test_an_agent_without_its_memory_goes_on_only_when_that_is_wanted(
    place: Place,
) -> None:
    async with hosting(place, "one", {"it": scripted("stranger")}) as one:
        async with hosting(place, "two", {"it": scripted()}) as two:
            live = await two.create("it", place.cwd)
            await said(two, live.id)
        record = await one.record(live.id)
        async with hosting(place, "three", {"it": scripted("stranger")}) as three:
            for host in (await host_of(one), await host_of(three)):
                with pytest.raises(Exception, match="continue") as caught:
                    await soon(one.elsewhere.move(record, host, None, "fail"))
                assert getattr(caught.value, "code", "not_continued") == "not_continued"
            assert (await one.record(live.id)).home == "two"
            folder = place.folder / "another place"
            folder.mkdir()
            host = await host_of(three)
            await soon(one.elsewhere.move(record, host, str(folder), "new"))
            assert three.live[live.id].session.continuity == "reset"
            await said(one, live.id, "again")
            moved = await one.record(live.id)
            assert (moved.home, moved.cwd) == ("three", str(folder))
            started = [x for x in await stored_events(one, live.id) if isinstance(x, e.TurnStarted)]
            assert len(started) == 2


async def test_an_agent_s_id_that_means_another_session_there_is_not_continued(
    place: Place,
) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one:
        mine = await one.create("it", place.cwd)
        async with hosting(place, "two", {"it": scripted()}) as two:
            live = await two.create("it", place.cwd)
            await said(two, live.id)
            assert live.session.id == mine.session.id
        record, host = await one.record(live.id), await host_of(one)
        with pytest.raises(SessionNotContinued, match="another session of that id"):
            await one.elsewhere.move(record, host, None, "fail")
        await one.elsewhere.move(record, host, None, "new")
        moved = one.live[live.id].session
        assert (moved.continuity, moved.id != mine.session.id) == ("reset", True)
        await said(one, live.id, "again")
        await said(one, mine.id)


async def test_a_session_does_not_move_while_it_runs_nor_where_its_folder_is_not(
    place: Place,
) -> None:
    asking = ScriptedAgent([ask("call", title="May I", kind="delete")])
    async with two_hosts(place, scripted(), asking) as (one, two):
        live = await two.create("it", place.cwd)
        await soon(one.send(live.id, c.Prompt("go")))
        for hub in (one, two):
            with pytest.raises(SessionOwned, match="on two"):
                await soon(hub.elsewhere.move(live.record, await host_of(one), None, "fail"))
        assert list(two.live) == [live.id]
        await soon(one.send(live.id, c.Cancel()))
        await at_rest(two, live.id)
        nowhere = f"{place.cwd}/nowhere"
        with pytest.raises(CommandRefused, match=f"no directory {nowhere}"):
            await one.elsewhere.move(live.record, await host_of(one), nowhere, "new")
        record = await one.record(live.id)
        assert (record.home, record.cwd) == ("two", place.cwd)


@pytest.mark.parametrize("asked", [0, 1], ids=["of the new host", "of the old one"])
async def test_an_idle_session_moves_from_a_host_that_is_there(place: Place, asked: int) -> None:
    memory = scripted()
    async with two_hosts(place, memory, memory) as hosts:
        one, two = hosts
        live = await two.create("it", place.cwd)
        await said(two, live.id)
        record, host = await one.record(live.id), await host_of(one)
        await soon(hosts[asked].elsewhere.move(record, host, None, "fail"))
        assert (list(one.live), list(two.live)) == ([live.id], [])
        assert (await two.record(live.id)).home == "one"
        await said(two, live.id, "again")
        assert one.live[live.id].session.continuity == "continued"
        with pytest.raises(SessionOwned):
            await one.elsewhere.move(record, host, None, "fail")


async def test_what_is_asked_of_a_host_that_leaves_is_refused_and_never_done(
    place: Place,
) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        deaf = HostRecord(id="deaf", home="deaf", name="deaf", agents=["it"])
        await store.announce(deaf, seconds=60)
        asking = asyncio.create_task(one.create_on(deaf, "it", place.cwd))
        await called(store, "deaf")
        await store.depart("deaf")
        with pytest.raises(CommandRefused) as caught:
            await soon(asking)
        assert caught.value.code == "owner_gone"
        assert await store.calls("deaf") == []
        assert await store.sessions(SessionFilter()) == []


COMMANDS = (c.Prompt("go"), c.Cancel(), c.AnswerPermission("one", "two"), c.Close())


async def far_away(store: Store, place: Place, session_id: str = "s-far") -> Owner:
    """A host on a machine that cannot be seen from here, and a session that runs there."""
    owner = Owner("far", "another machine", 1, "then", "far")
    host = HostRecord(id="far", home="far", name="far", agents=["it"], owner=owner)
    await store.announce(host, seconds=60)
    await store.create_session(new_record("far", "it", place.cwd, session_id=session_id))
    await store.acquire(session_id, owner, seconds=60, gone=lambda _: None)
    await store.change_session(session_id, SessionChange(status="running"))
    return owner


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
async def test_what_waits_for_a_machine_is_answered_in_the_moment_it_is_gone(
    place: Place, command: c.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        owner = await far_away(store, place)
        sent, original = asyncio.Event(), one.store.send

        async def send(session_id: str, body: bytes, *, to: str | None = None) -> int:
            command_id = await original(session_id, body, to=to)
            sent.set()
            return command_id

        monkeypatch.setattr(one.store, "send", send)
        asking = asyncio.create_task(one.send("s-far", command))
        await soon(sent.wait())
        await asyncio.sleep(0)
        assert not asking.done()
        await store.renew(owner, seconds=-1)
        with pytest.raises(CommandRefused) as caught:
            await soon(asking)
        assert caught.value.code == "owner_gone"
        # And nobody will do it later.
        lease = await store.acquire("s-far", one.owner, seconds=60, gone=lambda _: True)
        assert await store.take([lease]) == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
async def test_what_is_asked_of_a_machine_that_is_gone_is_refused_at_once(
    place: Place, command: c.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        await store.renew(await far_away(store, place), seconds=-1)
        monkeypatch.setattr(one.store, "send", None)  # it is not even sent
        with pytest.raises(CommandRefused, match="is on the host far, which is gone") as caught:
            await soon(one.send("s-far", command))
        assert caught.value.code == "owner_gone"
        assert [host.alive for host in await one.hosts.all() if host.name == "far"] == [False]


async def test_a_machine_that_came_back_is_asked_before_its_old_lease_is_cleared_away(
    place: Place,
) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        await store.renew(await far_away(store, place), seconds=-1)
        async with hosting(place, "far", {"it": scripted()}) as far:
            await said(one, "s-far")
            assert list(far.live) == ["s-far"]


# ── names and homes ───────────────────────────────────────────────────────────────────────────


async def test_a_name_is_had_by_one_host(place: Place) -> None:
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        async with Hub(store, TestLauncher({}), home="other") as other:
            with pytest.raises(UnknownHost, match="another host is already named one"):
                await other.be_host(Presence(name="one", agents=list))
            name = await other.be_host(Presence(name="one", agents=list, renamed=True))
            assert name == f"one-{other.owner.id[:4]}"
            assert (await one.hosts.named(name)).id == other.owner.id
        with pytest.raises(UnknownHost, match="is not live"):
            await one.hosts.named(name)
        with pytest.raises(UnknownHost, match="no such host: six"):
            await one.hosts.named("six")


async def test_a_host_that_starts_again_has_its_name_and_its_sessions(place: Place) -> None:
    agent = scripted()
    async with hosting(place, "one", {"it": scripted()}) as one:
        async with hosting(place, "two", {"it": agent}) as two:
            live = await two.create("it", place.cwd)
        async with hosting(place, "two", {"it": agent}) as two:
            await said(one, live.id)
            assert list(two.live) == [live.id]
            assert [host.name for host in await one.hosts.all()] == ["one", "two"]


async def test_on_a_store_of_several_machines_each_has_a_home_that_stays(tmp_path: Path) -> None:
    async with Place(tmp_path, empty_database()).store() as store:
        home = home_of(store, tmp_path / "here")
        assert home is not None
        assert home_of(store, tmp_path / "here") == home != home_of(store, tmp_path / "there")


async def test_on_a_store_of_this_machine_every_process_may_run_every_session(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    async with hosting(place, "one", {"it": scripted()}) as one, place.store() as store:
        live = await one.create("it", place.cwd)
        await at_rest(one, live.id)
        assert home_of(store, tmp_path) is None
        async with Hub(store, TestLauncher({"it": scripted()})) as plain:
            with pytest.raises(Exception, match="continue"):
                await plain.open(live.id)
            assert (await plain.open(live.id, on_reset="new")).record.home == "one"
