"""The traps real agents set, each as a sentence: what the protocol's map warns of."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, kinds, next_of, opened, started, until
from support.peers import soon
from support.raw_agent import ENDED, RawAgent, Refusal, notification, text_block

from dragoman import Client, HttpServer, Image, Policy, Session, StdioServer, Timeouts
from dragoman.errors import AuthRequired
from dragoman.session import events as e
from dragoman.session.content import Diff, Location
from dragoman.session.facts import ContextUsage, Cost
from dragoman.session.state import AgentEntry, PlanEntry, ToolCall, UserEntry
from dragoman.testing import AgentTurn, ScriptedAgent

YES_NO = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]


def user(text: str, session: str = "s1") -> Any:
    return notification("user_message_chunk", session=session, content=text_block(text))


def agent_says(text: str, session: str = "s1") -> Any:
    return notification("agent_message_chunk", session=session, content=text_block(text))


async def prompted(agent: RawAgent, session: Session, *messages: Any) -> list[e.Event]:
    """A turn in which the agent sends these; its events."""
    turn = session.prompt("go")
    request = await agent.expect("session/prompt")
    agent.send(*messages, {"id": request["id"], "result": ENDED})
    return await gathered(turn)


async def test_an_update_with_an_id_is_an_update_all_the_same(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = await prompted(agent, session, {**agent_says("hello"), "id": None})
        assert "hello" in [event.text for event in events]


# ── terminals and files ───────────────────────────────────────────────────────────────────────


async def play(cwd: Path, script: Any, **options: Any) -> Session:
    """One turn with an agent that follows this script and may do everything."""
    agent = ScriptedAgent(script)
    async with opened(agent, cwd, policy=Policy(yolo=True), **options) as (_, session):
        assert (await soon(session.prompt("go"))).stop_reason == "end_turn"
        return session


async def test_a_terminal_that_is_truncated_keeps_the_end_at_a_character_boundary(
    tmp_path: Path,
) -> None:
    async def script(turn: AgentTurn) -> None:
        terminal = await turn.create_terminal("printf", "aaaaé12", output_byte_limit=3)
        await turn.terminal("wait_for_exit", terminal)
        told = await turn.terminal("output", terminal)
        assert (told["output"], told["truncated"]) == ("12", True)

    await play(tmp_path, script)


async def test_a_killed_terminal_can_still_be_read_and_a_released_one_stays_on_screen(
    tmp_path: Path,
) -> None:
    async def script(turn: AgentTurn) -> None:
        terminal = await turn.create_terminal("echo ready; sleep 60")
        while "ready" not in (await turn.terminal("output", terminal))["output"]:
            pass
        await turn.terminal("kill", terminal)
        assert (await turn.terminal("wait_for_exit", terminal))["signal"]
        assert "ready" in (await turn.terminal("output", terminal))["output"]
        await turn.terminal("release", terminal)
        for verb in ("output", "wait_for_exit", "kill"):
            with pytest.raises(Exception, match="released"):
                await turn.terminal(verb, terminal)

    session = await play(tmp_path, script)
    (terminal,) = session.state.terminals.values()
    assert (terminal.released, terminal.running, terminal.ours) == (True, False, True)
    assert "ready" in terminal.output


async def test_lines_are_counted_from_one_and_files_come_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "dos.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree")

    async def script(turn: AgentTurn) -> None:
        assert await turn.read_text_file(str(path)) == "one\r\ntwo\r\nthree"
        assert await turn.read_text_file(str(path), limit=1) == "one\r\n"
        assert await turn.read_text_file(str(path), line=2) == "two\r\nthree"
        assert await turn.read_text_file(str(path), line=3, limit=5) == "three"

    await play(tmp_path, script)


# ── updates ───────────────────────────────────────────────────────────────────────────────────


async def test_an_update_of_a_tool_call_never_announced_creates_it(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(
            agent, session, notification("tool_call_update", toolCallId="t", status="failed")
        )
        assert session.state.tool_calls["t"].status == "failed"


async def test_an_update_of_a_tool_call_changes_only_what_it_carries(tmp_path: Path) -> None:
    first = notification(
        "tool_call",
        toolCallId="t",
        title="Edit",
        kind="edit",
        content=[{"type": "diff", "path": "/a", "newText": "1"}],
        locations=[{"path": "/a"}, {"path": "/b"}],
    )
    second = notification(
        "tool_call_update",
        toolCallId="t",
        status="completed",
        title=None,
        locations=[{"path": "/c", "line": 4}],
    )
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(agent, session, first, second)
        call = session.state.tool_calls["t"]
        assert (call.title, call.kind, call.status) == ("Edit", "edit", "completed")
        assert (call.content, call.locations) == ([Diff("/a", "1")], [Location("/c", 4)])


async def test_history_before_the_response_of_load_is_kept_apart_from_what_is_live(
    tmp_path: Path,
) -> None:
    agent = RawAgent()

    def load(params: Any) -> Any:
        agent.send(user("Why?"), agent_says("Because."))
        return {}

    agent.answers["session/load"] = load
    async with started(agent) as client:
        session = await client.load_session("s1", tmp_path)
        events = session.events()
        live = await prompted(agent, session, agent_says("Now."))
        assert [event.text for event in live] == ["go", "Now.", ""]
        await session.close()
        assert "Because." not in [event.text for event in await gathered(events)]
        texts = [entry.text for entry in session.state.entries]
        assert texts == ["Why?", "Because.", "go", "Now."]


async def test_history_behind_the_response_of_load_is_history_until_the_next_prompt(
    tmp_path: Path,
) -> None:
    """Gemini tells 19 of 20 items behind the response; other kinds of updates are news."""
    agent = RawAgent()
    async with started(agent) as client:
        session = await client.load_session("s1", tmp_path)
        events = session.events()
        agent.send(
            user("Why?"),
            agent_says("Because."),
            notification("tool_call", toolCallId="t", title="Read", status="completed"),
            notification("plan", entries=[]),
            notification("session_info_update", title="Old talk"),
        )
        first = await soon(anext(events))
        assert isinstance(first, e.InfoChanged)
        assert first.title == "Old talk"
        live = await prompted(agent, session, agent_says("Now."))
        assert [event.text for event in live] == ["go", "Now.", ""]
        kinds_of_entries = [type(entry) for entry in session.state.entries]
        assert kinds_of_entries == [
            UserEntry,
            AgentEntry,
            ToolCall,
            PlanEntry,
            UserEntry,
            AgentEntry,
        ]
        await session.close()
        assert kinds(await gathered(events)) == [
            "TurnStarted",
            "AgentMessage",
            "TurnEnded",
            "SessionClosed",
        ]


@pytest.mark.own_time
async def test_history_that_comes_while_a_prompt_is_on_its_way_is_not_live(tmp_path: Path) -> None:
    """A prompt is what makes a session load after a restart, so it follows the response at once."""
    agent = RawAgent()
    loop = asyncio.get_running_loop()

    def load(params: Any) -> Any:
        late: list[Any] = [
            user("[Function Response: shell]"),
            agent_says("Listed."),
            notification("tool_call_update", toolCallId="t", title="Shell", status="completed"),
            notification("session_info_update", title="Old talk"),
        ]
        for number, message in enumerate(late, 1):
            loop.call_later(0.001 * number, agent.send, message)
        return {}

    agent.answers["session/load"] = load
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with started(agent, listen=listen, timeouts=Timeouts(history=0.3)) as client:
        session = await client.load_session("s1", tmp_path)
        live = await prompted(agent, session, agent_says("Hello again."))
        assert [event.text for event in live] == ["go", "Hello again.", ""]
        texts = [entry.text for entry in session.state.entries]
        assert texts == ["[Function Response: shell]", "Listed.", "Shell", "go", "Hello again."]
        assert session.state.title == "Old talk"
    told_again = [type(event).__name__ for event in heard if event.replay]
    assert told_again == ["UserMessage", "AgentMessage", "ToolCallUpdated"]


async def test_an_agent_that_replays_on_resume_is_not_taken_for_talking(tmp_path: Path) -> None:
    agent = RawAgent()

    def resume(params: Any) -> Any:
        agent.send(user("Why?"), agent_says("Because."))
        return {}

    agent.answers["session/resume"] = resume
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with started(agent, listen=listen) as client:
        session = await client.resume_session("s1", tmp_path)
        assert session.continuity == "continued"
        assert [event.replay for event in heard] == [False, True, True]


async def test_updates_before_the_response_of_new_are_held_until_the_session_is_known(
    tmp_path: Path,
) -> None:
    agent = RawAgent()

    def new(params: Any) -> Any:
        agent.send(
            notification(
                "available_commands_update", availableCommands=[{"name": "go", "description": ""}]
            ),
            notification("session_info_update", title="One"),
            notification("session_info_update", session="somebody else's", title="Two"),
            agent_says("Hel"),
            agent_says("lo"),
        )
        return {"sessionId": "s1", "modes": {"currentModeId": "m", "availableModes": []}}

    agent.answers["session/new"] = new
    heard: list[tuple[str, e.Event]] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append((session.id, event))

    async with opened(agent, tmp_path, listen=listen) as (_, session):
        assert [command.name for command in session.state.commands] == ["go"]
        assert (session.state.title, session.state.entries[0].text) == ("One", "Hello")
    assert kinds([event for _, event in heard]) == [
        "SessionOpened",
        "CommandsChanged",
        "InfoChanged",
        "AgentMessage",
        "AgentMessage",
        "ModeChanged",
        "SessionClosed",
    ]
    assert {session_id for session_id, _ in heard} == {"s1"}


async def test_24_items_before_the_reply_to_fork_become_its_history(tmp_path: Path) -> None:
    agent = RawAgent()

    def fork(params: Any) -> Any:
        for number in range(12):
            agent.send(user(f"q{number}", "s2"), agent_says(f"a{number}", "s2"))
        return {"sessionId": "s2"}

    agent.answers["session/fork"] = fork
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        if session.id == "s2":
            heard.append(event)

    async with opened(agent, tmp_path, listen=listen) as (client, _):
        session = await client.fork_session("s1", tmp_path)
        texts = [entry.text for entry in session.state.entries]
        assert texts == [text for n in range(12) for text in (f"q{n}", f"a{n}")]
        assert [event.replay for event in heard] == [False] + [True] * 24


async def test_what_waits_for_an_unknown_session_is_bounded(tmp_path: Path) -> None:
    agent = RawAgent()

    def new(params: Any) -> Any:
        for _ in range(4):
            agent.say("x" * 20_000_000, session="s1")
        return {"sessionId": "s1"}

    agent.answers["session/new"] = new
    async with opened(agent, tmp_path) as (_, session):
        [held] = session.state.entries
        assert len(held.text) + held.cut == 60_000_000


async def test_updates_after_cancelled_are_still_accepted(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        events = session.events()
        session.prompt("go")
        request = await agent.expect("session/prompt")
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
        agent.say("one last thing")
        assert (await next_of(events, e.AgentMessage)).text == "one last thing"
        assert session.state.entries[-1].turn_id is None


async def test_a_cancel_answers_permissions_marks_tool_calls_and_goes_on_listening(
    tmp_path: Path,
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.events()
        turn = session.prompt("go")
        request = await agent.expect("session/prompt")
        agent.update("tool_call", toolCallId="t", title="Work", status="in_progress")
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": YES_NO}
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: session.state.pending)
        cancelling = asyncio.create_task(session.cancel())
        assert (await soon(asking))["result"] == {"outcome": {"outcome": "cancelled"}}
        assert session.state.tool_calls["t"].status == "cancelled"
        agent.say("stopping")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
        assert "stopping" in [event.text for event in await gathered(turn)]


async def test_to_refuse_is_to_select_a_reject_option_and_not_to_cancel(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = asyncio.ensure_future(session.prompt("go"))
        request = await agent.expect("session/prompt")
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": YES_NO}
        told = await agent.ask("session/request_permission", params)
        assert told["result"] == {"outcome": {"outcome": "selected", "optionId": "n"}}
        agent.reply(request["id"], ENDED)
        await soon(turn)


async def test_what_is_no_tool_permission_is_never_approved_automatically(tmp_path: Path) -> None:
    """Leaving a plan, and forms, go to a person, whatever is allowed."""
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        turn = asyncio.ensure_future(session.prompt("go"))
        request = await agent.expect("session/prompt")
        call = {"toolCallId": "t", "kind": "switch_mode", "title": "Ready to code?"}
        params = {"sessionId": "s1", "toolCall": call, "options": YES_NO}
        told = await agent.ask("session/request_permission", params, 1)
        assert told["result"]["outcome"]["optionId"] == "n"
        form = {"sessionId": "s1", "mode": "form", "message": "Log in"}
        assert (await agent.ask("elicitation/create", form, 2))["result"] == {"action": "decline"}
        agent.reply(request["id"], ENDED)
        await soon(turn)


async def test_context_usage_and_tokens_of_a_turn_are_different_things(tmp_path: Path) -> None:
    usage = {"totalTokens": 900, "inputTokens": 800, "outputTokens": 100}
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        assert session.state.usage is None
        turn = session.prompt("go")
        request = await agent.expect("session/prompt")
        cost = {"amount": 0.25, "currency": "USD"}
        agent.update("usage_update", used=50, size=200, cost=cost)
        agent.reply(request["id"], ENDED | {"usage": usage})
        await soon(turn.wait())
        assert session.state.usage == ContextUsage(50, 200, Cost(0.25, "USD"))
        assert turn.usage is not None
        assert (turn.usage.total, turn.usage.thought, turn.usage.cached_read) == (900, None, None)
        turn = session.prompt("again")
        agent.reply((await agent.expect("session/prompt"))["id"], ENDED)
        await soon(turn.wait())
        assert turn.usage is None


# ── old agents ────────────────────────────────────────────────────────────────────────────────


async def test_the_older_name_of_the_options_update_is_understood(tmp_path: Path) -> None:
    option = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": True}
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(
            agent, session, notification("config_options_update", configOptions=[option])
        )
        assert [(o.id, o.value) for o in session.state.config_options] == [("fast", True)]


async def test_an_older_options_update_that_makes_no_sense_is_kept(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(agent, session, notification("config_options_update", other=1))
        assert "config_options_update" in str(session.state.entries[-1])


OLD_METHODS: list[tuple[str, Any, Any]] = [
    ("read_text_file", {"path": "$cwd/a.txt"}, {"content": "hi"}),
    ("write_text_file", {"path": "$cwd/b.txt", "content": "x"}, {}),
    ("request_permission", {"toolCall": {"toolCallId": "t"}, "options": YES_NO}, None),
    ("create_terminal", {"command": "true"}, None),
    ("terminal_output", {"terminalId": "x"}, None),
    ("wait_for_terminal_exit", {"terminalId": "x"}, None),
    ("kill_terminal", {"terminalId": "x"}, None),
    ("release_terminal", {"terminalId": "x"}, None),
]


@pytest.mark.parametrize(("method", "params", "result"), OLD_METHODS)
async def test_method_names_without_a_namespace_are_understood(
    method: str, params: Any, result: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("hi")
    filled = json.loads(json.dumps(params).replace("$cwd", str(tmp_path)))
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True)):
        told = await agent.ask(method, {"sessionId": "s1", **filled})
        assert told.get("error", {}).get("code") in (None, -32002)
        assert result is None or told["result"] == result


async def test_an_update_without_a_namespace_is_understood(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        agent.send(agent_says("old school") | {"method": "session_update"})
        await until(lambda: session.state.entries)


async def test_tool_names_and_outputs_beside_the_protocol_are_found(tmp_path: Path) -> None:
    """Claude's adapter: its own fields count where ACP's say nothing."""
    response = {"stdout": "a\n", "stderr": ""}
    claude = {"claudeCode": {"toolName": "Bash", "toolResponse": response}}
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        await prompted(
            agent,
            session,
            notification("tool_call", toolCallId="a", title="`ls`", _meta=claude),
            notification("tool_call_update", toolCallId="b", _meta=claude),
            notification(
                "tool_call_update", toolCallId="c", name="shell", rawOutput="said", _meta=claude
            ),
            notification(
                "tool_call", toolCallId="d", title="d", _meta={"claudeCode": {"toolName": 7}}
            ),
        )
        calls = session.state.tool_calls
        assert {i: (call.name, call.raw_output) for i, call in calls.items()} == {
            "a": ("Bash", response),
            "b": ("Bash", response),
            "c": ("shell", "said"),
            "d": (None, None),
        }
        assert calls["a"].title == "`ls`"


# ── the wire ──────────────────────────────────────────────────────────────────────────────────

IDS = ["0", "-1", '"0"', '""', '"null"', "1e3", "1.5", f"{2**70}", '"\\u00e9"', '{"a": 1}']


@pytest.mark.parametrize("request_id", IDS)
async def test_a_request_is_answered_with_the_exact_id_it_came_with(
    request_id: str, tmp_path: Path
) -> None:
    frames: list[bytes] = []
    agent = RawAgent()

    def tap(direction: str, frame: bytes) -> None:
        frames.append(frame)

    async with opened(agent, tmp_path, tap=tap):
        agent.raw(b'{"jsonrpc":"2.0","id":%b,"method":"_x/y","params":{}}\n' % request_id.encode())
        await until(lambda: b"_x/y" in frames[-1] and b"error" in frames[-1])
    expected = b'"id":' + request_id.encode()
    assert any(expected in frame and b'"error"' in frame for frame in frames)


async def test_ids_that_look_alike_are_answered_each_by_its_own(tmp_path: Path) -> None:
    """`true` is not `1`, and `"1"` is not `1`."""
    agent = RawAgent()
    async with opened(agent, tmp_path):
        for request_id in (1, "1", True):
            agent.send({"id": request_id, "method": "_x/y", "params": {}})
        await until(lambda: sum("error" in message for message in agent.received) == 3)
        answered = [message["id"] for message in agent.received if "error" in message]
    assert [(type(each), each) for each in answered] == [(int, 1), (str, "1"), (bool, True)]


async def test_lines_that_are_no_messages_are_skipped_before_and_between_frames(
    tmp_path: Path,
) -> None:
    agent = RawAgent()
    transport = agent.connect()
    agent.raw(b"Welcome to the agent!\n\x1b[1mloading\x1b[0m\n")
    async with Client.start(transport) as client:
        session = await client.new_session(tmp_path)
        agent.raw(b"[INFO] thinking\n[]\n42\nnull\n")
        agent.say("hello")
        await until(lambda: session.state.entries)
        assert client.connection_error is None


REQUESTS: list[tuple[str, Any]] = [
    ("fs/read_text_file", {"path": "/x"}),
    ("fs/write_text_file", {"path": "/x", "content": ""}),
    ("terminal/create", {"command": "ls"}),
    ("terminal/kill", {"terminalId": "x"}),
    ("session/request_permission", {"toolCall": {"toolCallId": "t"}, "options": []}),
    ("elicitation/create", {"mode": "form", "message": "?"}),
]


async def test_an_unknown_session_in_a_request_is_not_found(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True)):
        for number, (method, params) in enumerate(REQUESTS):
            told = await agent.ask(method, {"sessionId": "nobody's", **params}, number)
            assert told["error"]["code"] == -32002


@pytest.mark.parametrize(
    "params", [{}, {"sessionId": "s1"}, {"sessionId": 7, "path": "/x"}, [], {"path": "/x"}]
)
async def test_params_that_make_no_sense_are_invalid(params: Any, tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path):
        told = await agent.ask("fs/read_text_file", params)
        assert told["error"]["code"] == -32602


# ── what we send ──────────────────────────────────────────────────────────────────────────────


async def test_content_the_agent_does_not_take_is_degraded_visibly(tmp_path: Path) -> None:
    agent = RawAgent({}, session__prompt=ENDED)
    async with opened(agent, tmp_path) as (_, session):
        events = await gathered(session.prompt(["Look", Image("aGk=", "image/png")]))
        assert [event.text for event in events if isinstance(event, e.Notice)] == [
            "an attachment was left out: the agent does not accept images"
        ]
    assert {block["type"] for block in agent.sent("session/prompt")[0]["prompt"]} == {"text"}


async def test_an_agent_that_needs_sign_in_is_reported_with_its_methods(tmp_path: Path) -> None:
    def refuse(params: Any) -> Any:
        raise Refusal(-32000, "Sign in first")

    methods = [{"id": "key", "name": "API key"}]
    agent = RawAgent(welcome={"authMethods": methods}, session__new=refuse)
    async with started(agent) as client:
        with pytest.raises(AuthRequired, match=r"'key' \(API key\), through authenticate"):
            await client.new_session(tmp_path)


async def test_mcp_servers_the_agent_cannot_reach_are_left_out_and_named(tmp_path: Path) -> None:
    agent = RawAgent({})
    servers = [StdioServer(name="a", command="a"), HttpServer(name="b", url="https://b")]
    async with started(agent) as client:
        session = await client.new_session(tmp_path, mcp_servers=servers)
        assert "'b' left out" in session.state.entries[0].text
    assert [server["name"] for server in agent.sent("session/new")[0]["mcpServers"]] == ["a"]
