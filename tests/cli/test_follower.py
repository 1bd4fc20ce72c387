"""One way to follow a session and to answer its questions, wherever the session runs."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from support.hubs import TestLauncher, hub_with, seen_until, stored, stored_events
from support.peers import SECONDS

from dragoman.cli.ask.asker import Choice
from dragoman.cli.ask.session_questions import Asker, ConnectionAsker, SessionQuestions
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.view import Stage
from dragoman.cli.run.follower import Follower, OwnTurn
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.state import SessionState
from dragoman.testing import AgentTurn, ScriptedAgent


class Lines(Stage):
    """What is shown, a line each."""

    def __init__(self) -> None:
        self.status = Status(io.StringIO(), visible=False)
        self.lines: list[str] = []
        self.changed = asyncio.Event()

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.changed.set()

    def asked(self, text: str) -> None:
        self.add(f"› {text}")

    def show(self, event: e.Event, state: SessionState) -> None:
        if isinstance(event, e.AgentMessage):
            self.add(event.text)

    def remark(self, sentence: str, *, failed: bool = False) -> None:
        self.add(f"! {sentence}" if failed else f"({sentence})")

    async def until(self, is_there: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_there(self.lines):
                self.changed.clear()
                await self.changed.wait()


class Person:
    """Has the floor while asked, and answers what is put into `answers`."""

    def __init__(self, stage: Lines) -> None:
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self._stage = stage

    async def request_permission(self, request: PermissionRequest) -> Choice | None:
        option_id = await self._asked(f"? {request.title}")
        return None if option_id is None else Choice(option_id)

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        return await self._asked(f"? {request.message}")

    async def _asked(self, line: str) -> Any:
        async with self._stage.status.floor:
            self._stage.add(line)
            answer = await self.answers.get()
            if isinstance(answer, Exception):
                raise answer
            return answer


def follower(
    hub: Hub, session_id: str, stage: Lines, asker: Asker, *, must_answer: bool = True
) -> Follower:
    questions = SessionQuestions(
        hub, session_id, "it", asker, lambda words: stage.add(f"({words})"), must_answer=must_answer
    )
    made = Follower(stage, questions=questions)
    made.listen(hub, session_id)
    return made


@asynccontextmanager
async def followed(following: Follower) -> AsyncGenerator[asyncio.Task[bool]]:
    """Until the first turn has ended."""
    task = asyncio.create_task(following.follow(lambda: has_ended(following.state)))
    try:
        yield task
    finally:
        task.cancel()


def has_ended(state: SessionState) -> bool:
    return bool(state.turns) and state.turn is None


async def asks(turn: AgentTurn) -> None:
    turn.say("Let me see.")
    turn.say(f"chosen={await turn.request_permission('call', title='Do it')}")


@asynccontextmanager
async def one_window(
    folder: Path, agent: ScriptedAgent, **options: Any
) -> AsyncGenerator[tuple[Hub, str, Lines, Person]]:
    stage = Lines()
    async with hub_with(folder, agent, **options) as hub:
        live = await hub.create("it", str(folder))
        yield hub, live.id, stage, Person(stage)


async def test_a_question_comes_after_what_led_to_it_and_is_answered_through_the_hub(
    tmp_path: Path,
) -> None:
    async with (
        one_window(tmp_path, ScriptedAgent(asks)) as (hub, session, stage, person),
        followed(follower(hub, session, stage, person)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        person.answers.put_nowait("reject")
        async with asyncio.timeout(SECONDS):
            assert await task
    assert stage.lines == ["› go on", "Let me see.", "? Do it", "chosen=reject"]


async def test_a_question_that_is_settled_long_after_it_was_asked_is_taken_back(
    tmp_path: Path,
) -> None:
    """Others go on talking meanwhile: what they say waits, and must not hide the settlement."""

    go_on = asyncio.Event()

    async def asks_and_talks(turn: AgentTurn) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asks(turn))
            await go_on.wait()
            turn.say("Meanwhile.")

    agent = ScriptedAgent(asks_and_talks)
    async with (
        one_window(tmp_path, agent) as (hub, session, stage, person),
        stored(tmp_path) as theirs,
        Hub(theirs, TestLauncher({"it": agent})) as other,
        followed(follower(other, session, stage, person, must_answer=False)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        await stage.until(lambda lines: "? Do it" in lines)
        go_on.set()
        await seen_until(other.watch(session), e.AgentMessage, 2)
        # What was said can only be shown when the question is off the screen.
        assert stage.lines == ["› go on", "Let me see.", "? Do it"]
        [request_id] = (await other.state(session)).pending
        await hub.send(session, c.AnswerPermission(request_id, "allow"))
        async with asyncio.timeout(SECONDS):
            assert await task
    assert stage.lines == [
        "› go on",
        "Let me see.",
        "? Do it",
        "Meanwhile.",
        "(answered in another window: Allow once)",
        "chosen=allow",
    ]


async def test_what_was_settled_before_it_could_be_asked_is_not_asked(tmp_path: Path) -> None:
    async with one_window(tmp_path, ScriptedAgent(asks)) as (hub, session, stage, person):
        await hub.send(session, c.Prompt("go on"))
        await seen_until(hub.watch(session), e.PermissionRequested)
        [request_id] = (await hub.state(session)).pending
        await hub.send(session, c.AnswerPermission(request_id, "allow"))
        await seen_until(hub.watch(session), e.TurnEnded)
        async with followed(follower(hub, session, stage, person)) as task:
            assert await task
    assert stage.lines == ["› go on", "Let me see.", "chosen=allow"]


@pytest.mark.parametrize("answer", [None, OSError("the terminal is gone")])
async def test_no_answer_is_a_refusal_where_nobody_else_is_asked(
    tmp_path: Path, answer: object
) -> None:
    async with (
        one_window(tmp_path, ScriptedAgent(asks)) as (hub, session, stage, person),
        followed(follower(hub, session, stage, person)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        person.answers.put_nowait(answer)
        async with asyncio.timeout(SECONDS):
            assert await task
        settled = [x for x in await stored_events(hub, session) if type(x) is e.PermissionSettled]
    assert [(x.option_id, x.decision.reason) for x in settled] == [("reject", "refused")]
    assert stage.lines[-1] == "chosen=reject"


async def test_no_answer_leaves_the_question_to_others_where_there_are_some(
    tmp_path: Path,
) -> None:
    async with (
        one_window(tmp_path, ScriptedAgent(asks)) as (hub, session, stage, person),
        followed(follower(hub, session, stage, person, must_answer=False)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        await stage.until(lambda lines: "? Do it" in lines)
        person.answers.put_nowait(None)
        [request_id] = (await hub.state(session)).pending
        await hub.send(session, c.AnswerPermission(request_id, "allow"))
        async with asyncio.timeout(SECONDS):
            assert await task
    assert stage.lines[-1] == "chosen=allow"


class Refuser:
    """Has no answer to anything."""

    async def request_permission(self, request: PermissionRequest) -> Choice | None:
        return None

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        return ElicitationAnswer("decline")


async def test_a_refuser_refuses_even_where_there_is_no_option_for_it(tmp_path: Path) -> None:
    yes = [("yes", "Yes", "allow_once")]

    async def asks_for_a_yes(turn: AgentTurn) -> None:
        turn.say(f"chosen={await turn.request_permission('call', yes, title='Do it')}")

    agent = ScriptedAgent(asks_for_a_yes)
    async with (
        one_window(tmp_path, agent) as (hub, session, stage, _),
        followed(follower(hub, session, stage, Refuser())) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        async with asyncio.timeout(SECONDS):
            assert await task
    assert stage.lines == ["› go on", "chosen=None"]


async def test_a_failure_of_the_asker_ends_the_following(tmp_path: Path) -> None:
    async with (
        one_window(tmp_path, ScriptedAgent(asks)) as (hub, session, stage, person),
        followed(follower(hub, session, stage, person)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        person.answers.put_nowait(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(SECONDS):
                await task


# ── whose events are shown ────────────────────────────────────────────────────────────────────


class Seen:
    def __init__(self) -> None:
        self.fail: Callable[[BaseException], None] = lambda error: None
        self.requests: list[str] = []

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionRequested):
            self.requests.append(event.request_id)

    def ask(self) -> None:
        pass


def said(text: str) -> list[e.Event]:
    return [e.AgentMessage(Text(text)), e.PermissionRequested(f"about {text}", [])]


THREE_TURNS: list[e.Event] = [
    e.TurnStarted("before", [Text("theirs")]),
    e.PromptQueued("ours", [Text("mine")]),
    *said("one"),
    e.TurnEnded("before", None, error="it broke"),
    e.PromptUnqueued("ours"),
    e.TurnStarted("ours", [Text("mine")]),
    *said("two"),
    e.TurnEnded("ours", "cancelled"),
    e.PromptQueued("after", [Text("more")]),
    e.TurnStarted("after", [Text("more")]),
    *said("three"),
    e.TurnEnded("after", "cancelled"),
]
ALL = ["about one", "about two", "about three"]


@pytest.mark.parametrize(
    ("others", "shown", "asked"),
    [
        (
            "show",
            [
                *("› theirs", "one", "! the turn failed: it broke", "two"),
                *("(queued: more)", "› more", "three", "(the turn was cancelled)"),
            ],
            ALL,
        ),
        ("ask", ["two"], ALL),
        ("skip", ["two"], ["about two"]),
    ],
)
def test_an_own_turn_is_told_apart_from_those_around_it(
    others: Literal["show", "ask", "skip"], shown: list[str], asked: list[str]
) -> None:
    stage, seen, turn = Lines(), Seen(), OwnTurn("ours")
    following = Follower(stage, turn=turn, others=others, questions=seen)
    for event in THREE_TURNS:
        following.take(event)
    assert (stage.lines, seen.requests) == (shown, asked)
    assert turn.started
    assert turn.ended is not None
    assert turn.ended.stop_reason == "cancelled"
    assert not turn.taken_back


def test_what_is_known_needs_no_words_and_what_is_old_is_only_folded() -> None:
    stage = Lines()
    events = [
        e.TurnStarted("t", [Text("typed")]),
        *said("one"),
        e.TurnEnded("t", None, error="it broke"),
    ]
    for seq, event in enumerate(events, 1):
        event.seq = seq
    knows = Follower(stage, knows=lambda event: isinstance(event, e.TurnStarted), since=1)
    for event in events:
        knows.take(event)
    assert stage.lines == ["one", "! the turn failed: it broke"]
    late = Follower(stage, since=4)
    for event in events:
        late.take(event)
    assert stage.lines[2:] == ["! the turn failed: it broke"]
    assert [turn.error for turn in late.state.turns] == ["it broke"]


@pytest.mark.parametrize("retells", [False, True])
def test_history_that_is_told_again_is_shown_where_it_is_all_there_is(retells: bool) -> None:
    stage = Lines()
    following = Follower(stage, retells=retells)
    following.take(e.AgentMessage(Text("once"), replay=True))
    assert stage.lines == (["once"] if retells else [])
    assert [entry.text for entry in following.state.entries] == ["once"]


# ── forms, and what is asked outside a session ────────────────────────────────────────────────


async def test_a_form_is_asked_again_when_it_does_not_take_the_answer(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def elicits(turn: AgentTurn) -> None:
        turn.say(str(await turn.elicit("How many?", schema)))

    agent = ScriptedAgent(elicits)
    async with (
        one_window(tmp_path, agent) as (hub, session, stage, person),
        followed(follower(hub, session, stage, person)) as task,
    ):
        await hub.send(session, c.Prompt("go on"))
        person.answers.put_nowait(ElicitationAnswer("accept", {"n": "many"}))
        person.answers.put_nowait(ElicitationAnswer("accept", {"n": 3}))
        async with asyncio.timeout(SECONDS):
            assert await task
    assert stage.lines.count("? How many?") == 2
    assert "3" in stage.lines[-1]


async def test_only_what_is_asked_outside_a_session_is_asked_by_the_connection() -> None:
    stage = Lines()
    person = Person(stage)
    inside = ElicitationRequest(request_id="i", message="Inside?", mode="form", session_id="s")
    asking = asyncio.create_task(ConnectionAsker(person).create_elicitation(inside))
    await asyncio.sleep(0)  # it had its turn, and would have been the first to ask
    person.answers.put_nowait(ElicitationAnswer("decline"))
    outside = ElicitationRequest(request_id="o", message="Outside?", mode="form")
    assert await ConnectionAsker(person).create_elicitation(outside) == ElicitationAnswer("decline")
    assert stage.lines == ["? Outside?"]
    asking.cancel()
