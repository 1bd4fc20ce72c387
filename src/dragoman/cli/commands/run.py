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
from dragoman.cli.ask.refusal_hint import all_refused
from dragoman.cli.ask.session_questions import QuestionsElsewhere, SessionQuestions
from dragoman.cli.ask.sign_in_prompt import sign_in_needed
from dragoman.cli.exit_codes import Exit, UsageError, ended_with, exit_code, sentence
from dragoman.cli.render.console import WAITING, Console
from dragoman.cli.render.event_text import Tally
from dragoman.cli.run.agent_lists import Lists, commands_told
from dragoman.cli.run.agent_setup import better_than_demo, client_for, configure
from dragoman.cli.run.follower import Follower, OwnTurn
from dragoman.cli.run.frame_output import FrameTap
from dragoman.cli.run.hub_access import (
    Meant,
    hub_of,
    meant_by,
    open_live,
    runs_elsewhere,
    save_id,
)
from dragoman.cli.run.interrupts import Interrupts
from dragoman.cli.run.job import Job, for_session
from dragoman.cli.warm import front as fronts
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
from dragoman.session.content import Content
from dragoman.session.facts import Offer

if TYPE_CHECKING:
    from dragoman.cli.render.json_output import ResultView
    from dragoman.cli.run.elsewhere.remote_session import TurnElsewhere
    from dragoman.cli.warm.keeping import Keeping, StartHash
    from dragoman.hub.cluster.warm_notes import WarmNote
    from dragoman.store.records import SessionRecord


def run(options: argparse.Namespace) -> int:
    """One turn, or a steer into one; the exit code."""
    if options.steer is not None:
        from dragoman.cli.run.elsewhere.steer_command import steer

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
        if job.wanted is None:
            return asyncio.run(Run(job).run())
        from dragoman.cli.commands.typed_run import TypedRun

        return asyncio.run(TypedRun(job, job.wanted).run())
    except asyncio.CancelledError:
        return Exit.CANCELLED


class Run:
    """One run, from the agent's start to its end."""

    def __init__(self, job: Job, output: str | None = None) -> None:
        self._job = job
        typed: str = job.options.output
        self._output = output or ("jsonl" if typed == "json" else typed)
        self._console = Console(self._output)
        self._status = self._console.status
        self._lists = Lists(job.options, self._console.writer.write)
        self._asker = self._find_asker()
        self._follower: Follower | None = None
        self._broken: OSError | None = None
        self._prompt: list[Content] = []
        self._is_reported = False
        self._stop_asking: Callable[[], None] | None = None
        """Takes back what the person at this terminal is asked."""
        self._keeping: Keeping | None = None
        """What becomes of our agent after the run, if it may stay."""
        self._warm: WarmNote | None = None
        """Of the process that runs the session, if that only keeps its agent warm."""

    async def run(self) -> int:
        try:
            code = await self._run()
        except Exception as error:
            self._print_result(exit_code(error), sentence(error))
            raise
        finally:
            if self._keeping is not None:
                self._keeping.forget()
        self._print_result(code)
        return code

    def _print_result(self, code: int, error: str | None = None) -> None:
        if self._output == "result" and not self._is_reported:
            self._is_reported = True
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
        out, directions = sys.stdout.buffer, self._job.options.directions
        tap = FrameTap(out, self._status, self._nobody_takes_frames, directions=directions)
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
        if meant.record is None or forks or not await self._runs_elsewhere(hub, meant.record):
            code = await self._here(hub, meant, interrupts)
            assert code is not None
            return code
        return await self._elsewhere(hub, meant, interrupts)

    async def _runs_elsewhere(self, hub: Hub, record: SessionRecord) -> bool:
        """Whether another process runs it. One that only keeps an agent warm which is not what this
        run needs ends first."""
        self._warm = None
        if not await runs_elsewhere(hub, record):
            return False
        from dragoman.cli.warm.start_terms import met

        attended = self._is_attended
        is_elsewhere, self._warm = await met(hub, self._job, record, attended=attended)
        return is_elsewhere

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
        job, start = self._job, self._start_to_leave()
        async with hub.using(job.agent.name, job.cwd, offer, meant.folders) as client:
            self._lists.of_agent(client)
            if self._job.prompt is None and not self._needs_session:
                return Exit.DONE
            live = await open_live(hub, self._job, meant, lambda: self._asker)
            self._keeping = self._kept(hub, live, start)
            if queued_as in {turn.id for turn in live.state.turns}:
                await hub.detach(live)
                return None
            self._console.begin(live.record, meant.state.last_seq)
            follower = self._follow(hub, live, meant)
            await configure(live.session, self._job)
            if self._keeping is not None:
                self._keeping.configured()
            self._status.doing(WAITING)
            told = partial(commands_told, hub, live, meant.state.last_seq)
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
            self._stop_asking = questions.close
        # Around our turn are those of other windows, and into a pipe goes what was asked for here.
        others = "show" if self._console.terminal_view is not None else "ask"
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
            if self._job.options.no_wait:
                await live.recording.stored()
                self._let_go(live.id)
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
            if self._leaves_agent(code, interrupts):
                await self._tell_used(hub, live.id)
                await self._keep_warm(code)
            else:
                await self._serve_others(hub, live, follower)
                await self._tell_used(hub, live.id)
            return code
        finally:
            interrupts.turn_of(None)
            self._console.view.close()
            self._tell_end()

    # ── what stays of it ──────────────────────────────────────────────────────────────────────

    @property
    def _stays(self) -> bool:
        """Whether the agent of this run stays, as far as that can be said before its turn."""
        if fronts.current() is None or not self._job.stays:
            return False
        from dragoman.cli.warm.start_terms import suits

        return suits(self._job)

    def _start_to_leave(self) -> StartHash | None:
        """With what the agent is about to be started, if it is to stay."""
        if not self._stays:
            return None
        from dragoman.cli.warm.keeping import start_of

        with suppress(OSError):  # where nobody can tell that, nothing stays
            return start_of(self._job, attended=self._is_attended)
        return None

    def _kept(self, hub: Hub, live: RunningSession, start: StartHash | None) -> Keeping | None:
        if start is None:
            return None
        from dragoman.cli.warm.keeping import Keeping

        return Keeping(hub, live, self._job, start)

    def _leaves_agent(self, code: int, interrupts: Interrupts) -> bool:
        """Whether this run, which ends with that code, leaves its agent behind."""
        if self._keeping is None or interrupts.pressed or not self._keeping.is_worth_it:
            return False
        return code in (Exit.DONE, Exit.ENDED_EARLY, Exit.REFUSED)

    async def _keep_warm(self, code: int) -> None:
        """The run ends here for everyone who waits for it; its agent stays."""
        from dragoman.hub.cluster.warm_notes import open_log

        front = fronts.current()
        assert self._keeping is not None
        assert front is not None
        try:
            errors = open_log()
            self._keeping.begin()
        except OSError as error:
            self._tell(f"the agent does not stay: {sentence(error)}")
            return
        self._console.view.close()
        self._status.end()
        self._print_result(code)
        sys.stdout.flush()
        if self._stop_asking is not None:
            self._stop_asking()  # what others are asked is not refused because we leave
        if self._asker is not None:
            self._asker.leave()
        if front.let_go(code, errors):
            await self._keeping.last(front.leader)

    async def _stay_as_asked(self, hub: Hub, session_id: str) -> None:
        """What this run wants of the agent that stays: to stay longer or shorter, or to end."""
        if self._warm is None:
            return
        from dragoman.hub.cluster.commands import Stay

        with suppress(DragomanError):  # it may have ended meanwhile
            if not self._job.stays:
                await hub.elsewhere.take_from_warm(session_id)
            elif self._job.stays != self._warm.seconds:
                await hub.send(session_id, Stay(self._job.stays), opens=False)

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
        """For people, with how to continue. What programs read has an end of its own."""
        is_for_people = self._output in ("text", "simple") and sys.stderr.isatty()
        if not is_for_people or self._job.options.no_store:
            return
        if self._is_for_a_person:
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

    def _let_go(self, session_id: str) -> None:
        from dragoman.cli.commands.wait.departure import let_go

        self._status.wipe()
        let_go(session_id)

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
        if self._job.options.no_wait and meant.record is not None:
            self._let_go(meant.record.id)
            return Exit.DONE
        while True:
            interrupts.turn_of(turn, "only stops watching")
            if (code := await turn.follow()) is not None:
                assert meant.record is not None
                await self._collect(hub, meant.record.id, turn.turn_id)
                await self._tell_used(hub, meant.record.id)
                await self._stay_as_asked(hub, meant.record.id)
                return code
            interrupts.turn_of(None)
            meant = await meant_by(hub, self._job)
            with suppress(SessionOwned):  # someone else was quicker to take it over
                code = await self._here(hub, meant, interrupts, turn.turn_id)
                if code is not None:
                    return code

    def _turn_elsewhere(self, hub: Hub, meant: Meant) -> TurnElsewhere:
        from dragoman.cli.run.elsewhere.remote_session import TurnElsewhere, check_shared

        record = meant.record
        if self._output == "jsonl" or self._job.prompt is None or record is None:
            raise UsageError(
                "another process is running this session, and only it has the frames and lists"
            )
        if not (is_warm := self._warm is not None):
            check_shared(self._job, record)
        self._console.begin(record, meant.state.last_seq)
        questions = None
        if self._asker is not None:
            questions = SessionQuestions(
                hub, record.id, record.agent, self._asker, self._tell, must_answer=is_warm
            )
        if is_warm:
            save_id(self._job, record.id)
        return TurnElsewhere(hub, meant, self._job, self._console, questions, is_warm=is_warm)

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
        self._console.tell(all_refused(self._job.options, tally, asked=self._asker is not None))
        return Exit.REFUSED


async def _end_of(turn: Turn) -> DragomanError | None:
    """Wait for the end; why, if the turn was interrupted."""
    try:
        await turn
    except DragomanError as error:
        return error
    return None
