"""What passes through `dragoman proxy` is a session on record, once, whoever conducts the chain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.chains import Relay, relay
from support.clients import until
from support.hubs import TestLauncher, stored
from support.peers import soon

from dragoman import Client, Policy
from dragoman.errors import CommandRefused, RemoteError
from dragoman.host.rules.policy import flag_rules
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, SessionState, UserEntry
from dragoman.store.records import SessionFilter, SessionRecord, decode_events
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import DemoAgent

YOLO = Policy(flag_rules(yolo=True))


class Echo:
    """Says what it was asked, and how often it was asked."""

    def __init__(self) -> None:
        self.turns = 0

    async def __call__(self, turn: AgentTurn) -> None:
        self.turns += 1
        turn.say(f"{self.turns}: {turn.text}")


async def only(here: Relay) -> SessionRecord:
    [record] = await here.store.sessions(SessionFilter())
    return record


async def recorded(here: Relay) -> SessionState:
    return await stored_state(here.store, (await only(here)).id)


def said(state: SessionState) -> list[str]:
    entries = (each for each in state.entries if isinstance(each, UserEntry | AgentEntry))
    return [each.text for each in entries]


def shown(state: SessionState) -> Any:
    """What a person sees of a session."""
    calls = [(call.title, call.status, call.kind) for call in state.tool_calls.values()]
    plan = None if state.plan is None else state.plan.text
    ended = [(turn.stop_reason, turn.usage) for turn in state.turns]
    return said(state), calls, plan, ended, state.usage, state.commands, state.config_options


async def prompted(client: Client, folder: Path, *prompts: str) -> SessionState:
    session = await client.new_session(folder)
    for prompt in prompts:
        await soon(session.prompt(prompt))
    return session.state


async def test_what_is_on_record_is_what_the_client_saw(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello\n")
    async with relay(tmp_path) as here:
        async with here.client(DemoAgent(), policy=YOLO) as client:
            state = await prompted(client, tmp_path, "hi", "again")
        await here.over()
        record = await only(here)
        assert shown(await recorded(here)) == shown(state)
        assert (record.status, record.title, record.agent) == ("idle", "hi", "it")
        assert record.agent_session_id == state.session_id
        assert record.cwd == str(tmp_path)


async def test_so_is_one_in_version_two(tmp_path: Path) -> None:
    async with relay(tmp_path) as here:
        async with here.client(ScriptedAgent(Echo()), protocol=2) as client:
            assert client.protocol_version == 2
            state = await prompted(client, tmp_path, "hi")
        await here.over()
        assert shown(await recorded(here)) == shown(state)


async def test_files_and_terminals_that_the_client_serves_are_on_record(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        await turn.write_text_file(str(tmp_path / "new"), "text")
        await turn.create_terminal("true")

    async with relay(tmp_path) as here:
        async with here.client(ScriptedAgent(script), policy=YOLO) as client:
            await prompted(client, tmp_path, "go on")
        await here.over()
        stored_events = decode_events(await here.store.events((await only(here)).id))
        files = [each.path for each in stored_events if isinstance(each, e.FileWritten)]
        argv = [each.argv for each in stored_events if isinstance(each, e.TerminalStarted)]
        assert (files, argv) == ([str(tmp_path / "new")], [["true"]])


async def test_a_session_that_is_loaded_again_continues_its_record(tmp_path: Path) -> None:
    agent = ScriptedAgent(Echo())
    async with relay(tmp_path) as here:
        async with here.client(agent) as client:
            state = await prompted(client, tmp_path, "one")
        await here.over()
        async with here.client(agent) as client:
            session = await client.load_session(state.session_id, tmp_path)
            await soon(session.prompt("two"))
        await here.over()
        assert said(await recorded(here)) == ["one", "1: one", "two", "2: two"]


async def test_a_session_that_only_the_agent_knew_is_recorded_with_its_history(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent(Echo())
    async with Client.start(agent.connect()) as direct:
        state = await prompted(direct, tmp_path, "one")
    async with relay(tmp_path) as here:
        async with here.client(agent) as client:
            session = await client.load_session(state.session_id, tmp_path)
            await soon(session.prompt("two"))
        await here.over()
        assert said(await recorded(here)) == ["one", "1: one", "two", "2: two"]


async def test_a_fork_begins_with_what_is_on_record_of_its_parent(tmp_path: Path) -> None:
    agent = ScriptedAgent(Echo())
    async with relay(tmp_path) as here:
        async with here.client(agent) as client:
            state = await prompted(client, tmp_path, "one")
            fork = await client.fork_session(state.session_id, tmp_path)
            await soon(fork.prompt("two"))
        await here.over()
        [newer, older] = await here.store.sessions(SessionFilter())
        forked = newer if newer.parent else older
        assert forked.parent in (newer.id, older.id)
        heard = said(await stored_state(here.store, forked.id))
        assert heard == ["one", "1: one", "two", "2: two"]


async def test_a_chain_that_ends_in_a_turn_leaves_it_interrupted(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.say("begun")
        await turn.request_permission("t", title="Go on?")

    async with relay(tmp_path) as here:
        async with here.client(ScriptedAgent(script)) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("go on")
            async for _ in turn:
                break
        await here.over()
        record, state = await only(here), await recorded(here)
        assert record.status == "interrupted"
        assert not state.pending
        assert await here.store.owned() == []


async def test_a_session_that_another_process_runs_is_not_opened_beside_it(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent(Echo())
    async with relay(tmp_path) as here:
        async with here.client(agent) as client:
            state = await prompted(client, tmp_path, "one")
        await here.over()
        async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
            await hub.open((await only(here)).id)
            async with here.client(agent) as client:
                with pytest.raises(RemoteError, match="is run by process"):
                    await client.load_session(state.session_id, tmp_path)
            await here.over()


async def test_others_may_continue_the_session_once_the_chain_has_ended(tmp_path: Path) -> None:
    agent = ScriptedAgent(Echo())
    async with relay(tmp_path) as here:
        async with here.client(agent) as client:
            await prompted(client, tmp_path, "one")
        await here.over()
        async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
            record = await only(here)
            await hub.send(record.id, c.Prompt("two"))
            await until(lambda: hub.live[record.id].idle)
            await hub.live[record.id].recording.stored()
        assert said(await recorded(here)) == ["one", "1: one", "two", "2: two"]


async def test_while_the_chain_runs_others_are_told_where_to_prompt(tmp_path: Path) -> None:
    async with (
        relay(tmp_path) as here,
        stored(tmp_path) as store,
        Hub(store, TestLauncher({})) as hub,
    ):
        async with here.client(ScriptedAgent(Echo())) as client:
            await prompted(client, tmp_path, "one")
            with pytest.raises(CommandRefused, match="belongs to another program"):
                await hub.send((await only(here)).id, c.Prompt("two"))
        await here.over()
