"""A session that is opened again goes on where it was, or says that it cannot."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.clients import until
from support.hubs import TestLauncher, hub_with, seen_until, stored, stored_events
from support.peers import soon
from support.raw_agent import Json, RawAgent, notification, text_block

from dragoman.errors import ConnectionLost, SessionNotContinued, Unsupported
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, ResetEntry, UserEntry
from dragoman.store.records import SessionChange, SessionFilter
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_agent import EVERYTHING
from dragoman.testing.scripted_connection import NEVER
from dragoman.testing.steps import say

FORGETFUL = v1.AgentCapabilities()


async def said(hub: Hub, live: RunningSession, text: str) -> None:
    after = live.record.last_seq
    await hub.send(live.id, c.Prompt(text))
    await seen_until(hub.watch(live.id, after), e.TurnEnded)


def asked(live: RunningSession) -> list[str]:
    return [entry.text for entry in live.state.entries if isinstance(entry, UserEntry)]


@pytest.mark.parametrize("way", ["load", "resume"])
async def test_a_session_goes_on_with_its_history(tmp_path: Path, way: str) -> None:
    capabilities = EVERYTHING if way == "resume" else v1.AgentCapabilities(load_session=True)
    async with hub_with(tmp_path, ScriptedAgent([say("yes")], capabilities=capabilities)) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await hub.detach(live)
        again = await hub.open(live.id)
        assert again.session.continuity == ("continued" if way == "resume" else "replayed")
        await said(hub, again, "two")
        assert asked(again) == ["one", "two"]
        answers = [x.text for x in again.state.entries if isinstance(x, AgentEntry)]
        assert answers == ["yes", "yes"]
        assert await stored_state(hub.store, live.id) == again.state


def update(kind: str, text: str) -> Json:
    return notification(kind, content=text_block(text))


HISTORY = [update("user_message_chunk", "one"), update("agent_message_chunk", "yes")]


async def once_more(hub: Hub, agent: RawAgent, cwd: Path) -> RunningSession:
    """A session of one turn that is open again; its agent has repeated nothing."""
    live = await hub.create("it", str(cwd))
    await hub.send(live.id, c.Prompt("one"))
    answered = await agent.expect("session/prompt")
    agent.send(HISTORY[1], {"id": answered["id"], "result": {"stopReason": "end_turn"}})
    await seen_until(hub.watch(live.id, 0), e.TurnEnded)
    await hub.detach(live)
    return await hub.open(live.id)


async def test_what_an_agent_says_after_it_repeated_the_history_late_is_news(
    tmp_path: Path,
) -> None:
    agent = RawAgent({"loadSession": True})
    async with hub_with(tmp_path, agent) as hub:
        again = await once_more(hub, agent, tmp_path)
        after = again.state.last_seq
        agent.send(*HISTORY, update("agent_message_chunk", "the build failed"))
        [news] = await seen_until(hub.watch(again.id, after), e.AgentMessage)
        assert (news.text, news.replay) == ("the build failed", False)
        assert [entry.text for entry in again.state.entries][:3] == [
            "one",
            "yes",
            "the build failed",
        ]
        assert await stored_state(hub.store, again.id) == again.state


async def test_a_history_repeated_while_a_prompt_is_on_its_way_is_not_its_answer(
    tmp_path: Path,
) -> None:
    agent = RawAgent({"loadSession": True})
    async with hub_with(tmp_path, agent) as hub:
        again = await once_more(hub, agent, tmp_path)
        after = again.state.last_seq
        await hub.send(again.id, c.Prompt("two"))
        request = await agent.expect("session/prompt")
        answer = update("agent_message_chunk", "no")
        agent.send(*HISTORY, answer, {"id": request["id"], "result": {"stopReason": "end_turn"}})
        seen = await seen_until(hub.watch(again.id, after), e.TurnEnded)
        assert [event.text for event in seen if isinstance(event, e.AgentMessage)] == ["no"]
        assert [entry.text for entry in again.state.entries] == ["one", "yes", "two", "no"]


async def test_an_answer_in_the_words_of_the_last_one_is_an_answer(tmp_path: Path) -> None:
    agent = RawAgent({"loadSession": True})
    async with hub_with(tmp_path, agent) as hub:
        again = await once_more(hub, agent, tmp_path)
        await hub.send(again.id, c.Prompt("one"))
        request = await agent.expect("session/prompt")
        agent.send(HISTORY[1], {"id": request["id"], "result": {"stopReason": "end_turn"}})
        await seen_until(hub.watch(again.id, again.state.last_seq), e.TurnEnded)
        assert [entry.text for entry in again.state.entries] == ["one", "yes", "one", "yes"]


async def test_words_that_may_repeat_old_ones_are_stored_before_a_session_is_detached(
    tmp_path: Path,
) -> None:
    agent = RawAgent({"loadSession": True})
    async with hub_with(tmp_path, agent) as hub:
        again = await once_more(hub, agent, tmp_path)
        before = await stored_events(hub, again.id)
        agent.send(update("agent_message_chunk", "ye"))
        await until(lambda: again.session.log.retold)
        assert await stored_events(hub, again.id) == before  # "s" may follow
        await hub.detach(again)
        [held] = (await stored_events(hub, again.id))[len(before) :]
        assert isinstance(held, e.AgentMessage)
        assert held.text == "ye"


async def test_an_agent_that_cannot_continue_is_never_started_empty(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")], capabilities=FORGETFUL)) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await hub.detach(live)
        before = await stored_events(hub, live.id)
        with pytest.raises(SessionNotContinued):
            await hub.open(live.id)
        assert await stored_events(hub, live.id) == before
        assert await hub.store.owner(live.id) is None


async def test_starting_empty_is_possible_on_demand_and_leaves_a_mark(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")], capabilities=FORGETFUL)) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await hub.detach(live)
        again = await hub.open(live.id, on_reset="new")
        await said(hub, again, "two")
        assert again.session.continuity == "reset"
        kinds = [type(entry) for entry in again.state.entries]
        assert kinds == [UserEntry, AgentEntry, ResetEntry, UserEntry, AgentEntry]
        assert (await hub.record(live.id)).agent_session_id == again.session.id


async def test_queued_prompts_wait_for_the_next_owner(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        if turn.text == "one":
            await turn.cancelled.wait()

    async with hub_with(tmp_path, ScriptedAgent(waits)) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("one"))
        await hub.send(live.id, c.Prompt("two"))
        await hub.send(live.id, c.Prompt("three"))
        await hub.send(live.id, c.DropQueued(live.session.queued[0].id))
        # The turn is cut, not ended in order: what waits must not be sent now.
        await live.detach(SessionNotContinued(live.id, "the test ends it"))
        hub.live.pop(live.id)
        await hub.store.release(live.recording.lease)
        again = await hub.open(live.id)
        assert [turn.content[0].text for turn in again.session.queued] == ["three"]
        sent = await hub.send(live.id, c.Prompt("four"))
        assert sent["queued"]
        await until(lambda: again.idle)
        assert asked(again) == ["one", "three", "four"]


async def test_a_lost_agent_is_started_again_with_the_next_prompt(tmp_path: Path) -> None:
    target = f"{Path(__file__).parent}/programs/agents.py:remembers"
    agent = ScriptedAgent.command(target, env={"STORE": str(tmp_path)})
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await hub.send(live.id, c.Kill())
        await said(hub, live, "two")
        assert asked(live) == ["one", "two"]
        assert live.state.turns[-1].stop_reason == "end_turn"


async def test_each_session_of_a_lost_agent_is_told_of_again(tmp_path: Path) -> None:
    target = f"{Path(__file__).parent}/programs/agents.py:remembers"
    agent = ScriptedAgent.command(target, env={"STORE": str(tmp_path)})
    async with hub_with(tmp_path, agent) as hub:
        lives = [await hub.create("it", str(tmp_path)) for _ in range(2)]
        for live in lives:
            await said(hub, live, "one")
        await hub.send(lives[0].id, c.Kill(force=True))
        for live in lives:
            await said(hub, live, "two")
            opened = [
                x for x in await stored_events(hub, live.id) if isinstance(x, e.SessionOpened)
            ]
            assert [event.continuity for event in opened] == ["new", "continued"]
            assert live.state.turns[-1].stop_reason == "end_turn"


async def test_what_waits_when_a_shared_agent_is_lost_is_on_record_in_each_session(
    tmp_path: Path,
) -> None:
    async def waits(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    async with hub_with(tmp_path, ScriptedAgent(waits)) as hub:
        killed, other = [await hub.create("it", str(tmp_path)) for _ in range(2)]
        for live in (killed, other):
            for text in ("one", "two", "three"):
                await hub.send(live.id, c.Prompt(text))
        await hub.send(killed.id, c.Kill(force=True))
        for live in (killed, other):
            await until(lambda live=live: live.idle)
            await live.recording.settled()
            state = await hub.state(live.id)
            assert asked(live) == ["one", "two", "three"]
            unsent = [
                str(turn.error).startswith("the prompt was not sent: ") for turn in state.turns
            ]
            assert unsent == [False, True, True]
            assert state.queue == []


async def test_an_agent_that_was_started_again_is_noted(tmp_path: Path) -> None:
    target = f"{Path(__file__).parent}/programs/agents.py:remembers"
    agent = ScriptedAgent.command(target, env={"STORE": str(tmp_path)})
    notes = tmp_path / "running"
    async with (
        stored(tmp_path) as store,
        Hub(store, TestLauncher({"it": agent}), notes=notes) as hub,
    ):
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        before = live.agent.client.pids
        await hub.send(live.id, c.Kill())
        await said(hub, live, "two")
        [note] = [json.loads(file.read_text()) for file in notes.iterdir()]
        assert [child["pid"] for child in note["children"]] == live.agent.client.pids
        assert live.agent.client.pids != before


async def test_an_agent_that_dies_while_a_session_is_made_leaves_none(tmp_path: Path) -> None:
    agent = ScriptedAgent(answers={"session/new": NEVER})
    async with hub_with(tmp_path, agent) as hub:
        creating = asyncio.create_task(hub.create("it", str(tmp_path)))
        await until(lambda: any(method == "session/new" for method, _ in agent.received))
        agent.close()
        with pytest.raises(ConnectionLost):
            await soon(creating)
        assert await hub.store.sessions(SessionFilter()) == []
        assert await hub.store.owned() == []
        del agent.answers["session/new"]
        assert (await soon(hub.create("it", str(tmp_path)))).agent.users == 1


async def test_prompts_at_once_after_a_loss_start_the_agent_once(tmp_path: Path) -> None:
    target = f"{Path(__file__).parent}/programs/agents.py:remembers"
    agent = ScriptedAgent.command(target, env={"STORE": str(tmp_path)})
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await hub.send(live.id, c.Kill())
        prompts = ("two", "three", "four")
        await asyncio.gather(*(hub.send(live.id, c.Prompt(text)) for text in prompts))
        await until(lambda: live.idle)
        assert asked(live) == ["one", "two", "three", "four"]
        answers = [x.text for x in live.state.entries if isinstance(x, AgentEntry)]
        assert answers == ["yes"] * 4
        opened = [x for x in await stored_events(hub, live.id) if isinstance(x, e.SessionOpened)]
        assert len(opened) == 2


async def test_what_waits_in_the_queue_is_not_sent_by_a_hub_that_closes(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    agent = ScriptedAgent(waits)
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("one"))
        await hub.send(live.id, c.Prompt("two"))
    async with hub_with(tmp_path, agent) as hub:
        state = await hub.state(live.id)
        assert [turn.error is None for turn in state.turns] == [False]
        assert [prompt.content[0].text for prompt in state.queue] == ["two"]
        # Whoever edits what waits does not have to know that nothing runs.
        await hub.send(live.id, c.EditQueued(state.queue[0].id, "three"))
        assert [prompt.content[0].text for prompt in hub.live[live.id].state.queue] == ["three"]


async def test_a_turn_that_a_closing_hub_cancels_says_why(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        turn.say("well")
        await turn.cancelled.wait()

    agent = ScriptedAgent(waits)
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("one"))
        await seen_until(hub.watch(live.id), e.AgentMessage)
    async with hub_with(tmp_path, agent) as hub:
        *_, notice, _, end = await stored_events(hub, live.id)
        assert isinstance(notice, e.Notice)
        assert notice.text == (
            "the turn was cancelled because the process that ran the session was stopped"
        )
        assert isinstance(end, e.TurnEnded)
        assert end.stop_reason == "cancelled"


async def test_a_fork_does_not_go_on_with_the_turn_of_its_parent(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        turn.say("well")
        await turn.cancelled.wait()

    async with hub_with(tmp_path, ScriptedAgent(waits)) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("one"))
        await hub.send(live.id, c.Prompt("two"))
        await seen_until(hub.watch(live.id), e.AgentMessage)
        fork = await hub.fork(live.id)
        assert (fork.state.turn, fork.state.queue) == (None, [])
        assert fork.state.turns[-1].error == (
            "interrupted: the session was forked in the midst of a turn"
        )
        assert live.session.busy
        assert len(live.session.queued) == 1
        await fork.recording.settled()
        assert await stored_state(hub.store, fork.id) == fork.state


async def test_a_fork_begins_with_what_its_parent_did(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        fork = await hub.fork(live.id)
        await said(hub, fork, "two")
        assert asked(fork) == ["one", "two"]
        assert asked(live) == ["one"]
        assert fork.record.parent == live.id
        assert fork.session.id != live.session.id
        events = await stored_events(hub, fork.id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_session_put_down_at_once_is_still_the_one_the_agent_knows(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.detach(live)
        assert (await hub.open(live.id)).session.id == live.session.id
        await said(hub, hub.live[live.id], "one")
        fork = await hub.fork(live.id)
        await hub.detach(fork)
        record = await hub.record(fork.id)
        assert (record.agent_session_id, record.title) == (fork.session.id, "one")
        again = await hub.open(fork.id)
        assert (again.session.id, again.session.continuity) == (fork.session.id, "continued")


async def test_what_the_agent_calls_a_session_is_found_in_its_events(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.detach(live)
        # As after a crash between the first events and what is said about the session.
        await hub.store.change_session(live.id, SessionChange(agent_session_id=None))
        assert (await hub.open(live.id)).session.id == live.session.id


async def test_forking_what_cannot_be_forked_leaves_nothing(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")], capabilities=FORGETFUL)) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        with pytest.raises(Unsupported):
            await hub.fork(live.id)
        assert len(await hub.store.sessions(SessionFilter())) == 1


async def test_a_session_that_only_the_agent_knew_is_stored_with_its_history(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent([say("yes")])
    async with hub_with(tmp_path / "a", agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        known = live.session.id
    async with hub_with(tmp_path / "b", agent) as hub:
        adopted = await hub.adopt("it", known, str(tmp_path))
        assert asked(adopted) == ["one"]
        await adopted.recording.settled()
        assert await stored_state(hub.store, adopted.id) == adopted.state


async def test_idle_sessions_do_not_keep_an_agent_that_can_continue(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        await asyncio.wait_for(hub.maintenance.detach_idle(after=0.0), 60)
        assert hub.live == {}
        await hub.send(live.id, c.Prompt("two"))
        assert asked(hub.live[live.id]) == ["one", "two"]
