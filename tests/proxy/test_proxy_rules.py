"""`dragoman proxy` decides by rules; what they leave open, it asks the client and all windows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.chains import Relay, relay
from support.clients import until
from support.hubs import TestLauncher, stored
from support.peers import soon

from dragoman import Policy, Session
from dragoman.errors import CommandRefused, RemoteError
from dragoman.host.rules.policy import flag_rules
from dragoman.host.rules.rule import Rule
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, PendingPermission, SessionState
from dragoman.store.records import SessionFilter, decode_events
from dragoman.testing import AgentTurn, ScriptedAgent

ENDS = e.PermissionSettled | e.AccessDecided
YOLO = Policy(flag_rules(yolo=True))


async def edits(turn: AgentTurn) -> None:
    """Asks whether it may write a file."""
    where = [{"path": f"{turn.cwd}/a.txt"}]
    turn.tool_call("t1", "Edit a.txt", kind="edit", locations=where)
    chosen = await turn.request_permission("t1", title="Edit a.txt", kind="edit", locations=where)
    turn.say(str(chosen))


def answer(state: SessionState) -> str:
    return "".join(entry.text for entry in state.entries if isinstance(entry, AgentEntry))


async def settled(here: Relay) -> list[tuple[str, str | None]]:
    """How each question ended, and who or what ended it."""
    [record] = await here.store.sessions(SessionFilter())
    told = decode_events(await here.store.events(record.id))
    ended = (each.decision for each in told if isinstance(each, ENDS))
    return [(each.effect, each.by) for each in ended]


async def played(folder: Path, script: Any, *rules: Rule, **options: Any) -> tuple[str, Any]:
    """What the agent says of its turn, and what is on record of the questions."""
    async with relay(folder, *rules) as here:
        async with here.client(ScriptedAgent(script), **options) as client:
            session = await client.new_session(folder)
            await soon(session.prompt("go on"))
        await here.over()
        return answer(session.state), await settled(here)


async def test_a_rule_that_allows_spares_the_client_the_question(tmp_path: Path) -> None:
    said, ended = await played(tmp_path, edits, Rule(effect="allow", operation="write"))
    assert (said, ended) == ("allow", [("allow", "rule")])


async def test_so_does_one_that_denies(tmp_path: Path) -> None:
    rule = Rule(effect="deny", operation="write")
    said, ended = await played(tmp_path, edits, rule, policy=YOLO)
    assert (said, ended) == ("reject", [("deny", "rule")])


async def test_what_no_rule_decides_the_client_does(tmp_path: Path) -> None:
    said, ended = await played(tmp_path, edits, policy=YOLO)
    assert (said, ended) == ("allow", [("allow", "person")])


async def test_a_rule_that_denies_holds_for_what_the_client_would_do(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        for work in (
            turn.write_text_file(f"{turn.cwd}/secret.txt", "x"),
            turn.create_terminal("touch", "b.txt"),
        ):
            try:
                await work
                turn.say("done ")
            except RemoteError as error:
                turn.say(f"{error.message} ")

    rule = Rule(effect="deny", path="**/secret.txt")
    said, _ = await played(tmp_path, script, rule, policy=YOLO)
    assert "secret.txt: refused" in said
    assert said.endswith("done ")
    assert not (tmp_path / "secret.txt").exists()


class Windows:
    """The client of a chain with a question open, and a window of another process."""

    def __init__(self, session: Session, hub: Hub, session_id: str) -> None:
        self.session = session
        self.turn = session.prompt("go on")
        self._hub = hub
        self._id = session_id

    async def asked(self) -> str:
        """The id of the question, as other windows know it."""
        await until(lambda: self.session.state.pending)
        found: list[str] = []
        while not found:
            found = list((await self._hub.state(self._id)).pending)
        return found[0]

    async def send(self, command: c.Command) -> c.Reply:
        return await soon(self._hub.send(self._id, command))

    async def ended(self) -> str:
        await soon(self.turn)
        assert not self.session.state.pending
        return answer(self.session.state)


@asynccontextmanager
async def windows(folder: Path) -> AsyncGenerator[Windows]:
    async with (
        relay(folder) as here,
        stored(folder) as store,
        Hub(store, TestLauncher({})) as hub,
        here.client(ScriptedAgent(edits)) as client,
    ):
        session = await client.new_session(folder)
        [record] = await here.store.sessions(SessionFilter())
        yield Windows(session, hub, record.id)


async def test_another_window_may_answer_and_the_client_is_no_longer_asked(tmp_path: Path) -> None:
    async with windows(tmp_path) as there:
        await there.send(c.AnswerPermission(await there.asked(), "allow"))
        assert await there.ended() == "allow"


async def test_the_first_answer_counts(tmp_path: Path) -> None:
    async with windows(tmp_path) as there:
        asked = await there.asked()
        [pending] = there.session.state.pending
        await there.session.answer(pending, "reject")
        assert await there.ended() == "reject"
        with pytest.raises(CommandRefused, match="settled"):
            await there.send(c.AnswerPermission(asked, "allow"))


async def test_another_window_may_stop_the_turn(tmp_path: Path) -> None:
    async with windows(tmp_path) as there:
        await there.asked()
        assert await there.send(c.Cancel()) == {"cancelled": True}
        [pending] = there.session.state.pending
        await there.session.answer(pending, None)
        await soon(there.turn)
        assert there.turn.stop_reason == "cancelled"


async def test_an_agent_may_take_its_question_back(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        asking = asyncio.ensure_future(edits(turn))
        await asyncio.sleep(0)
        turn.spawn(_waited(asking))
        await shown.wait()
        asking.cancel()

    async def _waited(asking: asyncio.Future[None]) -> None:
        await asyncio.wait([asking])

    shown = asyncio.Event()
    async with relay(tmp_path) as here:
        async with here.client(ScriptedAgent(script)) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("go on")
            await until(lambda: session.state.pending)
            shown.set()
            await soon(turn)
            await until(lambda: not session.state.pending)
        await here.over()
        [(effect, _)] = await settled(here)
        assert effect == "cancelled"


async def test_what_a_person_allows_for_always_is_a_rule_from_then_on(tmp_path: Path) -> None:
    async def twice(turn: AgentTurn) -> None:
        await edits(turn)
        await edits(turn)

    async with relay(tmp_path) as here:
        async with here.client(ScriptedAgent(twice)) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("go on")
            await until(lambda: session.state.pending)
            [pending] = session.state.pending.values()
            assert isinstance(pending, PendingPermission)
            [always] = [each.id for each in pending.options if each.kind == "allow_always"]
            await session.answer(pending.id, always)
            await soon(turn)
        await here.over()
        assert await settled(here) == [("allow", "person"), ("allow", "rule")]


async def test_a_client_without_files_is_still_passed_what_the_agent_asks(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        try:
            await turn.call("_anything/at_all", {"sessionId": turn.session_id})
        except RemoteError as error:
            turn.say(str(error.code))

    said, _ = await played(tmp_path, script)
    assert said == "-32601"
