"""Many files asked for at once are read one by one, as fast as the agent takes them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clients import until
from support.peers import soon
from support.permission_scene import Scene, scene

from dragoman.host.workspace.roots import Workspace
from dragoman.transport.memory import MemoryTransport


class SlowFiles:
    """Each file takes until it is told to go on."""

    def __init__(self) -> None:
        self.reading = self.most = self.read = 0
        self.go_on = asyncio.Event()

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        self.reading += 1
        self.most = max(self.most, self.reading)
        await self.go_on.wait()
        self.reading -= 1
        self.read += 1
        return "text"

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        raise AssertionError("nothing is written")


def ask_for(s: Scene, path: Path, number: int) -> None:
    s.agent.send(
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "fs/read_text_file",
            "params": {"sessionId": "s1", "path": str(path)},
        }
    )


async def test_one_file_is_read_at_a_time_and_the_next_when_the_agent_has_taken_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, taken = SlowFiles(), asyncio.Event()
    taken.set()

    async def drain(_: MemoryTransport) -> None:
        await taken.wait()

    monkeypatch.setattr(MemoryTransport, "drain", drain)
    async with scene(tmp_path, files=files) as s:
        await s.begin()
        for number in range(20):
            ask_for(s, tmp_path / "a", number)
        await until(lambda: files.reading)
        taken.clear()
        files.go_on.set()
        await soon(s.agent.answer_to(0))
        assert files.read <= 2  # the second may have begun before the first was answered
        taken.set()
        await soon(s.agent.answer_to(19))
        assert (files.most, files.read) == (1, 20)


async def test_a_file_that_is_asked_about_holds_no_other_up(tmp_path: Path) -> None:
    files = SlowFiles()
    files.go_on.set()
    async with scene(tmp_path, files=files) as s:
        await s.begin()
        ask_for(s, Path("/etc/hostname"), 1)
        await s.waiting()
        ask_for(s, tmp_path / "a", 2)
        assert (await soon(s.agent.answer_to(2)))["result"]["content"] == "text"
        assert files.read == 1
        await s.answer("reject")
