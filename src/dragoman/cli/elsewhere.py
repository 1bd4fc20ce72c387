"""A turn in a session that another process runs: sent to it, watched, answered and cancelled."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.cli.guard import Exit, UsageError
from dragoman.cli.tally import Tally
from dragoman.cli.values import typed
from dragoman.errors import CommandRefused, DragomanError
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.reduce import reduce

if TYPE_CHECKING:
    from dragoman.cli.answers import Answers
    from dragoman.cli.console import Console
    from dragoman.cli.engine import Meant
    from dragoman.cli.job import Job


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
        self._turn_id = ""
        self._cancelled = False

    async def run(self, output: Callable[[], None]) -> int:
        """Send the prompt and follow its turn; `output` is called before the first event."""
        await self._configure()
        after = self._state.last_seq
        reply = await self._hub.send(self._id, c.Prompt(self._job.prompt or []))
        self._turn_id = reply["turn"]
        if reply["queued"]:
            self._console.tell("queued: it is sent when the running turn has ended")
        output()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return self._code(await self._follow(after))
        finally:
            self._console.view.close()
            if self._answers is not None:
                self._answers.close()

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
            raise UsageError(str(error)) from error

    # ── following ─────────────────────────────────────────────────────────────────────────────

    async def _follow(self, after: int) -> e.TurnEnded | None:
        """The end of our turn; None when the prompt was taken back before it was sent."""
        ours = unqueued = False
        async for page in self._hub.watch(self._id, after):
            async with self._console.status.floor:
                for stored in page:
                    event = stored.decode()
                    reduce(self._state, event)
                    ours = ours or self._is_ours(event, e.TurnStarted)
                    if unqueued and not ours:
                        return None
                    unqueued = isinstance(event, e.PromptUnqueued) and (
                        event.queue_id == self._turn_id
                    )
                    if ours:
                        self._show(event)
                    if self._is_ours(event, e.TurnEnded) and isinstance(event, e.TurnEnded):
                        return event
        return None

    def _is_ours(self, event: e.Event, kind: type[e.TurnStarted] | type[e.TurnEnded]) -> bool:
        return isinstance(event, kind) and event.turn_id == self._turn_id

    def _show(self, event: e.Event) -> None:
        self._tally.count(event)
        self._console.show(event, self._state)
        if self._answers is not None:
            self._answers.see(event)

    def _code(self, ended: e.TurnEnded | None) -> int:
        if ended is None:
            self._console.tell("the prompt was taken back before it was sent")
            return Exit.CANCELLED
        if self._cancelled or ended.stop_reason == "cancelled":
            return Exit.CANCELLED
        if ended.error is not None:
            raise DragomanError(ended.error)
        if self._tally.all_refused:
            self._console.tell("all that needed permission was refused")
            return Exit.REFUSED
        return Exit.DONE

    # ── Ctrl-C ────────────────────────────────────────────────────────────────────────────────

    def _interrupt(self) -> None:
        if self._cancelled:
            raise KeyboardInterrupt
        self._cancelled = True
        self._console.tell("cancelling; Ctrl-C again only stops watching")
        self._cancelling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        """Our turn alone: take the prompt back while it waits."""
        queued = any(prompt.id == self._turn_id for prompt in self._state.queue)
        command = c.DropQueued(self._turn_id) if queued else c.Cancel()
        try:
            await self._hub.send(self._id, command)
        except DragomanError as error:
            self._console.tell(str(error))
