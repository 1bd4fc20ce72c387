"""The session of a chat, wherever it runs: in this process or in another.

What a person asks of it goes to its owner as a command, as from any other window. If no process
runs it any longer, the next prompt opens it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.cli.run.elsewhere.remote_session import terms_of
from dragoman.cli.run.job import Job
from dragoman.client.sessions.turn import Turn
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.safe_text import single_line
from dragoman.session import events as e
from dragoman.session.content import Content, Text
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord


class SentPrompt(NamedTuple):
    """A prompt that has a turn, which may still wait for others."""

    turn_id: str
    is_queued: bool
    turn: Turn | None = None
    """If it runs here."""


class ChatSession:
    """`shown` is its state as far as it was shown; a follower keeps it up to date."""

    def __init__(self, hub: Hub, job: Job, record: SessionRecord, shown: SessionState) -> None:
        self.shown = shown
        self._hub = hub
        self._job = job
        self._record = record
        self._stands_there: set[str] = set()
        """Turns whose prompt was typed just above: it did not wait, nor come from elsewhere."""
        self._typed: set[str] = set()
        """Turns whose prompt was typed here at all."""
        self._steered: set[str] = set()
        """What was typed here for a running turn."""
        self._on_the_way: list[str] = []
        """Prompts whose sending is not over: an event may report one of them before."""

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def cwd(self) -> str:
        return self._record.cwd

    @property
    def live(self) -> RunningSession | None:
        """The session itself, if it runs in this process."""
        return self._hub.live.get(self.id)

    @property
    def record(self) -> SessionRecord:
        return self._record if self.live is None else self.live.record

    @property
    def state(self) -> SessionState:
        """The newest that is known here."""
        return self.shown if self.live is None else self.live.state

    @property
    def agent_name(self) -> str:
        return self._record.agent if self.live is None else self.live.agent.client.name

    @property
    def is_busy(self) -> bool:
        if self.live is not None:
            return self.live.session.busy
        return self.shown.turn is not None or bool(self._on_the_way)

    @property
    def has_lost_its_agent(self) -> bool:
        return self.live is not None and self.live.agent.client.connection_error is not None

    @property
    def standing(self) -> list[str]:
        """What a person should know who continues it, in sentences; nothing if it is new."""
        turns, title = len(self.state.turns), single_line(self.record.title or "", 60)
        so_far = f", {turns} turn{'' if turns == 1 else 's'} so far" if turns else ""
        told: list[str] = []
        if turns or self.live is None:
            told.append(f"session {self.id} continues{so_far}: {title}")
        if self.live is None:
            told.append("another process runs it, and its rules apply, too")
        if waiting := len(self.state.queue):
            some = "a prompt waits" if waiting == 1 else f"{waiting} prompts wait"
            told.append(f"{some} from before, to be sent before your next prompt")
        return told

    # ── what is asked of it ───────────────────────────────────────────────────────────────────

    async def send(self, command: c.Command) -> c.Reply:
        """Have its owner do it. Raises CommandRefused, UnknownSession, and what opening it here
        raises if it has no owner."""
        return await self._hub.send(self.id, command)

    async def prompt(self, prompt: str | list[Content]) -> SentPrompt:
        """Send a prompt. Raises what `send` and `RunningSession.prompt` do."""
        if (live := self.live) is not None:
            turn = await live.prompt(prompt)
            sent = SentPrompt(turn.id, turn in live.session.queued, turn)
        else:
            sent = await self._prompt_elsewhere(prompt)
        self._typed.add(sent.turn_id)
        if not sent.is_queued:
            self._stands_there.add(sent.turn_id)
        return sent

    async def _prompt_elsewhere(self, prompt: str | list[Content]) -> SentPrompt:
        text = prompt if isinstance(prompt, str) else _words(prompt)
        self._on_the_way.append(text)
        try:
            reply = await self.send(self._with_terms(prompt))
        finally:
            self._on_the_way.remove(text)
        return SentPrompt(reply["turn"], reply["queued"])

    def _with_terms(self, prompt: str | list[Content]) -> c.Prompt | c.RuledPrompt:
        """With what the options allow here: another process decides by rules of its own."""
        on_ask = "reject" if self._job.options.on_ask == "reject" else "wait"
        terms = terms_of(self._job, self._hub, on_ask)
        sender = self._hub.owner
        if terms is None:
            return c.Prompt(prompt, sender=sender)
        return c.RuledPrompt(prompt, terms, sender=sender)

    async def steer(self, text: str) -> c.Reply:
        """Say it into the running turn. Raises what `send` does."""
        self._steered.add(text)
        reply = await self.send(c.SteerTurn(text))
        if reply["turn"] is not None:
            self._typed.add(reply["turn"])
        return reply

    def drop_typed(self) -> list[str]:
        """Drop the queued prompts that were typed here, if the session runs here; their words."""
        if self.live is None:
            return []
        session = self.live.session
        mine = [turn for turn in session.queued if turn.id in self._typed]
        dropped = [turn for turn in mine if session.steering.is_here(turn)]
        for turn in dropped:
            session.drop_queued(turn)
        return ["".join(part.text for part in turn.content) for turn in dropped]

    async def take_over(self) -> bool:
        """Run it here if a prompt that was typed here is still to be sent; whether that was so.
        Raises what opening it raises."""
        waiting = [each.id for each in self.state.queue if each.id in self._typed]
        if not waiting:
            return False
        live = await self._hub.open(self.id)
        for turn in live.session.queued:
            if turn.id in waiting:
                await live.go_on_with(turn)
                break
        return True

    def knows(self, event: e.Event) -> bool:
        """Whether the event is already above the prompt, as it was typed there."""
        match event:
            case e.PromptQueued():
                words = _words(event.content)
                mine = event.queue_id in self._typed
                return mine or words in self._steered or words in self._on_the_way
            case e.Steered(outcome="delivered" | "started"):
                return event.text in self._steered
            case e.TurnStarted():
                if event.turn_id in self._typed:
                    return event.turn_id in self._stands_there
                return _words(event.content) in self._on_the_way
            case _:
                return False


def _words(content: Sequence[Content]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))
