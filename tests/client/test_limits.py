"""Limits of what a session may use: what stops a turn, when, and what is left behind."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

from support.clients import gathered, opened, started, until
from support.raw_agent import RawAgent

from dragoman import Client, SpendingLimit, Timeouts
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.facts import Measure
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, tool_call, usage, wait_for_cancel


def limit(
    measure: Measure,
    most: float,
    *,
    per: Literal["session", "turn"] = "session",
    then: Literal["stop", "warn"] = "stop",
    agent: str = "*",
) -> SpendingLimit:
    source = f"--max-{measure}"
    return SpendingLimit(measure=measure, most=most, per=per, then=then, agent=agent, source=source)


def reached(events: list[e.Event]) -> list[tuple[str, float]]:
    return [
        (event.limit.outcome, event.limit.value)
        for event in events
        if isinstance(event, e.LimitReached)
    ]


async def test_the_update_that_reaches_a_limit_stops_the_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.4), usage(2, 10, 0.6), wait_for_cancel()])
    async with opened(agent, tmp_path, limits=[limit("cost", 0.5)]) as (_, session):
        turn = session.prompt("hi")
        events = await gathered(turn)
        assert reached(events) == [("stopped", 0.6)]
        assert turn.stop_reason == "cancelled"
        assert turn.limit is not None
        assert turn.limit.text == (
            "the turn was stopped: this session has used 0.6 USD, and --max-cost allows 0.5 USD; "
            "to continue, raise --max-cost and send another prompt"
        )
        assert session.state.turns[-1].status == "cancelled"


async def test_no_prompt_is_sent_once_the_session_has_used_up_its_limit(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(2, 10, 0.6)])
    async with opened(agent, tmp_path, limits=[limit("cost", 0.5)]) as (_, session):
        await session.prompt("first")
        turn = session.prompt("second")
        assert reached(await gathered(turn)) == [("not_sent", 0.6)]
        assert not turn.sent
        assert turn.stop_reason == "cancelled"


async def test_a_limit_of_each_turn_lets_the_next_one_begin(tmp_path: Path) -> None:
    steps = [tool_call("a", "A"), tool_call("b", "B"), wait_for_cancel()]
    calls = limit("tool_calls", 1, per="turn")
    async with opened(ScriptedAgent(steps), tmp_path, limits=[calls]) as (_, session):
        for _ in range(2):
            assert reached(await gathered(session.prompt("hi"))) == [("stopped", 2)]


async def test_a_warning_stops_nothing_and_is_given_once(tmp_path: Path) -> None:
    agent = ScriptedAgent([usage(1, 10, 0.6), usage(2, 10, 0.7)])
    async with opened(agent, tmp_path, limits=[limit("cost", 0.5, then="warn")]) as (_, session):
        first = session.prompt("hi")
        assert reached(await gathered(first)) == [("warned", 0.6)]
        assert first.stop_reason == "end_turn"
        assert reached(await gathered(session.prompt("again"))) == []


async def test_a_count_beyond_all_doubles_is_too_much_and_no_error(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.usage = v1.Usage(total_tokens=10**320, input_tokens=10**320, output_tokens=-1)

    async with opened(ScriptedAgent(script), tmp_path, limits=[limit("tokens", 100)]) as (
        _,
        session,
    ):
        first = await session.prompt("hi")
        assert first.stop_reason == "end_turn"
        assert first.limit is not None
        assert (first.limit.limit.outcome, first.limit.limit.value) == ("late", 1e15)
        assert reached(await gathered(session.prompt("again"))) == [("not_sent", 1e15)]


async def test_time_passes_without_any_update(tmp_path: Path) -> None:
    agent = ScriptedAgent([wait_for_cancel()])
    async with opened(agent, tmp_path, limits=[limit("time", 0.05)]) as (_, session):
        assert reached(await gathered(session.prompt("hi"))) == [("stopped", 0.05)]


async def test_a_stopped_turn_leaves_no_question(tmp_path: Path) -> None:
    agent = ScriptedAgent([ask("a", title="May I?")])
    options = {"limits": [limit("time", 0.1)], "questions": "wait"}
    async with opened(agent, tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        await until(lambda: session.pending)
        await turn.wait()
        assert turn.limit is not None
        assert session.pending == []


async def test_an_agent_that_ignores_the_cancellation_loses_its_turn(tmp_path: Path) -> None:
    agent = RawAgent()
    options = {"limits": [limit("time", 0.05)], "timeouts": Timeouts(cancel=0.1)}
    async with opened(agent, tmp_path, **options) as (_, session):
        turn = session.prompt("hi")
        await turn.wait()
        assert str(turn.error) == "the agent did not stop within 0.1 s of the cancel"
        assert not session.busy


async def test_what_is_known_at_the_end_of_a_turn_counts_for_the_next(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.usage = v1.Usage(total_tokens=80, input_tokens=70, output_tokens=10)

    async with opened(ScriptedAgent(script), tmp_path, limits=[limit("tokens", 100)]) as (
        _,
        session,
    ):
        seen = session.events()
        turns = [await session.prompt("hi") for _ in range(2)]
        assert [turn.stop_reason for turn in turns] == ["end_turn", "end_turn"]
        assert turns[0].limit is None
        assert turns[1].limit is not None
        assert turns[1].limit.limit.outcome == "late"
        third = await session.prompt("hi")
        assert third.limit is not None
        assert third.limit.limit.outcome == "not_sent"
        outcomes = [
            event.limit.outcome for event in seen.ready if isinstance(event, e.LimitReached)
        ]
        assert outcomes == ["late", "not_sent"]


async def test_a_limit_that_cannot_be_checked_is_named_once(tmp_path: Path) -> None:
    async with opened(ScriptedAgent([]), tmp_path, limits=[limit("tokens", 9)]) as (_, session):
        for _ in range(2):
            await session.prompt("hi")
        notices = [entry.text for entry in session.state.entries if entry.text.startswith("--max")]
        assert notices == ["--max-tokens was not checked: the agent does not report its tokens"]


async def test_a_limit_of_another_agent_does_not_count(tmp_path: Path) -> None:
    other = limit("cost", 0.1, agent="other")
    agent = ScriptedAgent([usage(1, 10, 0.4)])
    async with opened(agent, tmp_path, name="it", limits=[other]) as (_, session):
        assert (await session.prompt("hi")).stop_reason == "end_turn"


# ── by how much a limit is overrun ────────────────────────────────────────────────────────────


class Spender:
    """Reports costs after each of its steps, and waits for the client before the next one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.increases: list[float] = []
        self.reported: list[float] = []
        self.total = 0.0

    async def __call__(self, turn: AgentTurn) -> None:
        for increase in self.increases:
            self.total += increase
            self.reported.append(self.total)
            turn.report_usage(1, 10, self.total)
            await turn.read_text_file(str(self.file))
            if turn.cancelled.is_set():
                return


async def _overrun(client: Client, spender: Spender, draw: random.Random, most: float) -> int:
    """The number of reports after the first that reached the limit, over several turns."""
    spender.reported, spender.total = [], 0.0
    session = await client.new_session(spender.file.parent)
    for _ in range(draw.randrange(1, 4)):
        spender.increases = [draw.choice([0, 0.1, 0.5, 2]) for _ in range(draw.randrange(8))]
        await session.prompt("hi")
    await client.close_session(session.id)
    return max(0, sum(total >= most for total in spender.reported) - 1)


async def test_an_agent_that_reports_each_step_is_stopped_at_the_first_that_is_too_much(
    tmp_path: Path,
) -> None:
    """A thousand random scripts: no step begins after the one that reached the limit."""
    (tmp_path / "a.txt").write_text("A")
    draw, spender = random.Random(24), Spender(tmp_path / "a.txt")
    overruns = {"none": 0, "limited": 0}
    async with started(ScriptedAgent(spender), limits=[limit("cost", 1.0)]) as client:
        for _ in range(1000):
            assert await _overrun(client, spender, draw, 1.0) == 0, spender.reported
            overruns["limited" if spender.total >= 1.0 else "none"] += 1
    assert min(overruns.values()) > 100, "the scripts must be of both kinds"


async def test_an_agent_that_reports_at_the_end_overruns_by_at_most_that_turn(
    tmp_path: Path,
) -> None:
    draw, spent = random.Random(24), list[int]()

    async def script(turn: AgentTurn) -> None:
        spent.append(draw.randrange(1, 60))
        turn.usage = v1.Usage(total_tokens=spent[-1], input_tokens=0, output_tokens=0)

    async with started(ScriptedAgent(script), limits=[limit("tokens", 100)]) as client:
        for _ in range(100):
            spent.clear()
            session = await client.new_session(tmp_path)
            for _ in range(8):
                await session.prompt("hi")
            assert sum(spent) >= 100 or len(spent) == 8
            assert sum(spent[:-1]) < 100
            await client.close_session(session.id)
