"""What an editor asks for before an earlier request is answered, frame by frame."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from support.clients import until
from support.editors import Office, office
from support.peers import soon
from support.steered_agents import SteeredAgent

from dragoman.hub.cluster import commands as c
from dragoman.rpc import Peer
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say


class Editor:
    """`updates` are all that it was sent."""

    def __init__(self, peer: Peer, updates: list[str]) -> None:
        self.updates = updates
        self._peer = peer

    async def call(self, method: str, **params: Any) -> Any:
        return json.loads(bytes(await soon(self._peer.call(method, json.dumps(params).encode()))))

    def cancel(self, session_id: str) -> None:
        self._peer.notify("session/cancel", json.dumps({"sessionId": session_id}).encode())

    async def new_session(self, folder: Path) -> str:
        made = await self.call("session/new", cwd=str(folder), mcpServers=[])
        return made["sessionId"]

    async def prompt(self, session_id: str, text: str) -> Any:
        block = {"type": "text", "text": text}
        return await self.call("session/prompt", sessionId=session_id, prompt=[block])


@asynccontextmanager
async def editor(here: Office, version: int = 1) -> AsyncGenerator[Editor]:
    updates = list[str]()

    def hear(method: str, params: msgspec.Raw) -> None:
        updates.append(bytes(params).decode())

    def refuse(method: str, params: msgspec.Raw) -> bytes:
        raise NotImplementedError(method)

    async with (
        here.connection() as transport,
        Peer(transport, on_notification=hear, on_request=refuse) as peer,
    ):
        found = Editor(peer, updates)
        info = {"name": "editor", "version": "1"}
        await found.call("initialize", protocolVersion=version, info=info, capabilities={})
        yield found


class Busy(SteeredAgent):
    """Takes steers, and does not come to its next step."""

    async def _works(self) -> None:
        await asyncio.Event().wait()


async def works(turn: AgentTurn) -> None:
    await turn.until_cancelled(asyncio.sleep(3600))


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_that_is_opened_twice_at_once_is_shown_once(
    tmp_path: Path, method: str
) -> None:
    async with office(tmp_path, ScriptedAgent([say("hi")])) as here, editor(here) as window:
        session_id = await window.new_session(tmp_path)
        params: dict[str, Any] = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
        await asyncio.gather(*(window.call(method, **params) for _ in range(3)))
        await here.hub.send(session_id, c.Prompt("from the page"))
        await until(lambda: any("agent_message_chunk" in each for each in window.updates))
        await window.call("session/close", sessionId=session_id)
        assert sum("from the page" in each for each in window.updates) == 1


@pytest.mark.parametrize("runs", [True, False])
async def test_a_cancellation_reaches_a_prompt_that_is_on_its_way(
    tmp_path: Path, runs: bool
) -> None:
    """Whether the session runs already, or its agent is started for the prompt."""
    async with office(tmp_path, ScriptedAgent(works)) as here, editor(here) as window:
        session_id = await window.new_session(tmp_path)
        if not runs:
            await here.hub.detach(here.hub.live[session_id])
        prompt = asyncio.create_task(window.prompt(session_id, "work"))
        await asyncio.sleep(0)  # it is sent
        window.cancel(session_id)
        assert (await prompt)["stopReason"] == "cancelled"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("runs", [True, False])
async def test_a_prompt_that_is_withdrawn_on_its_way_does_not_run(
    tmp_path: Path, runs: bool, version: int
) -> None:
    """Whether the session runs already, or its agent is started for the prompt."""
    async with office(tmp_path, ScriptedAgent(works)) as here, editor(here, version) as window:
        session_id = await window.new_session(tmp_path)
        if not runs:
            await here.hub.detach(here.hub.live[session_id])
        prompt = asyncio.create_task(window.prompt(session_id, "work"))
        await asyncio.sleep(0)  # it is sent
        prompt.cancel()
        await until(lambda: session_id in here.hub.live)
        live = here.hub.live[session_id]
        await until(lambda: live.state.turns and live.state.turns[-1].ending)
        assert live.state.turns[-1].ending == "cancelled"


async def test_a_steer_that_the_agent_has_and_has_not_taken_up_yet_is_injected(
    tmp_path: Path,
) -> None:
    agent = Busy("run", Random(1))
    async with office(tmp_path, agent) as here, editor(here) as window:
        session_id = await window.new_session(tmp_path)
        prompt = asyncio.create_task(window.prompt(session_id, "work"))
        await until(lambda: agent.taken == ["work"])
        steer = {"sessionId": session_id, "prompt": [{"type": "text", "text": "to the left"}]}
        assert await window.call("_session/steering", **steer) == {"outcome": "injected"}
        prompt.cancel()
