"""What goes wrong behind `dragoman acp` is told in the session, and the editor stays connected."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.clients import until
from support.database_cable import cable_to
from support.editors import Office, TestAgents, office, offices
from support.peers import soon
from support.postgres import empty_database

from dragoman import Client, Session
from dragoman.errors import RemoteError
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.session.state import AgentEntry, NoticeEntry
from dragoman.store.postgres.store import open_postgres
from dragoman.testing import AgentTurn, ScriptedAgent

PROGRAMS = Path(__file__).parent / "programs"


def said(session: Session) -> list[str]:
    return [each.text for each in session.state.entries if isinstance(each, AgentEntry)]


def noticed(session: Session) -> str:
    return " ".join(x.text for x in session.state.entries if isinstance(x, NoticeEntry))


async def answers(turn: AgentTurn) -> None:
    turn.say(f"<{turn.text}>")


async def fails(session: Session) -> str:
    """The error that a prompt ends with."""
    with pytest.raises(RemoteError) as caught:
        await soon(session.prompt("go"))
    return caught.value.message


# ── limits ────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_that_a_limit_stops_is_cancelled_and_says_why(tmp_path: Path) -> None:
    prompts: list[str] = []

    async def calls(turn: AgentTurn) -> None:
        prompts.append(turn.text)
        for number in range(5):
            turn.tool_call(f"t{number}", "Look")
        await turn.request_permission("t0", title="Look")

    limit = SpendingLimit(measure="tool_calls", most=2, source="--max-tool-calls 2")
    async with (
        office(tmp_path, ScriptedAgent(calls), limits=(limit,)) as here,
        here.editor() as editor,
    ):
        session = await editor.new_session(tmp_path)
        turn = session.prompt("go")
        await soon(turn)
        assert turn.stop_reason == "cancelled"
        await until(lambda: "--max-tool-calls 2 allows 2 tool calls" in noticed(session))
        again = session.prompt("go")
        await soon(again)
        assert again.stop_reason == "cancelled"
        assert len(prompts) == 1


async def test_a_prompt_that_is_parked_says_until_when_and_goes_on_by_itself(
    tmp_path: Path,
) -> None:
    tries: list[str] = []

    async def limited(turn: AgentTurn) -> None:
        tries.append(turn.text)
        if len(tries) == 1:
            raise RemoteError("Rate limit exceeded: try again in 5 hours")
        turn.say("done")

    async with (
        office(tmp_path, ScriptedAgent(limited), on_limit="park") as here,
        here.editor() as editor,
    ):
        session = await editor.new_session(tmp_path)
        assert "Rate limit exceeded" in await fails(session)
        assert "continues at" in noticed(session)
        await here.hub.send(session.id, c.ContinueParked(True))
        await until(lambda: said(session) == ["done"])
        assert tries == ["go", "go"]


# ── agents and owners ─────────────────────────────────────────────────────────────────────────


async def test_an_agent_that_crashes_is_started_again_for_the_next_prompt(tmp_path: Path) -> None:
    env = {"STORE": str(tmp_path / "agent")}
    agent = ScriptedAgent.command(f"{PROGRAMS}/crashing.py:crashing", env=env)
    async with office(tmp_path, agent) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        assert "exited" in await fails(session)
        await soon(session.prompt("again"))
        assert "".join(said(session)).split() == ["begun", "begun"]


async def test_an_owner_that_moved_takes_the_next_prompt(tmp_path: Path) -> None:
    agent = ScriptedAgent(answers)
    async with (
        offices(tmp_path, [{"it": agent}] * 3) as [first, second, third],
        first.editor() as begins,
        third.editor() as editor,
    ):
        begun = await begins.new_session(tmp_path)
        session = await editor.load_session(begun.id, tmp_path)
        await soon(session.prompt("one"))
        assert session.id in first.hub.live
        await first.hub.detach(first.hub.live[session.id])
        await second.hub.open(session.id)
        await soon(session.prompt("two"))
        assert session.id in second.hub.live
        assert said(session) == ["<one>", "<two>"]


# ── the database ──────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def on_a_cable(folder: Path, address: str) -> AsyncGenerator[Client]:
    """An editor whose hub reaches its database over a cable."""
    store = await open_postgres(address, folder / "here")
    try:
        agents = TestAgents({"it": ScriptedAgent(answers)})
        async with Hub(store, agents) as hub, Office(hub, agents).editor() as editor:
            yield editor
    finally:
        await store.aclose()


async def test_an_outage_is_told_and_the_prompt_goes_on_after_it(tmp_path: Path) -> None:
    async with cable_to(empty_database()) as cable, on_a_cable(tmp_path, cable.address) as editor:
        session = await editor.new_session(tmp_path)
        await soon(session.prompt("one"))
        cable.cut()
        turn = session.prompt("two")
        await until(lambda: "database" in noticed(session))
        with pytest.raises(RemoteError, match="database"):
            await soon(editor.new_session(tmp_path))
        cable.mend()
        await soon(turn)
        assert said(session) == ["<one>", "<two>"]
        await soon(session.prompt("three"))
        assert said(session)[-1] == "<three>"
