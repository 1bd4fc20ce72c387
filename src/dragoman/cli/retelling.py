"""A recorded session told again, from the store or from a file: its events, folded and shown."""

from __future__ import annotations

from dragoman.cli.recorded import Happened
from dragoman.cli.stage import Stage
from dragoman.cli.words import called
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord


class Retelling:
    """Give it the events of one session in order."""

    def __init__(self, stage: Stage, record: SessionRecord) -> None:
        self._stage = stage
        self._state = SessionState()
        self._told_at = 0.0
        words = called(record.name, record.title)
        where = record.cwd or ("" if record.imported is None else record.imported.cwd)
        stage.title(f"{record.id}  {words}".rstrip(), f"{record.agent} in {where}")

    def tell(self, event: e.Event) -> None:
        reduce(self._state, event)
        self._told_at = event.at
        # History that an agent told us is all there is of it here.
        event.replay = False
        if _is_news(event):
            self._stage.show(Happened(self._state, event))

    def pause_before(self, event: e.Event) -> float:
        """How long it took then; between two turns somebody was away, and nobody waits for that."""
        return 0.0 if self._state.turn is None else event.at - self._told_at


def _is_news(event: e.Event) -> bool:
    """That somebody came back to the session is none, unless the agent had forgotten it; nor is
    what could have been typed then."""
    match event:
        case e.SessionOpened():
            return event.continuity == "reset"
        case e.CommandsChanged():
            return False
        case _:
            return True
