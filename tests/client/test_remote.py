"""Agents elsewhere, over real sockets: cut off in the middle of things, gone for a while, back."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from support.bridges import TOKEN, bridged
from support.clients import next_of, until
from support.hubs import hub_with, seen_until, stored_events
from support.peers import soon, tidy_loop
from support.raw_agent import RawAgent
from support.server_process import free_port
from support.v2_agent import second_agent, state

from dragoman import Client, Session
from dragoman.bridge.http_connections import HttpConnection, Mailbox
from dragoman.errors import RemoteLost, Unreachable
from dragoman.session import events as e
from dragoman.transport import http, reconnection
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport
from dragoman.web.failures import RequestFailed

FILES = ("readTextFile", "writeTextFile")


@pytest.fixture(params=["ws", "http"])
def scheme(request: pytest.FixtureRequest) -> str:
    return request.param


class Wire:
    """Between a client and a bridge, to be cut."""

    def __init__(self, port: int, there: int) -> None:
        self.port = port
        self._there = there
        self._writers: list[asyncio.StreamWriter] = []

    def agent(self, scheme: str, **options: Any) -> RemoteAgent:
        # The bridge answers to its own port alone.
        headers = {"Host": f"127.0.0.1:{self._there}", "Authorization": f"Bearer {TOKEN}"}
        return RemoteAgent(f"{scheme}://127.0.0.1:{self.port}/acp", headers, **options)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._there)
        self._writers += [writer, back]
        ways = (_pass_on(reader, back), _pass_on(there, writer))
        await asyncio.gather(*ways, return_exceptions=True)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def wired(agent: RawAgent, port: int = 0, there: int = 0) -> AsyncGenerator[Wire]:
    async def start() -> Transport:
        return agent.connect()

    async with bridged(start, port=there) as web:
        wire = Wire(port, web.port)
        server = await asyncio.start_server(wire.serve, "127.0.0.1", port)
        wire.port = server.sockets[0].getsockname()[1]
        try:
            yield wire
        finally:
            server.close()
            wire.cut()
            await server.wait_closed()


@asynccontextmanager
async def afar(agent: RawAgent, scheme: str, cwd: Path) -> AsyncGenerator[tuple[Wire, Session]]:
    async with tidy_loop(), wired(agent) as wire, Client.start(wire.agent(scheme)) as client:
        yield wire, await client.new_session(cwd)


async def test_a_whole_turn(scheme: str, tmp_path: Path) -> None:
    agent = RawAgent()
    async with afar(agent, scheme, tmp_path) as (_, session):
        turn = session.prompt("hi")
        asked = await agent.expect("session/prompt")
        agent.say("hello")
        agent.reply(asked["id"], {"stopReason": "end_turn"})
        assert (await soon(turn)).stop_reason == "end_turn"
        assert session.state.entries[-1].text == "hello"


async def test_cut_in_mid_turn_the_turn_ends_with_the_reason_and_the_session_goes_on(
    scheme: str, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with afar(agent, scheme, tmp_path) as (wire, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        agent.say("as far as I got")
        assert (await next_of(turn, e.AgentMessage)).text == "as far as I got"
        wire.cut()
        ended = await next_of(turn, e.TurnEnded)
        assert "the connection to" in ended.text
        await session.reconnect()
        assert session.continuity == "continued"
        assert agent.sent("session/resume") != []
        again = session.prompt("go on")
        asked = await agent.expect("session/prompt")
        agent.reply(asked["id"], {"stopReason": "end_turn"})
        assert (await soon(again)).stop_reason == "end_turn"
        assert "as far as I got" in [entry.text for entry in session.state.entries]


async def test_cut_in_mid_permission_the_question_is_taken_back(
    scheme: str, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with afar(agent, scheme, tmp_path) as (wire, session):
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": options}
        agent.send({"id": "q", "method": "session/request_permission", "params": params})
        await until(lambda: session.pending)
        wire.cut()
        with pytest.raises(RemoteLost):
            await soon(turn)
        assert not session.pending


async def test_a_server_that_starts_again_is_waited_for(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnection, "PAUSES", (0.01,) * 5000)
    ports = free_port(), free_port()
    agent = RawAgent()
    async with tidy_loop():
        async with wired(agent, *ports) as wire:
            client = Client.start(wire.agent(scheme))
            await client.__aenter__()
            session = await client.new_session(tmp_path)
        await until(lambda: client.connection_error)
        reconnecting = asyncio.create_task(session.reconnect())
        async with away(ports[0]) as tries:
            await until(lambda: reconnecting.done() or len(tries) >= 3)
            assert not reconnecting.done()
        async with wired(agent, *ports):
            await soon(reconnecting)
            assert client.connection_error is None
            await client.aclose()


@asynccontextmanager
async def away(port: int) -> AsyncGenerator[list[None]]:
    """A server that is not up yet, and how often it was tried."""
    tries: list[None] = []

    def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(None)
        writer.transport.abort()

    server = await asyncio.start_server(turn_away, "127.0.0.1", port)
    try:
        yield tries
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("files", [None, "here", "there"])
async def test_files_and_terminals_are_served_only_when_they_are_here(
    files: Literal["here", "there"] | None, tmp_path: Path
) -> None:
    agent = RawAgent()
    folder = tmp_path / "only there" if files == "there" else tmp_path
    async with tidy_loop(), wired(agent) as wire:
        client = Client.start(wire.agent("ws", files=files))
        async with client:
            await client.new_session(folder)
    offered = agent.sent("initialize")[0]["clientCapabilities"]
    served = [offered.get("fs", {}).get(name, False) for name in FILES]
    assert [*served, offered.get("terminal", False)] == [files == "here"] * 3
    assert agent.sent("session/new")[0]["cwd"] == str(folder)


async def test_a_folder_that_is_not_here_needs_a_word(tmp_path: Path) -> None:
    agent = RawAgent()
    async with tidy_loop(), wired(agent) as wire, Client.start(wire.agent("ws")) as client:
        with pytest.raises(ValueError, match="does not exist"):
            await client.new_session(tmp_path / "only there")


async def test_what_was_stored_stays_and_the_next_prompt_finds_the_agent_again(
    scheme: str, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with tidy_loop(), wired(agent) as wire, hub_with(tmp_path, wire.agent(scheme)) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.prompt("hi")
        await agent.expect("session/prompt")
        agent.say("kept")
        await seen_until(hub.watch(live.id), e.AgentMessage)
        wire.cut()
        await seen_until(hub.watch(live.id), e.TurnEnded)
        await live.prompt("again")
        asked = await agent.expect("session/prompt")
        agent.reply(asked["id"], {"stopReason": "end_turn"})
        await seen_until(hub.watch(live.id), e.TurnEnded, times=2)
        told = await stored_events(hub, live.id)
    messages = [event.text for event in told if isinstance(event, e.AgentMessage)]
    ended = [event for event in told if isinstance(event, e.TurnEnded)]
    assert messages == ["kept"]
    assert [event.error is None for event in ended] == [False, True]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))


class Faulty(ABC):
    """A bridge whose newest connection can be made to fail its sessions, and stay."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mailbox = HttpConnection.mailbox
        self.failed = 0
        self._used: list[HttpConnection] = []
        self._failing: list[HttpConnection] = []

        def mailbox(connection: HttpConnection, session: str | None) -> Mailbox:
            return self._of(connection, session)

        monkeypatch.setattr(HttpConnection, "mailbox", mailbox)
        monkeypatch.setattr(http, "_LATER", (0.02, 0.02))

    def _of(self, connection: HttpConnection, session: str | None) -> Mailbox:
        self._used.append(connection)
        if session is None or connection not in self._failing:
            return self.mailbox(connection, session)
        self.failed += 1
        return self.fail(connection, session)

    @abstractmethod
    def fail(self, connection: HttpConnection, session: str) -> Mailbox: ...

    def begin(self, session: str) -> None:
        self.mailbox(self._used[-1], session).end()
        self._failing.append(self._used[-1])

    def stop(self) -> None:
        self._failing.clear()


class Forgetful(Faulty):
    """Does not know the session any more."""

    def fail(self, connection: HttpConnection, session: str) -> Mailbox:
        raise RequestFailed(404, "unknown_session", "there is no such session")


class Ending(Faulty):
    """Ends the stream of a session as soon as it is open."""

    def fail(self, connection: HttpConnection, session: str) -> Mailbox:
        box = self.mailbox(connection, session)
        box.end()
        return box


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        (Forgetful, "it has forgotten the session"),
        (Ending, "a session's event stream keeps ending"),
    ],
)
async def test_a_session_that_the_server_fails_ends_its_turn_and_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: type[Faulty], reason: str
) -> None:
    server, agent = faulty(monkeypatch), second_agent()
    async with (
        tidy_loop(),
        wired(agent) as wire,
        hub_with(tmp_path, wire.agent("http"), protocol=2) as hub,
    ):
        live = await hub.create("it", str(tmp_path))
        await live.prompt("hi")
        await agent.expect("session/prompt")
        state(agent, "running")
        agent.update("agent_message", messageId="m", content=[{"type": "text", "text": "kept"}])
        await seen_until(hub.watch(live.id), e.AgentMessage)
        server.begin("s1")
        ended = (await seen_until(hub.watch(live.id), e.TurnEnded))[-1]
        assert ended.text.endswith(f"was lost: {reason}")
        await live.prompt("again")
        await agent.expect("session/prompt")
        assert len(agent.sent("session/resume")) == 1
        state(agent, "running")
        state(agent, "idle", stopReason="end_turn")
        await seen_until(hub.watch(live.id), e.TurnEnded, times=2)
        assert [turn.error is None for turn in live.state.turns] == [False, True]


@pytest.mark.parametrize("at_work", [True, False], ids=["ended after a while", "idle"])
async def test_a_stream_that_may_well_end_ends_as_often_as_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_work: bool
) -> None:
    """One that was open for a while before it ended, or one that nobody waits for."""
    server, agent = Ending(monkeypatch), second_agent()
    if at_work:
        monkeypatch.setattr(http, "_SHORT_SECONDS", 0.0)
    async with (
        tidy_loop(),
        wired(agent) as wire,
        Client.start(wire.agent("http"), protocol=2) as client,
    ):
        session = await client.new_session(tmp_path)
        if at_work:
            state(agent, "running")
            await until(lambda: session.state.activity == "running")
        else:
            agent.update("session_info_update", title="its stream is open")
            await until(lambda: session.state.title)
        server.begin(session.id)
        await until(lambda: server.failed > 10)
        server.stop()
        agent.update("session_info_update", title="and told")
        await until(lambda: session.state.title == "and told")


async def test_an_idle_session_that_the_server_forgets_harms_nobody_until_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, agent = Forgetful(monkeypatch), second_agent(session__list={"sessions": []})
    async with (
        tidy_loop(),
        wired(agent) as wire,
        Client.start(wire.agent("http"), protocol=2) as client,
    ):
        session = await client.new_session(tmp_path)
        agent.update("session_info_update", title="its stream is open")
        await until(lambda: session.state.title)
        server.begin(session.id)
        await until(lambda: server.failed == 2)
        assert [info async for info in client.list_sessions()] == []
        with pytest.raises(RemoteLost, match="has forgotten the session"):
            await soon(session.prompt("hi"))


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    tries = 0

    async def connect() -> None:
        nonlocal tries
        tries += 1
        raise Unreachable("ws://x", "no", again=False)

    with pytest.raises(Unreachable):
        await reconnection.patiently(connect)
    assert tries == 1


async def test_the_pauses_between_tries_grow_and_the_last_error_counts() -> None:
    slept: list[float] = []

    async def connect() -> None:
        raise Unreachable("ws://x", f"try {len(slept)}", again=True)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with pytest.raises(Unreachable, match=f"try {len(reconnection.PAUSES)}"):
        await reconnection.patiently(connect, sleep)
    bounds = zip(slept, reconnection.PAUSES, strict=True)
    assert all(pause / 2 <= seconds <= pause for seconds, pause in bounds)
