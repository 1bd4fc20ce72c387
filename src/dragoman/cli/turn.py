"""The course of a run: start the agent, open a session, list, prompt, and say how it ended."""

from __future__ import annotations

import asyncio
import sys

from dragoman.cli.ask import TerminalAsker, Tty
from dragoman.cli.console import WAITING, Console
from dragoman.cli.feed import Feed
from dragoman.cli.frames import FrameTap
from dragoman.cli.guard import Exit, UsageError
from dragoman.cli.interrupts import Interrupts
from dragoman.cli.job import Job
from dragoman.cli.lists import Lists
from dragoman.cli.sign_in import sign_in, sign_in_needed
from dragoman.cli.tally import Tally
from dragoman.cli.terminal import TerminalView
from dragoman.client.client import Client
from dragoman.client.options import HostCapabilities, Timeouts
from dragoman.client.session import Session
from dragoman.client.turn import Turn
from dragoman.errors import (
    AuthRequired,
    CommandNotFound,
    DragomanError,
    RemoteError,
    RequestCancelled,
    Unsupported,
)
from dragoman.rpc import Tap
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState


def run_job(job: Job) -> int:
    """Do it; the exit code."""
    try:
        return asyncio.run(Run(job).run())
    except asyncio.CancelledError:
        return Exit.CANCELLED


class Run:
    """One run, from the agent's start to its end."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._output = "jsonl" if job.options.output == "json" else job.options.output
        self._console = Console(self._output)
        self._status = self._console.status
        self._lists = Lists(job.options, self._console.writer.write)
        self._asker = self._find_asker()
        self._feed = Feed()
        self._state = SessionState()
        self._tally = Tally()

    async def run(self) -> int:
        with Interrupts(self._console.tell) as interrupts, self._status:
            try:
                return await self._with_agent(interrupts)
            except CommandNotFound as error:
                raise self._job.with_hint(error) from error
            except asyncio.CancelledError:
                if not interrupts.pressed:
                    raise
                return Exit.CANCELLED

    # ── what it needs ─────────────────────────────────────────────────────────────────────────

    def _find_asker(self) -> TerminalAsker | None:
        if not self._job.asks:
            return None
        try:
            tty = Tty()
        except UsageError:
            if self._job.options.on_ask == "prompt":
                raise
            return None
        asker = TerminalAsker(tty, self._console.style, self._status)
        if isinstance(self._console.view, TerminalView):
            asker.on_asked = self._console.view.asked
        return asker

    def _client(self) -> Client:
        job, asker = self._job, self._asker
        could_write = job.policy.could_allow(
            "write", agent=job.agent.name, person=asker is not None
        )
        return Client.start(
            job.command,
            name=job.agent.name,
            policy=job.policy,
            capabilities=HostCapabilities(
                write_files=could_write, elicitation=asker is not None, terminal_sign_in=True
            ),
            timeouts=_timeouts(job.options.timeout),
            tap=self._tap(),
            permissions=asker,
            elicitation=asker,
            quirks=job.agent.quirks,
            listen=self._feed.push,
        )

    def _tap(self) -> Tap | None:
        if self._output != "jsonl":
            return None
        tap = FrameTap(sys.stdout.buffer, self._status, self._feed.fail)
        tap.announce(self._job.agent.name, self._job.command.command)
        return tap.frame

    # ── the course of it ──────────────────────────────────────────────────────────────────────

    async def _with_agent(self, interrupts: Interrupts) -> int:
        client = self._client()
        self._status.doing(f"starting {client.name}")
        async with client:
            self._lists.of_agent(client)
            if self._job.prompt is None and not self._needs_session:
                return Exit.DONE
            session = await self._open(client)
            await self._configure(session)
            self._status.doing(WAITING)
            await self._lists.of_session(session, self._feed)
            if self._job.prompt is None:
                return Exit.DONE
            self._lists.close()
            interrupts.turn_of(session)
            try:
                return await self._turn(client, session)
            finally:
                interrupts.turn_of(None)
                self._console.view.close()
                self._status.doing(f"ending {client.name}")

    @property
    def _needs_session(self) -> bool:
        options = self._job.options
        settings = options.mode is not None or options.model is not None or options.set
        return self._lists.need_session or bool(settings)

    async def _open(self, client: Client) -> Session:
        while True:
            try:
                return await client.new_session(
                    self._job.cwd,
                    additional_directories=self._job.more_folders,
                    mcp_servers=self._job.mcp_servers,
                )
            except AuthRequired as error:
                await sign_in(client, self._job, error, self._asker)

    async def _configure(self, session: Session) -> None:
        """Mode, model and options before the prompt. Raises UsageError for what is not there."""
        options = self._job.options
        try:
            if options.mode is not None:
                await session.set_mode(options.mode)
            if options.model is not None:
                await session.set_model(options.model)
            for option, value in self._job.assignments:
                await session.set_config_option(option, _typed(session, option, value))
        except (ValueError, Unsupported) as error:
            raise UsageError(str(error)) from error

    # ── the turn ──────────────────────────────────────────────────────────────────────────────

    async def _turn(self, client: Client, session: Session) -> int:
        turn = session.prompt(self._job.prompt or [])
        ended = asyncio.create_task(_end_of(turn))
        await self._show_until_end(turn.id)
        error = await ended
        if turn.cancel_requested:
            return self._cancelled(error)
        if self._tally.all_refused and (error is None or isinstance(error, RemoteError)):
            return self._refused(error)
        if isinstance(error, AuthRequired):
            raise sign_in_needed(client, self._job) from error
        if error is not None:
            raise error
        return Exit.DONE

    async def _show_until_end(self, turn_id: str) -> None:
        while True:
            await self._feed.wait()
            # All of it, before a question can get between: what leads to a question comes first.
            async with self._status.floor:
                for event in self._feed.take():
                    self._show(event)
                    if isinstance(event, e.TurnEnded) and event.turn_id == turn_id:
                        return

    def _show(self, event: e.Event) -> None:
        # A state of our own: the session's is ahead of the events that are still to be shown.
        reduce(self._state, event)
        self._tally.count(event)
        self._console.show(event, self._state)

    def _cancelled(self, error: DragomanError | None) -> int:
        if error is not None and not isinstance(error, RequestCancelled):
            self._console.tell(str(error))
        return Exit.CANCELLED

    def _refused(self, error: RemoteError | None) -> int:
        if error is not None:
            self._console.tell(str(error))
        hint = "; see --write, --exec and --policy" if self._asker is None else ""
        self._console.tell(f"all that needed permission was refused{hint}")
        return Exit.REFUSED


def _timeouts(seconds: float | None) -> Timeouts:
    """No progress is no progress, when the agent starts too."""
    if seconds is None:
        return Timeouts()
    return Timeouts(initialize=seconds, control=seconds, progress=seconds)


def _typed(session: Session, option_id: str, text: str) -> str | bool:
    """A value as the option wants it: some are switches."""
    options = {option.id: option for option in session.state.config_options}
    option = options.get(option_id)
    switches = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if option is not None and option.choices is None:
        return switches.get(text.lower(), text)
    return text


async def _end_of(turn: Turn) -> DragomanError | None:
    """Wait for the end; why, if the turn was cut short."""
    try:
        await turn
    except DragomanError as error:
        return error
    return None
