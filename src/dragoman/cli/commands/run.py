"""`dragoman "…"`: one turn. Starts the agent, opens a session, prompts, and reports the outcome."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from dragoman.cli import standard_streams
from dragoman.cli.ask.asker import TerminalAsker, asker_on
from dragoman.cli.ask.session_questions import QuestionsElsewhere, SessionQuestions
from dragoman.cli.ask.sign_in_prompt import sign_in_needed
from dragoman.cli.exit_codes import Exit, UsageError, ended_with, exit_code, sentence
from dragoman.cli.render.console import WAITING, Console
from dragoman.cli.render.event_text import ALL_REFUSED, Tally
from dragoman.cli.render.terminal_view import TerminalView
from dragoman.cli.run.agent_lists import Lists
from dragoman.cli.run.agent_setup import better_than_demo, client_for, configure
from dragoman.cli.run.follower import Follower, OwnTurn
from dragoman.cli.run.frame_output import FrameTap
from dragoman.cli.run.given_limits import limits_in, typed_limits
from dragoman.cli.run.hub_access import Meant, hub_of, meant_by, open_live, runs_elsewhere
from dragoman.cli.run.interrupts import Interrupts
from dragoman.cli.run.job import Job, for_session
from dragoman.client.client import Client
from dragoman.client.sessions.parking import clock
from dragoman.client.sessions.prompts import find_mentions
from dragoman.client.sessions.turn import Turn
from dragoman.errors import (
    AuthRequired,
    CommandNotFound,
    CommandRefused,
    DragomanError,
    NameTaken,
    RemoteError,
    RequestCancelled,
    SessionOwned,
    UnknownSession,
)
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import told_of_outages
from dragoman.hub.running.running_session import RunningSession
from dragoman.rpc import Tap
from dragoman.session import events as e
from dragoman.session.content import Content
from dragoman.session.facts import Offer
from dragoman.store.records import SessionRecord

if TYPE_CHECKING:
    from dragoman.cli.render.json_output import ResultView
    from dragoman.cli.run.remote_session import TurnElsewhere


def run(options: argparse.Namespace) -> int:
    """One turn, or a steer into one; the exit code."""
    if options.steer is not None:
        from dragoman.cli.run.steer_command import steer

        standard_streams.raise_when_interrupted()
        return asyncio.run(steer(options))
    gc.disable()  # thousands of things are made by these imports, and none of them is garbage
    from dragoman.cli.run.job import prepare_turn

    gc.freeze()  # nor will they ever be
    gc.enable()
    standard_streams.raise_when_interrupted()
    return run_job(prepare_turn(options))


_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds before another try at a session that another process was quicker to take."""


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
        self._follower: Follower | None = None
        self._broken: OSError | None = None
        self._prompt: list[Content] = []

    async def run(self) -> int:
        try:
            code = await self._run()
        except Exception as error:
            self._print_result(exit_code(error), sentence(error))
            raise
        self._print_result(code)
        return code

    def _print_result(self, code: int, error: str | None = None) -> None:
        if self._output == "result":
            view = cast("ResultView", self._console.view)
            sys.stdout.buffer.write(view.document(code, error))

    async def _run(self) -> int:
        with Interrupts(self._tell, self._tell_end) as interrupts, self._status:
            try:
                return await self._with_agent(interrupts)
            except CommandNotFound as error:
                raise self._job.with_hint(error) from error
            except asyncio.CancelledError:
                if not interrupts.pressed:
                    raise
                return Exit.CANCELLED

    def _tell(self, sentence: str) -> None:
        if self._asker is not None:
            self._asker.leave_line()
        self._console.tell(sentence)

    def _tell_end(self) -> None:
        self._status.doing(f"ending {self._job.agent.name}")

    # ── what it needs ─────────────────────────────────────────────────────────────────────────

    def _find_asker(self) -> TerminalAsker | None:
        if not self._job.asks:
            return None
        try:
            return asker_on(self._console)
        except UsageError:
            if self._job.options.on_ask == "prompt":
                raise
            return None

    @property
    def _is_attended(self) -> bool:
        """Whether a question may wait: for someone here, or in another window."""
        return self._asker is not None or self._job.options.on_ask == "wait"

    def _client(self, offer: Offer) -> Client:
        return client_for(
            self._job,
            self._asker,
            offer,
            timeout=self._job.options.timeout,
            tap=self._tap(),
        )

    def _tap(self) -> Tap | None:
        if self._output != "jsonl":
            return None
        tap = FrameTap(sys.stdout.buffer, self._status, self._nobody_takes_frames)
        tap.announce(self._job.agent.name, self._job.program)
        return tap.frame

    def _nobody_takes_frames(self, error: OSError) -> None:
        self._broken = error
        if self._follower is not None:
            self._follower.fail(error)

    # ── the course of it ──────────────────────────────────────────────────────────────────────

    async def _with_agent(self, interrupts: Interrupts) -> int:
        if self._is_for_a_person and self._job.prompt is not None:
            hint = better_than_demo(self._job.options, self._job.agent.name)
            if hint is not None:
                self._tell(hint)
        async with (
            hub_of(self._job, self._client, attended=self._is_attended) as hub,
            told_of_outages(hub.store, self._tell),
        ):
            pause = _FIRST_PAUSE
            while True:
                try:
                    return await self._with_hub(hub, interrupts)
                except (NameTaken, SessionOwned):
                    pass  # another window has just begun with the same session
                except CommandRefused as error:
                    if error.code != "owner_gone":
                        raise
                # Not all at the same moment: one of those who wait gets it each time.
                await asyncio.sleep(pause * (0.5 + os.urandom(1)[0] / 255))
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _with_hub(self, hub: Hub, interrupts: Interrupts) -> int:
        meant = await meant_by(hub, self._job)
        if meant.record is not None:
            self._job = for_session(self._job, meant.record)
        self._prompt = self._prompt or self._mentioning()
        forks = self._job.options.fork is not None
        if meant.record is None or forks or not await runs_elsewhere(hub, meant.record):
            code = await self._here(hub, meant, interrupts)
            assert code is not None
            return code
        return await self._elsewhere(hub, meant, interrupts)

    def _mentioning(self) -> list[Content]:
        """What was typed, with what it mentions in the folder of the session."""
        typed = self._job.prompt
        if typed is None:
            return []
        if not self._job.mentions:
            return typed
        text, *attached = typed
        mentions = find_mentions(text.text, self._job.cwd)
        for notice in mentions.notices(self._job.cwd if self._job.files_are_here else None):
            self._tell(notice)
        return [text, *mentions.links, *attached]

    async def _here(
        self, hub: Hub, meant: Meant, interrupts: Interrupts, queued_as: str = ""
    ) -> int | None:
        """`queued_as`: where the prompt waits in the session's queue already. None when someone
        else has sent it meanwhile."""
        self._status.doing(f"starting {self._job.agent.name}")
        offer = meant.offer(self._job)
        job = self._job
        async with hub.using(job.agent.name, job.cwd, offer, meant.folders) as client:
            self._lists.of_agent(client)
            if self._job.prompt is None and not self._needs_session:
                return Exit.DONE
            live = await open_live(hub, self._job, meant, lambda: self._asker)
            if queued_as in {turn.id for turn in live.state.turns}:
                await hub.detach(live)
                return None
            self._console.begin(live.record, meant.state.last_seq)
            follower = self._follow(hub, live, meant)
            await configure(live.session, self._job)
            self._status.doing(WAITING)
            told = partial(_commands_told, hub, live, meant.state.last_seq)
            await self._lists.of_session(live.session, told)
            if self._job.prompt is None:
                return Exit.DONE
            self._lists.close()
            return await self._turn_of(hub, client, live, follower, interrupts, queued_as)

    def _follow(self, hub: Hub, live: RunningSession, meant: Meant) -> Follower:
        questions = None
        if self._job.options.on_ask == "wait":
            questions = QuestionsElsewhere(live.id, self._tell)
        elif self._asker is not None:
            asker, agent = self._asker, self._job.agent.name
            questions = SessionQuestions(hub, live.id, agent, asker, self._tell, must_answer=True)
        # Around our turn are those of other windows, and into a pipe goes what was asked for here.
        others = "show" if isinstance(self._console.view, TerminalView) else "ask"
        self._follower = Follower(self._console, meant.state, others=others, questions=questions)
        self._follower.listen(hub, live.id)
        if self._broken is not None:
            self._follower.fail(self._broken)
        return self._follower

    async def _turn_of(
        self,
        hub: Hub,
        client: Client,
        live: RunningSession,
        follower: Follower,
        interrupts: Interrupts,
        queued_as: str,
    ) -> int:
        interrupts.turn_of(live.session)
        try:
            turn = await self._sent(live, queued_as)
            interrupts.turn_of(turn)
            code = await self._turn(client, turn, follower, by_us=lambda: interrupts.pressed)
            while turn.parked is not None:
                interrupts.turn_of(None)
                if (following := await self._parked(live, turn)) is None:
                    return Exit.LIMIT
                turn = following
                interrupts.turn_of(turn)
                code = await self._turn(client, turn, follower, by_us=lambda: interrupts.pressed)
            interrupts.turn_of(None)
            await self._collect(hub, live.id, turn.id)
            await self._serve_others(hub, live, follower)
            await self._tell_used(hub, live.id)
            return code
        finally:
            interrupts.turn_of(None)
            self._console.view.close()
            self._tell_end()

    async def _parked(self, live: RunningSession, turn: Turn) -> Turn | None:
        """The turn that sends a parked prompt again, once its time has come; None if it was dropped
        or handed over, or if a person has to say what to do."""
        parked = turn.parked
        if parked is not None and parked.resumes_at is None:
            self._console.tell(
                f"session {live.id} waits for you: `dragoman sessions continue`, `drop` or "
                "`hand-over`"
            )
            return None
        if parked is not None and parked.resumes_at is not None:
            self._status.doing(f"parked until {clock(parked.resumes_at)}; Ctrl-C leaves it parked")
        following = await live.session.parking.continued(turn)
        if following is None:
            self._console.tell("the parked prompt is no longer this session's")
        return following

    async def _collect(self, hub: Hub, session_id: str, turn_id: str) -> None:
        """What the turn changed, for its result."""
        if self._output == "result":
            view = cast("ResultView", self._console.view)
            view.changed(await hub.folders.changes(session_id, turn_id))

    async def _tell_used(self, hub: Hub, session_id: str) -> None:
        """For people, with how to continue."""
        if not self._is_for_a_person or self._job.options.no_store:
            return
        from dragoman.cli.render.usage_words import in_short
        from dragoman.hub.stored.usage_report import session_and_day

        used = await session_and_day(hub.store, session_id, self._job.prices)
        for whose, spent in zip(("this session", "today"), used, strict=False):
            if whose == "this session" or spent != used[0]:
                self._console.tell(f"{whose}: {in_short(spent)}")
        name: str | None = self._job.options.session
        which = f"--session {shlex.quote(name)}" if name is not None else f"--resume {session_id}"
        self._console.tell(f"to continue: dragoman {which} …")

    @property
    def _is_for_a_person(self) -> bool:
        """What programs read has an end of its own."""
        return self._output == "text" and sys.stderr.isatty()

    async def _serve_others(self, hub: Hub, live: RunningSession, follower: Follower) -> None:
        """What other windows have queued into the session is done before it is given up."""
        await hub.refuse()
        if not live.idle:
            self._tell("running a prompt queued in another window first; Ctrl-C quits")
        shown = follower.state
        await follower.follow(lambda: live.idle and shown.turn is None and not shown.queue)

    async def _elsewhere(self, hub: Hub, meant: Meant, interrupts: Interrupts) -> int:
        """In the process that runs the session, and here once none does."""
        turn = self._turn_elsewhere(hub, meant)
        self._status.doing(WAITING)
        await turn.send(self._prompt)
        while True:
            interrupts.turn_of(turn, "only stops watching")
            if (code := await turn.follow()) is not None:
                assert meant.record is not None
                await self._collect(hub, meant.record.id, turn.turn_id)
                await self._tell_used(hub, meant.record.id)
                return code
            interrupts.turn_of(None)
            meant = await meant_by(hub, self._job)
            with suppress(SessionOwned):  # someone else was quicker to take it over
                code = await self._here(hub, meant, interrupts, turn.turn_id)
                if code is not None:
                    return code

    def _turn_elsewhere(self, hub: Hub, meant: Meant) -> TurnElsewhere:
        from dragoman.cli.run.remote_session import TurnElsewhere

        record = meant.record
        if self._output == "jsonl" or self._job.prompt is None or record is None:
            raise UsageError(
                "another process is running this session, and only it has the frames and lists"
            )
        self._check_shared(record)
        self._console.begin(record, meant.state.last_seq)
        questions = None
        if self._asker is not None:
            questions = SessionQuestions(
                hub, record.id, record.agent, self._asker, self._tell, must_answer=False
            )
        return TurnElsewhere(hub, meant, self._job, self._console, questions)

    def _check_shared(self, record: SessionRecord) -> None:
        """What only the process that runs the session could do. Raises UsageError."""
        options = self._job.options
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
        elif self._job.system_prompt not in (None, record.system_prompt):
            lacking, option = "system prompt", "--system-prompt"
        elif not set(self._job.more_folders).issubset(record.additional_directories):
            lacking, option = "folder", "--add-dir"
        else:
            return
        raise UsageError(
            f"another process is running this session without this {lacking}: remove {option}, or "
            "wait until it has ended"
        )

    @property
    def _needs_session(self) -> bool:
        options = self._job.options
        settings = options.mode is not None or options.model is not None or options.set
        return self._lists.need_session or bool(settings)

    # ── the turn ──────────────────────────────────────────────────────────────────────────────

    async def _sent(self, live: RunningSession, queued_as: str) -> Turn:
        """The turn of our prompt, which keeps its place behind those that waited before it."""
        waiting = live.session.queued
        for before, turn in enumerate(waiting):
            if turn.id == queued_as:
                self._tell_of_those_before(before)
                await live.go_on_with(turn)
                return turn
        self._tell_of_those_before(0 if live.session.busy else len(waiting))
        return await live.prompt(self._prompt)

    def _tell_of_those_before(self, count: int) -> None:
        if count:
            some = "a prompt waits" if count == 1 else f"{count} prompts wait"
            them = "it is" if count == 1 else "they are"
            self._tell(f"{some} from before: {them} sent first")

    async def _turn(
        self, client: Client, turn: Turn, follower: Follower, *, by_us: Callable[[], bool]
    ) -> int:
        """`by_us` says whether it was here that the turn was cancelled."""
        ended = asyncio.create_task(_end_of(turn))
        own = follower.turn = OwnTurn(turn.id)
        if not await follower.follow(lambda: own.is_over):
            raise UnknownSession(follower.state.session_id)
        error = await ended
        if own.taken_back:
            if not by_us():
                self._console.tell("the prompt was withdrawn before it was sent")
            return Exit.CANCELLED
        if own.tally.limited:
            return Exit.LIMIT
        if turn.cancel_requested:
            if not by_us():
                self._console.tell("cancelled in another window")
            return self._cancelled(error)
        if own.tally.all_refused and (error is None or isinstance(error, RemoteError)):
            return self._refused(error, own.tally)
        if isinstance(error, AuthRequired):
            raise sign_in_needed(client, self._job) from error
        if error is not None:
            raise error
        self._tell_late(turn, follower)
        return ended_with(turn.stop_reason)

    def _tell_late(self, turn: Turn, follower: Follower) -> None:
        """Of a limit that was found to be reached after the last event of the turn."""
        reached = turn.limit
        if reached is None or reached.limit.outcome != "late":
            return
        if reached.text not in (entry.text for entry in follower.state.entries[-2:]):
            self._console.tell(reached.text)

    def _cancelled(self, error: DragomanError | None) -> int:
        if error is not None and not isinstance(error, RequestCancelled):
            self._console.tell(str(error))
        return Exit.CANCELLED

    def _refused(self, error: RemoteError | None, tally: Tally) -> int:
        if error is not None:
            self._console.tell(str(error))
        hint = _hint(self._job.options, tally) if self._asker is None else ""
        self._console.tell(f"{ALL_REFUSED}{hint}")
        return Exit.REFUSED


def _hint(options: argparse.Namespace, tally: Tally) -> str:
    """What may allow it, if anything may. A flag that was given did not count for this: agents do
    not always say that something is a write or a command."""
    unoffered = tally.unoffered and not (options.write or options.no_files)
    if not (tally.unruled or unoffered):
        return ""  # refused for a reason of its own, which is shown
    given = [f"--{name}" for name in ("write", "exec") if getattr(options, name)]
    if options.yolo:
        return ""  # it covers what can be allowed
    if not given:
        return "; see --write, --exec, --yolo and --policy"
    flags = " and ".join(given)
    return f"; {flags} did not cover it; --yolo or a rule (--policy) may allow it"


async def _end_of(turn: Turn) -> DragomanError | None:
    """Wait for the end; why, if the turn was interrupted."""
    try:
        await turn
    except DragomanError as error:
        return error
    return None


async def _commands_told(hub: Hub, live: RunningSession, after: int) -> None:
    """Wait until the agent has sent its commands."""
    async for page in hub.watch(live.id, after):
        if any(isinstance(stored.decode(), e.CommandsChanged) for stored in page):
            return
