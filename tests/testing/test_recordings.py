"""Conversations with real agents, recorded and played: client, store and UI messages always make
the same of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import until
from support.hubs import hub_with, stored_events
from support.peers import soon
from support.recordings import RECORDINGS, allowing, comparable, prompts

from dragoman import Client
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.testing import ReplayAgent
from dragoman.ui_stream import messages

each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])


def test_there_is_one_of_each_agent_that_is_tried() -> None:
    agents = [path.stem for path in RECORDINGS]
    tried = ["claude", "codex", "gemini", "goose", "hermes", "kimicode", "opencode", "qwen"]
    assert agents == tried


@each_recording
def test_a_recording_names_no_folder_of_a_machine(path: Path) -> None:
    text = path.read_text()
    for place in ("/root", "/work", ".cache", "dragoman-lab", "/usr/", "/opt/"):
        assert place not in text


class Played(msgspec.Struct):
    """What one play of a recording came to, comparable with another."""

    events: list[e.Event]
    state: dict[str, Any]
    messages: list[Any]


async def hub_plays(path: Path, folder: Path) -> Played:
    """Through a hub and its store."""
    workspace = folder / "project"
    workspace.mkdir(parents=True)
    async with hub_with(folder, ReplayAgent(path)) as hub:
        live = await hub.create("it", str(workspace))
        for prompt in prompts(path):
            await soon(_turn(hub, live.id, prompt))
        events = await stored_events(hub, live.id)
        state = comparable(await hub.state(live.id), workspace)
        told = comparable(messages(events), workspace)
        return Played(events, state, told)


async def _turn(hub: Hub, session_id: str, prompt: str) -> None:
    """To its end, with a person who allows what is asked."""
    after = (await hub.record(session_id)).last_seq
    await hub.send(session_id, c.Prompt(prompt))
    async for page in hub.watch(session_id, after):
        for event in (stored.decode() for stored in page):
            if isinstance(event, e.PermissionRequested):
                await hub.send(session_id, c.AnswerPermission(event.request_id, allowing(event)))
            if isinstance(event, e.TurnEnded):
                return


@each_recording
async def test_a_recording_comes_to_the_same_each_time(path: Path, tmp_path: Path) -> None:
    first = await hub_plays(path, tmp_path / "first")
    again = await hub_plays(path, tmp_path / "again")
    assert first.state == again.state
    assert first.messages == again.messages


@each_recording
async def test_what_is_stored_folds_to_what_was_seen(path: Path, tmp_path: Path) -> None:
    played = await hub_plays(path, tmp_path)
    state = SessionState()
    for event in played.events:
        reduce(state, event)
    assert comparable(state, tmp_path / "project") == played.state
    assert [turn.stop_reason for turn in state.turns] == ["end_turn"] * len(prompts(path))
    # And it is a conversation with something of everything.
    kinds = {type(event) for event in played.events}
    assert {e.AgentMessage, e.ToolCallUpdated, e.PermissionRequested} <= kinds
    assert (state.plan is not None) == (path.stem in ("kimicode", "hermes"))
    if _writes_through_us(path):
        assert [event.after for event in played.events if isinstance(event, e.FileWritten)]


def _writes_through_us(path: Path) -> bool:
    return "fs/write_text_file" in path.read_text()


@each_recording
async def test_a_program_of_the_library_sees_the_same_as_the_hub(
    path: Path, tmp_path: Path
) -> None:
    hub = await hub_plays(path, tmp_path / "hub")
    workspace = tmp_path / "project"
    workspace.mkdir()
    async with Client.start(ReplayAgent(path).connect(), name="it") as client:
        session = await client.new_session(workspace)
        for prompt in prompts(path):
            async for event in session.prompt(prompt):
                if isinstance(event, e.PermissionRequested):
                    await session.answer(event.request_id, allowing(event))
        # What is said behind the reply that ends the last turn.
        await until(lambda: _entries(session.state, workspace) == hub.state["entries"])


def _entries(state: SessionState, workspace: Path) -> Any:
    return comparable(state, workspace)["entries"]
