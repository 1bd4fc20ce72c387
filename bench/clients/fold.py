"""Folds so many events of a lively session, and prints what it cost."""

from __future__ import annotations

import sys

from bench.clients.gauge import Gauge
from bench.clients.lively import lively
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


def main(count: int) -> None:
    events, state, gauge = lively(count), SessionState(), Gauge()
    gauge.start()
    for event in events:
        reduce(state, event)
        gauge.saw(0)
    gauge.stop()


main(int(sys.argv[1]))
