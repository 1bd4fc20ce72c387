"""A turn in a session that another process runs: sent to it, watched, answered and cancelled."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import Exit, UsageError, ended_with
from dragoman.cli.options import typed
from dragoman.cli.render.event_text import Tally
from dragoman.errors import CommandRefused, DragomanError, NoProgress
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.owner import is_gone
from dragoman.session import events as e
from dragoman.session.content import Content
from dragoman.session.reduce import reduce

if TYPE_CHECKING:
    from dragoman.cli.ask.remote_questions import Answers
    from dragoman.cli.render.console import Console
    from dragoman.cli.run.job import Job
    from dragoman.cli.run.run_hub import Meant

_QUESTIONS = (e.PermissionRequested, e.ElicitationRequested)
_LOOK_SECONDS = 1.0
_LAST_WORDS_SECONDS = 3.0
"""How long the end of a turn may take to be read when its owner is gone."""


class TurnElsewhere:
    """`record` of the `meant` session has an owner that is not us."""

    def __init__(
        self, hub: Hub, meant: Meant, job: Job, console: Console, answers: Answers | None
    ) -> None:
        assert meant.record is not None
        self._hub = hub
        self._id = meant.record.id
        self._state = meant.state
        self._job = job
        self._console = console
        self._answers = answers
        self._tally = Tally()
        self._started = self._taken_back = self._cancelled = False
        self._heard = 0.0
        self.turn_id = ""
        """Of the prompt, once it was sent."""

    async def send(self, prompt: list[Content]) -> None:
        """Have the owner take the prompt. Raises UsageError for a setting it refuses, and for a
        recording: the frames are its own."""
        if self._job.record.path is not None:
            sentence = "another process runs this session: its frames are seen there alone"
            raise UsageError(f"{sentence}; leave --record out, or wait until it has ended")
        await self._configure()
        reply = await self._hub.send(self._id, c.Prompt(prompt))
        self.turn_id = reply["turn"]
        if reply["queued"]:
            self._console.tell("queued: it is sent when the running turn has ended")

    async def _configure(self) -> None:
        options = self._job.options
        wanted: list[c.Command] = []
        if options.mode is not None:
            wanted.append(c.SetMode(options.mode))
        if options.model is not None:
            wanted.append(c.SetModel(options.model))
        for option, value in self._job.assignments:
            wanted.append(c.SetConfig(option, typed(self._state, option, value)))
        try:
            for command in wanted:
                await self._hub.send(self._id, command)
        except CommandRefused as error:
            if error.code not in ("invalid", "unsupported"):
                raise
            raise UsageError(str(error)) from error

    # ── following ─────────────────────────────────────────────────────────────────────────────

    async def follow(self) -> int | None:
        """Show the turn to its end; the exit code, None when nobody is left who would run it.

        Raises NoProgress when nothing happens in the session for as long as `--timeout` says.
        """
        following = asyncio.create_task(self._follow())
        watching = asyncio.create_task(self._until_left())
        timing = asyncio.create_task(self._until_silent())
        try:
            tasks = (following, watching, timing)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if timing.done() and not following.done():
                await self.cancel()
                raise NoProgress(self._id, self._job.options.timeout)
            await asyncio.wait((following,), timeout=_LAST_WORDS_SECONDS)
            if following.done() or self._started:
                return self._code(await following)
            return None
        finally:
            following.cancel()
            watching.cancel()
            timing.cancel()
            self._console.view.close()
            if self._answers is not None:
                self._answers.close()

    async def _until_left(self) -> None:
        """Until the session has no owner any more; another one may have come meanwhile."""
        while True:
            owner = await self._hub.store.owner(self._id)
            if owner is None or is_gone(owner):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _until_silent(self) -> None:
        """Until nothing was heard for as long as the run may wait: for ever, if it may. A question
        that nobody here answers is no progress either."""
        seconds: float | None = self._job.options.timeout
        self._heard = time.monotonic()
        while seconds is None or time.monotonic() < self._heard + seconds:
            if self._answers is not None and self._state.pending:
                self._heard = time.monotonic()
            await asyncio.sleep(_LOOK_SECONDS if seconds is None else min(seconds, _LOOK_SECONDS))

    async def _follow(self) -> e.TurnEnded | None:
        """The end of our turn; None when the prompt was taken back before it was sent."""
        async for page in self._hub.watch(self._id, self._state.last_seq):
            events = [stored.decode() for stored in page]
            self._heard = time.monotonic()
            if self._answers is not None:
                self._answers.hear(events)
            async with self._console.status.floor:
                for event in events:
                    self._see(event)
                    if isinstance(event, e.TurnEnded) and event.turn_id == self.turn_id:
                        return event
            if self._taken_back:
                return None
        return None

    def _see(self, event: e.Event) -> None:
        reduce(self._state, event)
        match event:
            case e.PromptUnqueued(queue_id=self.turn_id, dropped=True):
                self._taken_back = True
            case e.TurnStarted(turn_id=self.turn_id):
                self._started = True
            case _:
                pass
        if self._answers is None and isinstance(event, _QUESTIONS):
            how = f"`dragoman sessions answer {self._id}` gives one"
            self._console.tell(f"the session waits for an answer, which may come from there; {how}")
        if self._started:
            self._show(event)

    def _show(self, event: e.Event) -> None:
        self._tally.count(event)
        self._console.show(event, self._state)
        if self._answers is not None:
            self._answers.see(event)

    def _code(self, ended: e.TurnEnded | None) -> int:
        if ended is None:
            self._console.tell("the prompt was taken back before it was sent")
            return Exit.CANCELLED
        if ended.stop_reason == "cancelled":
            if not self._cancelled:
                self._console.tell("cancelled in another window")
            return Exit.CANCELLED
        if ended.error is not None:
            raise DragomanError(ended.error)
        if self._tally.all_refused:
            self._console.tell("all that needed permission was refused")
            return Exit.REFUSED
        return ended_with(ended.stop_reason)

    # ── Ctrl-C ────────────────────────────────────────────────────────────────────────────────

    async def cancel(self) -> None:
        """Our turn alone: the prompt is taken back while it waits."""
        self._cancelled = True
        queued = any(prompt.id == self.turn_id for prompt in self._state.queue)
        command = c.DropQueued(self.turn_id) if queued else c.Cancel()
        try:
            await self._hub.send(self._id, command)
        except DragomanError as error:
            self._console.tell(str(error))
