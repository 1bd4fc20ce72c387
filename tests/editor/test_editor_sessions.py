"""An editor's sessions are the hub's: prompts, questions, history, several windows at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.clients import until
from support.editors import office, offices
from support.hubs import seen_until
from support.peers import soon

from dragoman import Client, Policy, Session, ext
from dragoman.editor.desk import OnClose
from dragoman.errors import (
    InternalError,
    InvalidParams,
    MethodNotFound,
    RemoteError,
    ResourceNotFound,
)
from dragoman.host.permissions.questions import PermissionAnswer, PermissionRequest
from dragoman.host.rules.policy import flag_rules
from dragoman.hub.cluster import commands as c
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, PendingPermission, SessionState, UserEntry
from dragoman.testing import AgentTurn, ScriptedAgent, faults
from dragoman.testing.steps import say


async def asks(turn: AgentTurn) -> None:
    turn.say(str(await turn.request_permission("call", title="Delete everything")))


class Paced:
    """Says one word each time it is allowed to, and ends when it is told so."""

    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)
        self.said = 0

    async def __call__(self, turn: AgentTurn) -> None:
        await turn.until_cancelled(self._count(turn))

    async def _count(self, turn: AgentTurn) -> None:
        for _ in range(5):
            await self.go.acquire()
            self.said += 1
            turn.say(f"{self.said} ")


def answers(state: SessionState) -> list[str]:
    return [entry.text for entry in state.entries if isinstance(entry, AgentEntry)]


def prompts(state: SessionState) -> list[str]:
    return [entry.text for entry in state.entries if isinstance(entry, UserEntry)]


async def question(session: Session) -> PendingPermission:
    await until(lambda: session.state.pending)
    [found] = session.state.pending.values()
    assert isinstance(found, PendingPermission)
    return found


def chosen(asked: PendingPermission, kind: str) -> str:
    return next(option.id for option in asked.options if option.kind == kind)


async def test_a_prompt_goes_to_the_agent_and_its_answer_comes_back(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hel"), say("lo")])
    async with office(tmp_path, agent) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        turn = session.prompt("hi")
        texts = [event.text async for event in turn if isinstance(event, e.AgentMessage)]
        assert (texts, turn.stop_reason) == (["hel", "lo"], "end_turn")
        assert session.id in here.hub.live
        assert prompts(session.state) == ["hi"]


async def test_a_question_is_asked_in_the_editor(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent(asks)) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        turn = session.prompt("go on")
        asked = await question(session)
        assert asked.title == "Delete everything"
        await session.answer(asked.id, chosen(asked, "allow_once"))
        await soon(turn)
        assert answers(session.state) == [chosen(asked, "allow_once")]


async def test_a_question_that_the_editor_cannot_ask_is_refused(tmp_path: Path) -> None:
    class Broken:
        async def request_permission(self, request: PermissionRequest) -> PermissionAnswer:
            raise RemoteError("the question could not be shown")

    agent = ScriptedAgent(asks)
    async with office(tmp_path, agent) as here, here.editor(permissions=Broken()) as editor:
        session = await editor.new_session(tmp_path)
        await soon(session.prompt("go on"))
        assert answers(session.state) == ["reject"]


async def test_the_first_answer_of_any_window_wins_and_withdraws_the_question(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent(asks)
    async with office(tmp_path, agent) as here, here.editor() as one, here.editor() as other:
        session = await one.new_session(tmp_path)
        turn = session.prompt("go on")
        second = await other.load_session(session.id, tmp_path)
        await question(session)
        asked = await question(second)
        await second.answer(asked.id, chosen(asked, "reject_once"))
        await soon(turn)
        await until(lambda: not session.state.pending)
        assert answers(session.state) == [chosen(asked, "reject_once")]


async def test_a_rule_that_decides_spares_the_editor_the_question(tmp_path: Path) -> None:
    policy = Policy(flag_rules(yolo=True))
    here = office(tmp_path, ScriptedAgent(asks), policy=policy)
    async with here as hub, hub.editor() as editor:
        session = await editor.new_session(tmp_path)
        kinds = [type(event) async for event in session.prompt("go on")]
        assert e.PermissionRequested not in kinds
        assert answers(session.state) == ["allow"]


async def test_a_second_editor_has_the_history_and_then_all_that_follows(tmp_path: Path) -> None:
    paced = Paced()
    agent = ScriptedAgent(paced)
    async with (
        offices(tmp_path, [{"it": agent}, {"it": agent}]) as [here, there],
        here.editor() as one,
        there.editor() as other,
    ):
        session = await one.new_session(tmp_path)
        turn = session.prompt("count")
        for _ in range(2):
            paced.go.release()
        await until(lambda: answers(session.state) == ["1 2 "])
        second = await soon(other.load_session(session.id, tmp_path))
        assert (prompts(second.state), answers(second.state)) == (["count"], ["1 2 "])
        for _ in range(3):
            paced.go.release()
        await soon(turn)
        await until(lambda: answers(second.state) == ["1 2 3 4 5 "])


async def test_what_another_window_prompts_is_shown(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent([say("done")])) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        await here.hub.send(session.id, c.Prompt("from the page"))
        await until(lambda: answers(session.state) == ["done"])
        assert prompts(session.state) == ["from the page"]


async def test_prompts_of_two_windows_follow_each_other(tmp_path: Path) -> None:
    paced = Paced()
    async with office(tmp_path, ScriptedAgent(paced)) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        first = session.prompt("one")
        await until(lambda: here.hub.live[session.id].session.busy)
        await here.hub.send(session.id, c.Prompt("two"))
        for _ in range(10):
            paced.go.release()
        await soon(first)
        await until(lambda: len(answers(session.state)) == 2)
        assert prompts(session.state) == ["one", "two"]


async def test_a_steer_that_the_agent_does_not_take_is_the_next_prompt(tmp_path: Path) -> None:
    paced = Paced()
    async with office(tmp_path, ScriptedAgent(paced)) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        turn = session.prompt("count")
        paced.go.release()
        await until(lambda: answers(session.state) == ["1 "])
        steer = await session.steer("faster")
        assert steer.outcome == "queued"
        for _ in range(9):
            paced.go.release()
        await soon(turn)
        await until(lambda: answers(session.state)[-1:] == ["6 7 8 9 10 "])
        assert prompts(session.state) == ["count", "faster"]


async def test_cancelling_in_the_editor_stops_the_turn(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent(asks)) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        turn = session.prompt("go on")
        await question(session)
        await soon(session.cancel())
        await soon(turn)
        assert turn.stop_reason == "cancelled"


async def test_the_editor_leaves_and_the_turn_continues(tmp_path: Path) -> None:
    paced = Paced()
    async with office(tmp_path, ScriptedAgent(paced)) as here:
        async with here.connection() as transport, Client.start(transport) as editor:
            session = await editor.new_session(tmp_path)
            session.prompt("count").discard()
            paced.go.release()
            await until(lambda: answers(session.state) == ["1 "])
            await transport.aclose()
        for _ in range(4):
            paced.go.release()
        live = here.hub.live[session.id]
        await until(lambda: live.idle)
        assert answers(live.state) == ["1 2 3 4 5 "]


@asynccontextmanager
async def closing(folder: Path, on_close: str) -> AsyncGenerator[list[e.TurnEnded]]:
    """A turn whose session the editor closes, and how it ends."""
    paced = Paced()
    async with office(folder, ScriptedAgent(paced)) as here:
        async with here.editor({"on_close": on_close}) as editor:
            session = await editor.new_session(folder)
            session.prompt("count").discard()
            paced.go.release()
            await until(lambda: answers(session.state) == ["1 "])
            await editor.dialect.close_session(session.id)  # without a cancellation before it
            for _ in range(4):
                paced.go.release()
        events = await seen_until(here.hub.watch(session.id), e.TurnEnded)
        yield [event for event in events if isinstance(event, e.TurnEnded)]


@pytest.mark.parametrize(
    ("on_close", "reason"), [("continue", "end_turn"), ("cancel", "cancelled")]
)
async def test_closing_a_session_ends_its_turn_only_if_that_is_wanted(
    tmp_path: Path, on_close: str, reason: str
) -> None:
    async with closing(tmp_path, on_close) as ended:
        assert [each.stop_reason for each in ended] == [reason]


@pytest.mark.parametrize("on_close", ["continue", "cancel"])
async def test_a_prompt_is_answered_although_its_session_is_closed_at_once(
    tmp_path: Path, on_close: OnClose
) -> None:
    agent, sent = ScriptedAgent(Paced()), list[bytes]()

    def tap(direction: str, frame: bytes) -> None:
        sent.append(frame)

    ways = {"on_close": on_close}
    async with office(tmp_path, agent) as here, here.editor(ways, tap=tap) as editor:
        session = await editor.new_session(tmp_path)
        turn = session.prompt("count")
        await until(lambda: any(b"session/prompt" in frame for frame in sent))
        await editor.dialect.close_session(session.id)
        await soon(turn)
        assert turn.stop_reason == "cancelled"


async def test_a_session_that_nobody_used_is_not_kept(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent()) as here:
        async with here.editor() as editor:
            session = await editor.new_session(tmp_path)
        with pytest.raises(Exception, match=session.id):
            await here.hub.record(session.id)


async def test_sessions_are_listed_with_their_titles_page_by_page(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    async with office(tmp_path, ScriptedAgent([say("hi")])) as here, here.editor() as editor:
        for number in range(3):
            live = await here.hub.create("it", str(tmp_path))
            await here.hub.rename(live.id, f"number {number}")
        await here.hub.create("it", str(folder))
        listed = [info async for info in editor.list_sessions(tmp_path)]
        assert [info.title for info in listed] == ["number 2", "number 1", "number 0"]
        assert len([info async for info in editor.list_sessions()]) == 4
        assert all(info.updated_at for info in listed)


async def test_a_session_is_deleted_here_and_by_its_agent(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hi")])
    async with office(tmp_path, agent) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        await soon(session.prompt("hi"))
        await editor.delete_session(session.id)
        assert agent.sessions == {}
        assert [info async for info in editor.list_sessions()] == []


async def test_a_fork_remembers_the_session(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent([say("hi")])) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        await soon(session.prompt("hi"))
        fork = await editor.fork_session(session.id, tmp_path)
        assert (await here.hub.record(fork.id)).parent == session.id
        await soon(fork.prompt("again"))
        assert answers(fork.state) == ["hi"]


async def test_a_resumed_session_is_followed_without_its_history(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent([say("hi")])) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        await soon(session.prompt("one"))
        async with here.editor() as other:
            again = await other.resume_session(session.id, tmp_path)
            assert answers(again.state) == []
            await soon(again.prompt("two"))
            await until(lambda: answers(session.state) == ["hi", "hi"])
            assert answers(again.state) == ["hi"]


@pytest.mark.parametrize(
    "way", ["load_session", "resume_session", "fork_session", "delete_session"]
)
async def test_a_session_that_is_not_there_is_not_found(tmp_path: Path, way: str) -> None:
    async with office(tmp_path, ScriptedAgent()) as here, here.editor() as editor:
        place = () if way == "delete_session" else (tmp_path,)
        with pytest.raises(ResourceNotFound, match="there is no session nowhere"):
            await getattr(editor, way)("nowhere", *place)


MODES = [v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")]
DEPTH = v1.SessionConfigSelect(
    id="depth",
    name="Depth",
    current_value="low",
    options=[v1.SessionConfigSelectOption(value=each, name=each) for each in ("low", "high")],
)
LOUD = v1.SessionConfigBoolean(id="loud", name="Loud", current_value=False)


def configurable() -> ScriptedAgent:
    commands = [v1.AvailableCommand(name="plan", description="Make a plan")]
    return ScriptedAgent([say("hi")], modes=MODES, config_options=[DEPTH, LOUD], commands=commands)


async def test_modes_options_and_commands_are_those_of_the_agent(tmp_path: Path) -> None:
    agent = configurable()
    async with office(tmp_path, agent) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        assert session.state.modes is not None
        assert [mode.id for mode in session.state.modes.available] == ["ask", "code"]
        await session.set_mode("code")
        await session.set_config_option("depth", "high")
        await session.set_config_option("loud", True)
        values = {option.id: option.value for option in session.state.config_options}
        assert values == {"depth": "high", "loud": True}
        await until(lambda: [each.name for each in session.state.commands] == ["plan"])
        [kept] = agent.sessions.values()
        assert (kept.mode, kept.options) == ("code", {"depth": "high", "loud": True})


async def test_what_does_not_exist_cannot_be_set(tmp_path: Path) -> None:
    async with office(tmp_path, configurable()) as here, here.editor() as editor:
        session = await editor.new_session(tmp_path)
        with pytest.raises(InvalidParams, match="loudest"):
            await editor.dialect.set_mode(session.id, "loudest")
        with pytest.raises(MethodNotFound, match="_nothing"):
            await ext.call(editor, "_nothing")


async def test_the_agent_of_a_new_session_is_chosen_in_the_editor(tmp_path: Path) -> None:
    agents = {"one": ScriptedAgent([say("I am one")]), "two": configurable()}
    async with offices(tmp_path, [agents]) as [here], here.editor() as editor:
        session = await editor.new_session(tmp_path)
        [choice] = session.state.config_options
        assert (choice.id, choice.value) == ("agent", "one")
        await session.set_config_option("agent", "two")
        assert [option.id for option in session.state.config_options] == ["agent", "depth", "loud"]
        await soon(session.prompt("who?"))
        assert answers(session.state) == ["hi"]
        assert (await here.hub.record(session.id)).agent == "two"
        with pytest.raises(ValueError, match="agent"):
            await session.set_config_option("agent", "three")


async def test_a_session_keeps_its_agent_if_the_chosen_one_cannot_be_started(
    tmp_path: Path,
) -> None:
    broken = ScriptedAgent(answers={"session/new": InternalError("no model")})
    agents = {"one": ScriptedAgent([say("I am one")]), "two": broken}
    async with offices(tmp_path, [agents]) as [here], here.editor() as editor:
        session = await editor.new_session(tmp_path)
        with pytest.raises(InternalError, match="no model"):
            await session.set_config_option("agent", "two")
        await soon(session.prompt("who?"))
        assert answers(session.state) == ["I am one"]


async def test_an_agent_that_was_named_is_no_choice(tmp_path: Path) -> None:
    agents = {"one": ScriptedAgent(), "two": ScriptedAgent([say("two")])}
    async with offices(tmp_path, [agents]) as [here], here.editor({"agent": "two"}) as editor:
        session = await editor.new_session(tmp_path)
        assert session.state.config_options == []
        await soon(session.prompt("who?"))
        assert answers(session.state) == ["two"]


async def test_an_agent_that_crashes_fails_the_prompt_and_not_the_editor(tmp_path: Path) -> None:
    async with (
        office(tmp_path, ScriptedAgent([say("so far"), faults.crash()])) as here,
        here.editor() as editor,
    ):
        session = await editor.new_session(tmp_path)
        with pytest.raises(InternalError):
            await soon(session.prompt("go on"))
        assert editor.connection_error is None
        assert answers(session.state) == ["so far"]


async def test_requests_before_initialize_are_refused(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent()) as here, here.connection() as transport:
        transport.send(b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}\n')
        answer = await soon(transport.receive())
        assert b"the first request must be initialize" in answer
