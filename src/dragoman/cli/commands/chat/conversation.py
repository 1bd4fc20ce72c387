"""The conversation: sends prompts, runs slash commands, and shows events above the prompt.

One task shows events, one brings the screen to the terminal, the main one reads the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.patch_stdout import patch_stdout

from dragoman.cli.ask.asker import TerminalAsker, Tty
from dragoman.cli.ask.session_questions import SessionQuestions
from dragoman.cli.commands.chat.call_viewer import CallViewer
from dragoman.cli.commands.chat.chat_session import ChatSession
from dragoman.cli.commands.chat.completions import Completions
from dragoman.cli.commands.chat.foreground import edited, run_shell
from dragoman.cli.commands.chat.notifier import Notifier
from dragoman.cli.commands.chat.pasted_blocks import PastedBlocks
from dragoman.cli.commands.chat.prompt import ChatPrompt, bindings
from dragoman.cli.commands.chat.screen import ChatStage, Screen, ScreenStatus, recap
from dragoman.cli.commands.chat.slash_commands import OWN, route, run_command, typed_as
from dragoman.cli.exit_codes import Exit, UsageError, tell
from dragoman.cli.render.event_text import cost_words
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import BOLD, DIM, RED, Style, can_draw, wants_colour
from dragoman.cli.render.terminal_view import TerminalView
from dragoman.cli.render.wrap import folded
from dragoman.cli.run.agent_setup import client_for, configure
from dragoman.cli.run.elsewhere.remote_session import check_shared, configure_elsewhere, until_left
from dragoman.cli.run.elsewhere.steer_command import steer_sentence
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import hub_of, meant_by, open_live, runs_elsewhere
from dragoman.cli.run.interrupts import Interrupts
from dragoman.cli.run.job import for_session, prepare
from dragoman.cli.standard_streams import terminal_width
from dragoman.cli.warm.start_terms import met
from dragoman.client.client import Client
from dragoman.client.sessions.config_options import option_of
from dragoman.client.sessions.prompts import find_mentions
from dragoman.client.sessions.turn import Turn
from dragoman.errors import CommandNotFound, DragomanError
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import told_of_outages
from dragoman.hub.stored.stored_sessions import find_session
from dragoman.safe_text import columns, sanitise, single_line
from dragoman.session.content import Content, Text
from dragoman.session.facts import Offer
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord

_TWICE_SECONDS = 2.0


def chat(options: argparse.Namespace) -> int:
    """Talk until the person leaves; the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('chat needs a terminal; for one turn, use dragoman "…"')
    try:
        return asyncio.run(Conversation(options).run())
    except asyncio.CancelledError:  # Ctrl-C twice
        return Exit.CANCELLED


class Conversation:
    """One chat. What commands need of it is public."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.job = prepare(options, asks=options.on_ask in (None, "prompt"))
        self.style = Style(colour=wants_colour(sys.stdout))
        self._screen = Screen()
        self._status = ScreenStatus(self._screen, self.style)
        self._screen.on_quiet = self._pause
        self._completions = Completions(OWN)
        self.notifier = Notifier(options.notify or self.job.notify, self.job.agent.name)
        pasted = PastedBlocks()
        self._prompt = ChatPrompt(
            self._screen,
            self.style,
            completions=self._completions,
            pasted=pasted,
            keys=bindings(
                pasted,
                busy=self._is_busy,
                on_cancel=self._cancel,
                on_other=self._turn_round,
                on_calls=lambda: self._spawn_front(self._go_through_calls()),
                on_edit=lambda: self._spawn_front(self.edit("")),
            ),
            toolbar=self._toolbar,
            above=self._held_plan,
            on_asked=self.notifier.asked,
        )
        self._asker = TerminalAsker(self._prompt.tty, self.style, self._status)
        self._questions: SessionQuestions | None = None
        self._following: asyncio.Task[None] | None = None
        self._hub: Hub | None = None
        self._session: ChatSession | None = None
        self._minding: asyncio.Task[None] | None = None
        """Notices that the process has left which runs the session."""
        self.attached: list[tuple[str, Content]] = []
        """What goes with the next prompt, by name."""
        self._view: TerminalView | None = None
        self._enter_does = self.job.enter
        self._other = False
        """Whether what is being sent goes the other way."""
        self._taking = asyncio.Lock()
        self._pressed = 0.0
        self._code: int | None = None
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ── the course of it ──────────────────────────────────────────────────────────────────────

    async def run(self) -> int:
        asyncio.get_running_loop().set_exception_handler(_ignore)
        async with AsyncExitStack() as stack:
            if not await self._begin(stack):
                return Exit.CANCELLED
            code = await self._talk()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all has ended in order
        self._say_how_to_go_on()
        return code

    def _say_how_to_go_on(self) -> None:
        session = self._session
        if session is not None and session.state.turns and not self.job.options.no_store:
            how = f"dragoman chat --resume {session.id}"
            print(self.style(f"to continue this session:\n  {how}", DIM))

    async def _begin(self, stack: AsyncExitStack) -> bool:
        """Start the agent and open a session; False when Ctrl-C was pressed meanwhile."""
        name = self.job.agent.name
        with (
            Status(sys.stdout, visible=can_draw(sys.stdout), style=self.style) as status,
            Interrupts(tell, lambda: status.doing(f"ending {name}")) as interrupts,
        ):
            status.doing(f"starting {name}")
            try:
                waits = self.job.asks or self.job.options.on_ask == "wait"
                made = hub_of(self.job, self._start, attended=waits)
                self._hub = await stack.enter_async_context(made)
                told = told_of_outages(self._hub.store, self.say)
                await stack.enter_async_context(told)
                await self._open(self._hub, stack, status)
            except CommandNotFound as error:
                raise self.job.with_hint(error) from error
            except asyncio.CancelledError:
                if not interrupts.pressed:
                    raise
                await stack.aclose()
                return False
        return True

    def _start(self, offer: Offer) -> Client:
        return client_for(self.job, self._asker if self.job.asks else None, offer)

    async def _open(self, hub: Hub, stack: AsyncExitStack, status: Status) -> None:
        # The prompt is not there yet: a way to sign in is chosen at the bare terminal.
        def asker() -> TerminalAsker:
            return TerminalAsker(Tty(), self.style, status)

        meant = await meant_by(hub, self.job)
        if (record := meant.record) is not None:
            self.job = for_session(self.job, record)
            if self.job.options.fork is None and await self._runs_elsewhere(hub, record):
                await configure_elsewhere(hub, self.job, record.id, meant.state)
                self._join(hub, record, meant.state)
                return
        job = self.job
        using = hub.using(job.agent.name, job.cwd, meant.offer(job), meant.folders)
        await stack.enter_async_context(using)
        live = await open_live(hub, self.job, meant, asker)
        self._enter(hub, live.record, meant.state)
        await configure(live.session, self.job)

    async def _runs_elsewhere(self, hub: Hub, record: SessionRecord) -> bool:
        """Whether another process runs it. One that keeps an agent warm for other options than ours
        ends first. Raises UsageError for options that the other process cannot carry out."""
        if not await runs_elsewhere(hub, record):
            return False
        attended = self.job.asks or self.job.options.on_ask == "wait"
        is_elsewhere, warm = await met(hub, self.job, record, attended=attended)
        if is_elsewhere and warm is None:
            check_shared(self.job, record)
        return is_elsewhere

    def _join(self, hub: Hub, record: SessionRecord, now: SessionState) -> None:
        """Show a session that another process runs, a turn that runs from its beginning."""
        if now.turn is None:
            self._enter(hub, record, now)
        else:
            before, since = SessionState(), now.turn.seq
            self._enter(hub, record, before, since=since, asks_from=now.last_seq)
        self._minding = self._spawn(self._mind_owner(self.session))

    async def _mind_owner(self, session: ChatSession) -> None:
        """Say that the process has left which ran the session, and send what waits for it here."""
        await until_left(self.hub, session.id)
        try:
            if session.live is None and not await session.take_over():
                self.say("the process that ran the session has ended", DIM)
                self.say("your next prompt continues it here", DIM)
        except DragomanError as error:
            self._complain(str(error))

    def _enter(
        self,
        hub: Hub,
        record: SessionRecord,
        state: SessionState,
        *,
        since: int = 0,
        asks_from: int = 0,
    ) -> None:
        """Show what happens in it: from where the state is, or from the event `since`."""
        self._leave_session()
        session = self._session = ChatSession(hub, self.job, record, state)
        self._completions.state = session.shown
        self._completions.cwd = session.cwd
        view = self._view = TerminalView(self._status, self.style, in_chat=True)
        self._asker.on_asked = view.asked
        if self.job.asks:
            self._questions = SessionQuestions(
                hub,
                session.id,
                self.job.agent.name,
                self._asker,
                lambda sentence: self.say(sanitise(sentence), DIM),
                must_answer=session.live is not None,
            )
        follower = Follower(
            ChatStage(self._status, view, self.say, self.notifier),
            state,
            knows=session.knows,
            questions=self._questions,
            since=since,
            asks_from=asks_from,
        )
        follower.listen(hub, session.id)
        self._following = self._spawn(_followed(follower))

    def _leave_session(self) -> None:
        """Show nothing more of the session that is shown now."""
        for task in (self._following, self._minding):
            if task is not None:
                task.cancel()
        if self._questions is not None:
            self._questions.close()

    def _greet(self) -> None:
        session = self.session
        who = session.agent_name
        if session.live is not None:
            info = session.live.agent.client.agent_info
            who = single_line(f"{info.title or info.name or who} {info.version}", 80).strip()
        # What was typed while the agent started has been echoed; the prompt will show it again.
        clean = "\r\x1b[K" if can_draw(sys.stdout) else ""
        where = single_line(self.job.cwd, 200)
        if columns(f"{who} in {where}") < terminal_width():
            self.show(f"{clean}{self.style(who, BOLD)} in {where}")
        else:
            self.show(f"{clean}{self.style(who, BOLD)}")
            self.say(where, indent="  in ")
        self._tell_where_it_stands()
        self.say("/help lists the commands, Ctrl-D quits", DIM)

    def _tell_where_it_stands(self) -> None:
        for sentence in self.session.standing:
            self.say(sentence, DIM)
        for line in recap(self.session.state, self.style):
            self.show(line)

    async def _talk(self) -> int:
        # Also between two prompts nothing that is typed may be echoed over what is shown.
        with patch_stdout(raw=True), self._prompt.input.raw_mode():
            self._greet()
            await self._screen.settle()
            self._spawn(self._screen.run())
            if (first := self.job.options.prompt) is not None:
                self.say(sanitise(first), indent="› ")
                self._spawn(self._take(first, steers=False))
            try:
                while self._code is None:
                    await self._step()
            finally:
                for task in self._tasks:
                    task.cancel()
                self._put_down()
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
        other, self._other = self._other, False
        if text is not None and text.strip():
            steers = self._is_busy() and (self._enter_does == "steer") != other
            self._spawn(self._take(text, steers=steers))

    # ── for commands ──────────────────────────────────────────────────────────────────────────

    @property
    def hub(self) -> Hub:
        assert self._hub is not None
        return self._hub

    @property
    def session(self) -> ChatSession:
        assert self._session is not None
        return self._session

    def say(self, text: str, *codes: str, indent: str = "") -> None:
        """A sentence above the prompt, in lines that fit; what it holds is safe to show."""
        for line in text.split("\n"):
            for fitting in folded(line, indent):
                self.show(self.style(fitting, *codes))
            indent = " " * len(indent)

    def show(self, line: str) -> None:
        """A line above the prompt, painted already."""
        self._screen.line(line)

    async def edit(self, text: str) -> None:
        """Have the person write in their editor, what is typed already or this text; it is then in
        the line. Raises ValueError if the editor fails."""
        async with self._status.floor:
            written = await edited(text or self._prompt.draft, self._prompt.input)
        self._prompt.write(written)

    def leave(self, code: int = Exit.DONE) -> None:
        self._code = code
        self._prompt.take_away()

    async def begin_anew(self) -> None:
        """Another session with the same agent, which is started again if it is gone."""
        job, before = self.job, self.session
        live = await self.hub.create(
            job.agent.name,
            job.cwd,
            additional_directories=job.more_folders,
            offer=before.record.offer,
            system_prompt=before.record.system_prompt,
        )
        try:
            await configure(live.session, job)
        except (UsageError, DragomanError) as error:
            self._complain(str(error))  # the session exists anyway
        self._put_down()
        self._enter(self.hub, live.record, SessionState())
        self.say("a new session", BOLD)
        await self._leave_behind(before)

    async def resume(self, word: str) -> None:
        """Continue another session of this agent in this folder. Raises UsageError for any other,
        UnknownSession, and what opening it raises."""
        hub, before = self.hub, self.session
        record = await find_session(hub.store, word, self.job.cwd)
        if record.id == before.id:
            raise UsageError(f"this is session {record.id}")
        if (record.agent, record.cwd) != (before.record.agent, before.cwd):
            whose = f"session {record.id} is one of {record.agent} in {record.cwd}"
            raise UsageError(f"{whose}; leave, and use dragoman chat --resume {record.id}")
        state = await hub.state(record.id)
        if await self._runs_elsewhere(hub, record):
            self._put_down()
            self._join(hub, record, state)
        else:
            live = await hub.open(record.id, on_reset=self.job.options.on_reset)
            self._put_down()
            self._enter(hub, live.record, state)
        self._tell_where_it_stands()
        await self._leave_behind(before)

    async def _leave_behind(self, before: ChatSession) -> None:
        if before.state.turns and not self.job.options.no_store:
            self.say(f"the previous session is kept as {before.id}", DIM)
        if (live := before.live) is not None:
            await self.hub.detach(live)
            if live.is_unused:
                await self.hub.delete(before.id, local=True)

    def _put_down(self) -> None:
        """Nothing is sent, or continues, behind the back of a person who leaves the session."""
        self._status.fresh_line()
        if (session := self._session) is None:
            return
        for words in session.drop_typed():
            self.say(f"not sent: {single_line(words, 60)}", DIM)
        if not session.is_busy:
            return
        running = session.state.turn
        if session.live is None:
            self.say("the turn continues where the session is running", DIM)
        elif running is not None and running.status != "cancelling":
            self.say("the running turn is cancelled", DIM)

    # ── what was typed ────────────────────────────────────────────────────────────────────────

    def _turn_round(self) -> None:
        """Alt-Enter."""
        self._other = True

    async def _take(self, text: str, *, steers: bool) -> None:
        """One after the other, in the order typed; the prompt is there meanwhile."""
        async with self._taking:
            to = route(text, {command.name for command in self.session.state.commands})
            try:
                if text.startswith("!"):
                    await self._run_shell(text[1:].strip())
                elif to.to == "us":
                    await run_command(self, to.name, to.text)
                elif steers:
                    await self._steer(to.text)
                else:
                    await self._send(to.text)
            except (DragomanError, ValueError) as error:
                self._complain(str(error))

    async def _run_shell(self, line: str) -> None:
        if not line:
            raise ValueError("usage: !COMMAND runs it in your shell; the agent does not see it")
        async with self._status.floor:  # a question waits until the terminal is free again
            code = await run_shell(line, self.session.cwd, self._prompt.input)
        if code:
            self.say(f"exit code {code}", DIM)

    async def _go_through_calls(self) -> None:
        viewer = CallViewer(self.session.state, self.style)
        if viewer.is_empty:
            self.say("no tool calls yet", DIM)
            return
        async with self._status.floor, in_terminal():
            await viewer.run()

    def _spawn_front(self, work: Coroutine[Any, Any, None]) -> None:
        """What takes the terminal over; one at a time, and not while a question is open."""

        async def run() -> None:
            async with self._taking:
                try:
                    await work
                except (DragomanError, ValueError) as error:
                    self._complain(str(error))

        if self._prompt.is_asking or self._taking.locked():
            work.close()
        else:
            self._spawn(run())

    def _with_attachments(self, text: str) -> str | list[Content]:
        if not self.attached:
            return text
        links = find_mentions(text, self.session.cwd).links
        contents, self.attached = [content for _, content in self.attached], []
        return [Text(text), *links, *contents]

    async def _send(self, text: str) -> None:
        session = self.session
        was_lost = session.has_lost_its_agent
        text = text.encode("utf-8", "replace").decode()
        sent = await session.prompt(self._with_attachments(text))
        if sent.turn is not None:
            self._spawn(_end_of(sent.turn))
        if was_lost:
            self.say("the agent was restarted, and the session continues", DIM)
        if sent.is_queued:
            drop = typed_as("drop", {command.name for command in session.state.commands})
            waiting = max(len(session.state.queue), 1)
            self.say(f"queued: {waiting} waiting; {drop} withdraws it", DIM)

    async def _steer(self, text: str) -> None:
        reply = await self.session.steer(text.encode("utf-8", "replace").decode())
        if reply["outcome"] not in ("refused", "unsure"):  # of those the session's events tell
            self.say(steer_sentence(reply["outcome"], reply["reason"]), DIM)

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
            self.say("Ctrl-C again, or Ctrl-D, quits", DIM)

    def _cancel_turn(self) -> None:
        running = self.session.state.turn
        if running is not None and running.status == "cancelling":
            self.leave(Exit.CANCELLED)
            return
        does = "leaves" if self.session.live is None else "ends the agent"
        self.say(f"cancelling; Ctrl-C again {does}", DIM)
        self._spawn(self._cancel_session())

    async def _cancel_session(self) -> None:
        try:
            await self.session.send(c.Cancel())
        except DragomanError as error:
            ends = "" if self.session.live is None else "; Ctrl-C ends it"
            self._complain(f"{error}{ends}")

    def _is_busy(self) -> bool:
        return self._session is not None and self._session.is_busy

    # ── showing ───────────────────────────────────────────────────────────────────────────────

    def _pause(self) -> None:
        self._status.on_quiet()

    def _held_plan(self, rows: int) -> list[str]:
        return [] if self._view is None else self._view.held_plan(rows)

    def _complain(self, sentence: str) -> None:
        self.say(f"dragoman: {sanitise(sentence)}", RED)

    def _toolbar(self) -> str:
        """What is happening, first: a narrow window has no room for the rest."""
        if self._session is None:
            return ""
        state = self._session.state
        asking = self._prompt.is_asking
        model = option_of(state.config_options, "model")
        parts = [
            "waiting for your answer" if asking else self._status.words,
            f"{len(state.queue)} queued" if state.queue else "",
            self._keys_now,
            self._session.agent_name,
            "" if state.mode is None else state.mode.name,
            "" if model is None else str(model.value),
            _context(state),
        ]
        return single_line(" · ".join(filter(None, parts)), terminal_width() - 1)

    @property
    def _keys_now(self) -> str:
        if not self._is_busy() or self._prompt.is_asking:
            return ""
        does = ("steers", "queues") if self._enter_does == "steer" else ("queues", "steers")
        return f"Enter {does[0]}, Alt-Enter {does[1]}"

    # ── tasks ─────────────────────────────────────────────────────────────────────────────────

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self.leave(Exit.FAILED)


async def _followed(follower: Follower) -> None:
    """For as long as the session is there."""
    await follower.follow(lambda: False)


async def _end_of(turn: Turn) -> None:
    """Awaited, it says that nobody but us answers its questions."""
    with suppress(DragomanError):  # the event that ends the turn says so
        await turn


def _context(state: SessionState) -> str:
    usage = state.usage
    if usage is None:
        return ""
    cost = "" if usage.cost is None else cost_words(usage.cost)
    context = f"context {usage.used * 100 // usage.size} %" if usage.size else ""
    return " · ".join(filter(None, (context, cost)))


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An error that nobody awaits must not be printed over the prompt."""
