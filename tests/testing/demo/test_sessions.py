"""The demo agent's sessions outlive its process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel
from support.demo import (
    YOLO,
    answer_to,
    demo,
    demo_session,
    events_of,
)
from support.peers import tidy_loop

from dragoman import Client, Session
from dragoman.errors import AgentExited, ResourceNotFound
from dragoman.session.state import NoticeEntry, UserEntry


async def test_another_process_goes_on_with_a_session(cwd: Path) -> None:
    async with demo_session(cwd, YOLO) as session:
        await session.set_mode("auto")
        await session.set_config_option("verbose", True)
        await events_of(session.prompt("Fix it"))
        await events_of(session.prompt("/long 300"))
        before = session
    async with demo(YOLO) as client:
        loaded = await client.load_session(before.id, cwd)
        assert loaded.continuity == "replayed"
        assert heard(loaded) == heard(before)
        assert loaded.state.mode is not None
        assert loaded.state.mode.id == "auto"
        assert {o.id: o.value for o in loaded.state.config_options}["verbose"] is True
        resumed = await client.resume_session(before.id, cwd)
        assert resumed.continuity == "continued"
        assert resumed.state.entries == []
        await events_of(resumed.prompt("More"))
        fork = await client.fork_session(before.id, cwd)
        assert fork.id != before.id
        await events_of(fork.prompt("/think of the fork"))
        titles = {info.id: info.title async for info in client.list_sessions(cwd)}
        assert titles == {before.id: "Fix it", fork.id: "Fix it (fork)"}
        reloaded = await client.load_session(fork.id, cwd)
        prompts = [x.text for x in reloaded.state.entries if isinstance(x, UserEntry)]
        assert prompts == ["Fix it", "/long 300", "More", "/think of the fork"]


def heard(session: Session) -> list[tuple[str, str]]:
    """The conversation, without what only lives while it is spoken."""
    return [
        (type(entry).__name__, entry.text)
        for entry in session.state.entries
        if not isinstance(entry, NoticeEntry)
    ]


async def test_what_a_command_printed_is_told_again(cwd: Path) -> None:
    async with demo(YOLO) as client:
        session = await client.new_session(cwd)
        await events_of(session.prompt("/run printf hatched"))
        loaded = await client.load_session(session.id, cwd)
        calls = list(loaded.state.tool_calls.values())
        assert [item.text for item in calls[0].content] == ["hatched"]


async def test_a_crash_loses_nothing_that_was_said(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        await events_of(session.prompt("/think twice"))
        with pytest.raises(AgentExited):
            await session.prompt("/crash")
        await session.reconnect()
        assert session.continuity == "continued"
        assert "thought" in await answer_to(session, "/think again")
    async with demo() as client:
        loaded = await client.load_session(session.id, cwd)
        prompts = [x.text for x in loaded.state.entries if isinstance(x, UserEntry)]
        assert prompts == ["/think twice", "/crash", "/think again"]


async def test_a_session_can_be_named_put_away_and_forgotten(cwd: Path, home: Path) -> None:
    async with demo() as client:
        session = await client.new_session(cwd)
        await session.set_title("Nests")
        assert await client.session_status(session.id) == "open"
        await client.archive_session(session.id)
        assert [info async for info in client.list_sessions()] == []
        await client.unarchive_session(session.id)
        assert [info.title async for info in client.list_sessions()] == ["Nests"]
        await client.close_session(session.id)
        assert await client.session_status(session.id) == "saved"
        await client.delete_session(session.id)
        with pytest.raises(ResourceNotFound):
            await client.load_session(session.id, cwd)
    assert os.listdir(home / "demo-agent") == []


async def test_it_claims_what_it_can_and_no_more(cwd: Path) -> None:
    async with demo() as client:
        offered = client.capabilities
        assert offered.load
        assert all(
            getattr(offered, name)
            for name in ("resume", "fork", "list", "delete", "close", "archive", "status")
        )
        assert (offered.mcp_http, offered.mcp_sse, offered.mcp_acp) == (False, False, False)
        assert (offered.logout, offered.providers, offered.auth_status) == (False, False, False)
        assert client.auth_methods == []
        assert client.agent_info.name == "dragoman-demo"
        assert client.protocol_version == 1


async def test_the_official_models_accept_what_it_sends(cwd: Path) -> None:
    import acp.schema as official

    models: dict[str, type[BaseModel]] = {
        "session/update": official.SessionNotification,
        "session/request_permission": official.RequestPermissionRequest,
        "fs/read_text_file": official.ReadTextFileRequest,
        "fs/write_text_file": official.WriteTextFileRequest,
        "terminal/create": official.CreateTerminalRequest,
        "terminal/output": official.TerminalOutputRequest,
        "terminal/wait_for_exit": official.WaitForTerminalExitRequest,
        "terminal/release": official.ReleaseTerminalRequest,
    }
    sent: list[dict[str, Any]] = []

    def tap(direction: str, frame: bytes) -> None:
        if direction == "received":
            sent.append(msgspec.json.decode(frame))

    async with tidy_loop(), Client.start("demo", policy=YOLO, tap=tap) as client:
        session = await client.new_session(cwd)
        for prompt in ("Fix it", "Summarise @README.md", "/plan", "/run ls", "/image", "/diff"):
            await events_of(session.prompt(prompt))
    asked = [frame for frame in sent if "method" in frame]
    assert {frame["method"] for frame in asked} == set(models)
    for frame in asked:
        models[frame["method"]].model_validate(frame["params"])
