"""Detects the end of a turn in version 2, where the reply to a prompt only acknowledges it.

A small synchronous machine for one session: prompts, acknowledgements and states of the agent come
in, in wire order; finished turns come out. Knows nothing of the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.client.dialects.dialect import Finished
from dragoman.session.content import Content
from dragoman.session.facts import BackgroundWork
from dragoman.session.state_limits import ID, LIMITS, drop_oldest

IDLE = "idle"


class Prompted(msgspec.Struct, eq=False):
    """A prompt under way; `alone` if nothing else was when it was sent, else the agent may have
    been at work already."""

    content: list[Content]
    finish: Callable[[Finished], None]
    alone: bool
    taken: bool = False
    """The agent has acknowledged it: it is part of the conversation."""
    worked: bool = False
    """The agent has been seen at work: since then, or before that since it was sent."""
    stopping: bool = False
    """The agent was asked to stop: it may say how it stopped without ever having begun."""
    early: tuple[frozenset[str], Finished] | None = None
    """The work ended before the acknowledgement came; with the messages told until then."""
    awaited: str | None = None
    """Its name in the conversation: with an early end, that is its own once this is
    reported."""
    _told: dict[str, str] = {}
    """By message, no more than decides whether it is this prompt."""
    _text: str = ""

    def __post_init__(self) -> None:
        self._text = "".join(part.text for part in self.content)

    @property
    def told(self) -> frozenset[str]:
        return frozenset(self._told)

    def end(self, message_id: str | None) -> Finished | None:
        """The early end, if it is its own, now that it is called this."""
        if self.early is None:
            return None
        told, finished = self.early
        is_its = message_id is None or message_id in told
        # Told after it, but nothing else was there that could have ended.
        is_its |= self.alone and self.worked and message_id in self._told
        return finished if is_its else None

    def hears(self, message_id: str, text: str, *, whole: bool) -> bool:
        """A user's message told before the acknowledgement; whether it is this prompt, so far."""
        before = "" if whole else self._told.get(message_id, "")
        so_far = (before + text)[: len(self._text) + 1]
        self._told[message_id] = so_far
        drop_oldest(self._told, LIMITS.others)
        return self._text.startswith(so_far)


class Foreground:
    """What the agent does in one session, and the prompts that wait for its end."""

    def __init__(self) -> None:
        self.state = IDLE
        self.opening = False
        """A call that opens the session is under way: until its answer, states are of before."""
        self.background: list[BackgroundWork] = []
        """What the agent reports as running in the background."""
        self._says_when_it_works = False
        self._shown = IDLE
        self._shown_background: list[BackgroundWork] = []
        self._prompts: list[Prompted] = []
        self._own: dict[str, None] = {}

    # ── prompts ───────────────────────────────────────────────────────────────────────────────

    @property
    def prompts(self) -> int:
        """How many of our prompts wait for their end."""
        return len(self._prompts)

    def prompted(self, content: list[Content], finish: Callable[[Finished], None]) -> Prompted:
        prompt = Prompted(content, finish, alone=self.state == IDLE and not self._prompts)
        prompt.worked = self.state != IDLE
        self._prompts.append(prompt)
        return prompt

    def acknowledged(self, prompt: Prompted, message_id: str | None) -> None:
        """The prompt was taken, and is called `message_id` if the agent says so."""
        message_id = None if message_id is None else message_id[:ID]
        self._own |= dict.fromkeys(prompt.told if message_id is None else [message_id])
        drop_oldest(self._own, LIMITS.turns)
        if (finished := prompt.end(message_id)) is not None:
            self._finish(prompt, finished)
            return
        if prompt.alone and prompt.worked:
            prompt.awaited = message_id
        prompt.taken = True
        prompt.worked = self.state != IDLE

    def stops(self) -> None:
        """The agent is asked to stop what it does."""
        for prompt in self._prompts:
            prompt.stopping = True

    def withdraw(self, prompt: Prompted) -> None:
        """Nobody waits for its end, or it has come."""
        if prompt in self._prompts:
            self._prompts.remove(prompt)

    def _finish(self, prompt: Prompted, finished: Finished) -> None:
        self.withdraw(prompt)
        prompt.finish(finished)

    # ── what the agent tells ──────────────────────────────────────────────────────────────────

    def echoes(self, message_id: str, text: str, *, whole: bool) -> bool:
        """Whether a user's message, or a piece of one, is a prompt of ours: that is in the
        thread already."""
        message_id = message_id[:ID]
        if message_id in self._own:
            self._told_late(message_id)
            return True
        waiting = (prompt for prompt in self._prompts if not prompt.taken)
        return any(prompt.hears(message_id, text, whole=whole) for prompt in waiting)

    def _told_late(self, message_id: str) -> None:
        """A whole turn was reported before its prompt."""
        for prompt in list(self._prompts):
            if prompt.early is not None and prompt.awaited == message_id:
                self._finish(prompt, prompt.early[1])

    def works(self) -> None:
        """Something came that shows the agent at work, unless it says itself when it is: then it
        may be of what runs in the background."""
        if not self._says_when_it_works:
            self._begun()

    def _begun(self) -> None:
        for prompt in self._prompts:
            prompt.worked = True

    def changes(self, state: str, finished: Finished | None, *, snapshot: bool) -> None:
        """The agent's state is `state`; `finished` is what an idle one says of the work before it,
        None if it says nothing. A `snapshot` tells something else as well, such as what runs in
        the background, and may only repeat the state."""
        self.state = state
        if state != IDLE:
            self._begins()
            return
        for prompt in list(self._prompts):
            # Who never says that it works says at least why it stopped.
            tells = finished is not None and not snapshot and not self._says_when_it_works
            if not (prompt.worked or prompt.stopping or tells):
                continue
            if prompt.taken:
                self._finish(prompt, finished or _USUAL)
            elif prompt.alone or prompt.told:
                prompt.early = prompt.early or (prompt.told, finished or _USUAL)
            else:
                prompt.worked = False  # that was at something else

    def _begins(self) -> None:
        self._says_when_it_works = True
        self._begun()
        for prompt in self._prompts:
            prompt.early = None

    # ── what is reported ──────────────────────────────────────────────────────────────────────

    def reopen(self) -> None:
        """The session is opened again, and nothing is known there."""
        self.opening = True
        self._shown, self._shown_background = IDLE, []

    def news(self) -> dict[str, Any]:
        """What changed and was not reported yet: the state outside of turns, the background."""
        found: dict[str, Any] = {}
        if self.opening:
            return found
        if not self._prompts and self.state != self._shown:
            self._shown = found["activity"] = self.state
        if self.background != self._shown_background:
            self._shown_background = found["background"] = self.background
        return found


_USUAL = Finished("end_turn")
