"""`dragoman mcp` as a program, driven by the official client of MCP."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from support.clients import until
from support.command import COMMAND
from support.programs import echoing_agent

from dragoman.testing import ScriptedAgent

ECHO = ScriptedAgent.command(f"{echoing_agent.__file__}:agent")


@asynccontextmanager
async def connected(
    home: Path, cwd: Path, *words: str, **env: str
) -> AsyncGenerator[ClientSession]:
    """The official client, connected to a server that has one agent, `echo`."""
    settings = {"agent_servers": {"echo": {"command": ECHO.command, "args": list(ECHO.args)}}}
    (home / "settings.json").write_text(json.dumps(settings))
    started_as = StdioServerParameters(
        command=str(COMMAND),
        args=["mcp", "--settings", str(home / "settings.json"), *words],
        env={**os.environ, "DRAGOMAN_HOME": str(home / "home"), **env},
        cwd=str(cwd),
    )
    async with stdio_client(started_as) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def test_the_official_client_starts_an_agent_and_reads_its_answer(
    tmp_path: Path, work: Path
) -> None:
    async with connected(tmp_path, work) as mcp:
        tools = {tool.name for tool in (await mcp.list_tools()).tools}
        assert tools >= {"list_agents", "start_session", "prompt", "wait", "cancel"}
        agents = (await mcp.call_tool("list_agents", {})).structured_content
        assert agents is not None
        assert agents["agents"][0] == {"name": "echo", "title": "echo", "state": "installed"}
        told: list[str | None] = []

        async def told_of(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        started = await mcp.call_tool("start_session", {"agent": "echo", "prompt": "hello"})
        assert started.structured_content is not None
        session = started.structured_content["session"]
        answer = await mcp.call_tool("wait", {"session": session}, progress_callback=told_of)
        assert answer.structured_content == {
            "status": "idle",
            "answer": "heard hello",
            "ended": "completed",
            "stopReason": "end_turn",
        }
        assert set(told) <= {"running", "idle"}
        asked: dict[str, Any] = {"session": session, "text": "again", "wait": 30}
        again = (await mcp.call_tool("prompt", asked)).structured_content
        assert again is not None
        assert again["answer"] == "heard again"
        changes = (await mcp.call_tool("read_changes", {"session": session})).structured_content
        assert changes is not None
        assert changes["files"] == []
        listed = (await mcp.call_tool("list_sessions", {})).structured_content
        assert listed is not None
        assert [each["startedByYou"] for each in listed["sessions"]] == [True]


async def test_transcripts_are_resources_and_prompts(tmp_path: Path, work: Path) -> None:
    async with connected(tmp_path, work) as mcp:
        asked = {"agent": "echo", "prompt": "hello", "wait": 30}
        started = (await mcp.call_tool("start_session", asked)).structured_content
        assert started is not None
        [resource] = (await mcp.list_resources()).resources
        assert str(resource.uri).endswith(started["session"])
        read = await mcp.read_resource(resource.uri)
        assert "> hello\n\nheard hello" in str(getattr(read.contents[0], "text", ""))
        given = await mcp.get_prompt("session", {"session": started["session"]})
        assert "> hello\n\nheard hello" in str(getattr(given.messages[0].content, "text", ""))


async def test_a_running_turn_is_cancelled(tmp_path: Path, work: Path) -> None:
    async with connected(tmp_path, work) as mcp:
        started = (
            await mcp.call_tool("start_session", {"agent": "echo", "prompt": "wait"})
        ).structured_content
        assert started is not None
        session = {"session": started["session"]}
        waiting = await mcp.call_tool("wait", {**session, "seconds": 0})
        assert waiting.structured_content is not None
        assert waiting.structured_content["status"] == "running"
        await mcp.call_tool("cancel", session)
        ended = (await mcp.call_tool("wait", session)).structured_content
        assert ended is not None
        assert ended["ended"] == "cancelled"


async def test_what_it_started_ends_with_it(tmp_path: Path, work: Path) -> None:
    async with connected(tmp_path, work) as mcp:
        await mcp.call_tool("start_session", {"agent": "echo", "prompt": "wait"})
        assert _agents_in(work)
    async with asyncio.timeout(30):
        await until(lambda: not _agents_in(work))


def _agents_in(folder: Path) -> list[str]:
    """The processes that work in the folder, but for the server."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes()
            if os.readlink(process / "cwd") == str(folder) and b"echoing_agent" in words:
                found.append(process.name)
        except OSError:
            continue
    return found
