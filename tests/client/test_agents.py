"""What real agents taught: each row of experience as a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, opened, started, until
from support.peers import settled, soon
from support.raw_agent import ENDED, Json, RawAgent, Refusal, notification, text_block

from dragoman import Policy, Session, Timeouts
from dragoman.agents.extensions import Quirks
from dragoman.errors import CancelIgnored, MethodNotFound, RemoteError
from dragoman.session import events as e
from dragoman.session.content import TerminalItem
from dragoman.session.state import PendingPermission


def permission(options: list[tuple[str, str, str]], **call: Any) -> Json:
    return {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "t", **call},
        "options": [{"optionId": i, "name": name, "kind": kind} for i, name, kind in options],
    }


async def prompted(agent: RawAgent, session: Session, *messages: Any) -> list[e.Event]:
    turn = session.prompt("go")
    request = await agent.expect("session/prompt")
    agent.send(*messages, {"id": request["id"], "result": ENDED})
    return await gathered(turn)


async def read_missing(agent: RawAgent, cwd: Path, **options: Any) -> Json:
    async with opened(agent, cwd, **options):
        params = {"sessionId": "s1", "path": str(cwd / "missing.txt")}
        return await agent.ask("fs/read_text_file", params)


async def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    assert (await read_missing(RawAgent(), tmp_path))["error"]["code"] == -32002


@pytest.mark.parametrize("name", ["gemini-cli", "Gemini"])
async def test_for_gemini_a_missing_file_is_empty(name: str, tmp_path: Path) -> None:
    agent = RawAgent(welcome={"agentInfo": {"name": name, "version": "1"}})
    assert (await read_missing(agent, tmp_path))["result"] == {"content": ""}


async def test_quirks_can_be_given(tmp_path: Path) -> None:
    quirks = Quirks(missing_file="empty")
    assert (await read_missing(RawAgent(), tmp_path, quirks=quirks))["result"] == {"content": ""}
    agent = RawAgent(welcome={"agentInfo": {"name": "gemini-cli", "version": "1"}})
    assert "error" in await read_missing(agent, tmp_path, quirks=Quirks())


async def test_a_quirk_for_missing_files_is_none_for_other_refusals(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, quirks=Quirks(missing_file="empty")):
        params = {"sessionId": "s1", "path": str(tmp_path)}
        assert "error" in await agent.ask("fs/read_text_file", params)


async def test_a_commands_update_of_563_kilobytes_is_taken(tmp_path: Path) -> None:
    commands = [{"name": f"c{n}", "description": "x" * 1000} for n in range(550)]
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        message = notification("available_commands_update", availableCommands=commands)
        await prompted(agent, session, message)
        assert len(session.state.commands) == 550


async def test_a_permission_request_for_a_tool_call_never_announced_creates_it(
    tmp_path: Path,
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        params = permission([("n", "No", "reject_once")], title="Write a.txt", kind="edit")
        await agent.ask("session/request_permission", params)
        assert session.state.tool_calls["t"].title == "Write a.txt"


@pytest.mark.parametrize("key", ["terminal_output", "terminal_output_delta"])
async def test_terminals_of_the_agents_own_are_shown_as_such(key: str, tmp_path: Path) -> None:
    """Codex and Pi feed terminals we never created through metadata."""
    content = [{"type": "terminal", "terminalId": "their-1"}]
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(
            agent,
            session,
            notification(
                "tool_call",
                toolCallId="t",
                title="ls",
                content=content,
                _meta={"terminal_info": {"terminal_id": "their-1", "cwd": "/project"}},
            ),
            notification(
                "tool_call_update",
                toolCallId="t",
                _meta={key: {"terminal_id": "their-1", "data": "a.txt\n"}},
            ),
            notification(
                "tool_call_update",
                toolCallId="t",
                status="completed",
                _meta={"terminal_exit": {"terminal_id": "their-1", "exit_code": 0, "signal": None}},
            ),
        )
        assert session.state.tool_calls["t"].content == [TerminalItem("their-1")]
        terminal = session.state.terminals["their-1"]
        assert (terminal.ours, terminal.cwd, terminal.output) == (False, "/project", "a.txt\n")
        assert (terminal.running, terminal.exit_code) == (False, 0)


@pytest.mark.parametrize(
    "meta",
    [
        {"terminal_info": "x", "terminal_output": {"terminal_id": 7}, "terminal_exit": []},
        {"terminal_output": {"terminal_id": "x"}},
        {"terminal_exit": {"exit_code": 1}},
    ],
)
async def test_metadata_about_terminals_that_makes_no_sense_is_ignored(
    meta: Json, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(agent, session, notification("tool_call_update", toolCallId="t", _meta=meta))
        assert session.state.terminals == {}


async def test_an_agent_cannot_put_words_into_a_terminal_of_ours(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(execute=True)) as (_, session):
        params = {"sessionId": "s1", "command": "echo", "args": ["true words"]}
        told = await agent.ask("terminal/create", params)
        ours = told["result"]["terminalId"]
        await until(lambda: not session.state.terminals[ours].running)
        lie = {
            "terminal_info": {"terminal_id": ours},
            "terminal_output": {"terminal_id": ours, "data": "all tests passed"},
            "terminal_exit": {"terminal_id": ours, "exit_code": 7},
        }
        await prompted(agent, session, notification("tool_call_update", toolCallId="t", _meta=lie))
        terminal = session.state.terminals[ours]
        assert (terminal.output.strip(), terminal.exit_code) == ("true words", 0)


async def test_replayed_terminals_of_the_agents_own_are_history_too(tmp_path: Path) -> None:
    agent = RawAgent()

    def load(params: Any) -> Any:
        agent.update(
            "tool_call",
            toolCallId="t",
            title="ls",
            _meta={"terminal_output": {"terminal_id": "their-1", "data": "old"}},
        )
        return {}

    agent.answers["session/load"] = load
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with started(agent, listen=listen) as client:
        session = await client.load_session("s1", tmp_path)
        assert session.state.terminals["their-1"].output == "old"
    assert [event.replay for event in heard if isinstance(event, e.TerminalOutput)] == [True]


@pytest.mark.parametrize("request_id", [0, "0", "a-string"])
async def test_any_id_is_an_id(request_id: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hi")
    agent = RawAgent()
    async with opened(agent, tmp_path):
        params = {"sessionId": "s1", "path": str(tmp_path / "a.txt")}
        told = await agent.ask("fs/read_text_file", params, request_id)
        assert told["result"] == {"content": "hi"}


async def test_vendor_methods_are_refused_and_vendor_notifications_ignored(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        told = await agent.ask("craft/rewindTo", {"sessionId": "s1"}, 1)
        assert told["error"]["code"] == -32601
        agent.send({"method": "_goose/unstable", "params": {}})
        agent.send({"method": "auth/status_update", "params": {"state": "authenticated"}})
        assert (await prompted(agent, session))[-1].text == ""
        assert client.connection_error is None


async def test_of_several_options_of_one_kind_the_chosen_one_is_answered(tmp_path: Path) -> None:
    options = [
        ("a", "This file", "allow_always"),
        ("b", "This folder", "allow_always"),
        ("c", "Everything", "allow_always"),
        ("n", "No", "reject_once"),
    ]
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.events()
        asking = asyncio.create_task(agent.ask("session/request_permission", permission(options)))
        await until(lambda: session.state.pending)
        (waiting,) = session.pending
        await session.answer(waiting.id, "b")
        told = await soon(asking)
        assert told["result"]["outcome"] == {"outcome": "selected", "optionId": "b"}


async def test_a_question_sent_as_a_permission_request_shows_every_option(tmp_path: Path) -> None:
    options = [("pg", "PostgreSQL", "allow_once"), ("sq", "SQLite", "allow_once")]
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        session.events()
        params = permission(options, title="Which database?")
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: session.state.pending)
        await settled()
        (waiting,) = session.pending
        assert isinstance(waiting, PendingPermission)
        assert [option.name for option in waiting.options] == ["PostgreSQL", "SQLite"]
        await session.answer(waiting.id, "sq")
        assert (await soon(asking))["result"]["outcome"]["optionId"] == "sq"


async def test_a_reject_that_ends_the_turn_as_cancelled_is_reported_as_that(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = asyncio.ensure_future(session.prompt("go"))
        request = await agent.expect("session/prompt")
        params = permission([("y", "Yes", "allow_once"), ("n", "No", "reject_once")])
        await agent.ask("session/request_permission", params)
        agent.reply(request["id"], {"stopReason": "cancelled"})
        assert (await soon(turn)).stop_reason == "cancelled"
        assert agent.sent("session/cancel") == []


async def test_a_cancel_that_is_ignored_is_said_after_a_grace(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, timeouts=Timeouts(cancel=0.02)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        with pytest.raises(CancelIgnored):
            await session.cancel()


async def test_a_cancel_answered_with_end_turn_is_reported_as_that(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        request = await agent.expect("session/prompt")
        agent.update("tool_call", toolCallId="t", title="Work", status="in_progress")
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        agent.update("tool_call_update", toolCallId="t", status="in_progress")
        agent.reply(request["id"], ENDED)
        await soon(cancelling)
        assert turn.stop_reason == "end_turn"
        assert session.state.tool_calls["t"].status == "cancelled"


async def test_a_model_error_is_passed_on_however_the_agent_tells_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        told = await prompted(
            agent,
            session,
            notification("agent_message_chunk", content=text_block("Error: 429")),
        )
        assert "Error: 429" in [event.text for event in told]
        agent.answers["session/prompt"] = {"stopReason": "refusal"}
        assert (await soon(session.prompt("go"))).stop_reason == "refusal"

        def fail(params: Any) -> Any:
            raise Refusal(400, "bad model")

        agent.answers["session/prompt"] = fail
        with pytest.raises(RemoteError, match=r"bad model \(code 400\)"):
            await soon(session.prompt("go"))
        assert client.connection_error is None


async def test_a_value_the_agent_does_not_take_is_not_shown_as_taken(tmp_path: Path) -> None:
    """Goose answers with the provider it had, where the new one lacks a key."""
    values = [{"value": value, "name": value} for value in ("openai", "other")]
    option = {"type": "select", "id": "provider", "name": "Provider", "options": values}
    told = {"configOptions": [option | {"currentValue": "openai"}]}
    agent = RawAgent(session__new={"sessionId": "s1", **told}, session__set_config_option=told)
    async with opened(agent, tmp_path) as (_, session):
        await session.set_config_option("provider", "openai")
        assert session.state.entries == []
        await session.set_config_option("provider", "other")
        assert session.state.config_options[0].value == "openai"
        assert session.state.entries[-1].text == (
            "the agent kept provider at openai and did not accept other"
        )


async def test_a_yes_to_a_request_that_says_nothing_covers_nothing(tmp_path: Path) -> None:
    """Kimi asks for permission without naming the file or the command, and tells it afterwards."""
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.events()
        options = [("y", "Approve once", "allow_once"), ("n", "Reject", "reject_once")]
        asking = agent.ask("session/request_permission", permission(options, kind="edit"), 1)
        await answered(session, asking, "y")
        params = {"sessionId": "s1", "path": str(tmp_path / "a.txt"), "content": "AAA"}
        await answered(session, agent.ask("fs/write_text_file", params, 2), "allow")
        assert (tmp_path / "a.txt").read_text() == "AAA"


async def answered(session: Session, asking: Coroutine[Any, Any, Json], option: str) -> None:
    """Someone chooses this option of the one question that comes of it."""
    task = asyncio.create_task(asking)
    await until(lambda: session.state.pending)
    (waiting,) = session.pending
    assert isinstance(waiting, PendingPermission)
    await session.answer(waiting.id, option)
    assert "result" in await soon(task)


async def test_a_turn_that_ends_without_a_word_is_a_turn(tmp_path: Path) -> None:
    """Kimi says nothing of a model that fails."""
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = await prompted(agent, session)
        assert [type(event) for event in events] == [e.TurnStarted, e.TurnEnded]
        assert session.state.turns[-1].stop_reason == "end_turn"


@pytest.mark.parametrize("name", ["fork", "resume", "load"])
async def test_what_is_advertised_and_not_there_is_an_error_and_no_crash(
    name: str, tmp_path: Path
) -> None:
    def missing(params: Any) -> Any:
        raise Refusal(-32601, "Method not found")

    agent = RawAgent()
    agent.answers[f"session/{name}"] = missing
    async with opened(agent, tmp_path) as (client, session):
        with pytest.raises(MethodNotFound):
            await getattr(client, f"{name}_session")("other", tmp_path)
        await prompted(agent, session)


async def test_usage_is_kept_as_the_agent_tells_it(tmp_path: Path) -> None:
    """Cumulative in some, per turn in others: never added up, never guessed."""
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        for total in (100, 250):
            usage = {"totalTokens": total, "inputTokens": total, "outputTokens": 0}
            agent.answers["session/prompt"] = ENDED | {"usage": usage}
            await soon(session.prompt("go"))
        told = [turn.usage.total for turn in session.state.turns if turn.usage]
        assert told == [100, 250]
        assert session.state.usage is None


@pytest.mark.parametrize("usage", [{}, {"totalTokens": "many"}, [], 7])
async def test_usage_that_makes_no_sense_is_unknown(usage: Any, tmp_path: Path) -> None:
    agent = RawAgent(session__prompt=ENDED | {"usage": usage})
    async with opened(agent, tmp_path) as (_, session):
        turn = await soon(session.prompt("go"))
        assert (turn.stop_reason, turn.usage) == ("end_turn", None)


async def test_what_we_advertise_we_handle(tmp_path: Path) -> None:
    option = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = await prompted(
            agent,
            session,
            notification("notice", severity="warning", title="Slow today"),
            notification("config_option_update", configOptions=[option]),
            notification("compaction_update", compactionId="c", status="completed"),
            notification("plan_update", plan={"type": "markdown", "planId": "p", "content": "#"}),
        )
        assert not [event for event in events if isinstance(event, e.UnknownUpdate)]
        assert session.state.entries[1].text == "Slow today"
        assert session.state.config_options[0].value is False


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "from_the_future", "x": [1]},
        {"sessionUpdate": "agent_message_chunk", "content": "not a block"},
        {"sessionUpdate": "tool_call"},
    ],
)
async def test_an_update_that_cannot_be_read_is_kept(update: Json, tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        message = {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
        events = await prompted(agent, session, message)
        (unknown,) = [event for event in events if isinstance(event, e.UnknownUpdate)]
        assert unknown.kind == update["sessionUpdate"]
        assert session.state.entries[-1].text == ""


@pytest.mark.parametrize("params", [{}, {"sessionId": "s1"}, {"sessionId": "s1", "update": 7}, []])
async def test_an_update_of_nothing_is_ignored(params: Any, tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        events = await prompted(agent, session, {"method": "session/update", "params": params})
        assert len(events) == 2
        assert client.connection_error is None
