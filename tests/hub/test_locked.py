"""SQLite cannot be written for a while: another process has it locked, or the disk is full. What
runs goes on, and nothing that was said is lost."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest
from hub.test_away import ALL, Talker, idle, said
from store.faults import failing_disk
from store.postgres.stores import until
from store.test_failures import locker
from support.hubs import TestLauncher, hub_with, seen_until, stored, stored_events
from support.peers import soon

from dragoman.errors import StoreFull, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.maintenance import BACK, told_of_outages
from dragoman.hub.running import event_recorder
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store import outage
from dragoman.store.records import Batch, Lease
from dragoman.store.store_limits import StoreLimits
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say

IMPATIENT = StoreLimits(busy_seconds=0.6, locked_seconds=0.1)


async def test_a_turn_goes_on_while_it_is_locked_and_is_whole_afterwards(tmp_path: Path) -> None:
    talker, told = Talker(), list[str]()
    async with (
        hub_with(tmp_path, ScriptedAgent(talker.speak), store_limits=IMPATIENT) as hub,
        told_of_outages(hub.store, told.append),
    ):
        live = await hub.create("it", str(tmp_path))
        reader = asyncio.create_task(seen_until(hub.watch(live.id), e.TurnEnded))
        await hub.send(live.id, c.Prompt("go"))
        await talker.has_begun.wait()
        await live.recording.settled()
        with locker(tmp_path / "store") as other:
            talker.may_go_on.set()
            await talker.is_done.wait()
            await idle(live)
            await until(lambda: hub.store.has_kept(live.id, live.state.last_seq))
            assert live.recording.error is None
            assert not reader.done(), "seen before it was stored"
            reply = await soon(hub.send(live.id, c.Prompt("again")))
            assert reply["delayed"].startswith("another process has locked the database")
            await until(lambda: len(told) == 1)
            other.communicate(timeout=30)
        seen = await reader
        assert said(seen) == ALL
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
        events = await seen_until(hub.watch(live.id), e.TurnEnded, 2)
        assert [x.error for x in events if isinstance(x, e.TurnEnded)] == [None, None]
        await until(lambda: len(told) == 2)
    assert told[0].startswith("another process has locked the database for too long: running turns")
    assert told[1] == BACK


async def test_a_full_disk_cuts_no_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    talkers = [Talker(), Talker()]
    with failing_disk() as disk:
        agents = {f"it{n}": ScriptedAgent(each.speak) for n, each in enumerate(talkers)}
        async with stored(tmp_path, IMPATIENT) as store, Hub(store, TestLauncher(agents)) as hub:
            lives = [await hub.create(name, str(tmp_path)) for name in agents]
            for live, talker in zip(lives, talkers, strict=True):
                await hub.send(live.id, c.Prompt("go"))
                await talker.has_begun.wait()
                await live.recording.settled()
            disk.full = True
            for live, talker in zip(lives, talkers, strict=True):
                talker.may_go_on.set()
                await idle(live)
            await until(lambda: hub.store.away is not None)
            assert set(hub.live) == {live.id for live in lives}
            disk.full = False
            for live in lives:
                await live.recording.settled()
                events = await stored_events(hub, live.id)
                assert said(events) == ALL
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                [ended] = [x for x in events if isinstance(x, e.TurnEnded)]
                assert ended.error is None
    assert caplog.text.count("no space left to store events; events are kept") == 1
    assert "is no longer recorded" not in caplog.text


async def test_a_hub_that_ends_while_it_is_locked_leaves_all_to_the_store_and_unsent_prompts_wait(
    tmp_path: Path,
) -> None:
    agent, limits = ScriptedAgent(), HubLimits(seal_seconds=10.0**6)
    async with stored(tmp_path, IMPATIENT) as store:
        async with Hub(store, TestLauncher({"it": agent}), limits=limits) as hub:
            live = await hub.create("it", str(tmp_path))
            await live.recording.settled()
            with locker(tmp_path / "store") as other:
                for text in ("first", "second", "third"):
                    assert (await soon(hub.send(live.id, c.Prompt(text))))["delayed"]
                await soon(hub.aclose())
                other.communicate(timeout=30)
        await until(lambda: store.away is None)
        async with Hub(store, TestLauncher({"it": agent})) as hub:
            state = await hub.state(live.id)
            ends = [x for x in await stored_events(hub, live.id) if isinstance(x, e.TurnEnded)]
    assert [x.error for x in ends] == [
        "the process that ran the session was closed; its prompt was not sent, and is queued again"
    ]
    assert [each.content[0].text for each in state.queue] == ["first", "second", "third"]
    assert "session/prompt" not in [method for method, _ in agent.received]


async def test_on_a_full_disk_a_running_session_is_read_and_a_hub_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a chore waits for what is not stored."""
    limits = HubLimits(seal_seconds=10.0**6, seal_away_seconds=0.1)
    store_limits = StoreLimits(busy_seconds=0.6, locked_seconds=0.1, close_seconds=0.1)
    monkeypatch.setattr(outage.Outbox, "keep", _no_room)
    save, saving = RunningSession.save_snapshot, asyncio.Event()

    async def save_snapshot(live: RunningSession) -> None:
        saving.set()
        await save(live)

    talker = Talker()
    with failing_disk() as disk:
        async with hub_with(
            tmp_path,
            ScriptedAgent(talker.speak),
            limits=limits,
            store_limits=store_limits,
        ) as hub:
            live = await hub.create("it", str(tmp_path))
            await hub.send(live.id, c.Prompt("go"))
            await talker.has_begun.wait()
            await live.recording.settled()
            before = live.state.last_seq
            disk.full = True
            talker.may_go_on.set()
            await idle(live)
            await until(lambda: hub.store.away is not None)
            assert (await soon(hub.state(live.id))).last_seq == before
            monkeypatch.setattr(RunningSession, "wants_snapshot", True)
            monkeypatch.setattr(RunningSession, "save_snapshot", save_snapshot)
            await saving.wait()
            await soon(hub.aclose())


async def test_a_session_that_a_full_disk_keeps_from_being_deleted_goes_on(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    with failing_disk() as disk:
        async with hub_with(tmp_path, agent, store_limits=IMPATIENT) as hub:
            live = await hub.create("it", str(tmp_path))
            await live.recording.settled()
            disk.full = True
            with pytest.raises(StoreFull):
                await hub.delete(live.id)
            disk.full = False
            assert hub.live == {live.id: live}
            await hub.send(live.id, c.Prompt("go"))
            events = await seen_until(hub.watch(live.id), e.TurnEnded)
            assert [x.error for x in events if isinstance(x, e.TurnEnded)] == [None]
            await hub.delete(live.id)
            with pytest.raises(UnknownSession):
                await hub.record(live.id)
    asked = [method for method, _ in agent.received]
    assert asked.count("session/prompt") == 1


def _no_room(_outbox: outage.Outbox, _entries: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


class Flood:
    """Says much, piece by piece, until it is cancelled, or on and on."""

    def __init__(self, *, obeys: bool) -> None:
        self.obeys = obeys
        self.said = 0
        self.is_over = asyncio.Event()

    async def speak(self, turn: AgentTurn) -> None:
        while not (self.obeys and turn.cancelled.is_set()) and not self.is_over.is_set():
            turn.say("x" * 1000)
            self.said += 1
            await asyncio.sleep(0.001)


async def test_when_too_much_waits_the_turn_is_cancelled_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    flood = Flood(obeys=True)
    async with hub_with(tmp_path, ScriptedAgent(flood.speak), store_limits=IMPATIENT) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        await seen_until(hub.watch(live.id), e.AgentMessage)
        with locker(tmp_path / "store") as other:
            await until(lambda: hub.store.away is not None)
            hub.limits.waiting_bytes = 200_000
            await idle(live)
            assert live.recording.error is None
            other.communicate(timeout=30)
        await live.recording.settled()
        events = [x.decode() for x in await hub.store.events(live.id, limit=10**6)]
        assert len(said(events)) == 1000 * flood.said
        [ended] = [x for x in events if isinstance(x, e.TurnEnded)]
        assert (ended.stop_reason, ended.error) == ("cancelled", None)
        [notice] = [x for x in events if isinstance(x, e.Notice)]
        assert "locked the database" in notice.text
        assert "because too much was waiting to be stored" in notice.text


async def test_a_session_that_goes_on_all_the_same_is_put_down_with_the_true_reason(
    tmp_path: Path,
) -> None:
    flood = Flood(obeys=False)
    async with hub_with(tmp_path, ScriptedAgent(flood.speak), store_limits=IMPATIENT) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        await seen_until(hub.watch(live.id), e.AgentMessage)
        with locker(tmp_path / "store") as other:
            await until(lambda: hub.store.away is not None)
            hub.limits.waiting_bytes = 200_000
            hub.limits.seal_seconds = 0.1
            await until(lambda: live.id not in hub.live)
            flood.is_over.set()
            other.communicate(timeout=30)
        await hub.running.until_free(live.id)
        await until(lambda: hub.store.away is None)
        await hub.maintenance.recover()
        events = [x.decode() for x in await hub.store.events(live.id, limit=10**6)]
        [ended] = [x for x in events if isinstance(x, e.TurnEnded)]
        assert ended.error is not None
        assert "the session could not be recorded: more than 200000 bytes of events" in ended.error
        assert (await hub.record(live.id)).status == "interrupted"


async def test_what_search_is_to_know_takes_only_so_much_while_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        batches: list[Batch] = []
        append = hub.store.append

        async def seen(lease: Lease, batch: Batch) -> int:
            batches.append(batch)
            return await append(lease, batch)

        monkeypatch.setattr(hub.store, "append", seen)
        for number in range(20):
            live.session.log.record(e.AgentMessage(Text("w" * 1_000_000), message_id=f"{number}"))
            live.session.log.record(e.InfoChanged(title=f"{number} " + "t" * 1_000_000))
        await live.recording.settled()
        assert sum(len(batch.events) for batch in batches) == 40, "all of it is on the record"
        texts = [said.text for batch in batches for said in batch.said]
        assert sum(map(len, texts)) <= event_recorder.MAX_SAID
        titles = [text for text in texts if "t" in text]
        assert {len(text) for text in titles} == {1_000}
