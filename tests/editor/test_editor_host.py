"""Files and terminals of an agent in its editor: after our rules, and never in two places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.editors import Office, office
from support.fake_terminals import FakeTerminals
from support.peers import soon

from dragoman import Client, HostCapabilities, Policy
from dragoman.errors import RemoteError, ResourceNotFound
from dragoman.host.rules.policy import flag_rules
from dragoman.host.workspace.roots import Workspace
from dragoman.session.content import TerminalItem
from dragoman.session.state import AgentEntry, SessionState
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_turn import Script

ALLOW = Policy(flag_rules(yolo=True))


class Buffers:
    """The open buffers of an editor, which nobody has saved."""

    def __init__(self, **texts: str) -> None:
        self.texts = dict(texts)
        self.written: list[str] = []

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        try:
            return self.texts[Path(path).name]
        except KeyError:
            raise ResourceNotFound(path) from None

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        self.texts[Path(path).name] = content
        self.written.append(path)


def editor(here: Office, **options: Any) -> Any:
    return here.editor(policy=ALLOW, **options)


def answer(state: SessionState) -> str:
    return "".join(entry.text for entry in state.entries if isinstance(entry, AgentEntry))


async def played(
    folder: Path, script: Script, *, policy: Policy = ALLOW, **options: Any
) -> SessionState:
    """A turn of an agent with this script, in an editor with these options."""
    agent = ScriptedAgent(script)
    async with office(folder, agent, policy=policy) as here, editor(here, **options) as client:
        session = await client.new_session(folder)
        await soon(session.prompt("go on"))
        return session.state


def reads(name: str, folder: Path) -> Script:
    async def script(turn: AgentTurn) -> None:
        try:
            turn.say(await turn.read_text_file(str(folder / name)))
        except RemoteError as error:
            turn.say(f"refused: {error.message}")

    return script


def writes(name: str, folder: Path, text: str = "new") -> Script:
    async def script(turn: AgentTurn) -> None:
        try:
            await turn.write_text_file(str(folder / name), text)
            turn.say("written")
        except RemoteError as error:
            turn.say(f"refused: {error.message}")

    return script


async def test_a_read_sees_what_is_not_saved(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("on disk")
    buffers = Buffers(**{"a.txt": "in the buffer"})
    state = await played(tmp_path, reads("a.txt", tmp_path), files=buffers)
    assert answer(state) == "in the buffer"


async def test_a_file_that_is_nowhere_but_in_the_editor_is_read(tmp_path: Path) -> None:
    state = await played(tmp_path, reads("b.txt", tmp_path), files=Buffers(**{"b.txt": "unsaved"}))
    assert answer(state) == "unsaved"


async def test_a_file_that_the_editor_does_not_know_is_read_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("on disk")
    state = await played(tmp_path, reads("a.txt", tmp_path), files=Buffers())
    assert answer(state) == "on disk"


async def test_an_editor_without_files_leaves_them_to_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("on disk")
    off = HostCapabilities(read_files=False, write_files=False)
    buffers = Buffers(**{"a.txt": "in the buffer"})
    state = await played(tmp_path, reads("a.txt", tmp_path), files=buffers, capabilities=off)
    assert answer(state) == "on disk"
    await played(tmp_path, writes("a.txt", tmp_path), files=buffers, capabilities=off)
    assert (tmp_path / "a.txt").read_text() == "new"
    assert buffers.written == []


async def test_a_write_lands_in_the_buffer_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("on disk")
    buffers = Buffers(**{"a.txt": "in the buffer"})
    state = await played(tmp_path, writes("a.txt", tmp_path), files=buffers)
    assert answer(state) == "written"
    assert buffers.texts["a.txt"] == "new"
    assert (tmp_path / "a.txt").read_text() == "on disk"


async def test_a_write_that_the_editor_refuses_is_refused(tmp_path: Path) -> None:
    class Closed(Buffers):
        async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
            raise RemoteError("the buffer is read-only")

    state = await played(tmp_path, writes("a.txt", tmp_path), files=Closed())
    assert answer(state) == "refused: the buffer is read-only"
    assert not (tmp_path / "a.txt").exists()


async def test_our_rules_come_first(tmp_path: Path) -> None:
    """A write asks, and is refused in the editor: its buffers stay as they are."""
    buffers = Buffers()
    agent = ScriptedAgent(writes("a.txt", tmp_path))
    async with (
        office(tmp_path, agent, policy=Policy()) as here,
        here.editor(files=buffers) as client,
    ):
        session = await client.new_session(tmp_path)
        turn = session.prompt("go on")
        await until(lambda: session.state.pending)
        [asked] = session.state.pending.values()
        await session.answer(asked.id, None)
        await soon(turn)
        assert "refused" in answer(session.state)
    assert buffers.written == []


async def test_what_is_outside_stays_outside(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    buffers = Buffers()
    state = await played(folder, writes("x.txt", tmp_path), files=buffers)
    assert "refused" in answer(state)
    assert buffers.written == []


async def runs(turn: AgentTurn) -> None:
    terminal = await turn.create_terminal("make", "all")
    turn.tool_call("t", "Run make", content=[{"type": "terminal", "terminalId": terminal}])
    ended = await turn.terminal("wait_for_exit", terminal)
    output = await turn.terminal("output", terminal)
    await turn.terminal("release", terminal)
    turn.say(f"{output['output']} {ended['exitCode']}")


async def test_a_command_runs_in_the_editors_terminal(tmp_path: Path) -> None:
    terminals = FakeTerminals()
    terminals.ended.set()
    state = await played(tmp_path, runs, terminals=terminals)
    assert answer(state) == "out 0"
    [command] = terminals.commands
    assert (command.command, command.args, command.cwd) == ("make", ("all",), str(tmp_path))
    assert "x" in terminals.released
    call = state.tool_calls["t"]
    assert call.content == [TerminalItem("x")]


async def test_what_it_prints_is_recorded_for_other_windows(tmp_path: Path) -> None:
    terminals = FakeTerminals()
    terminals.ended.set()
    async with office(tmp_path, ScriptedAgent(runs), policy=ALLOW) as here:
        async with editor(here, terminals=terminals) as client:
            session = await client.new_session(tmp_path)
            await soon(session.prompt("go on"))
        [terminal] = (await here.hub.state(session.id)).terminals.values()
        assert (terminal.output, terminal.exit_code) == ("out", 0)


async def test_without_them_it_runs_here_and_its_output_is_shown(tmp_path: Path) -> None:
    async def echoes(turn: AgentTurn) -> None:
        terminal = await turn.create_terminal("printf", "hello")
        turn.tool_call("t", "Say it", content=[{"type": "terminal", "terminalId": terminal}])
        await turn.terminal("wait_for_exit", terminal)

    off = HostCapabilities(terminals=False)
    state = await played(tmp_path, echoes, capabilities=off)
    [terminal] = state.terminals.values()
    assert (terminal.output, terminal.exit_code) == ("hello", 0)


@pytest.mark.parametrize("kind", ["files", "terminals"])
async def test_when_the_editor_has_gone_this_machine_serves(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("on disk")
    script = reads("a.txt", tmp_path) if kind == "files" else echo
    async with office(tmp_path, ScriptedAgent(script), policy=ALLOW) as here:
        async with here.connection() as transport:
            client = Client.start(transport, policy=ALLOW, files=Buffers(**{"a.txt": "buffer"}))
            async with client:
                session = await client.new_session(tmp_path)
                await soon(session.prompt("once"))
                await transport.aclose()
        live = here.hub.live[session.id]
        turn = await live.prompt("again")
        await soon(turn)
        assert answer(live.state).endswith("on disk" if kind == "files" else "0")


async def echo(turn: AgentTurn) -> None:
    terminal = await turn.create_terminal("true")
    ended = await turn.terminal("wait_for_exit", terminal)
    turn.say(str(ended["exitCode"]))
