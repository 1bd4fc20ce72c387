"""Folds so many events of a lively session, and prints what it cost."""

from __future__ import annotations

import sys

from bench.clients.gauge import Gauge
from dragoman.events import AgentMessage, AgentThought, Event, PlanUpdated, ToolCallUpdated
from dragoman.session.content import Text
from dragoman.session.facts import PlanStep
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


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


def main(count: int) -> None:
    events, state, gauge = lively(count), SessionState(), Gauge()
    gauge.start()
    for event in events:
        reduce(state, event)
        gauge.saw(0)
    gauge.stop()


main(int(sys.argv[1]))
