"""A prompt that waits for the end of a limit: over restarts it is sent once more."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from support.clients import until
from support.hubs import TestLauncher, stored
from support.parking import Limited, events_of, host_on, hub_of, parked_in

from dragoman import SpendingLimit
from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.facts import Offer, OnLimit, TurnTerms
from dragoman.session.limits.spending_limits import SessionLimits
from dragoman.store.base import Store
from dragoman.store.records import SessionFilter, SessionRecord


async def test_a_parked_session_says_so_and_keeps_its_agent(tmp_path: Path) -> None:
    """In a run or a chat: nobody else would send the prompt."""
    async with stored(tmp_path) as store, hub_of(store, Limited()) as hub:
        live = await parked_in(hub, tmp_path)
        assert (await hub.record(live.id)).status == "parked"
        await hub.maintenance.detach_idle(after=0.0)
        assert hub.live == {live.id: live}


@pytest.mark.parametrize("on_limit", ["park", "ask"])
async def test_a_host_keeps_no_agent_for_what_waits_long(tmp_path: Path, on_limit: OnLimit) -> None:
    agent = Limited()
    async with stored(tmp_path) as store, host_on(store, agent, on_limit) as hub:
        live = await parked_in(hub, tmp_path)
        await hub.maintenance.detach_idle(after=0.0)
        await hub.running.until_free(live.id)
        await hub.maintenance.detach_idle(after=0.0)
        assert (hub.live, hub.clients(None)) == ({}, [])
        assert (await hub.record(live.id)).status == ("parked" if on_limit == "park" else "waiting")
        await hub.send(live.id, c.ContinueParked())
        await until(lambda: hub.live[live.id].idle)
        assert agent.prompts == ["fix it", "fix it"]


async def test_a_host_keeps_the_agent_of_what_is_due_soon_or_has_prompts_behind_it(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as store, host_on(store, Limited()) as hub:
        live = await parked_in(hub, tmp_path)
        assert live.is_parked_for(4 * 3600)
        assert not live.is_parked_for(6 * 3600)
        await hub.send(live.id, c.Prompt("and this"))
        await hub.maintenance.detach_idle(after=0.0)
        assert hub.live == {live.id: live}


async def test_one_that_waits_for_a_person_is_waiting(tmp_path: Path) -> None:
    agent = Limited()
    async with stored(tmp_path) as store, hub_of(store, agent, "ask") as hub:
        live = await parked_in(hub, tmp_path)
        assert (await hub.record(live.id)).status == "waiting"
        await hub.send(live.id, c.ContinueParked())
        await until(lambda: live.idle)
        assert agent.prompts == ["fix it", "fix it"]


async def test_it_is_continued_by_command_after_a_restart(tmp_path: Path) -> None:
    agent = Limited()
    async with stored(tmp_path) as store:
        async with hub_of(store, agent) as hub:
            session_id = (await parked_in(hub, tmp_path)).id
        assert agent.prompts == ["fix it"]
        async with hub_of(store, agent) as hub:
            reply = await hub.send(session_id, c.ContinueParked())
            await until(lambda: hub.live[session_id].idle)
            events = await events_of(store, session_id)
            sent = [each for each in events if isinstance(each, e.ParkingChanged)]
            assert [(each.outcome, each.turn_id) for each in sent] == [("continued", reply["turn"])]
        assert agent.prompts == ["fix it", "fix it"]


async def test_what_nobody_runs_is_dropped_without_its_agent(tmp_path: Path) -> None:
    agent = Limited()
    async with stored(tmp_path) as store:
        async with hub_of(store, agent) as hub:
            session_id = (await parked_in(hub, tmp_path)).id
        launcher = TestLauncher({})
        async with Hub(store, launcher) as hub:
            await hub.send(session_id, c.DropParked())
            assert (await hub.state(session_id)).parked is None
            assert (await hub.record(session_id)).status == "idle"
            with pytest.raises(CommandRefused):
                await hub.send(session_id, c.DropParked())
        assert launcher.started == []


async def test_a_sweep_for_what_dead_owners_left_does_not_come_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store:
        async with hub_of(store, Limited()) as hub:
            session_id = (await parked_in(hub, tmp_path)).id
        async with Hub(store, TestLauncher({})) as hub:
            read, sweeps = store.session, list[str]()

            async def read_during_a_sweep(wanted: str) -> SessionRecord | None:
                if not sweeps:
                    sweeps.append(wanted)
                    await hub.maintenance.recover()
                return await read(wanted)

            monkeypatch.setattr(store, "session", read_during_a_sweep)
            await hub.send(session_id, c.DropParked())
            assert sweeps == [session_id]
            assert (await hub.state(session_id)).parked is None


async def test_another_agent_gets_it_and_both_sessions_say_so(tmp_path: Path) -> None:
    agent = Limited()
    async with stored(tmp_path) as store, hub_of(store, agent) as hub:
        live = await parked_in(hub, tmp_path)
        new = hub.live[await hub.parked.hand_over(live.id, "other", stays=True)]
        await until(lambda: new.idle and new.state.turns)
        await new.recording.settled()
        assert agent.prompts == ["fix it", "fix it"]
        assert (new.record.agent, new.record.cwd) == ("other", str(tmp_path))
        links = [await link_of(store, each.id) for each in (live, new)]
        assert links == [("handed_over", new.id), ("taken_over", live.id)]
        with pytest.raises(CommandRefused):
            await hub.parked.hand_over(live.id, "other", stays=True)
        assert len(hub.live) == 2


async def test_a_run_has_it_handed_over_by_a_host(tmp_path: Path) -> None:
    """The process that runs the session may end at once, and so may the one that asks."""
    mine, theirs = Limited(), Limited()
    theirs.prompts.append("something")
    async with stored(tmp_path) as store, host_on(store, theirs) as host:
        async with hub_of(store, mine) as run:
            live = await parked_in(run, tmp_path)
            async with hub_of(store, Limited()) as asking:
                new_id = await asking.parked.hand_over(live.id, "other")
                assert asking.live == {}
            assert list(run.live) == [live.id]
            assert live.state.parked is None
        await until(lambda: host.live[new_id].idle and host.live[new_id].state.turns)
        await host.live[new_id].recording.settled()
        assert (mine.prompts, theirs.prompts[1:]) == (["fix it"], ["fix it"])
        assert await link_of(store, new_id) == ("taken_over", live.id)


async def test_without_a_host_it_stays_parked(tmp_path: Path) -> None:
    agent = Limited()
    async with stored(tmp_path) as store, hub_of(store, agent) as hub:
        live = await parked_in(hub, tmp_path)
        with pytest.raises(CommandRefused, match="only a `dragoman serve` can run the new session"):
            await hub.parked.hand_over(live.id, "other")
        assert live.state.parked is not None
        assert len(await store.sessions(SessionFilter())) == 1


async def test_who_gets_it_may_do_no_more(tmp_path: Path) -> None:
    """It has the limits and the offer of the session; its prompt has the rules it came with."""
    own = SessionLimits(limits=(SpendingLimit(measure="turns", most=1),), on_limit="ask")
    offer, folder = Offer(terminals=False), tmp_path / "more"
    folder.mkdir()
    denied = {"effect": "deny", "operation": "write"}
    terms = TurnTerms(by="me", rules=[denied], on_ask="reject")
    agent = Limited()
    async with stored(tmp_path) as store, hub_of(store, agent) as hub:
        live = await hub.create(
            "it", str(tmp_path), limits=own, offer=offer, additional_directories=[str(folder)]
        )
        await hub.send(live.id, c.RuledPrompt("fix it", terms))
        await until(lambda: live.state.parked is not None and live.state.turn is None)
        new = hub.live[await hub.parked.hand_over(live.id, "other", stays=True)]
        await until(lambda: new.idle and new.state.turns)
        record = new.record
        assert (record.limits, record.offer) == (own, offer)
        assert record.additional_directories == [str(folder)]
        await new.recording.settled()
        (begun,) = [x for x in await events_of(store, new.id) if isinstance(x, e.TurnStarted)]
        assert begun.terms == terms


async def link_of(store: Store, session_id: str) -> tuple[str, str | None]:
    events = await events_of(store, session_id)
    (link,) = [each for each in events if isinstance(each, e.ParkingChanged)]
    return link.outcome, link.session_id


async def test_only_a_host_takes_up_what_is_due(tmp_path: Path) -> None:
    agent = Limited("0.01s")
    async with stored(tmp_path) as store:
        async with hub_of(store, agent, "ask") as hub:
            live = await parked_in(hub, tmp_path)
            session_id = live.id
            live.session.parking.wait()
            live.session.parking.stop()
            await live.recording.settled()
        async with hub_of(store, agent) as hub:
            await hub.parked.take_up()
            assert (list(hub.live), agent.prompts) == ([], ["fix it"])
            await hub.be_host(Presence(name="it", agents=lambda: ["it"]))
            await hub.parked.take_up()
            await until(lambda: len(agent.prompts) == 2 and hub.live[session_id].idle)
            assert agent.prompts == ["fix it", "fix it"]
            assert (await hub.state(session_id)).parked is None


async def until_due(hub: Hub, session_id: str) -> None:
    parked = (await hub.state(session_id)).parked
    at = None if parked is None else parked.resumes_at
    assert at is not None
    await until(lambda: time.time() >= at)


async def test_what_the_agent_cannot_continue_waits_for_a_person(tmp_path: Path) -> None:
    agent, forgetful = Limited("0.01s"), Limited()
    async with stored(tmp_path) as store:
        async with hub_of(store, agent, "ask") as hub:
            live = await parked_in(hub, tmp_path)
            live.session.parking.wait()
            live.session.parking.stop()
            await live.recording.settled()
        async with host_on(store, forgetful) as hub:
            await until_due(hub, live.id)
            await hub.parked.take_up()
            assert (await hub.record(live.id)).status == "waiting"
            told = (await events_of(store, live.id))[-1]
            assert isinstance(told, e.ParkingChanged)
            assert "could not be sent: session " in told.title
            assert (await hub.state(live.id)).parked is not None
            new = hub.live[await hub.parked.hand_over(live.id, "other", stays=True)]
            await until(lambda: len(forgetful.prompts) == 1)
            assert (new.record.agent, forgetful.prompts) == ("other", ["fix it"])


async def test_one_that_is_left_before_it_was_sent_stays_parked_and_is_not_queued(
    tmp_path: Path,
) -> None:
    agent = Limited()
    async with stored(tmp_path) as store, hub_of(store, agent) as hub:
        live = await parked_in(hub, tmp_path)

        async def never() -> None:
            await asyncio.Event().wait()

        live.session.before_turn = never
        await live.session.parking.send_now()
        await hub.detach(live)
        state = await hub.state(live.id)
        assert (state.parked is not None, state.queue, agent.prompts) == (True, [], ["fix it"])
        assert (await hub.record(live.id)).status == "parked"
        await hub.send(live.id, c.ContinueParked())
        await until(lambda: hub.live[live.id].idle)
        assert agent.prompts == ["fix it", "fix it"]
