"""The demo agent over real stdio: what it does with a prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clients import until
from support.demo import YOLO, answer_to, demo_session, events_of, only, said
from support.peers import soon

from dragoman import HostCapabilities, Image, Policy, Resource, Session
from dragoman.session import events as e

OWN_FILE = "dragoman-demo.txt"


# ── the whole tour ────────────────────────────────────────────────────────────────────────────


async def test_an_ordinary_prompt_shows_everything(cwd: Path) -> None:
    async with demo_session(cwd, YOLO) as session:
        turn = session.prompt("Fix the failing test")
        events = await events_of(turn)
        plan = session.state.plan
        tools = {call.kind: call for call in session.state.tool_calls.values()}
        terminal = next(iter(session.state.terminals.values()))
        assert {"demo agent", "dragoman agents list"} <= set(_phrases(said(events)))
        assert only(events, e.AgentThought)
        assert plan is not None
        assert [step.status for step in plan.steps] == ["completed"] * 4
        assert {step.status for p in only(events, e.PlanUpdated) for step in p.steps} == {
            "pending",
            "in_progress",
            "completed",
        }
        assert {kind: call.status for kind, call in tools.items()} == dict.fromkeys(
            ("read", "edit", "execute"), "completed"
        )
        assert tools["edit"].diffs[0].old_text is None
        assert asked_for(events)
        assert (terminal.output, terminal.exit_code, terminal.released) == (
            f"1 {OWN_FILE}\n",
            0,
            True,
        )
        assert session.state.usage is not None
        assert session.state.usage.used > 0
        assert session.state.usage.cost is not None
        assert turn.usage is not None
        assert turn.usage.total == turn.usage.input + turn.usage.output + (turn.usage.thought or 0)
        assert session.state.title == "Fix the failing test"
        assert len(only(events, e.AgentMessage)) > 10
        assert turn.stop_reason == "end_turn"
    assert sorted(os.listdir(cwd)) == ["README.md", OWN_FILE]


def _phrases(text: str) -> list[str]:
    return [phrase for phrase in ("demo agent", "dragoman agents list") if phrase in text]


async def test_it_reads_a_file_changes_it_and_writes_it_back(cwd: Path) -> None:
    path = cwd / OWN_FILE
    path.write_text("first line\nno newline at the end")
    async with demo_session(cwd, YOLO) as session:
        events = await events_of(session.prompt(f"Add a line to @{OWN_FILE}"))
        reads = [call for call in session.state.tool_calls.values() if call.kind == "read"]
        assert [call.locations[0].path for call in reads] == [str(path)]
        assert [event.path for event in only(events, e.FileWritten)] == [str(path)]
    before = "first line\nno newline at the end\n"
    assert path.read_text() == f"{before}You asked: Add a line to @{OWN_FILE}\n"


async def test_it_runs_a_command_and_sees_its_output(cwd: Path) -> None:
    async with demo_session(cwd, YOLO) as session:
        answer = await answer_to(session, "/run printf 'seen by %s' 'the agent'")
        assert "seen by the agent" in answer
        terminal = next(iter(session.state.terminals.values()))
        assert (terminal.output, terminal.exit_code) == ("seen by the agent", 0)
        assert terminal.released
        assert "exited with code 3" in await answer_to(session, "/run (exit 3)")


def asked_for(events: list[e.Event]) -> list[e.AccessDecided]:
    """What it asked permission for, and got without anyone being asked."""
    return [event for event in only(events, e.AccessDecided) if event.tool_call_id is not None]


async def test_a_mode_switch_changes_what_it_does(cwd: Path) -> None:
    async with demo_session(cwd, YOLO) as session:
        assert session.state.mode is not None
        assert session.state.mode.id == "ask"
        await session.set_mode("plan")
        events = await events_of(session.prompt("Fix it"))
        assert "plan mode" in said(events)
        assert not asked_for(events)
        assert not only(events, e.FileWritten)
        assert "plan mode" in await answer_to(session, "/run ls")
        await session.set_mode("auto")
        events = await events_of(session.prompt("Fix it"))
        assert not asked_for(events)
        assert only(events, e.FileWritten)
        await session.set_mode("ask")
        assert asked_for(await events_of(session.prompt("Fix it")))


# ── permission ────────────────────────────────────────────────────────────────────────────────


async def test_what_is_refused_is_not_done_and_it_says_so(cwd: Path) -> None:
    async with demo_session(cwd) as session:  # nobody answers
        events = await events_of(session.prompt("Fix it"))
        assert "did not allow" in said(events)
        assert "did not run" in said(events)
        assert session.state.turns[-1].stop_reason == "end_turn"
    assert os.listdir(cwd) == ["README.md"]


async def test_in_auto_mode_the_hosts_rules_decide(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        await session.set_mode("auto")
        events = await events_of(session.prompt("Fix it"))
        assert "did not write" in said(events)
    assert os.listdir(cwd) == ["README.md"]


async def test_allowed_once_it_writes_and_asks_again(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        for _ in range(2):
            assert await asked(session, "allow") == ["write", "execute"]
        assert await asked(session, "always") == ["write", "execute"]
        assert await asked(session, "reject") == ["execute"]
    assert len((cwd / OWN_FILE).read_text().splitlines()) == 4


async def asked(session: Session, option_id: str) -> list[str]:
    """What was asked for in a turn in which all edits are answered alike."""
    operations: list[str] = []
    async for event in session.prompt("Fix it"):
        if isinstance(event, e.PermissionRequested):
            operations.append(event.operation)
            if event.operation == "write":
                await session.answer(event.request_id, option_id)
    return operations


# ── looking ───────────────────────────────────────────────────────────────────────────────────


LOOKS = ("Summarise @README.md", "What is this project?", "please explain @README.md", "Why?")
TASKS = ("Explain @README.md and fix it", "Read it, then write a test", "hello", "Test it")


async def test_a_prompt_that_asks_for_a_look_asks_for_nothing(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        for prompt in LOOKS:
            events = await events_of(session.prompt(prompt))
            assert not only(events, e.PermissionRequested)
            for words in ("**Dragons**", "They breathe fire.", "- Eggs", "7 lines"):
                assert words in said(events)
        assert {call.kind for call in session.state.tool_calls.values()} == {"read"}


async def test_a_look_with_a_change_behind_it_is_a_task(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        for prompt in TASKS:
            assert only(await events_of(session.prompt(prompt)), e.PermissionRequested)


async def test_it_looks_at_what_there_is(cwd: Path) -> None:
    (cwd / "README.md").unlink()
    async with demo_session(cwd) as session:
        assert "nothing to read" in await answer_to(session, "What is this?")
        (cwd / "main.py").write_text("def hatch():\n    pass\n")
        assert "`hatch`" in await answer_to(session, "What is this?")
        assert "`gone.md`: I could not" in await answer_to(session, "Summarise @gone.md")
        assert "files only" in await answer_to(session, "Summarise @https://example.org/x")


async def test_it_takes_what_is_attached(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        resource = Resource("file:///notes.txt", content="Ten words " * 5)
        picture = Image("AAAA", "image/png")
        events = await events_of(session.prompt(["Describe these", resource, picture]))
        assert "`notes.txt`: 1 line, 10 words" in said(events)
        assert "3 bytes of image/png" in said(events)
        assert not session.state.tool_calls


async def test_it_makes_do_with_a_client_that_offers_little(cwd: Path) -> None:
    little = HostCapabilities(
        read_files=False, write_files=False, terminals=False, elicitation=False
    )
    async with demo_session(cwd, YOLO, little) as session:
        answer = await answer_to(session, "Fix it")
        assert "no writing" in answer
        assert "no terminals" in answer
        assert "could not read" in await answer_to(session, "Summarise @README.md")
        assert "no forms" in await answer_to(session, "/ask")


# ── options ───────────────────────────────────────────────────────────────────────────────────


async def test_options_change_what_it_does(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        categories = {o.id: o.category for o in session.state.config_options}
        assert categories == {"model": "model", "thinking": "thought_level", "verbose": None}
        thoughts: dict[str, int] = {}
        for level in ("off", "short", "long"):
            await session.set_config_option("thinking", level)
            events = await events_of(session.prompt("Fix it"))
            thoughts[level] = len("".join(t.text for t in only(events, e.AgentThought)))
        assert thoughts["off"] == 0
        assert 0 < thoughts["short"] < thoughts["long"]
        assert session.id not in await answer_to(session, "/think")
        await session.set_config_option("verbose", True)
        assert session.id in await answer_to(session, "/think")


# ── cancel ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prompt", "at"),
    [
        ("/slow 600", e.AgentMessage),
        ("Fix it", e.PermissionRequested),
        ("/run sleep 600", e.TerminalStarted),
        ("/ask", e.ElicitationRequested),
        ("Fix it", e.AgentThought),
    ],
)
async def test_a_cancel_is_honoured_wherever_it_is(
    prompt: str, at: type[e.Event], cwd: Path
) -> None:
    execute = Policy(execute=True)
    async with demo_session(cwd, execute) as session:
        _ = session.pending  # somebody is there to answer, and does not
        turn = session.prompt(prompt)
        async for event in turn:
            if isinstance(event, at) and not turn.cancel_requested:
                await soon(session.cancel())
        assert turn.stop_reason == "cancelled"
        assert turn.cancel_requested
        assert {call.status for call in session.state.tool_calls.values()} <= {
            "cancelled",
            "completed",
            "failed",
        }
        assert "demo agent" in await answer_to(session, "What is this?")
        await nothing_runs(session)


async def nothing_runs(session: Session) -> None:
    await until(lambda: not any(each.running for each in session.state.terminals.values()))


# ── the process ───────────────────────────────────────────────────────────────────────────────


def test_its_process_imports_only_what_it_needs() -> None:
    program = (
        "import sys, dragoman.testing.demo.demo_agent; "
        "print([m for m in sys.modules if m.startswith(('dragoman.client', 'dragoman.host', "
        "'dragoman.session', 'dragoman.transport.stdio', 'dragoman.testing.demo.script'))])"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=True, text=True)
    assert done.stdout.strip() == "[]"


async def test_nothing_in_the_folder_it_runs_in_is_imported(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("msgspec", "asyncio", "dragoman", "urllib"):
        (cwd / f"{name}.py").write_text("raise SystemExit('a trap')\n")
    monkeypatch.chdir(cwd)
    async with demo_session(cwd) as session:
        assert "Dragons" in await answer_to(session, "Summarise @README.md")


def test_it_ends_quietly_with_its_input() -> None:
    argv = [sys.executable, "-m", "dragoman.testing.demo"]
    done = subprocess.run(argv, input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
