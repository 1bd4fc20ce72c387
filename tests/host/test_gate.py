"""The gate, where only other providers than ours lead."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from support.clients import opened
from support.fake_terminals import FakeTerminals
from support.raw_agent import RawAgent

from dragoman import Policy, Rule
from dragoman.errors import ResourceNotFound, Unsupported
from dragoman.host.access import file_access
from dragoman.host.terminals import TerminalCommand, TerminalExit, TerminalWatcher
from dragoman.host.workspace import Workspace
from dragoman.session import events as e


class Hasty(FakeTerminals):
    """Prints and ends before it has said what the terminal is called."""

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        watcher.on_output("x", "fast")
        watcher.on_exit("x", TerminalExit(exit_code=0))
        await asyncio.sleep(0)
        return await super().create(workspace, command, watcher)


class Shelf:
    """Files that are nowhere on a disk."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        if path not in self.files:
            raise ResourceNotFound(path)
        return self.files[path]

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        self.files[path] = content


async def test_a_command_that_is_over_at_once_started_all_the_same(tmp_path: Path) -> None:
    agent = RawAgent()
    heard: list[e.Event] = []

    def listen(session: object, event: e.Event) -> None:
        heard.append(event)

    options = {"policy": Policy(execute=True), "terminals": Hasty(), "listen": listen}
    async with opened(agent, tmp_path, **options) as (_, session):
        await agent.ask("terminal/create", {"sessionId": "s1", "command": "true"}, 1)
        names = [type(event).__name__ for event in heard[-3:]]
        assert names == ["TerminalStarted", "TerminalOutput", "TerminalExited"]
        terminal = session.state.terminals["x"]
        assert (terminal.output, terminal.running, terminal.exit_code) == ("fast", False, 0)
        for number in (2, 3):
            told = await agent.ask(
                "terminal/release", {"sessionId": "s1", "terminalId": "x"}, number
            )
            assert told["result"] == {}
        released = [event for event in heard if isinstance(event, e.TerminalReleased)]
        assert len(released) == 1


async def test_files_may_be_anywhere(tmp_path: Path) -> None:
    shelf, agent = Shelf(), RawAgent()
    path = str(tmp_path / "a.txt")
    async with opened(agent, tmp_path, policy=Policy(write=True), files=shelf) as (_, session):
        write = {"sessionId": "s1", "path": path, "content": "kept"}
        assert "result" in await agent.ask("fs/write_text_file", write, 1)
        read = await agent.ask("fs/read_text_file", {"sessionId": "s1", "path": path}, 2)
        assert read["result"] == {"content": "kept"}
        with pytest.raises(Unsupported, match="listing changes"):
            session.changes()
        with pytest.raises(Unsupported, match="listing changes"):
            await session.revert()
    assert shelf.files == {path: "kept"}
    assert os.listdir(tmp_path) == []


def test_a_policy_explains_its_decisions(tmp_path: Path) -> None:
    policy = Policy([Rule(effect="deny", operation="write", path="secret/**")], write=True)
    workspace = Workspace("s", str(tmp_path))
    access = file_access("write", f"{tmp_path}/secret/x", agent="raw", roots=[str(tmp_path)])
    explanation = policy.explain(access, workspace)
    assert explanation.decision == policy.decide(access, workspace)
    assert explanation.decision.effect == "deny"
    assert [considered.matched for considered in explanation.considered] == [True, True]
