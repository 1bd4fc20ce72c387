"""Folds so many events of a lively session, or of a subagent in one, and prints what it cost."""

from __future__ import annotations

import sys

from bench.clients.gauge import Gauge
from bench.clients.lively import lively
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.session.steps.subagents import TOLD


def main(count: int, of_subagent: bool) -> None:
    events, state, gauge = lively(count), SessionState(), Gauge()
    if of_subagent:
        events = [_told(event) for event in events]
    gauge.start()
    for event in events:
        reduce(state, event)
        gauge.saw(0)
    gauge.stop()


def _told(event: e.Event) -> e.Event:
    """The same by a subagent, as far as it can say it."""
    return e.SubagentEvent("child", event, seq=event.seq) if type(event) in TOLD else event


main(int(sys.argv[1]), "subagent" in sys.argv[2:])
