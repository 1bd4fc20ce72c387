"""Whether an agent has a prompt, as its own history says. Pure.

If a process is killed just after it has sent a parked prompt, so is its agent, and nobody knows
whether the prompt arrived. Agents that record what they are asked repeat it when they load the
session: what users said there is compared with what the agent was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from dragoman.session import events as e
from dragoman.session.state import (
    ErrorEntry,
    NoticeEntry,
    ResetEntry,
    SessionState,
    UserEntry,
)


class Delivery:
    """Of the parked prompt of a session, which is in doubt. `told` has the events on limits and
    parked prompts that the session has had."""

    def __init__(self, state: SessionState, told: Sequence[e.Event]) -> None:
        doubted = "" if state.parked is None else state.parked.id
        asked = [each for each in reversed(state.entries) if isinstance(each, UserEntry)]
        self._prompt = next((_words(x.text) for x in asked if x.turn_id == doubted), "")
        unsent = {doubted, *_unsent(told)}
        before = [each for each in asked if each.turn_id not in unsent]
        run = list(takewhile(lambda each: _words(each.text) == self._prompt, before))
        refused = _refused(told)
        self._times = len(run)
        """How often in a row the agent certainly had the prompt."""
        self._refused = sum(each.turn_id in refused for each in run)
        """How often it was refused at a limit: some agents forget those."""
        self._is_first = len(before) == len(run)
        self._before = "" if self._is_first else _words(before[len(run)].text)
        """What the agent was asked before that."""
        sure = {None, *refused, *_answered(state)}
        tail = before[: len(run) + 1]
        self._is_sure = all(x.turn_id in sure and not (x.cut or x.steer) for x in tail)
        if self._is_first and state.entries_before:
            self._is_sure = False
        self._most = len(self._before) + len(self._prompt) * (self._times + 1) + 1
        """More is not kept: an agent may tell any amount."""
        self._heard = ""
        self._is_complete = False

    def hear(self, event: e.Event) -> None:
        """Part of the history that the agent tells."""
        if isinstance(event, e.UserMessage):
            self._heard = (self._heard + _words(event.text))[-self._most :]

    def complete(self) -> None:
        """The agent has loaded the session: there is no more to hear."""
        self._is_complete = True

    @property
    def has_arrived(self) -> bool | None:
        """None if the history does not say."""
        if not (self._is_complete and self._is_sure and self._prompt):
            return None
        found = [times for times in range(self._times + 2) if self._ends_with(times)]
        if found == [self._times + 1]:
            return True
        return False if found in ([self._times], [self._times - self._refused]) else None

    def _ends_with(self, times: int) -> bool:
        end = self._before + self._prompt * times
        return self._heard == end if self._is_first else self._heard.endswith(end)


def _words(text: str) -> str:
    """Agents join and split what they repeat, and space it differently."""
    return "".join(text.split())


def _unsent(told: Sequence[e.Event]) -> set[str | None]:
    """Turns that were to send a parked prompt, of which it is known that they did not."""
    changes = (each for each in told if isinstance(each, e.ParkingChanged))
    return {each.turn_id for each in changes if each.outcome == "waiting"} - {None}


def _refused(told: Sequence[e.Event]) -> set[str]:
    """Turns whose prompts the agent had, since it reported a limit."""
    limits = (each for each in told if isinstance(each, e.TurnLimited))
    return {each.turn_id for each in limits if each.parked is None or not each.parked.is_doubted}


def _answered(state: SessionState) -> set[str | None]:
    """Turns that the agent has ended, or in which it said or did something."""
    ended = {each.id for each in state.turns if each.status == "completed"}
    ours = UserEntry, NoticeEntry, ErrorEntry, ResetEntry
    return ended | {each.turn_id for each in state.entries if not isinstance(each, ours)}
