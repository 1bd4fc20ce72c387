"""A limit that asks: the turn is held until a person raises the limit, or stops the turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, opened, until

from dragoman import ElicitationAnswer, ElicitationRequest, Session, SpendingLimit, Timeouts, Turn
from dragoman.errors import RemoteError
from dragoman.host.rules.policy import Policy, flag_rules
from dragoman.session import events as e
from dragoman.session.facts import LimitScope, Measure
from dragoman.session.state import PendingElicitation
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, tool_call, usage, wait_for_cancel

ASKED = {"questions": "wait"}


def limit(measure: Measure, most: float, per: LimitScope = "session") -> SpendingLimit:
    source = f"--max-{measure}"
    return SpendingLimit(measure=measure, most=most, per=per, then="ask", source=source)


async def question(session: Session) -> PendingElicitation:
    """The one that waits."""
    await until(lambda: session.pending)
    (pending,) = session.pending
    assert isinstance(pending, PendingElicitation)
    return pending


async def answer(session: Session, more: float | None) -> None:
    pending = await question(session)
    content: dict[str, Any] = {"more": more}
    given = ElicitationAnswer("decline" if more is None else "accept", content)
    await session.answer_elicitation(pending.id, given)
    await until(lambda: pending.id not in session.state.pending)


def reached(turn: Turn) -> tuple[str, float, float | None] | None:
    if turn.limit is None:
        return None
    found = turn.limit.limit
    return found.outcome, found.value, found.raised_to


class Writer:
    """Spends, then writes a file and runs a command, and notes what became of both."""

    def __init__(self, file: Path) -> None:
        self.file, self.told = file, list[str]()
        self.asks = asyncio.Event()

    async def __call__(self, turn: AgentTurn) -> None:
        turn.report_usage(1, 10, 0.6)
        self.asks.set()
        try:
            await turn.write_text_file(str(self.file), "new")
            self.told.append("written")
        except RemoteError as error:
            self.told.append(error.message)


def may_write() -> Policy:
    return Policy(flag_rules(write=True, execute=True, yolo=False))


async def test_what_the_agent_asks_for_waits_until_the_limit_is_raised(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.txt")
    options = {**ASKED, "limits": [limit("cost", 0.5)], "policy": may_write()}
    async with opened(ScriptedAgent(writer), tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        asked = await question(session)
        assert asked.message == (
            "This session has used 0.6 USD, and --max-cost allows 0.5 USD. The turn waits for you: "
            "until you answer, Dragoman does nothing for the agent. What the agent does with its "
            "own tools may continue. Decline to stop the turn"
        )
        assert asked.limit is not None
        assert (asked.limit.measure, asked.limit.most, asked.limit.value) == ("cost", 0.5, 0.6)
        await writer.asks.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert not writer.file.exists()
        await answer(session, 0.25)
        await turn
        assert writer.file.read_text() == "new"
        assert reached(turn) == ("raised", 0.6, 0.85)
        assert turn.stop_reason == "end_turn"
        assert turn.limit is not None
        assert turn.limit.text == (
            "the limit was raised: this session has used 0.6 USD, and --max-cost allows 0.85 USD "
            "from now on"
        )


async def test_declining_stops_the_turn_and_what_was_held_is_not_done(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.txt")
    options = {**ASKED, "limits": [limit("cost", 0.5)], "policy": may_write()}
    async with opened(ScriptedAgent(writer), tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        await question(session)
        await writer.asks.wait()
        await answer(session, None)
        await turn.wait()
        await until(lambda: writer.told)
        assert writer.told == ["the turn was stopped at a limit"]
        assert not writer.file.exists()
        assert reached(turn) == ("stopped", 0.6, None)
        assert session.pending == []


async def test_a_permission_is_not_asked_for_while_the_limit_is(tmp_path: Path) -> None:
    agent = ScriptedAgent([tool_call("a", "A"), ask("b", title="May I?")])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("tool_calls", 1)]) as (_, session):
        turn = session.prompt("hi")
        pending = await question(session)
        for _ in range(50):
            await asyncio.sleep(0)
        assert [each.id for each in session.pending] == [pending.id]
        await answer(session, 1)
        await until(lambda: session.pending)
        await session.answer(session.pending[0].id, None)
        await turn
        assert reached(turn) == ("raised", 2, 2)


async def test_with_nobody_to_ask_the_turn_is_stopped(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6), wait_for_cancel()])
    async with opened(agent, tmp_path, limits=[limit("cost", 0.5)]) as (_, session):
        turn = await session.prompt("hi")
        assert reached(turn) == ("stopped", 0.6, None)


async def test_a_provider_is_asked(tmp_path: Path) -> None:
    class Person:
        def __init__(self) -> None:
            self.asked: list[ElicitationRequest] = []

        async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
            self.asked.append(request)
            return ElicitationAnswer("accept", {"more": 2})

    async def script(turn: AgentTurn) -> None:
        for cost in range(1, 8):
            turn.report_usage(1, 10, cost)
            await turn.read_text_file(str(tmp_path / "a.txt"))

    (tmp_path / "a.txt").write_text("A")
    agent, person = ScriptedAgent(script), Person()
    options = {"elicitation": person, "limits": [limit("cost", 2)]}
    async with opened(agent, tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        events = await gathered(turn)
        raised = [
            (each.limit.value, each.limit.raised_to)
            for each in events
            if isinstance(each, e.LimitReached)
        ]
        assert turn.stop_reason == "end_turn"
        assert raised == [(2, 4), (4, 6), (6, 8)]
        told = person.asked[0].limit
        assert told is not None
        assert (told.most, told.outcome) == (2, "asked")


async def test_a_prompt_is_not_sent_until_the_limit_is_raised(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6)])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("cost", 0.5)]) as (_, session):
        first = session.prompt("first")
        await first.wait()
        second = session.prompt("second")
        pending = await question(session)
        assert pending.message.endswith("The prompt waits for you. Decline to stop the turn")
        assert not second.sent
        await answer(session, 1)
        await second
        assert second.sent
        third = session.prompt("third")
        await third
        assert third.limit is None


async def test_cancelling_the_turn_takes_the_question_back(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6), wait_for_cancel()])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("cost", 0.5)]) as (_, session):
        turn = session.prompt("hi")
        await question(session)
        await session.cancel()
        assert turn.stop_reason == "cancelled"
        assert session.pending == []
        assert turn.limit is None


async def test_a_turn_that_ends_while_its_question_waits_takes_it_back(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6)])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("cost", 0.5)]) as (_, session):
        turn = session.prompt("hi")
        await turn.wait()
        assert turn.stop_reason == "end_turn"
        assert session.pending == []
        second = session.prompt("again")
        await answer(session, None)
        await second.wait()
        assert reached(second) == ("not_sent", 0.6, None)


async def test_a_limit_of_each_turn_is_raised_for_that_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent([tool_call("a", "A"), tool_call("b", "B"), ask("c", title="May I?")])
    options = {**ASKED, "limits": [limit("tool_calls", 1, "turn")]}
    async with opened(agent, tmp_path, **options) as (_, session):
        for _ in range(2):
            turn = session.prompt("hi")
            await answer(session, 100)
            await until(lambda: session.pending)
            await session.answer(session.pending[0].id, None)
            await turn
            found = reached(turn)
            assert found is not None
            assert found[0] == "raised"


async def test_time_that_was_raised_is_watched_again(tmp_path: Path) -> None:
    agent = ScriptedAgent([wait_for_cancel()])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("time", 0.05)]) as (_, session):
        turn = session.prompt("hi")
        await answer(session, 0.05)
        await answer(session, None)
        await turn.wait()
        found = reached(turn)
        assert found is not None
        assert found[0] == "stopped"
        assert found[1] >= 0.1


async def test_nobody_answers_in_time(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6), wait_for_cancel()])
    options = {**ASKED, "limits": [limit("cost", 0.5)], "timeouts": Timeouts(question=0.05)}
    async with opened(agent, tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        await turn.wait()
        assert reached(turn) == ("stopped", 0.6, None)
        assert session.pending == []


@pytest.mark.parametrize("more", [0, -1, "many", None])
async def test_what_is_no_number_does_not_raise_a_limit(tmp_path: Path, more: Any) -> None:
    agent = ScriptedAgent([tool_call("a", "A"), tool_call("b", "B"), wait_for_cancel()])
    async with opened(agent, tmp_path, **ASKED, limits=[limit("tool_calls", 1)]) as (_, session):
        turn = session.prompt("hi")
        pending = await question(session)
        given = ElicitationAnswer("accept", {"more": more})
        with pytest.raises(ValueError, match="more"):
            await session.answer_elicitation(pending.id, given)
        assert session.pending
        await answer(session, None)
        await turn.wait()
