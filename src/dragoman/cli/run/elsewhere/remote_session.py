"""A session that another process runs: watched here, or prompted, followed and cancelled."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING, Literal

from dragoman.cli.ask.asker import asker_on
from dragoman.cli.ask.refusal_hint import all_refused
from dragoman.cli.ask.session_questions import QuestionsElsewhere, SessionQuestions
from dragoman.cli.exit_codes import Exit, UsageError, ended_with, tell
from dragoman.cli.options import typed
from dragoman.cli.render.console import Console
from dragoman.cli.render.event_text import called
from dragoman.cli.render.printed_json import json_line
from dragoman.cli.run.agent_setup import given_rules, typed_rules
from dragoman.cli.run.follower import Follower, OwnTurn
from dragoman.cli.run.given_limits import limits_in, typed_limits
from dragoman.cli.run.hub_access import opened_session
from dragoman.errors import (
    AuthRequired,
    CommandRefused,
    DragomanError,
    NoProgress,
    SignInNeeded,
    UnknownSession,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.cluster.sent_terms import sent_terms
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import told_of_outages
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session.content import Content
from dragoman.session.facts import TurnTerms
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord, StoredEvent

if TYPE_CHECKING:
    from dragoman.cli.run.hub_access import Meant
    from dragoman.cli.run.job import Job

_LOOK_SECONDS = 1.0
_LAST_WORDS_SECONDS = 3.0
"""How long the end of a turn may take to be read when its owner is gone."""


class TurnElsewhere:
    """`record` of the `meant` session has an owner that is not us. With one that `is_warm`, this is
    a run like one that has the agent itself: nobody but us is there to answer its questions."""

    def __init__(
        self,
        hub: Hub,
        meant: Meant,
        job: Job,
        console: Console,
        questions: SessionQuestions | None,
        *,
        is_warm: bool,
    ) -> None:
        assert meant.record is not None
        self._hub = hub
        self._id = meant.record.id
        self._job = job
        self._console = console
        self._questions = questions
        self._is_warm = is_warm
        self._turn = OwnTurn("")
        waiting = None  # what is refused there at once waits for nobody
        if job.options.on_ask == "wait" or (job.options.on_ask != "reject" and not is_warm):
            waiting = QuestionsElsewhere(self._id, console.tell)
        self._follower = Follower(
            console,
            meant.state,
            others="ask" if questions is None else "skip",
            questions=questions or waiting,
        )
        self._cancelled = False
        self._heard = 0.0

    @property
    def turn_id(self) -> str:
        """Of the prompt, once it was sent."""
        return self._turn.id

    async def send(self, prompt: list[Content]) -> None:
        """Have the owner take the prompt. Raises UsageError for a setting it refuses."""
        await configure_elsewhere(self._hub, self._job, self._id, self._follower.state)
        # Not opened here: the process that opens it has to serve those who queue after us.
        reply = await self._sent(prompt)
        self._turn = self._follower.turn = OwnTurn(reply["turn"])
        if reply["queued"]:
            self._console.tell("queued: it will be sent when the running turn ends")

    async def _sent(self, prompt: list[Content]) -> c.Reply:
        """With the rules of this run, which hold for its turn. Raises UsageError for rules that
        cannot hold there."""
        terms = self._terms
        # A run that does not wait may end before its turn does.
        sender = None if getattr(self._job.options, "no_wait", False) else self._hub.owner
        if terms is None:
            return await self._hub.send(self._id, c.Prompt(prompt, sender=sender), opens=False)
        ruled = c.RuledPrompt(prompt, terms, sender=sender)
        try:
            return await self._hub.send(self._id, ruled, opens=False)
        except CommandRefused as error:
            if error.code not in ("elsewhere", "not_offered", "too_large", "unsupported"):
                raise
            raise UsageError(str(error)) from error

    @property
    def _terms(self) -> TurnTerms | None:
        """What was asked for here; None for nothing."""
        options = self._job.options
        waits = self._questions is not None or options.on_ask == "wait"
        refuses = options.on_ask == "reject" or (self._is_warm and not waits)
        on_ask = "reject" if refuses else "wait" if waits else None
        return terms_of(self._job, self._hub, on_ask)

    # ── following ─────────────────────────────────────────────────────────────────────────────

    async def follow(self) -> int | None:
        """Show the turn to its end; the exit code, None when nobody is left who would run it.

        Raises NoProgress when nothing happens in the session for as long as `--timeout` says.
        """
        self._follower.listen(self._hub, self._id)
        following = asyncio.create_task(self._follower.follow(self._is_over))
        watching = asyncio.create_task(until_left(self._hub, self._id))
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

    async def _until_silent(self) -> None:
        """Until nothing was heard for as long as the run may wait: forever, if it may. A question
        that nobody here answers, nor waits for, does not count as progress either."""
        seconds: float | None = self._job.options.timeout
        waits = self._questions is not None or self._job.options.on_ask == "wait"
        self._heard = time.monotonic()
        while seconds is None or time.monotonic() < self._heard + seconds:
            if waits and self._follower.state.pending:
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
        if self._turn.tally.limited:
            return Exit.LIMIT
        if ended.stop_reason == "cancelled":
            if not self._cancelled:
                self._console.tell("cancelled in another window")
            return Exit.CANCELLED
        is_replied = self._is_warm and ended.error is not None and "(code " in ended.error
        if ended.error is not None and not (is_replied and self._turn.tally.all_refused):
            is_sign_in = is_replied and f"(code {AuthRequired.code})" in ended.error
            raise (SignInNeeded if is_sign_in else DragomanError)(ended.error)
        if self._turn.tally.all_refused:
            if ended.error is not None:
                self._console.tell(ended.error)
            asked = self._questions is not None or not self._is_warm
            self._console.tell(all_refused(self._job.options, self._turn.tally, asked=asked))
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


def watch(options: argparse.Namespace) -> int:
    try:
        asyncio.run(_watch(options))
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            print()  # below the ^C
        return Exit.CANCELLED
    return Exit.DONE


async def _watch(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record), told_of_outages(hub.store, tell):
        if options.json:
            await _print(hub, record, options)
        else:
            await Window(hub, record, options).follow()


async def _print(hub: Hub, record: SessionRecord, options: argparse.Namespace) -> None:
    state = await stored_state(hub.store, record.id)
    after = 0 if options.all else _beginning(state)
    if options.until_idle and state.turn is None and not options.all:
        return
    async for page in hub.watch(record.id, after):
        sys.stdout.buffer.write(b"".join(json_line(event.body) + b"\n" for event in page))
        sys.stdout.buffer.flush()
        if options.until_idle and _is_idle(state, page):
            return


def _is_idle(state: SessionState, page: list[StoredEvent]) -> bool:
    for stored in page:
        if stored.seq > state.last_seq:
            reduce(state, stored.decode())
    return state.turn is None and state.last_seq <= page[-1].seq


def _beginning(state: SessionState) -> int:
    """Just before the turn that runs, else at the end."""
    return state.last_seq if state.turn is None else state.turn.seq - 1


class Window:
    """One session on this terminal."""

    def __init__(self, hub: Hub, record: SessionRecord, options: argparse.Namespace) -> None:
        self._hub = hub
        self._record = record
        self._options = options
        self._console = Console("text")
        self._questions = self._find_questions()

    def _find_questions(self) -> SessionQuestions | None:
        on_ask, terminal = self._options.on_ask, sys.stdin.isatty() and sys.stdout.isatty()
        if on_ask == "ignore" or (on_ask is None and not terminal):
            return None
        asker, record, say = asker_on(self._console), self._record, self._console.tell
        return SessionQuestions(self._hub, record.id, record.agent, asker, say, must_answer=False)

    async def follow(self) -> None:
        now = await stored_state(self._hub.store, self._record.id)
        called_ = called(self._record.name, self._record.title)
        self._console.tell(f"watching {self._record.id} {called_} (Ctrl-C to stop)")
        follower = Follower(
            self._console,
            retells=True,
            questions=self._questions,
            since=0 if self._options.all else _beginning(now) + 1,
            asks_from=now.last_seq,
        )
        follower.listen(self._hub, self._record.id)
        with self._console.status:
            if not await follower.follow(lambda: self._is_over(follower.state, now)):
                self._console.tell("the session was deleted")
        self._console.view.close()
        if self._questions is not None:
            self._questions.close()

    def _is_over(self, shown: SessionState, now: SessionState) -> bool:
        is_idle = self._options.until_idle and shown.turn is None
        return is_idle and shown.last_seq >= now.last_seq


# ── what a window brings along ──────────────────────────────────────────────────────────────────


def terms_of(job: Job, hub: Hub, on_ask: Literal["reject", "wait"] | None) -> TurnTerms | None:
    """The rules of this run, which hold for its turns alone; None for none."""
    rules = given_rules(job.options)
    if not rules and on_ask is None:
        return None
    typed = typed_rules(job.options)
    return sent_terms(hub.owner, rules, typed, home=hub.hosts.home, on_ask=on_ask)


async def configure_elsewhere(hub: Hub, job: Job, session_id: str, state: SessionState) -> None:
    """Set the mode, the model and the options. Raises UsageError for what the owner refuses."""
    options = job.options
    wanted: list[c.Command] = []
    if options.mode is not None:
        wanted.append(c.SetMode(options.mode))
    if options.model is not None:
        wanted.append(c.SetModel(options.model))
    for option, value in job.assignments:
        wanted.append(c.SetConfig(option, typed(state, option, value)))
    try:
        for command in wanted:
            await hub.send(session_id, command, opens=False)
    except CommandRefused as error:
        if error.code not in ("invalid", "unsupported"):
            raise
        raise UsageError(str(error)) from error


async def until_left(hub: Hub, session_id: str) -> None:
    """Until the session has no owner; another one may have come meanwhile."""
    while True:
        owner = await hub.store.owner(session_id)
        if owner is None or is_gone(owner):
            return
        await asyncio.sleep(_LOOK_SECONDS)


def check_shared(job: Job, record: SessionRecord) -> None:
    """Raises UsageError for options that only the process that runs the session could carry out."""
    options = job.options
    if job.record.path is not None:
        raise UsageError(
            "another process is running this session, and only it has the frames; remove "
            "--record, or wait until it has ended"
        )
    offered = ((options.no_files, "--no-files"), (options.no_terminals, "--no-terminals"))
    for is_given, option in offered:
        if is_given:
            raise UsageError(
                "another process is running this session, and its agent knows already what it "
                f"is offered: remove {option}, or wait until it has ended"
            )
    fence = ((options.fence, "--fence"), (options.fence_network, "--fence-network"))
    for value, option in fence:
        if value is not None:
            raise UsageError(
                "another process is running this session, and its agent has the fence of that "
                f"process or none: remove {option}, or wait until it has ended"
            )
    if limits := [*typed_limits(options), *limits_in(options.policy, {record.agent})]:
        raise UsageError(
            "another process is running this session, with limits of its own: remove "
            f"{limits[0].source}, or wait until it has ended"
        )
    if options.proxy:
        lacking, option = "proxy", "--proxy"
    elif options.mcp_config:
        lacking, option = "MCP server", "--mcp-config"
    elif job.system_prompt not in (None, record.system_prompt):
        lacking, option = "system prompt", "--system-prompt"
    elif not set(job.more_folders).issubset(record.additional_directories):
        lacking, option = "folder", "--add-dir"
    else:
        return
    raise UsageError(
        f"another process is running this session without this {lacking}: remove {option}, or "
        "wait until it has ended"
    )
