"""After a crash: the agent is started again and goes on where it can."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.clients import gathered, kinds, next_of, opened, until
from support.fake_terminals import FakeTerminals
from support.peers import soon, tidy_loop
from support.raw_agent import RawAgent

from dragoman import AgentCommand, Client, Policy, Session
from dragoman.errors import (
    AgentExited,
    ConnectionClosed,
    SessionBusy,
    SessionNotContinued,
)
from dragoman.session import events as e

PROGRAM = str(Path(__file__).parent.parent / "support" / "programs" / "mortal_agent.py")


@asynccontextmanager
async def mortal(
    memory: str, cwd: Path, terminals: FakeTerminals | None = None
) -> AsyncGenerator[tuple[Client, Session]]:
    command = AgentCommand(sys.executable, ("-S", PROGRAM, memory))
    options = Client.start(command, terminals=terminals, policy=Policy(execute=True))
    async with tidy_loop(), options as client:
        yield client, await client.new_session(cwd)


async def pid_of(session: Session) -> int:
    await soon(session.prompt("who are you?"))
    return int(session.state.entries[-1].text)


async def crash(session: Session) -> AgentExited:
    with pytest.raises(AgentExited) as caught:
        await soon(session.prompt("die"))
    return caught.value


async def test_a_crash_in_mid_turn_is_an_error_event_with_what_the_agent_said_last(
    tmp_path: Path,
) -> None:
    async with mortal("both", tmp_path) as (_, session):
        turn = session.prompt("die")
        message, ended = await next_of(turn, e.AgentMessage), await next_of(turn, e.TurnEnded)
        assert message.text == "argh"
        assert "exited with code 3" in ended.text
        assert "out of memory" in ended.text
        assert (ended.stop_reason, session.state.turns[0].error) == (None, ended.error)


@pytest.mark.parametrize("memory", ["load", "resume", "both"])
async def test_a_session_goes_on_after_a_crash(memory: str, tmp_path: Path) -> None:
    async with mortal(memory, tmp_path) as (client, session):
        first = await pid_of(session)
        await crash(session)
        before = [entry.text for entry in session.state.entries]
        events = session.events()
        await session.reconnect()
        opened = await next_of(events, e.SessionOpened)
        assert opened.continuity == session.continuity == "continued"
        assert client.connection_error is None
        assert [entry.text for entry in session.state.entries] == before
        assert await pid_of(session) != first
        await session.close()
        assert "told again" not in [event.text for event in await gathered(events)]


async def test_what_a_loaded_agent_tells_besides_its_history_is_taken(tmp_path: Path) -> None:
    async with mortal("load", tmp_path) as (_, session):
        await crash(session)
        await session.reconnect()
        assert session.state.modes is not None
        assert session.state.modes.current == "back"


@pytest.mark.parametrize(("memory", "why"), [("none", "neither load"), ("forget", "what session?")])
async def test_a_session_the_agent_forgot_is_not_started_empty(
    memory: str, why: str, tmp_path: Path
) -> None:
    async with mortal(memory, tmp_path) as (client, session):
        await crash(session)
        with pytest.raises(SessionNotContinued, match=why.replace("?", r"\?")):
            await session.reconnect()
        assert client.connection_error is None


async def test_an_agent_killed_between_turns_can_be_started_again(tmp_path: Path) -> None:
    async with mortal("resume", tmp_path) as (client, session):
        events = session.events()
        os.kill(await pid_of(session), signal.SIGKILL)
        notice = await next_of(events, e.Notice)
        assert "SIGKILL" in notice.text
        await until(lambda: client.connection_error)
        with pytest.raises(AgentExited):
            session.prompt("hello?")
        await session.reconnect()
        assert (await soon(session.prompt("hello?"))).stop_reason == "end_turn"


async def test_sessions_of_one_agent_share_its_new_start(tmp_path: Path) -> None:
    async with mortal("resume", tmp_path) as (client, first):
        second = await client.resume_session("s2", tmp_path)
        await crash(first)
        await asyncio.gather(first.reconnect(), second.reconnect())
        assert await pid_of(first) == await pid_of(second)


async def test_terminals_of_the_lost_agent_end_with_it(tmp_path: Path) -> None:
    terminals = FakeTerminals()
    async with mortal("resume", tmp_path, terminals) as (_, session):
        await crash(session)
        assert terminals.released == []
        await session.reconnect()
        assert terminals.released == ["all of s1"]


async def test_reconnecting_a_session_that_was_not_lost_continues_it(tmp_path: Path) -> None:
    async with mortal("resume", tmp_path) as (_, session):
        first = await pid_of(session)
        await session.reconnect()
        assert await pid_of(session) == first


async def test_a_session_with_a_running_turn_is_not_reconnected(tmp_path: Path) -> None:
    async with opened(RawAgent(), tmp_path) as (_, session):
        session.prompt("hi")
        with pytest.raises(SessionBusy):
            await session.reconnect()


async def test_only_a_command_can_be_started_again(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        await agent.vanish()
        await until(lambda: client.connection_error)
        with pytest.raises(ConnectionClosed, match="only an agent started by a command"):
            await session.reconnect()


async def test_a_crash_is_told_once(tmp_path: Path) -> None:
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    agent = RawAgent()
    async with opened(agent, tmp_path, listen=listen) as (_, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        await agent.vanish()
        with pytest.raises(ConnectionClosed):
            await soon(turn)
    assert kinds(heard) == ["SessionOpened", "TurnStarted", "TurnEnded", "SessionClosed"]
