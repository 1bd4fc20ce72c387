"""A turn in a session that another process runs: sent to it, followed, and cancelled."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import Exit, UsageError, ended_with
from dragoman.cli.options import typed
from dragoman.cli.run.follower import Follower, OwnTurn
from dragoman.errors import CommandRefused, DragomanError, NoProgress, UnknownSession
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.owner import is_gone
from dragoman.session import events as e
from dragoman.session.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.cli.ask.session_questions import SessionQuestions
    from dragoman.cli.render.console import Console
    from dragoman.cli.run.job import Job
    from dragoman.cli.run.run_hub import Meant

_LOOK_SECONDS = 1.0
_LAST_WORDS_SECONDS = 3.0
"""How long the end of a turn may take to be read when its owner is gone."""


class _Unanswered:
    """Asks nobody, but says that the session waits for an answer."""

    def __init__(self, session_id: str, tell: Callable[[str], None]) -> None:
        self.fail: Callable[[BaseException], None] = lambda error: None
        self._session_id = session_id
        self._tell = tell

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionRequested | e.ElicitationRequested):
            how = f"give one with `dragoman sessions answer {self._session_id}`"
            self._tell(f"the session is waiting for an answer; {how}")

    def ask(self) -> None:
        pass


class TurnElsewhere:
    """`record` of the `meant` session has an owner that is not us."""

    def __init__(
        self, hub: Hub, meant: Meant, job: Job, console: Console, questions: SessionQuestions | None
    ) -> None:
        assert meant.record is not None
        self._hub = hub
        self._id = meant.record.id
        self._job = job
        self._console = console
        self._questions = questions
        self._turn = OwnTurn("")
        self._follower = Follower(
            console,
            meant.state,
            others="ask" if questions is None else "skip",
            questions=questions or _Unanswered(self._id, console.tell),
        )
        self._cancelled = False
        self._heard = 0.0

    @property
    def turn_id(self) -> str:
        """Of the prompt, once it was sent."""
        return self._turn.id

    async def send(self, prompt: list[Content]) -> None:
        """Have the owner take the prompt. Raises UsageError for a setting it refuses, and for a
        recording: the frames are its own."""
        if self._job.record.path is not None:
            sentence = "another process is running this session, and only it has the frames"
            raise UsageError(f"{sentence}; remove --record, or wait until it has ended")
        await self._configure()
        reply = await self._hub.send(self._id, c.Prompt(prompt))
        self._turn = self._follower.turn = OwnTurn(reply["turn"])
        if reply["queued"]:
            self._console.tell("queued: it will be sent when the running turn ends")

    async def _configure(self) -> None:
        options = self._job.options
        wanted: list[c.Command] = []
        if options.mode is not None:
            wanted.append(c.SetMode(options.mode))
        if options.model is not None:
            wanted.append(c.SetModel(options.model))
        for option, value in self._job.assignments:
            wanted.append(c.SetConfig(option, typed(self._follower.state, option, value)))
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
        self._follower.listen(self._hub, self._id)
        following = asyncio.create_task(self._follower.follow(self._is_over))
        watching = asyncio.create_task(self._until_left())
        timing = asyncio.create_task(self._until_silent())
        try:
            tasks = (following, watching, timing)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if timing.done() and not following.done():
                await self.cancel()
                raise NoProgress(self._id, self._job.options.timeout)
            await asyncio.wait((following,), timeout=_LAST_WORDS_SECONDS)
            if following.done() or self._turn.started:
                if not await following:
                    raise UnknownSession(self._id)
                return self._code()
            return None
        finally:
            following.cancel()
            watching.cancel()
            timing.cancel()
            self._console.view.close()
            if self._questions is not None:
                self._questions.close()

    async def _until_left(self) -> None:
        """Until the session has no owner; another one may have come meanwhile."""
        while True:
            owner = await self._hub.store.owner(self._id)
            if owner is None or is_gone(owner):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _until_silent(self) -> None:
        """Until nothing was heard for as long as the run may wait: forever, if it may. A question
        that nobody here answers does not count as progress either."""
        seconds: float | None = self._job.options.timeout
        self._heard = time.monotonic()
        while seconds is None or time.monotonic() < self._heard + seconds:
            if self._questions is not None and self._follower.state.pending:
                self._heard = time.monotonic()
            await asyncio.sleep(_LOOK_SECONDS if seconds is None else min(seconds, _LOOK_SECONDS))

    def _is_over(self) -> bool:
        """Asked whenever something was heard."""
        self._heard = time.monotonic()
        return self._turn.is_over

    def _code(self) -> int:
        ended = self._turn.ended
        if ended is None:
            self._console.tell("the prompt was withdrawn before it was sent")
            return Exit.CANCELLED
        if ended.stop_reason == "cancelled":
            if not self._cancelled:
                self._console.tell("cancelled in another window")
            return Exit.CANCELLED
        if ended.error is not None:
            raise DragomanError(ended.error)
        if self._turn.tally.all_refused:
            self._console.tell("every permission request was refused")
            return Exit.REFUSED
        return ended_with(ended.stop_reason)

    # ── Ctrl-C ────────────────────────────────────────────────────────────────────────────────

    async def cancel(self) -> None:
        """Our turn alone: the prompt is taken back while it waits."""
        self._cancelled = True
        queued = any(prompt.id == self.turn_id for prompt in self._follower.state.queue)
        command = c.DropQueued(self.turn_id) if queued else c.Cancel()
        try:
            await self._hub.send(self._id, command)
        except DragomanError as error:
            self._console.tell(str(error))
