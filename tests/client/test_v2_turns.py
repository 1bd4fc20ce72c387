"""Turns in version 2: acknowledged at once, ended by what the agent says of its state."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, kinds, opened, started, until
from support.raw_agent import RawAgent, Refusal
from support.v2_agent import second_agent, state

from dragoman import Client, Session, Timeouts
from dragoman.client.capabilities import AgentInfo
from dragoman.client.mcp import HttpServer, SseServer, StdioServer
from dragoman.errors import (
    AuthRequired,
    CancelIgnored,
    ConnectionLost,
    InternalError,
    InvalidMessage,
    InvalidParams,
    Unsupported,
    VersionMismatch,
)
from dragoman.session.facts import BackgroundWork, TokenUsage

SECOND: dict[str, Any] = {"protocol": 2}
MODES = {
    "type": "select",
    "configId": "m",
    "category": "mode",
    "name": "Mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "auto", "name": "Auto"}],
}


async def prompted(agent: RawAgent, session: Session, text: str = "hello") -> Any:
    turn = session.prompt(text)
    await agent.expect("session/prompt")
    return turn


# ── the handshake ─────────────────────────────────────────────────────────────────────────────


async def test_version_2_is_spoken_only_where_it_is_wanted(tmp_path: Path) -> None:
    agent = second_agent()
    async with started(agent, **SECOND) as client:
        assert client.protocol_version == 2
        assert client.agent_info == AgentInfo("raw", "7", "Raw")
        assert client.capabilities.load
        assert client.capabilities.logout
    (hello,) = agent.sent("initialize")
    assert (hello["protocolVersion"], hello["info"]["name"]) == (2, "dragoman")
    with pytest.raises(VersionMismatch):
        async with started(second_agent()):
            pass


async def test_an_agent_of_version_1_gets_that_and_all_we_offer_there(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, **SECOND) as (client, session):
        assert client.protocol_version == 1
        (hello,) = agent.sent("initialize")
        assert hello["clientCapabilities"]["fs"]["writeTextFile"]
        assert hello["clientInfo"]["name"] == "dragoman"
        turn = session.prompt("hello")
        prompt = await agent.expect("session/prompt")
        agent.say("hi")
        agent.reply(prompt["id"], {"stopReason": "end_turn"})
        assert kinds(await gathered(turn)) == ["TurnStarted", "AgentMessage", "TurnEnded"]


@pytest.mark.parametrize(
    "words", [{}, {"agentCapabilities": {"loadSession": True}}, {"agentInfo": {"name": "old"}}]
)
async def test_an_agent_that_repeats_2_in_the_words_of_1_is_spoken_to_in_1(
    tmp_path: Path, words: dict[str, Any]
) -> None:
    welcome: dict[str, Any] = {"protocolVersion": 2, "authMethods": []}
    agent = RawAgent(initialize=welcome | words)
    async with opened(agent, tmp_path, **SECOND) as (client, session):
        assert client.protocol_version == 1
        assert client.capabilities.load is ("agentCapabilities" in words)
        assert len(agent.sent("initialize")) == 1
        turn = session.prompt("hello")
        prompt = await agent.expect("session/prompt")
        agent.say("hi")
        agent.reply(prompt["id"], {"stopReason": "end_turn"})
        assert kinds(await gathered(turn)) == ["TurnStarted", "AgentMessage", "TurnEnded"]


@pytest.mark.parametrize("words", [{"info": {"name": "x"}}, {"capabilities": {}}])
async def test_an_agent_that_has_words_of_2_is_held_to_them(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        async with started(RawAgent(initialize={"protocolVersion": 2} | words), **SECOND):
            pass


async def test_an_agent_that_refuses_to_be_asked_for_2_is_asked_for_1() -> None:
    def hello(params: Any) -> Any:
        if params["protocolVersion"] == 2:
            raise Refusal(-32022, "unsupported", {"requested": 2, "supported": [1]})
        return {"protocolVersion": 1}

    async with started(RawAgent(initialize=hello), **SECOND) as client:
        assert client.protocol_version == 1


@pytest.mark.parametrize("answer", [{"protocolVersion": 3}, {"protocolVersion": 0}])
async def test_a_version_nobody_asked_for_is_none(answer: Any) -> None:
    with pytest.raises(VersionMismatch):
        async with started(RawAgent(initialize=answer), **SECOND):
            pass


async def test_an_agent_without_sessions_has_nothing_to_offer_of_them() -> None:
    async with started(second_agent({}), **SECOND) as client:
        offered = client.capabilities
        assert [offered.load, offered.list, offered.close, offered.mcp_stdio] == [False] * 4


# ── turns ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_goes_on_after_its_acknowledgement_until_the_agent_is_idle(
    tmp_path: Path,
) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
        block = {"type": "text", "text": "hello"}
        agent.update("user_message", messageId="u1", content=[block])
        state(agent, "running")
        agent.say("hi", messageId="m")
        state(agent, "idle", stopReason="end_turn", usage=usage)
        agent.say(" (later)", messageId="m2")
        events = await gathered(turn)
        assert kinds(events) == ["TurnStarted", "AgentMessage", "TurnEnded"]
        assert (turn.stop_reason, turn.usage) == (
            "end_turn",
            TokenUsage(total=3, input=1, output=2),
        )
        await until(lambda: len(session.state.entries) == 3)
        assert session.state.entries[-1].turn_id is None
        assert session.state.activity == "idle"


async def test_prompts_wait_for_each_other(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        first = await prompted(agent, session, "one")
        second = session.prompt("two")
        state(agent, "running")
        await until(lambda: session.state.turns)
        assert len(agent.sent("session/prompt")) == 1
        state(agent, "idle", stopReason="end_turn")
        await agent.expect("session/prompt")
        assert first.done
        state(agent, "running")
        state(agent, "idle", stopReason="refusal")
        await gathered(second)
        assert second.stop_reason == "refusal"


async def test_a_cancelled_turn_ends_when_the_agent_confirms_it(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "running")
        agent.update("tool_call_update", toolCallId="c", title="x", status="in_progress")
        await until(lambda: session.state.tool_calls)
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        assert session.state.tool_calls["c"].status == "cancelled"
        state(agent, "idle", stopReason="cancelled")
        await cancelling
        assert turn.stop_reason == "cancelled"


async def test_an_agent_that_ignores_a_cancel_is_told_of(tmp_path: Path) -> None:
    agent = second_agent()
    timeouts = Timeouts(cancel=0.05)
    async with opened(agent, tmp_path, timeouts=timeouts, **SECOND) as (_, session):
        await prompted(agent, session)
        state(agent, "running")
        with pytest.raises(CancelIgnored):
            await session.cancel()


async def test_a_prompt_that_was_never_taken_is_cancelled(tmp_path: Path) -> None:
    def refuse(params: Any) -> Any:
        raise Refusal(-32800, "cancelled")

    async with opened(second_agent(session__prompt=refuse), tmp_path, **SECOND) as (_, session):
        turn = session.prompt("hello")
        await gathered(turn)
        assert turn.stop_reason == "cancelled"


async def test_an_agent_lost_after_its_acknowledgement_ends_the_turn(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "running")
        await agent.vanish()
        with pytest.raises(ConnectionLost):
            await turn
        assert session.state.turns[-1].error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ({"code": -32603, "message": "broken"}, InternalError),
        ({"code": -32000, "message": "who are you"}, AuthRequired),
        (None, InternalError),
    ],
)
async def test_work_that_failed_fails_its_turn(
    error: Any, raised: type[Exception], tmp_path: Path
) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "running")
        state(agent, "idle", stopReason="error", error=error)
        with pytest.raises(raised) as caught:
            await turn
        if raised is AuthRequired:
            assert "'login'" in str(caught.value)


async def test_work_outside_of_turns_ends_with_the_agent(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        state(agent, "running", background=[{"type": "_x"}])
        await until(lambda: session.state.activity == "running")
        await agent.vanish()
        await until(lambda: session.state.activity == "idle")
        assert session.state.background == []


async def test_work_outside_of_turns_is_known_and_can_be_stopped(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        state(agent, "running", background=[{"type": "terminal", "terminalId": "t"}])
        agent.say("By the way", messageId="m")
        await until(lambda: session.state.entries)
        assert session.state.activity == "running"
        assert session.state.background == [BackgroundWork("terminal", terminal_id="t")]
        await session.cancel()
        await agent.expect("session/cancel")
        state(agent, "idle", stopReason="cancelled", background=[])
        await until(lambda: session.state.activity == "idle")
        assert (session.state.turns, session.state.background) == ([], [])


async def test_the_end_told_again_does_not_end_the_next_turn(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        first = await prompted(agent, session)
        state(agent, "running")
        state(agent, "idle", stopReason="end_turn")
        await gathered(first)
        second = await prompted(agent, session)
        state(agent, "idle", stopReason="end_turn")
        agent.update("tool_call_update", toolCallId="c", title="in the background")
        state(agent, "idle", background=[])
        state(agent, "running")
        agent.say("hi", messageId="m")
        state(agent, "idle", stopReason="refusal")
        assert kinds(await gathered(second))[-2:] == ["AgentMessage", "TurnEnded"]
        assert second.stop_reason == "refusal"


async def test_a_prompt_that_is_taken_and_not_begun_can_be_cancelled(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        first = await prompted(agent, session)
        state(agent, "running")
        state(agent, "idle", stopReason="end_turn")
        await gathered(first)
        second = await prompted(agent, session)
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        state(agent, "idle", stopReason="cancelled")
        await cancelling
        assert second.stop_reason == "cancelled"


# ── sessions ──────────────────────────────────────────────────────────────────────────────────


async def test_a_session_is_loaded_by_resuming_it_from_the_start(tmp_path: Path) -> None:
    def resume(params: Any) -> Any:
        if params.get("replayFrom") is not None:
            for kind, key in (("user_message", "u1"), ("agent_message", "m")):
                agent.update(kind, session="old", messageId=key, content=[_text(kind)])
        agent.update("state_update", session="old", state="idle", stopReason="end_turn")
        command = {"type": "command", "name": "go", "description": "Goes"}
        return {"configOptions": [MODES], "availableCommands": [command]}

    agent = second_agent(session__resume=resume)
    async with started(agent, **SECOND) as client:
        loaded = await client.load_session("old", tmp_path)
        assert [entry.text for entry in loaded.state.entries] == ["user_message", "agent_message"]
        assert [command.name for command in loaded.state.commands] == ["go"]
        resumed = await client.resume_session("old", tmp_path)
        assert resumed.state.entries == []
        assert [p.get("replayFrom") for p in agent.sent("session/resume")] == [
            {"type": "start"},
            None,
        ]


def _text(text: str) -> Any:
    return {"type": "text", "text": text}


async def test_work_that_goes_on_in_a_resumed_session_is_live(tmp_path: Path) -> None:
    def resume(params: Any) -> Any:
        agent.update("state_update", session="old", state="running")
        return {}

    agent = second_agent(session__resume=resume)
    async with started(agent, **SECOND) as client:
        session = await client.resume_session("old", tmp_path)
        events = session.events()
        await until(lambda: session.state.activity == "running")
        agent.say("still at it", session="old", messageId="m")
        event = await anext(events)
        assert (event.text, event.replay) == ("still at it", False)


async def test_modes_are_an_option(tmp_path: Path) -> None:
    def choose(params: Any) -> Any:
        return {"configOptions": [MODES | {"currentValue": params["value"]}]}

    new = {"sessionId": "s1", "configOptions": [MODES]}
    agent = second_agent(session__new=new, session__set_config_option=choose)
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        await session.set_mode("auto")
        (sent,) = agent.sent("session/set_config_option")
        assert sent == {"sessionId": "s1", "configId": "m", "type": "id", "value": "auto"}
        assert session.state.config_options[0].value == "auto"


async def test_a_server_of_a_transport_the_agent_has_not_is_left_out(tmp_path: Path) -> None:
    agent = second_agent({"session": {"mcp": {"http": {}}}})
    servers = [
        StdioServer(name="one", command="/bin/one"),
        HttpServer(name="two", url="https://two"),
        SseServer(name="three", url="https://three"),
    ]
    async with started(agent, **SECOND) as client:
        session = await client.new_session(tmp_path, mcp_servers=servers)
        (sent,) = agent.sent("session/new")
        assert [server["name"] for server in sent["mcpServers"]] == ["two"]
        assert [entry.text.split()[2] for entry in session.state.entries] == ["'one'", "'three'"]


async def test_only_what_the_agent_offers_to_stop_is_stopped(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "running")
        cancel: Any = {"cancel": {}}
        agent.update("tool_call_update", toolCallId="c", title="x", capabilities=cancel)
        agent.update("tool_call_update", toolCallId="d", title="y")
        agent.update("terminal_update", terminalId="t", command="make", capabilities=cancel)
        await until(lambda: session.state.terminals)
        await session.cancel_tool_call("c")
        await session.cancel_terminal("t")
        for stop in (session.cancel_tool_call("d"), session.cancel_terminal("u")):
            with pytest.raises(Unsupported):
                await stop
        assert agent.sent("tool_call/cancel") == [{"sessionId": "s1", "toolCallId": "c"}]
        assert agent.sent("terminal/cancel") == [{"sessionId": "s1", "terminalId": "t"}]
        state(agent, "idle", stopReason="end_turn")
        await gathered(turn)


@pytest.mark.parametrize("what", ["tool_call", "terminal"])
@pytest.mark.parametrize("ends", [True, False], ids=["it ends", "it runs"])
async def test_what_ends_before_the_agent_hears_that_it_shall_is_over_and_no_error(
    tmp_path: Path, what: str, ends: bool
) -> None:
    agent = second_agent()
    fields: Any = {"toolCallId": "c"} if what == "tool_call" else {"terminalId": "t"}
    over: Any = {"status": "completed"} if what == "tool_call" else {"exitStatus": {"exitCode": 0}}

    def refuse(_: Any) -> Any:
        if ends:
            agent.update(f"{what}_update", **fields, **over)
        raise Refusal(-32602, "there is nothing to cancel")

    agent.answers[f"{what}/cancel"] = refuse
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "running")
        agent.update(f"{what}_update", **fields, capabilities={"cancel": {}})
        await until(lambda: session.state.terminals or session.state.tool_call("c"))
        stop = session.cancel_tool_call if what == "tool_call" else session.cancel_terminal
        if ends:
            assert not await stop(*fields.values())
        else:
            with pytest.raises(InvalidParams):
                await stop(*fields.values())
        state(agent, "idle", stopReason="end_turn")
        await gathered(turn)


async def test_an_agent_of_version_1_cannot_stop_a_part(tmp_path: Path) -> None:
    async with opened(RawAgent(), tmp_path) as (client, _):
        for stop in (client.dialect.cancel_tool_call, client.dialect.cancel_terminal):
            with pytest.raises(Unsupported):
                await stop("s1", "x")


async def test_signing_in_and_out_has_its_own_words() -> None:
    agent = second_agent()
    async with started(agent, **SECOND) as client:
        await client.authenticate("login")
        await client.logout()
        assert agent.sent("auth/login") == [{"methodId": "login"}]
        assert agent.sent("auth/logout") == [{}]


async def test_files_and_terminals_are_not_served(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND):
        answer = await agent.ask("fs/read_text_file", {"sessionId": "s1", "path": "/etc/passwd"})
        assert answer["error"]["code"] == -32601


async def test_a_cancel_answers_what_is_asked(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        turn = await prompted(agent, session)
        state(agent, "requires_action")
        options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
        params: dict[str, Any] = {"sessionId": "s1", "options": options, "title": "May I?"}
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: session.pending)
        cancelling = asyncio.create_task(session.cancel())
        assert (await asking)["result"]["outcome"] == {"outcome": "cancelled"}
        state(agent, "idle", stopReason="cancelled")
        await cancelling
        assert turn.stop_reason == "cancelled"


def test_version_2_is_not_imported_before_it_is_agreed_on() -> None:
    program = (
        "import sys, dragoman, dragoman.client.client; print('dragoman.schema.v2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert Client.start("demo").protocol_version == 0
