"""A conversation at the prompt: what is typed goes to the agent or to us, what happens goes above.

One task shows events, one brings the screen to the terminal, the main one reads the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

from prompt_toolkit.patch_stdout import patch_stdout

from dragoman.cli import setup
from dragoman.cli.ask import TerminalAsker, Tty
from dragoman.cli.chat.commands import OWN, route, run_command
from dragoman.cli.chat.completion import Completions
from dragoman.cli.chat.keys import bindings
from dragoman.cli.chat.prompt import Prompt
from dragoman.cli.chat.scene import Scene
from dragoman.cli.chat.screen import Screen, ScreenStatus
from dragoman.cli.guard import Exit, UsageError
from dragoman.cli.job import Job
from dragoman.cli.sign_in import sign_in
from dragoman.cli.status import Status
from dragoman.cli.style import BOLD, DIM, RED, Style, can_draw, wants_colour
from dragoman.cli.terminal import TerminalView
from dragoman.cli.values import assignment, typed
from dragoman.client.choices import option_of
from dragoman.client.client import Client
from dragoman.client.options import HostCapabilities
from dragoman.client.session import Session
from dragoman.client.turn import Turn
from dragoman.errors import (
    AuthRequired,
    CancelIgnored,
    CommandNotFound,
    DragomanError,
    SessionNotContinued,
    SlowConsumer,
    Unsupported,
)
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.session.state import SessionState

_TWICE_SECONDS = 2.0


def chat(options: argparse.Namespace) -> int:
    """Talk until the person leaves; the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('chat needs a terminal; for one turn, use dragoman "…"')
    return asyncio.run(Conversation(options).run())


class Conversation:
    """One chat. What commands need of it is public."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._job = _job(options)
        self.style = Style(colour=wants_colour(sys.stdout))
        self._screen = Screen()
        self._status = ScreenStatus(self._screen, self.style)
        self._screen.on_quiet = self._pause
        self._completions = Completions(OWN)
        self._prompt = Prompt(
            self._screen,
            self.style,
            completions=self._completions,
            keys=bindings(busy=self._is_busy, on_cancel=self._cancel),
            toolbar=self._toolbar,
        )
        self._asker = TerminalAsker(self._prompt.tty, self.style, self._status)
        self._client = self._start()
        self._scene = self._new_scene()
        self._session: Session | None = None
        self._turns: dict[str, Turn] = {}
        self._waited: set[str] = set()
        self._taking = asyncio.Lock()
        self._pressed = 0.0
        self._code: int | None = None
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def _start(self) -> Client:
        job, asker = self._job, self._asker if self._job.asks else None
        could_write = job.policy.could_allow("write", agent=job.agent.name, person=job.asks)
        return Client.start(
            job.command,
            name=job.agent.name,
            policy=job.policy,
            capabilities=HostCapabilities(write_files=could_write, elicitation=job.asks),
            permissions=asker,
            elicitation=asker,
            quirks=job.agent.quirks,
            listen=self._heard,
        )

    # ── the course of it ──────────────────────────────────────────────────────────────────────

    async def run(self) -> int:
        asyncio.get_running_loop().set_exception_handler(_ignore)
        async with AsyncExitStack() as stack:
            with Status(sys.stdout, visible=can_draw(sys.stdout), style=self.style) as status:
                status.doing(f"starting {self._client.name}")
                try:
                    await stack.enter_async_context(self._client)
                except CommandNotFound as error:
                    raise self._job.with_hint(error) from error
                self._enter(await self._open(status))
                await self._configure()
            return await self._talk()

    async def _open(self, status: Status) -> Session:
        while True:
            try:
                return await self._new_session()
            except AuthRequired as error:
                # The prompt is not there yet: this is asked at the bare terminal.
                asker = TerminalAsker(Tty(), self.style, status)
                await sign_in(self._client, self._job, error, asker)

    async def _new_session(self) -> Session:
        return await self._client.new_session(
            self._job.cwd,
            additional_directories=self._job.more_folders,
            mcp_servers=self._job.mcp_servers,
        )

    def _enter(self, session: Session) -> None:
        self._session = session
        self._completions.state = session.state
        self._completions.cwd = session.cwd
        self._spawn(self._show(self._scene))

    async def _configure(self) -> None:
        options, session = self._job.options, self.session
        try:
            if options.mode is not None:
                await session.set_mode(options.mode)
            if options.model is not None:
                await session.set_model(options.model)
            for option, value in self._job.assignments:
                await session.set_config_option(option, typed(session.state, option, value))
        except (ValueError, Unsupported) as error:
            raise UsageError(str(error)) from error

    def _greet(self) -> None:
        info = self._client.agent_info
        who = single_line(f"{info.title or info.name or self._client.name} {info.version}", 80)
        # What was typed while the agent started has been echoed; the prompt will show it again.
        clean = "\r\x1b[K" if can_draw(sys.stdout) else ""
        self.say(f"{clean}{self.style(who.strip(), BOLD)} in {single_line(self._job.cwd, 200)}")
        self.say(self.style(":help says what can be typed here, Ctrl-D leaves", DIM))

    async def _talk(self) -> int:
        # Also between two prompts nothing that is typed may be echoed over what is shown.
        with patch_stdout(raw=True), self._prompt.input.raw_mode():
            self._greet()
            await self._screen.settle()
            self._spawn(self._screen.run())
            try:
                while self._code is None:
                    await self._step()
            finally:
                for task in self._tasks:
                    task.cancel()
                await self._screen.settle()
        if self._failure is not None:
            raise self._failure
        return self._code

    async def _step(self) -> None:
        if self._prompt.is_asking:
            await self._prompt.answer()
            return
        try:
            text = await self._prompt.read()
        except EOFError:
            self.leave()
            return
        if text is not None and text.strip():
            self._spawn(self._take(text))

    # ── for commands ──────────────────────────────────────────────────────────────────────────

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def queued(self) -> list[Turn]:
        """The turns that wait, in order."""
        waiting = (self._turns.get(prompt.id) for prompt in self.session.state.queue)
        return [turn for turn in waiting if turn is not None]

    def say(self, line: str) -> None:
        """A line above the prompt."""
        self._screen.line(line)

    def leave(self, code: int = Exit.DONE) -> None:
        self._code = code
        self._prompt.take_away()

    async def begin_anew(self) -> None:
        """Another session with the same agent, which is started again if it is gone."""
        before = self.session
        if self._client.connection_error is not None:
            with suppress(SessionNotContinued):
                await before.reconnect()
        self._scene = self._new_scene()
        self._enter(await self._new_session())
        self.say(self.style("a new session", BOLD))
        with suppress(DragomanError):
            await before.close()

    # ── what was typed ────────────────────────────────────────────────────────────────────────

    async def _take(self, text: str) -> None:
        """One after the other, in the order typed; the prompt is there meanwhile."""
        async with self._taking:
            to = route(text, {command.name for command in self.session.state.commands})
            try:
                if to.to == "us":
                    await run_command(self, to.name, to.text)
                else:
                    await self._send(to.text)
            except (DragomanError, ValueError) as error:
                self._complain(str(error))

    async def _send(self, text: str) -> None:
        if self._client.connection_error is not None:
            await self.session.reconnect()
            self.say(self.style("the agent was started again, the session goes on", DIM))
        was_busy = self.session.busy
        turn = self.session.prompt(text.encode("utf-8", "replace").decode())
        self._turns[turn.id] = turn
        self._spawn(self._follow(turn))
        if was_busy:
            self._waited.add(turn.id)
            self.say(self.style(f"queued: {len(self.queued)} waiting; :drop takes it back", DIM))

    async def _follow(self, turn: Turn) -> None:
        try:
            with suppress(DragomanError):  # the event that ends the turn says so
                await turn
        finally:
            del self._turns[turn.id]

    # ── cancelling ────────────────────────────────────────────────────────────────────────────

    def _cancel(self) -> None:
        """Esc or Ctrl-C."""
        if self._is_busy():
            self._cancel_turn()
        elif self._prompt.clear():
            self._pressed = 0.0
        elif time.monotonic() - self._pressed < _TWICE_SECONDS:
            self.leave()
        else:
            self._pressed = time.monotonic()
            self.say(self.style("Ctrl-C again, or Ctrl-D, leaves", DIM))

    def _cancel_turn(self) -> None:
        running = self.session.state.turn
        if running is not None and running.status == "cancelling":
            self.leave(Exit.CANCELLED)
            return
        self.say(self.style("cancelling; Ctrl-C again ends the agent", DIM))
        self._spawn(self._cancel_session())

    async def _cancel_session(self) -> None:
        try:
            await self.session.cancel()
        except CancelIgnored as error:
            self._complain(f"{error}; Ctrl-C ends it")

    def _is_busy(self) -> bool:
        return self._session is not None and self._session.busy

    # ── showing ───────────────────────────────────────────────────────────────────────────────

    def _new_scene(self) -> Scene:
        view = TerminalView(self._status, self.style)
        self._asker.on_asked = view.asked
        return Scene(view)

    def _heard(self, session: Session, event: e.Event) -> None:
        self._scene.hear(session, event)

    async def _show(self, scene: Scene) -> None:
        while scene is self._scene:
            await scene.wait()
            # A question has the floor until it is answered.
            async with self._status.floor:
                self._show_all(scene)

    def _show_all(self, scene: Scene) -> None:
        try:
            events = scene.take()
        except SlowConsumer:
            self._complain("too much came to be shown; some of it was left out")
            return
        for event in events:
            if isinstance(event, e.TurnStarted) and event.turn_id in self._waited:
                self.say(self.style(f"› {sanitise(event.text)}", DIM))
            scene.show(event)
            if isinstance(event, e.TurnEnded):
                self._ended(event)

    def _ended(self, event: e.TurnEnded) -> None:
        self._status.doing("")
        if event.error is not None:
            self._complain(event.error)
        elif event.stop_reason == "cancelled":
            self.say(self.style("cancelled", DIM))

    def _pause(self) -> None:
        self._status.on_quiet()

    def _complain(self, sentence: str) -> None:
        self.say(self.style(f"dragoman: {sanitise(sentence)}", RED))

    def _toolbar(self) -> str:
        if self._session is None:
            return ""
        state, words = self._session.state, self._status.words
        model = option_of(state.config_options, "model")
        parts = [
            self._client.name,
            "" if state.mode is None else state.mode.name,
            "" if model is None else str(model.value),
            _context(state),
            f"{words} · {time.monotonic() - self._status.since:.0f} s" if words else "",
            f"{len(state.queue)} queued" if state.queue else "",
        ]
        return single_line(" · ".join(filter(None, parts)), 200)

    # ── tasks ─────────────────────────────────────────────────────────────────────────────────

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self.leave(Exit.FAILED)


def _job(options: argparse.Namespace) -> Job:
    """What is known before an agent is started. Raises UsageError, ConfigError or UnknownAgent."""
    choice = setup.choose_agent(options)
    cwd, more_folders = setup.folders(options)
    command = choice.command
    return Job(
        options=options,
        agent=choice.agent,
        known=choice.known,
        command=command if options.agent_command else setup.started_in(command, cwd),
        mcp_servers=choice.mcp_servers,
        policy=setup.policy(options),
        cwd=cwd,
        more_folders=more_folders,
        assignments=[assignment(text) for text in options.set],
        asks=options.on_ask != "reject",
        prompt=None,
    )


def _context(state: SessionState) -> str:
    usage = state.usage
    return f"context {usage.used * 100 // usage.size} %" if usage and usage.size else ""


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody awaits any more must not be printed over the prompt."""
