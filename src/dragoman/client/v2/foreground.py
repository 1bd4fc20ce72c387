"""When a turn has ended in version 2, where the answer to a prompt only says that it was taken.

A small synchronous machine for one session: prompts, acknowledgements and states of the agent come
in, in wire order; finished turns come out. Knows nothing of the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.client.dialect import Finished
from dragoman.session.content import Content

IDLE = "idle"


class Prompted:
    """A prompt under way; `alone` if nothing else was when it was sent."""

    def __init__(
        self, content: list[Content], finish: Callable[[Finished], None], *, alone: bool
    ) -> None:
        self.finish = finish
        self.alone = alone
        self.taken = False
        """It stands in the conversation: the agent has acknowledged it."""
        self.worked = False
        """The agent has been seen at work since then."""
        self.early: tuple[frozenset[str], Finished] | None = None
        """The work ended before the acknowledgement came; with the messages told until then."""
        self._told: dict[str, str] = {}
        self._text = "".join(part.text for part in content)

    @property
    def told(self) -> frozenset[str]:
        return frozenset(self._told)

    def hears(self, message_id: str, text: str, *, whole: bool) -> bool:
        """A user's message told before the acknowledgement; whether it is this prompt, so far."""
        before = "" if whole else self._told.get(message_id, "")
        self._told[message_id] = before + text
        return self._text.startswith(before + text)


class Foreground:
    """What the agent does in one session, and the prompts that wait for its end."""

    def __init__(self) -> None:
        self.state = IDLE
        self.opening = False
        """A call that opens the session is under way: until its answer, states are of before."""
        self.background: list[dict[str, Any]] = []
        """What the agent says runs beside it all."""
        self._shown = IDLE
        self._shown_background: list[dict[str, Any]] = []
        self._prompts: list[Prompted] = []
        self._own: set[str] = set()

    # ── prompts ───────────────────────────────────────────────────────────────────────────────

    def prompted(self, content: list[Content], finish: Callable[[Finished], None]) -> Prompted:
        prompt = Prompted(content, finish, alone=self.state == IDLE and not self._prompts)
        self._prompts.append(prompt)
        return prompt

    def acknowledged(self, prompt: Prompted, message_id: str | None) -> None:
        """The prompt was taken, and is called `message_id` if the agent says so."""
        told = prompt.told
        self._own |= {message_id} if message_id is not None else told
        if prompt.early is not None and (message_id is None or message_id in prompt.early[0]):
            self._finish(prompt, prompt.early[1])
            return
        prompt.taken = True
        prompt.worked = self.state != IDLE

    def withdraw(self, prompt: Prompted) -> None:
        """Nobody waits for its end any more, or it has come."""
        if prompt in self._prompts:
            self._prompts.remove(prompt)

    def _finish(self, prompt: Prompted, finished: Finished) -> None:
        self.withdraw(prompt)
        prompt.finish(finished)

    # ── what the agent tells ──────────────────────────────────────────────────────────────────

    def echoes(self, message_id: str, text: str, *, whole: bool) -> bool:
        """Whether a user's message, or a piece of one, is a prompt of ours: that stands in the
        thread already."""
        if message_id in self._own:
            return True
        waiting = (prompt for prompt in self._prompts if not prompt.taken)
        return any(prompt.hears(message_id, text, whole=whole) for prompt in waiting)

    def works(self) -> None:
        """Something came that shows the agent at work."""
        for prompt in self._prompts:
            prompt.worked |= prompt.taken

    def changes(self, state: str, finished: Finished | None, *, snapshot: bool) -> None:
        """The agent's state is `state`; `finished` is what an idle one says of the work before it,
        None if it says nothing. A `snapshot` tells something else as well, such as what runs in
        the background, and may only repeat the state."""
        self.state = state
        if state != IDLE:
            self._begins()
            return
        for prompt in list(self._prompts):
            if not prompt.taken:
                is_its = bool(prompt.told) or prompt.alone
                prompt.early = (prompt.told, finished or _USUAL) if is_its else None
            elif prompt.worked or (finished is not None and not snapshot):
                # Who never says that it works says at least why it stopped.
                self._finish(prompt, finished or _USUAL)

    def _begins(self) -> None:
        self.works()
        for prompt in self._prompts:
            prompt.early = None

    # ── what others are told ──────────────────────────────────────────────────────────────────

    def reopen(self) -> None:
        """The session is opened again, and nothing is known there."""
        self.opening = True
        self._shown, self._shown_background = IDLE, []

    def news(self) -> dict[str, Any]:
        """What changed that nobody was told yet: the state outside of turns, the background."""
        found: dict[str, Any] = {}
        if self.opening:
            return found
        if not self._prompts and self.state != self._shown:
            self._shown = found["activity"] = self.state
        if self.background != self._shown_background:
            self._shown_background = found["background"] = self.background
        return found


_USUAL = Finished("end_turn")
