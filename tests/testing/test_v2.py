"""The scripted agent and the demo agent, asked for version 2."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, started, until
from support.peers import tidy_loop
from support.v2_agent import Judge, stoppable

from dragoman import Client, Policy, Session
from dragoman.errors import InternalError, InvalidParams, MethodNotFound
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import DemoAgent
from dragoman.testing.steps import fail, run, say, wait_for_cancel, write_file

SECOND: dict[str, Any] = {"protocol": 2}
MODES = (v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="auto", name="Auto"))


async def answered(session: Session, prompt: str, option: str = "allow") -> list[e.Event]:
    events: list[e.Event] = []
    async with asyncio.timeout(60):
        async for event in session.prompt(prompt):
            events.append(event)
            if isinstance(event, e.PermissionRequested):
                await session.answer(event.request_id, option)
    return events


async def test_a_command_is_asked_for_and_shown_byte_by_byte(tmp_path: Path) -> None:
    program = "import os, time; os.write(1, b'h\\xc3'); time.sleep(.05); os.write(1, b'\\xa9\\n')"
    agent = ScriptedAgent([run(sys.executable, "-c", program), run("no-such-command")])
    async with started(agent, **SECOND) as client:
        session = await client.new_session(tmp_path)
        events = await answered(session, "go")
        asked = next(event for event in events if isinstance(event, e.PermissionRequested))
        assert (asked.operation, asked.tool_call_id, asked.claimed) == ("execute", None, True)
        first, second = session.state.terminals.values()
        assert (first.output, first.exit_code, first.ours) == ("hé\n", 0, False)
        assert (first.cwd, first.cancellable) == (str(tmp_path), False)
        assert shlex.split(first.command)[-1] == program
        assert second.exit_code == 127
        assert session.state.entries[-1].text.startswith("hé\n")


async def test_what_is_refused_is_not_done(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    agent = ScriptedAgent([write_file(str(file), "A")])
    async with started(agent, **SECOND) as client:
        session = await client.new_session(tmp_path)
        with pytest.raises(InternalError, match="refused"):
            await answered(session, "go", "reject")
        assert not file.exists()
        await answered(session, "go")
        assert file.read_text() == "A"
        (diff,) = session.state.tool_calls[f"write {file}"].diffs
        assert (diff.operation, diff.path) == ("add", str(file))
        assert diff.patch is not None
        assert "+A" in diff.patch


async def test_a_failed_script_fails_the_turn_and_not_the_prompt(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hm"), fail(InvalidParams("odd", {"x": 1}))])
    async with started(agent, **SECOND) as client:
        session = await client.new_session(tmp_path)
        with pytest.raises(InvalidParams, match="odd"):
            await session.prompt("go")
        assert session.state.turns[-1].error


async def test_it_can_be_cancelled_and_prompted_again(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("wait"), wait_for_cancel()])
    async with started(agent, **SECOND) as client:
        session = await client.new_session(tmp_path)
        for _ in range(2):
            turn = session.prompt("go")
            assert (await anext(turn)).text == "go"
            assert (await anext(turn)).text == "wait"
            await session.cancel()
            assert turn.stop_reason == "cancelled"


async def test_one_call_and_one_terminal_can_be_stopped(tmp_path: Path) -> None:
    async with started(ScriptedAgent(stoppable), policy=Policy(yolo=True), **SECOND) as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("go")
        await until(lambda: session.state.terminals)
        terminal = next(iter(session.state.terminals))
        assert await session.cancel_tool_call("call/1")
        assert await session.cancel_terminal(terminal)
        await gathered(turn)
        assert not await session.cancel_tool_call("call/1")
        assert not await session.cancel_terminal(terminal)
        assert session.state.tool_calls["call/1"].status == "cancelled"
        assert session.state.entries[-1].text == "SIGKILL"


async def test_an_agent_that_ends_leaves_no_command_behind(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        await turn.create_terminal("sh", "-c", "echo $$; exec sleep 60")
        await turn.cancelled.wait()

    tasks = asyncio.all_tasks()
    async with tidy_loop():
        agent = ScriptedAgent(script)
        async with Client.start(agent.connect(), policy=Policy(yolo=True), **SECOND) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("go")
            await until(lambda: any(t.output for t in session.state.terminals.values()))
            (terminal,) = session.state.terminals.values()
            await session.cancel()
            assert turn.stop_reason == "cancelled"
        await until(lambda: not Path(f"/proc/{int(terminal.output)}").exists())
        # Whoever waited for the process learns of its end a little later.
        await until(lambda: asyncio.all_tasks() <= tasks)


async def test_it_keeps_sessions_and_has_modes_as_an_option(tmp_path: Path) -> None:
    agent = ScriptedAgent(
        [say("hi")],
        modes=MODES,
        auth_methods=[v1.AuthMethodAgent(id="login", name="Log in")],
    )
    judge = Judge(of_agent=True)
    async with started(agent, tap=judge, **SECOND) as client:
        session = await client.new_session(tmp_path)
        await session.set_mode("auto")
        assert agent.sessions[session.id].mode == "auto"
        with pytest.raises(ValueError, match="cannot be"):
            await session.set_mode("other")
        await client.authenticate("login")
        await client.logout()
        await session.set_title("T")
        fork = await client.fork_session(session.id, tmp_path)
        assert fork.state.config_options[0].value == "auto"
        assert {info.id async for info in client.list_sessions()} == {session.id, fork.id}
        assert await client.session_status(fork.id) == "open"
        await fork.close()
        await client.delete_session(fork.id)
        with pytest.raises(MethodNotFound):
            await client.dialect.list_providers()
    assert judge.wrong == []


async def test_what_the_demo_says_in_version_2_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "data"))
    (tmp_path / "README.md").write_text("# Words\n")
    judge = Judge(of_agent=True)
    options: Any = {"policy": Policy(yolo=True), "tap": judge, **SECOND}
    async with tidy_loop(), Client.start(DemoAgent().connect(), **options) as client:
        session = await client.new_session(tmp_path)
        await session.set_model("demo-swift")
        for prompt in ("Fix it", "/diff", "/plan x", "/notice", "/compact", "/image", "/run ls"):
            assert isinstance((await answered(session, prompt))[-1], e.TurnEnded)
        assert (tmp_path / "dragoman-demo.txt").exists()
        statuses = {call.status for call in session.state.tool_calls.values()}
        assert statuses == {"completed"}
        assert [t.exit_code for t in session.state.terminals.values()] == [0, 0]
        diffs = [d for call in session.state.tool_calls.values() for d in call.diffs]
        assert [isinstance(d, Diff) and d.operation for d in diffs] == ["add", "modify"]
        loaded = await client.load_session(session.id, tmp_path)
        assert len(loaded.state.entries) > 10
    assert judge.wrong == []


async def test_the_demo_speaks_both_versions_as_a_process(tmp_path: Path) -> None:
    for version in (1, 2):
        async with tidy_loop(), Client.start("demo", protocol=version) as client:
            assert client.protocol_version == version
            session = await client.new_session(tmp_path)
            await session.set_mode("plan")
            await answered(session, "/think of it")
            assert session.state.turns[-1].stop_reason == "end_turn"
