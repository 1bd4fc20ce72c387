"""An agent behind proxies, which are real processes: everything works as without, and when one of
them fails, all ends with a sentence that names it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.bridges import bridged
from support.clients import next_of, opened, started, until
from support.peers import soon, tidy_loop
from support.proxies import alive, proxy
from support.raw_agent import RawAgent

from dragoman import AgentCommand, Client, InProcessServer, Policy, RemoteAgent, Session, Timeouts
from dragoman.errors import AgentExited, CallTimeout, ChainBroken, RemoteError, Unreachable
from dragoman.session import events as e
from dragoman.session.state import AgentEntry
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.transport.target import way_to

MORTAL = str(Path(__file__).parent.parent / "support" / "programs" / "mortal_agent.py")


def signed(count: int) -> list[AgentCommand]:
    return [proxy(signed=str(number)) for number in range(1, count + 1)]


def said(session: Session) -> str:
    entries = session.state.entries
    return "".join(entry.text for entry in entries if isinstance(entry, AgentEntry))


async def echo(turn: AgentTurn) -> None:
    turn.say(turn.text)


# ── as without ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_prompt_passes_each_proxy_in_turn(
    count: int, protocol: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"proxies": signed(count), "protocol": protocol}
    async with opened(ScriptedAgent(echo), tmp_path, **options) as (client, session):
        await soon(session.prompt("hi "))
        assert client.protocol_version == protocol
        assert said(session) == "hi " + "".join(f"({n})" for n in range(1, count + 1))
        assert len(client.pids) == count


@pytest.mark.parametrize("count", [1, 2])
async def test_permission_and_a_file_pass_through(count: int, tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.tool_call("t", "Write", kind="edit")
        turn.say(str(await turn.request_permission("t", title="Write", kind="edit")))
        await turn.write_text_file(f"{turn.cwd}/a.txt", "ö\u2028\n")
        turn.say(await turn.read_text_file(f"{turn.cwd}/a.txt"))

    agent = ScriptedAgent(script)
    options: dict[str, Any] = {"proxies": signed(count), "policy": Policy(write=True)}
    async with opened(agent, tmp_path, **options) as (_, session):
        turn = session.prompt("go")
        asked = await next_of(turn, e.PermissionRequested)
        await session.answer(asked.request_id, asked.options[0].id)
        await soon(turn)
        assert (tmp_path / "a.txt").read_text() == "ö\u2028\n"
        assert said(session) == asked.options[0].id + "ö\u2028\n"


async def test_the_host_refuses_through_a_proxy_what_it_refuses_without(tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.txt"

    async def script(turn: AgentTurn) -> None:
        try:
            await turn.write_text_file(str(outside), "x")
        except RemoteError as error:
            turn.say(f"refused {error.code}")

    options: dict[str, Any] = {"proxies": signed(1), "policy": Policy(write=True)}
    async with opened(ScriptedAgent(script), tmp_path, **options) as (_, session):
        await soon(session.prompt("go"))
        assert said(session).startswith("refused")
        assert not outside.exists()


async def test_a_proxy_may_answer_the_agent_in_your_place_but_gets_around_no_rule_of_the_host(
    tmp_path: Path,
) -> None:
    """Permission for what an agent does by itself is asked through the proxies, and so can be
    given by one, unseen; what the host executes it still decides by its own rules."""
    outside = tmp_path.parent / "outside.txt"

    async def script(turn: AgentTurn) -> None:
        turn.tool_call("t", "rm -rf /", kind="delete")
        turn.say(str(await turn.request_permission("t", title="rm -rf /", kind="delete")))
        with pytest.raises(RemoteError):
            await turn.write_text_file(str(outside), "x")

    options: dict[str, Any] = {"proxies": [proxy("permits")], "policy": Policy(write=True)}
    async with opened(ScriptedAgent(script), tmp_path, **options) as (_, session):
        heard = [event async for event in session.prompt("go")]
        assert said(session).startswith("allow")
        assert not any(isinstance(event, e.PermissionRequested) for event in heard)
        assert not outside.exists()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_turn_is_cancelled_through_proxies(
    count: int, protocol: int, tmp_path: Path
) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.say("working")
        await turn.cancelled.wait()

    options: dict[str, Any] = {"proxies": signed(count), "protocol": protocol}
    async with opened(ScriptedAgent(script), tmp_path, **options) as (_, session):
        turn = session.prompt("go")
        await next_of(turn, e.AgentMessage)
        await soon(session.cancel())
        assert (await turn).stop_reason == "cancelled"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_question_that_the_agent_takes_back_is_taken_back_here(
    count: int, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, proxies=signed(count)) as (_, session):
        turn = session.prompt("go")
        await agent.expect("session/prompt")
        call = {"toolCallId": "t", "title": "T"}
        options = [{"optionId": "y", "name": "Y", "kind": "allow_once"}]
        params = {"sessionId": "s1", "toolCall": call, "options": options}
        agent.send({"id": 1, "method": "session/request_permission", "params": params})
        await next_of(turn, e.PermissionRequested)
        agent.send({"method": "$/cancel_request", "params": {"requestId": 1}})
        assert (await agent.answer_to(1))["error"]["code"] == -32800
        assert not session.pending


async def test_a_tool_server_of_ours_is_used_through_proxies(tmp_path: Path) -> None:
    async def handle(method: str, params: dict[str, Any] | None) -> Any:
        return {"method": method, "params": params}

    server = InProcessServer(name="ours", id="ours", handle=handle)
    agent = RawAgent()
    async with started(agent, proxies=signed(2)) as client:
        await client.new_session(tmp_path, mcp_servers=[server])
        body = {"serverId": "ours", "requestId": "r", "method": "tools/list"}
        told = await agent.ask("mcp/message", body)
        assert told["result"] == {"result": {"method": "tools/list", "params": None}}
        connected = await agent.ask("mcp/connect", {"acpId": "ours"}, 2)
        params = {"connectionId": connected["result"]["connectionId"], "method": "ping"}
        answer = await agent.ask("mcp/message", params, 3)
        assert answer["result"] == {"method": "ping", "params": None}


async def test_many_updates_arrive_in_order_and_before_the_end(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        for number in range(3000):
            turn.say(f"{number} ")

    options: dict[str, Any] = {"proxies": signed(2)}
    async with opened(ScriptedAgent(script), tmp_path, **options) as (_, session):
        await asyncio.wait_for(session.prompt("go"), 30)
        assert said(session) == "".join(f"{number} " for number in range(3000))


async def test_a_proxy_of_the_older_names_and_one_that_prints_a_banner_work(
    tmp_path: Path,
) -> None:
    proxies = [proxy("older", signed="a"), proxy("noisy", signed="b")]
    async with opened(ScriptedAgent(echo), tmp_path, proxies=proxies) as (_, session):
        await soon(session.prompt("hi "))
        assert said(session) == "hi (a)(b)"


async def test_what_a_proxy_answers_itself_does_not_reach_the_agent(tmp_path: Path) -> None:
    agent = ScriptedAgent(echo)
    async with opened(agent, tmp_path, proxies=[proxy("rejects")]) as (_, session):
        with pytest.raises(RemoteError, match="not today"):
            await soon(session.prompt("hi"))
        assert "session/prompt" not in [method for method, _ in agent.received]


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────


async def failing(*proxies: AgentCommand | RemoteAgent) -> str:
    """What entering a client says that has these before its agent, and leaves nothing."""
    agent = AgentCommand(sys.executable, ("-S", MORTAL, "both"))
    client = Client.start(agent, proxies=proxies)
    async with tidy_loop():
        with pytest.raises(ChainBroken) as caught:
            async with client:
                pass
        await until(lambda: not any(map(alive, client.pids)))
    return str(caught.value)


async def test_a_proxy_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    """The one before it runs already, which no client knows of, and is ended."""
    first = AgentCommand("sh", ("-c", "echo $$ >pid; exec cat"), cwd=str(tmp_path))
    told = await failing(first, AgentCommand("/no/such/proxy"))
    assert not alive(int(await asyncio.to_thread((tmp_path / "pid").read_text)))
    assert told == "the proxy '/no/such/proxy' (2 of 2) could not be started: no such file"


async def test_a_proxy_that_ends_at_once_is_named_with_what_it_printed() -> None:
    told = await failing(proxy("nonsense"))
    assert told == (
        f"the proxy {sys.executable!r} ended before it spoke ACP (exited with code 1); "
        "it printed:\nusage: proxy [--help]"
    )


async def test_an_agent_where_a_proxy_should_be_is_named() -> None:
    reason = "does not know proxy/initialize: it is not an ACP proxy"
    assert await failing(proxy("agent")) == f"the proxy {sys.executable!r} {reason}"
    demo = AgentCommand(sys.executable, ("-m", "dragoman", "demo-agent"))
    assert (await failing(proxy(), demo)).endswith(f"(2 of 2) {reason}")


async def test_a_proxy_that_answers_its_greeting_with_something_else_is_named() -> None:
    told = await failing(proxy(), proxy("agrees"))
    reason = "answered proxy/initialize without a protocolVersion: it is not an ACP proxy"
    assert told == f"the proxy {sys.executable!r} (2 of 2) {reason}"


async def test_a_component_that_says_nothing_is_named() -> None:
    proxies = [AgentCommand("sleep", ("60",)), proxy()]
    client = Client.start("demo", proxies=proxies, timeouts=Timeouts(initialize=0.3))
    async with tidy_loop():
        with pytest.raises(CallTimeout) as caught:
            async with client:
                pass
    told = "no reply to initialize within 0.3 s: the proxy 'sleep' (1 of 2) has not answered"
    assert str(caught.value) == told


async def test_what_only_echoes_is_no_proxy() -> None:
    told = await failing(AgentCommand("cat"))
    assert told == "the proxy 'cat' does not know proxy/initialize: it is not an ACP proxy"


async def test_a_proxy_that_sends_too_much_at_once_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.transport.proxy_chain.MAX_FRAME_BYTES", 1000)
    flood = AgentCommand(sys.executable, ("-c", "print('x' * 5000, flush=True); input()"))
    told = await failing(flood)
    assert told.endswith("sent a frame larger than the limit of 1000 bytes")


async def test_a_proxy_elsewhere_that_is_not_there_is_named() -> None:
    remote = RemoteAgent("ws://127.0.0.1:9/acp?key=CANARY", {"Authorization": "CANARY"})
    async with tidy_loop():
        with pytest.raises(Unreachable) as caught:
            async with Client.start("demo", proxies=[remote]):
                pass
    assert "ws://127.0.0.1:9/acp" in str(caught.value)
    assert "CANARY" not in str(caught.value)


def test_a_proxy_over_http_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="ws://"):
        Client.start("demo", proxies=[RemoteAgent("https://h/acp")])


async def test_a_proxy_that_crashes_in_mid_turn_ends_the_chain(tmp_path: Path) -> None:
    agent = AgentCommand(sys.executable, ("-S", MORTAL, "both"))
    proxies = [proxy(), proxy("crashes")]
    async with tidy_loop(), Client.start(agent, proxies=proxies) as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("who are you?")
        with pytest.raises(ChainBroken) as caught:
            await soon(turn)
        assert str(caught.value) == (
            f"the proxy {sys.executable!r} (2 of 2) exited with code 3; it printed:\n"
            "a proxy's last words"
        )
        assert session.state.turns[0].error == str(caught.value)
        # Nobody has closed the client yet.
        await until(lambda: not any(map(alive, client.pids)))


async def test_an_agent_that_crashes_is_named_and_its_last_words_arrive(tmp_path: Path) -> None:
    agent = AgentCommand(sys.executable, ("-S", MORTAL, "both"))
    async with tidy_loop(), Client.start(agent, proxies=signed(2)) as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("die")
        assert (await next_of(turn, e.AgentMessage)).text == "argh"
        with pytest.raises(AgentExited, match="exited with code 3"):
            await soon(turn)


async def test_all_that_an_agent_said_last_arrives_through_a_slow_proxy(tmp_path: Path) -> None:
    agent = AgentCommand(sys.executable, ("-S", MORTAL, "both"))
    async with tidy_loop(), Client.start(agent, proxies=[proxy("slow")]) as client:
        session = await client.new_session(tmp_path)
        assert (await soon(session.prompt("finish"))).stop_reason == "end_turn"
        numbers = "".join(f"{number} " for number in range(20))
        assert said(session) == f"{numbers}{client.pids[-1]}"


async def test_a_session_goes_on_when_the_whole_chain_is_started_again(tmp_path: Path) -> None:
    agent = AgentCommand(sys.executable, ("-S", MORTAL, "both"))
    async with tidy_loop(), Client.start(agent, proxies=signed(1)) as client:
        session = await client.new_session(tmp_path)
        before = client.pids
        with pytest.raises(AgentExited):
            await soon(session.prompt("die"))
        await session.reconnect()
        await soon(session.prompt("who are you?"))
        assert not {*before} & {*client.pids}
        assert int(session.state.entries[-1].text) == client.pids[-1]


async def test_a_chain_is_killed_at_once_when_that_is_asked_for(tmp_path: Path) -> None:
    stubborn = AgentCommand("sh", ("-c", "trap '' TERM; exec 0</dev/null; sleep 60"))
    client = Client.start(stubborn, proxies=[proxy()])
    async with tidy_loop():
        entering = asyncio.create_task(client.__aenter__())
        await until(lambda: client.pids)
        await soon(client.kill())
        assert not any(map(alive, client.pids))
        await asyncio.wait([entering])
        assert isinstance(entering.exception(), Exception)


# ── whose files ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("said_so", [True, False])
async def test_what_is_here_is_served_through_a_proxy_elsewhere_only_if_that_was_said(
    said_so: bool, tmp_path: Path
) -> None:
    """The proxy is behind a bridge, and so at a WebSocket's address; the agent is here."""
    agent = ScriptedAgent(echo)
    async with tidy_loop(), bridged(way_to(proxy(signed="far"))) as web:
        there = msgspec.structs.replace(web.agent("ws"), files="here" if said_so else None)
        client = Client.start(agent.connect(), proxies=[proxy(signed="near"), there])
        async with client:
            session = await client.new_session(tmp_path)
            await soon(session.prompt("hi "))
            assert said(session) == "hi (near)(far)"
        [(_, hello)] = [each for each in agent.received if each[0] == "initialize"]
        offered = hello["clientCapabilities"]
        assert offered.get("fs", {}).get("readTextFile", False) is said_so
        assert offered.get("terminal", False) is said_so


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_agent_elsewhere_may_stand_behind_a_proxy(scheme: str, tmp_path: Path) -> None:
    agent = ScriptedAgent(echo)
    async with (
        tidy_loop(),
        bridged(way_to(agent.connect())) as web,
        Client.start(web.agent(scheme), proxies=[proxy(signed="near")]) as client,
    ):
        session = await client.new_session(tmp_path)
        await soon(session.prompt("hi "))
        assert said(session) == "hi (near)"


async def test_an_agent_behind_a_proxy_can_be_bridged(tmp_path: Path) -> None:
    agent = ScriptedAgent(echo)
    start = way_to(agent.connect(), [proxy(signed="there")])
    async with tidy_loop(), bridged(start) as web, Client.start(web.agent("http")) as client:
        session = await client.new_session(tmp_path)
        await soon(session.prompt("hi "))
        assert said(session) == "hi (there)"
