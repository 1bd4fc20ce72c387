"""The events of a lively session."""

from __future__ import annotations

from dragoman.events import AgentMessage, AgentThought, Event, PlanUpdated, ToolCallUpdated
from dragoman.session.content import Text
from dragoman.session.facts import PlanStep


def lively(count: int) -> list[Event]:
    events: list[Event] = []
    for number in range(count // 10):
        tool = f"tool-{number}"
        events += [AgentMessage(Text("a few words "), f"m-{number}") for _ in range(5)]
        events += [
            AgentThought(Text("hm")),
            ToolCallUpdated(tool, title="Read a file", kind="read"),
            ToolCallUpdated(tool, status="completed", raw_output={"lines": 3}),
            PlanUpdated([PlanStep("one", status="completed"), PlanStep("two")]),
            AgentMessage(Text("done")),
        ]
    return events
