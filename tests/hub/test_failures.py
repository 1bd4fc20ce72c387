"""When the store fails or another owner takes over, nothing goes on unseen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from store.stores import begin
from support.clients import until
from support.hubs import TestLauncher, hub_with, seen_until, stored
from support.peers import soon

from dragoman.errors import CommandRefused, DragomanError, LeaseLost, StoreAway, StoreCorrupt
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.command_inbox import ask_owner
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.stored.event_readers import News
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.store.records import Batch, Lease, Outcome, encode_event
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say

PIECE = "x" * (1 << 20)


class Faulty:
    """A store whose appends wait for `go_on`, and fail once there is an `error`."""

    def __init__(self, store: Store) -> None:
        self.error: DragomanError | None = None
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, lease: Lease, batch: Batch) -> int:
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return await self._store.append(lease, batch)


async def test_nobody_sees_an_event_before_it_is_durable(tmp_path: Path) -> None:
    more = asyncio.Event()

    async def says_more(turn: AgentTurn) -> None:
        turn.say("one")
        await more.wait()
        turn.say("two")

    launcher = TestLauncher({"it": ScriptedAgent(says_more)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            live.session.prompt("hi")
            await seen_until(hub.watch(live.id), e.AgentMessage)
            await live.recording.settled()
            faulty.go_on.clear()
            more.set()
            await until(lambda: live.state.turns and live.state.turn is None)
            reading = asyncio.create_task(
                seen_until(hub.watch(live.id, live.record.last_seq), e.TurnEnded)
            )
            await asyncio.sleep(0.05)
            assert not reading.done()
            assert await store.events(live.id, after=live.record.last_seq) == []
            faulty.go_on.set()
            assert isinstance((await soon(reading))[-1], e.TurnEnded)


async def test_a_turn_that_is_not_on_record_is_never_sent_to_the_agent(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("yes")])
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, TestLauncher({"it": agent})) as hub:
            live = await hub.create("it", str(tmp_path))
            await live.recording.settled()
            faulty.go_on.clear()
            asking = asyncio.create_task(hub.send(live.id, c.Prompt("hi")))
            await until(lambda: live.session.busy)
            await asyncio.sleep(0.05)
            assert "session/prompt" not in [method for method, _ in agent.received]
            faulty.error = LeaseLost(live.id)
            faulty.go_on.set()
            with pytest.raises(CommandRefused) as caught:
                await soon(asking)
            assert caught.value.code == "owner_gone"
            await hub.running.until_free(live.id)
            assert "session/prompt" not in [method for method, _ in agent.received]


class Silent:
    """A store that takes commands, and then cannot be asked what became of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def outcome(self, command_id: int) -> Outcome:
        raise StoreAway("db", "it cannot be reached")


async def test_a_command_whose_fate_cannot_be_asked_for_is_unsure(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        lease = await begin(store)
        silent: Any = Silent(store)
        with pytest.raises(CommandRefused, match="may have been carried out") as caught:
            await soon(ask_owner(silent, News(), "s", c.Prompt("hi")))
        assert caught.value.code == "unsure"
        assert len(await store.take([lease])) == 1, "nobody could have carried it out"


async def test_a_store_that_refuses_a_session_ends_its_turn_and_that_is_told(
    tmp_path: Path,
) -> None:
    async def talks_until_cancelled(turn: AgentTurn) -> None:
        while not turn.cancelled.is_set():
            turn.say("x")
            await asyncio.sleep(0.001)

    launcher = TestLauncher({"it": ScriptedAgent(talks_until_cancelled)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            turn = await live.prompt("go on")
            await seen_until(hub.watch(live.id), e.AgentMessage)
            faulty.error = StoreCorrupt(str(tmp_path), "the database is damaged")
            with pytest.raises(StoreCorrupt, match="damaged"):
                await soon(seen_until(hub.watch(live.id), e.TurnEnded))
            with pytest.raises(StoreCorrupt):
                await soon(turn)
            faulty.error = None
            # What was acknowledged is there, and the session can be used again.
            again = await hub.open(live.id)
            assert again.state.turn is None


async def test_a_turn_that_was_cut_since_it_was_refused_is_ended_with_that_reason(
    tmp_path: Path,
) -> None:
    async def waits(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    launcher = TestLauncher({"it": ScriptedAgent(waits)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            await hub.send(live.id, c.Prompt("go on"))
            faulty.error = StoreCorrupt(str(tmp_path), "the database is damaged")
            await live.session.cancel()
            await until(lambda: live.id not in hub.live)
            await hub.running.until_free(live.id)
            await hub.maintenance.recover()
            assert (await stored_state(store, live.id)).turn is not None
            assert await store.owner(live.id) == hub.owner, "nobody else would put it right"
            faulty.error = None
            await hub.maintenance.recover()
            ended = await stored_state(store, live.id)
            assert ended.turn is None
            reason = "interrupted: the session could not be recorded: the database is damaged"
            assert ended.turns[-1].error == reason
            assert (await hub.record(live.id)).status == "interrupted"
            assert await store.owner(live.id) is None


async def test_a_store_that_fails_while_a_session_leaves_does_not_take_the_agent_twice(
    tmp_path: Path,
) -> None:
    launcher = TestLauncher({"it": ScriptedAgent()})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            stays, leaves = [await hub.create("it", str(tmp_path)) for _ in range(2)]
            await leaves.recording.settled()
            faulty.go_on.clear()
            leaves.recording.refresh()
            await asyncio.sleep(0)
            hub.running.detach(leaves)
            faulty.error = StoreCorrupt(str(tmp_path), "the database is damaged")
            faulty.go_on.set()
            await hub.running.until_free(leaves.id)
            assert stays.agent.users == 1
            faulty.error = None


async def test_whoever_comes_after_a_failure_reads_what_there_is(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("one"))
        await seen_until(hub.watch(live.id), e.TurnEnded)
        thief = await hub.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: True)
        await hub.maintenance.renew()
        watched, last = hub.watch(live.id), live.record.last_seq
        event = encode_event(e.Notice("from elsewhere", seq=last + 1))
        await hub.store.append(thief, Batch(first_seq=last + 1, events=[event]))
        assert (await seen_until(watched, e.Notice))[-1].seq == last + 1


async def test_an_event_that_cannot_be_encoded_does_not_give_its_number_away(
    tmp_path: Path,
) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        for text in ("one", "half of a pair: \ud800", "the next one"):
            live.session.log.record(e.Notice(text))
        await until(lambda: live.id not in hub.live)
        await hub.open(live.id)
        events = await hub.store.events(live.id)
        assert [event.decode().seq for event in events] == [event.seq for event in events]


async def test_a_chore_that_fails_is_tried_again(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        hub = Hub(faulty, TestLauncher({}))
        calls: list[int] = []

        async def owned(*, expired: bool = False) -> list[Any]:
            calls.append(1)
            raise ZeroDivisionError

        faulty.owned = owned
        async with hub:
            await until(lambda: len(calls) >= 2)


async def test_an_owner_that_was_overtaken_stops(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    async with hub_with(tmp_path, ScriptedAgent(waits)) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go on"))
        # Another process that believes that this one has ended.
        thief = this_process()
        lease = await hub.store.acquire(live.id, thief, seconds=60, gone=lambda _: True)
        assert lease.epoch > live.recording.lease.epoch
        watched = hub.watch(live.id)
        await live.session.cancel()
        with pytest.raises(LeaseLost):
            await soon(seen_until(watched, e.TurnEnded))
        assert live.id not in hub.live
        assert await hub.store.owner(live.id) == thief


async def test_an_owner_that_was_overtaken_while_idle_notices_too(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        await hub.maintenance.renew()
        assert live.id in hub.live
        await hub.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: True)
        await hub.maintenance.renew()
        assert live.id not in hub.live


async def test_one_bad_session_does_not_hurt_another(tmp_path: Path) -> None:
    async def crashes_or_talks(turn: AgentTurn) -> None:
        if turn.text == "crash":
            raise RuntimeError
        turn.say("fine")

    async with hub_with(tmp_path, ScriptedAgent(crashes_or_talks)) as hub:
        good = await hub.create("it", str(tmp_path))
        bad = await hub.create("it", str(tmp_path))
        await hub.send(bad.id, c.Prompt("crash"))
        await hub.send(good.id, c.Prompt("talk"))
        await seen_until(hub.watch(good.id), e.TurnEnded)
        await seen_until(hub.watch(bad.id), e.TurnEnded)
        assert bad.state.turns[-1].error is not None
        assert good.state.turns[-1].stop_reason == "end_turn"


def flooding(more: asyncio.Event, pieces: int) -> ScriptedAgent:
    """Once there is more, it says so many pieces."""

    async def floods(turn: AgentTurn) -> None:
        await more.wait()
        for _ in range(pieces):
            turn.say(PIECE)
            await turn.drain()

    return ScriptedAgent(floods)


async def test_an_agent_that_says_more_than_the_store_takes_waits_for_it(tmp_path: Path) -> None:
    more = asyncio.Event()
    launcher = TestLauncher({"it": flooding(more, 40)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            live.session.prompt("hi")
            await seen_until(hub.watch(live.id), e.TurnStarted)
            faulty.go_on.clear()
            more.set()
            await until(lambda: live.agent.behind)
            before = live.state.last_seq
            for _ in range(1_000):  # an agent that were read would be done by then
                await asyncio.sleep(0)
            assert live.state.last_seq == before
            faulty.go_on.set()
            told = await seen_until(hub.watch(live.id), e.TurnEnded)
    assert [each.text for each in told if isinstance(each, e.AgentMessage)] == [PIECE] * 40
    assert live.recording.error is None


async def test_it_does_not_wait_for_a_store_that_is_away(tmp_path: Path) -> None:
    more = asyncio.Event()
    launcher = TestLauncher({"it": flooding(more, 24)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            live.session.prompt("hi")
            await seen_until(hub.watch(live.id), e.TurnStarted)
            faulty.go_on.clear()
            faulty.away = "gone"
            more.set()
            await until(lambda: live.state.turn is None)
            faulty.away = None
            faulty.go_on.set()
            told = await seen_until(hub.watch(live.id), e.TurnEnded)
    assert [each.text for each in told if isinstance(each, e.AgentMessage)] == [PIECE] * 24


async def test_a_session_that_cannot_be_stored_does_not_hold_up_others_of_its_agent(
    tmp_path: Path,
) -> None:
    more = asyncio.Event()
    launcher = TestLauncher({"it": flooding(more, 24)})
    async with stored(tmp_path) as store:
        faulty: Any = Faulty(store)
        async with Hub(faulty, launcher) as hub:
            cut = await hub.create("it", str(tmp_path))
            other = await hub.create("it", str(tmp_path))
            cut.session.prompt("hi")
            await seen_until(hub.watch(cut.id), e.TurnStarted)
            faulty.go_on.clear()
            more.set()
            await until(lambda: cut.agent.behind)
            faulty.error = StoreCorrupt("the store", "broken")
            faulty.go_on.set()
            await until(lambda: cut.recording.error is not None)
            faulty.error = None
            other.session.prompt("hi")
            told = await seen_until(hub.watch(other.id), e.TurnEnded)
    assert len([each for each in told if isinstance(each, e.AgentMessage)]) == 24
