"""How sessions may stand when their process is gone: their events, and what they are then."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import PermissionOption
from dragoman.store.records import Batch, SessionChange, Status, encode_event


@dataclass(frozen=True)
class Ending:
    """`status` is what the owner wrote down last, `at_rest` what is true without it."""

    name: str
    status: Status
    at_rest: Status
    events: tuple[e.Event, ...]

    def batch(self) -> Batch:
        for seq, event in enumerate(self.events, 1):
            event.seq = seq
        bodies = [encode_event(event) for event in self.events]
        return Batch(first_seq=1, events=bodies, change=SessionChange(status=self.status))


_OPENED = e.SessionOpened("theirs", "/", "new")
_ASKED = e.TurnStarted("t", [Text("go on")])
_CUT = e.TurnEnded("t", error="the process ended", interrupted=True)
_CUT_BEFORE = e.TurnEnded("t", error="interrupted: the process that ran the session ended")
"""As it was written before there was a field for it."""
_AGAIN = (e.TurnStarted("u", [Text("and now")]), e.TurnEnded("u", stop_reason="end_turn"))
_QUESTION = e.PermissionRequested("q", [PermissionOption(id="y", name="Yes", kind="allow_once")])

ENDINGS = [
    Ending("never opened", "idle", "idle", ()),
    Ending("idle", "idle", "idle", (_OPENED,)),
    Ending("done", "idle", "idle", (_OPENED, _ASKED, e.TurnEnded("t", stop_reason="end_turn"))),
    Ending("failed", "idle", "idle", (_OPENED, _ASKED, e.TurnEnded("t", error="it broke"))),
    Ending("interrupted", "interrupted", "interrupted", (_OPENED, _ASKED, _CUT)),
    Ending("interrupted long ago", "interrupted", "interrupted", (_OPENED, _ASKED, _CUT_BEFORE)),
    Ending("gone on with", "idle", "idle", (_OPENED, _ASKED, _CUT, *_AGAIN)),
    Ending("running", "running", "interrupted", (_OPENED, _ASKED)),
    Ending("waiting", "waiting", "interrupted", (_OPENED, _ASKED, _QUESTION)),
    Ending("closed", "closed", "closed", (_OPENED, e.SessionClosed())),
    Ending("closed while nobody ran it", "closed", "closed", (_OPENED, _ASKED, _CUT)),
]
