"""What a state answers to those who read it."""

from __future__ import annotations

from support.folding import fold

from dragoman.session import events as e
from dragoman.session.content import Image, Text
from dragoman.session.facts import PlanStep
from dragoman.session.state import AgentEntry, SessionState, Subagent, UserEntry


def test_a_state_nothing_happened_in_answers_nothing() -> None:
    state = SessionState()
    assert (state.plan, state.turn, state.mode, state.tool_calls) == (None, None, None, {})
    assert state.tool_call("a") is None


def test_states_share_nothing() -> None:
    fold(e.AgentMessage(Text("hi")), e.TerminalStarted("x", ["ls"]))
    assert SessionState() == SessionState()
    assert SessionState().entries == []


def test_tool_calls_come_in_the_order_they_were_first_seen() -> None:
    calls = (e.ToolCallUpdated(name) for name in ("b", "a", "b", "c"))
    assert list(fold(*calls).tool_calls) == ["b", "a", "c"]


def test_a_message_of_content_alone_is_not_joined_with_text() -> None:
    image = Image("d", "image/png")
    assert AgentEntry(pieces=[image]).content == [image]
    assert UserEntry().content == []
    assert UserEntry().text == ""


def test_the_newest_plan_with_something_in_it_is_the_plan() -> None:
    state = fold(e.PlanUpdated([PlanStep("a")], "p"), e.PlanUpdated([], "q"))
    assert state.plan is state.entries[0]
    fold(e.PlanUpdated(plan_id="q", uri="file:///plan.md"), onto=state)
    assert state.plan is state.entries[1]


def test_the_name_of_a_subagent_is_a_short_line_whatever_the_agent_calls_it() -> None:
    state = SessionState()
    for depth in range(6):
        state.subagents[f"s{depth}"] = Subagent(
            f"s{depth}", parent=f"s{depth - 1}" if depth else None, title=f"no.\n{depth} › x"
        )
    assert state.subagent_name("s1") == "no. 0 > x › no. 1 > x"
    assert state.subagent_name("s5") == "no. 0 > x › … › no. 4 > x › no. 5 > x"
    state.subagents["s0"].title = "Helper " * 4_000
    assert state.subagent_name("s0") == f"{'Helper ' * 8}Hel…"
    state.subagents["s0"].title = "\n" * 4_000
    assert len(state.subagent_name("s0")) <= 60
