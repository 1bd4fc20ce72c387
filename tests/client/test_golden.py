"""Whole conversations, from the handshake to the close, with agents of ours and of others."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import gathered, until
from support.examples_of_sdks import python_example, typescript_example
from support.folding import refold
from support.peers import tidy_loop
from support.programs import golden_agent

from dragoman import AgentCommand, Client, Policy, Resource, Session, Text
from dragoman.client.capabilities import AgentInfo
from dragoman.errors import Unsupported
from dragoman.session import events as e
from dragoman.session.facts import Command, ContextUsage, Cost, Mode, TokenUsage
from dragoman.session.state import AgentEntry
from dragoman.testing import ScriptedAgent

PROGRAMS = Path(golden_agent.__file__).parent
# Timers a hundred times as fast: the example waits a second between any two steps.
FAST = (
    "data:text/javascript,const wait=globalThis.setTimeout;"
    "globalThis.setTimeout=(f,ms,...rest)=>wait(f,ms/100,...rest)"
)


class Records:
    """Every event as it is written down, by the session it belongs to."""

    def __init__(self) -> None:
        self.events: dict[int, list[bytes]] = {}
        self.sessions: dict[int, Session] = {}

    def __call__(self, session: Session, event: e.Event) -> None:
        self.sessions[id(session)] = session
        self.events.setdefault(id(session), []).append(msgspec.json.encode(event))

    def check(self) -> None:
        """The state of each session is the fold of what was written down of it."""
        assert self.sessions
        for key, session in self.sessions.items():
            assert refold(self.events[key]) == session.state


async def answered(session: Session, prompt: Any, option: str) -> list[e.Event]:
    """A turn with every question answered like this."""
    events: list[e.Event] = []
    async for event in session.prompt(prompt):
        events.append(event)
        if isinstance(event, e.PermissionRequested):
            await session.answer(event.request_id, option)
    return events


def answer_of(session: Session) -> str:
    return "".join(entry.text for entry in session.state.entries if isinstance(entry, AgentEntry))


# ── our own scripted agent ────────────────────────────────────────────────────────────────────


def over_memory() -> Any:
    return golden_agent.agent().connect()


def over_stdio() -> Any:
    return ScriptedAgent.command(f"{PROGRAMS / 'golden_agent.py'}:agent")


@pytest.mark.parametrize("agent", [over_memory, over_stdio])
async def test_the_golden_flow_with_a_scripted_agent(agent: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    records = Records()
    async with tidy_loop():
        policy = Policy(execute=True)
        async with Client.start(agent(), policy=policy, listen=records) as client:
            assert client.agent_info == AgentInfo("golden", "1")
            session = await client.new_session(tmp_path)
            await check_settings(session)
            await check_turn(session)
            await check_continuation(client, session)
            assert not session.state.open
        records.check()


async def check_settings(session: Session) -> None:
    assert session.continuity == "new"
    await until(lambda: session.state.commands)
    assert session.state.commands == [Command("help", "Says what it can do")]
    await session.set_mode("code")
    assert session.state.mode == Mode("code", "Code")
    await session.set_config_option("fast", True)
    assert session.state.config_options[0].value is True


async def check_turn(session: Session) -> None:
    events = await answered(session, "Change @notes.txt", "allow")
    state, turn = session.state, session.state.turns[-1]
    assert isinstance(events[0], e.TurnStarted)
    assert isinstance(events[-1], e.TurnEnded)
    assert [event.seq for event in events] == list(range(events[0].seq, events[-1].seq + 1))
    assert (turn.stop_reason, turn.usage) == ("end_turn", TokenUsage(total=30, input=20, output=10))
    assert answer_of(session) == "They say 'old notes\\n'. Done."
    assert state.plan is not None
    assert [step.status for step in state.plan.steps] == ["completed", "completed"]
    assert {i: call.status for i, call in state.tool_calls.items()} == {
        "edit": "completed",
        "run": "completed",
    }
    assert state.tool_calls["edit"].diffs[0].new_text == golden_agent.NEW
    (terminal,) = state.terminals.values()
    assert (terminal.output.split(), terminal.exit_code) == (["new", "notes"], 0)
    assert (terminal.released, terminal.argv) == (True, ["cat", "notes.txt"])
    assert state.usage == ContextUsage(1200, 200_000, Cost(0.01, "USD"))
    assert (Path(session.cwd) / "notes.txt").read_text() == golden_agent.NEW
    assert state.pending == {}
    (change,) = session.written()
    assert (change.before, change.after) == (b"old notes\n", b"new notes\n")


async def check_continuation(client: Client, session: Session) -> None:
    texts = [(type(entry), entry.text) for entry in session.state.entries]
    assert [info.id async for info in client.list_sessions(session.cwd)] == [session.id]
    fork = await client.fork_session(session.id, session.cwd)
    assert (fork.continuity, fork.id != session.id) == ("continued", True)
    await fork.close()
    again = await client.resume_session(fork.id, session.cwd)
    assert again.continuity == "continued"
    await client.delete_session(again.id)
    loaded = await client.load_session(session.id, session.cwd)
    assert loaded.continuity == "replayed"
    told = [(type(entry), entry.text) for entry in loaded.state.entries]
    assert told == texts
    assert loaded.state.mode == Mode("code", "Code")
    await loaded.close()


async def test_a_refused_golden_flow_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    async with Client.start(over_memory(), policy=Policy(execute=True)) as client:
        session = await client.new_session(tmp_path)
        await answered(session, "Change the notes", "reject")
        assert session.state.tool_calls["edit"].status == "failed"
        assert (tmp_path / "notes.txt").read_text() == golden_agent.OLD


async def test_what_a_golden_flow_wrote_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    async with Client.start(over_memory(), policy=Policy(yolo=True)) as client:
        session = await client.new_session(tmp_path)
        turn = await session.prompt("Change the notes")
        assert session.written(turn) == session.written()
        await session.revert(turn)
        assert (tmp_path / "notes.txt").read_text() == golden_agent.OLD
        assert session.written() == ()
        assert "was restored" in session.state.entries[-1].text


# ── the official Python SDK ───────────────────────────────────────────────────────────────────


async def test_an_agent_made_with_the_python_sdk(tmp_path: Path) -> None:
    """Its models check what we send; everything an agent can ask of a client is asked."""
    records = Records()
    command = AgentCommand(sys.executable, (str(PROGRAMS / "sdk_agent.py"),))
    policy = Policy(write=True, execute=True)
    async with Client.start(command, policy=policy, listen=records) as client:
        assert client.agent_info == AgentInfo("sdk", "1")
        session = await client.new_session(tmp_path)
        await session.set_mode("code")
        prompt = [Text("Write this"), Resource("file:///x", content="inside")]
        events = await answered(session, prompt, "yes")
        assert isinstance(events[-1], e.TurnEnded)
        assert answer_of(session) == "Write this|Write this|0"
        await answered(session, "Or that", "no")
        assert answer_of(session).endswith("Not then.")
        assert (tmp_path / "said.txt").read_text() == "Write this"
        loaded = await client.load_session("sdk-1", tmp_path)
        assert [entry.text for entry in loaded.state.entries] == ["Before?", "Before."]
        with pytest.raises(Unsupported):
            await client.fork_session("sdk-1", tmp_path)
    records.check()


@pytest.mark.parametrize(
    ("program", "name", "answer"),
    [
        ("echo_agent.py", "", "Say @notes.txt"),
        ("agent.py", "example-agent", "Client sent:Say @notes.txt"),
    ],
)
async def test_the_example_agents_of_the_python_sdk(
    program: str, name: str, answer: str, tmp_path: Path
) -> None:
    records = Records()
    command = AgentCommand(sys.executable, (str(python_example(program)),))
    async with Client.start(command, listen=records) as client:
        assert client.agent_info.name == name
        session = await client.new_session(tmp_path)
        for _ in range(2):
            events = await gathered(session.prompt("Say @notes.txt"))
            assert [type(events[0]), type(events[-1])] == [e.TurnStarted, e.TurnEnded]
        assert session.state.turns[-1].stop_reason == "end_turn"
        assert answer_of(session).startswith(answer)
        second = await client.new_session(tmp_path)
        assert second.id != session.id
    records.check()


# ── the official TypeScript SDK ───────────────────────────────────────────────────────────────


def typescript_agent(*options: str) -> AgentCommand:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the TypeScript SDK's example with")
    return AgentCommand(node, (*options, str(typescript_example("agent.js"))))


async def test_the_example_agent_of_the_typescript_sdk(tmp_path: Path) -> None:
    """Its edit is of a file outside the workspace, so nobody needs to be asked: it is refused."""
    records = Records()
    async with Client.start(typescript_agent("--import", FAST), listen=records) as client:
        session = await client.new_session(tmp_path)
        events = await gathered(session.prompt("Improve the project"))
        kinds = [type(event).__name__ for event in events]
        assert kinds == [
            "TurnStarted",
            "AgentMessage",
            "ToolCallUpdated",
            "ToolCallUpdated",
            "AgentMessage",
            "ToolCallUpdated",
            "ToolCallUpdated",
            "AccessDecided",
            "AgentMessage",
            "TurnEnded",
        ]
        read, edit = session.state.tool_calls.values()
        assert (read.status, read.kind) == ("completed", "read")
        assert (edit.status, edit.kind) == ("pending", "edit")
        assert edit.locations[0].path == "/home/user/project/config.json"
        settled = events[7]
        assert isinstance(settled, e.AccessDecided)
        assert (settled.option_id, settled.decision.effect) == ("reject", "deny")
        assert answer_of(session).endswith("I'll skip the configuration update.")
    records.check()


async def test_a_turn_of_the_typescript_sdks_example_can_be_cancelled(tmp_path: Path) -> None:
    async with Client.start(typescript_agent()) as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("Improve the project")
        async for event in turn:
            if isinstance(event, e.AgentMessage):
                break
        await session.cancel()
        assert turn.stop_reason == "cancelled"
