"""A session: one conversation with an agent, its turns one after another, and its state."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, Unpack

from dragoman.client.asking.askable import Askable
from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.client_options import traced
from dragoman.client.dialects.dialect import Dialect, Finished, Meta, Place
from dragoman.client.sessions import folder_tracker, session_controls
from dragoman.client.sessions.parking import ParkedPrompt
from dragoman.client.sessions.prompts import PromptInput, prepare
from dragoman.client.sessions.session_log import SessionLog
from dragoman.client.sessions.steering import Steer, Steering
from dragoman.client.sessions.turn import Turn
from dragoman.errors import (
    ConnectionClosed,
    DragomanError,
    RemoteError,
    SessionBusy,
    SessionGone,
)
from dragoman.host.forms.elicitation import ElicitationAnswer
from dragoman.host.gate import Gate
from dragoman.session import events as e
from dragoman.session.content import Content
from dragoman.session.facts import TurnTerms
from dragoman.session.state import Pending, answer_of
from dragoman.stream import Stream

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.sessions.folder_tracker import FolderTracker
    from dragoman.client.sessions.limit_watch import LimitWatch
    from dragoman.host.snapshots.folder_changes import FolderChanges
    from dragoman.host.snapshots.snapshots import Reverted
    from dragoman.host.snapshots.undo_plan import RevertOptions
    from dragoman.host.workspace.changes import Change

logger = logging.getLogger("dragoman.client")

NOT_OPENED = "the session could not be opened"


class Session(Askable):
    """One conversation with an agent, opened with the `Client`; `state` is what all of its events
    add up to, `id` the agent's id for it. Methods that talk to the agent raise SessionGone if the
    session is closed, and ConnectionLost if the connection is."""

    internal = session_controls.INTERNAL

    def __init__(
        self, client: Client, *, session_id: str, place: Place, log: SessionLog, gate: Gate
    ) -> None:
        self.id = session_id
        """The agent's id for the session."""
        self.place = place
        self.state = log.state
        """The fold of all events, a `SessionState`; it changes with each event."""
        self.log = log
        self.gate = gate
        self.tracker: FolderTracker | None = None
        self._client = client
        self._turn: Turn | None = None
        self._prompting: tuple[Turn, asyncio.Task[None]] | None = None
        self._queue = deque(self.turn_for(p.content, p.terms, p.id) for p in log.state.queue)
        self.parking = ParkedPrompt(self, client.openings.terms.on_limit)
        self.steering = Steering(self, self._queue)
        self.steering.restore(log.state.queue)
        log.is_repeated = self.steering.hears
        self._failed_with: DragomanError | None = None
        self._closing = self._holding = False
        self.loss_is_told = True
        """Whether losing the agent while the session is idle leaves a notice."""
        self.left_at_work = False
        """Whether it was closed while the agent had not answered its last prompt."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.meta: Meta = None
        """The `_meta` of the agent's answer that opened the session."""
        self.before_turn: Callable[[], Awaitable[None]] | None = None
        """Awaited before a prompt is sent; if it raises a DragomanError, the prompt is not sent."""
        self.limit_watch: LimitWatch | None = None

    # ── what it is ────────────────────────────────────────────────────────────────────────────

    def __repr__(self) -> str:
        count = len(self.state.turns)
        return f"<Session {self.id} in {self.cwd}: {count} turn{'' if count == 1 else 's'}>"

    @property
    def cwd(self) -> str:
        return self.place.cwd

    @property
    def continuity(self) -> e.Continuity:
        """How it relates to the one asked for: `new`, `continued`, `replayed` or `reset`."""
        return self.state.continuity

    @property
    def pending(self) -> list[Pending]:
        """Questions that wait for an answer; `state.pending` has the same."""
        self._assume_attended()
        return list(self.state.pending.values())

    @property
    def busy(self) -> bool:
        return self._turn is not None

    @property
    def running(self) -> Turn | None:
        """The turn that runs."""
        return self._turn

    @property
    def dialect(self) -> Dialect:
        return self._client.dialect

    @property
    def capabilities(self) -> AgentCapabilities:
        return self._client.capabilities

    @property
    def files_are_here(self) -> bool:
        """Whether the agent works on the files of this machine."""
        return self._client.files_are_here

    @property
    def at_work(self) -> bool:
        """Whether the agent is working, or is about to, in a turn or between turns."""
        state = self.state
        return self.busy or bool(self._queue or state.background) or state.activity != "idle"

    def events(self) -> Stream[e.Event]:
        """Every event from now on, in turns and between them."""
        self._assume_attended()
        return self.log.stream()

    def _assume_attended(self) -> None:
        """Unless the program said what becomes of questions (`questions` of `Client.start`): one
        that looks for them from outside the turn can only mean to answer."""
        if self.gate.consent.attended is None:
            self.gate.consent.attended = True

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    def prompt(
        self,
        prompt: PromptInput,
        *,
        when_busy: Literal["queue", "raise"] = "queue",
        timeout: float | None = None,
        meta: dict[str, Any] | None = None,
        terms: TurnTerms | None = None,
    ) -> Turn:
        """Send a prompt: text, in which `@mentions` become links, or content.

        While another turn runs, the prompt is queued, or SessionBusy is raised. Prompts that were
        queued when the session was released go out first. `timeout` ends the turn with NoProgress
        if the agent makes no progress for that long; `terms` are rules for this turn alone.

        Raises ValueError if the prompt is empty or has a block that ACP does not know,
        PromptTooLarge if it is too large to send, and TypeError for anything that is not content.
        """
        self._require_open()
        content, warnings = self._prepared(prompt)
        waits = self.busy or bool(self._queue) or self.state.parked is not None
        if waits and when_busy == "raise":
            raise SessionBusy(self.id)
        turn = self.turn_for(content, terms)
        turn.meta, turn.warnings = traced(meta), warnings
        turn.timeout = timeout if timeout is not None else turn.timeout
        if waits:
            self._queue.append(turn)
            self.log.record(e.PromptQueued(turn.id, content, terms))
            self.go_on()
        else:
            self.begin(turn)
        return turn

    async def steer(self, prompt: PromptInput, *, meta: dict[str, Any] | None = None) -> Steer:
        """Send a message to the running turn, with content as for `prompt`.

        How it is delivered depends on what the agent offers. If the agent offers nothing, or the
        turn cannot take the message, it becomes the next prompt; if no turn is running, it starts
        one. The result says what became of the message, as far as that is known.

        Raises what `prompt` raises.
        """
        self._require_open()
        content, warnings = self._prepared(prompt)
        if self.state.parked is not None and not self.busy:
            queued = self.prompt(prompt, meta=meta)
            return Steer(queued.id, "queued", "queue", turn=queued)
        turn = self.turn_for(content, None)
        turn.meta = traced(meta)
        return await self.steering.send(turn, warnings)

    def go_on(self) -> None:
        """Send the first of the prompts that wait, if one can be sent."""
        if self._queue and not self.steering.holds_queue and self.state.parked is None:
            following = self._queue[0]
            self.steering.begins(following)
            self._queue.popleft()
            self.log.record(e.PromptUnqueued(following.id))
            self.begin(following)

    def turn_for(
        self, content: list[Content], terms: TurnTerms | None, turn_id: str | None = None
    ) -> Turn:
        """A new turn that has not begun."""
        turn_id = turn_id or f"turn-{os.urandom(8).hex()}"
        return Turn(turn_id, content, terms, timeout=self._client.timeouts.progress, owner=self)

    def went_on_unanswered(self, request_id: str | None) -> None:
        """Called by a turn whose reader does not answer."""
        self.gate.consent.refuse_unattended(request_id)

    def answer_of(self, turn: Turn) -> str:
        """What the agent has said in a turn; `Turn.text` is the same."""
        return answer_of(self.state, turn.id)

    def begin(self, turn: Turn) -> None:
        """Send the turn's prompt; no other turn may be running."""
        turn.terminals_before = len(self.state.terminals)
        self.log.prompted("".join(part.text for part in turn.content))
        self.log.touch()
        self.gate.consent.grants.clear()  # a yes between turns is not for this one
        self._turn = self.log.turn = turn
        self.log.record(e.TurnStarted(turn.id, turn.content, turn.terms))
        self.gate.consent.begin(turn)
        for warning in turn.warnings:
            self.log.record(e.Notice(warning, "warning", source="client"))
        self._prompting = turn, self.spawn(self._run(turn))
        if turn.timeout is not None:
            self.spawn(session_controls.watch_progress(self, self._client, turn, turn.timeout))

    async def _run(self, turn: Turn) -> None:
        try:
            if self.before_turn is not None:
                await self.before_turn()
            if self.tracker is not None and not turn.cancel_requested:
                await self.tracker.before(turn)
            if self.limit_watch is not None:
                await self.limit_watch.admit(turn)
            await self.parking.goes_out(turn)
            if turn.cancel_requested:
                self.parking.given_up(turn)
                self._finish(turn, Finished("cancelled"))
                return
            turn.sent = True
            self.steering.push()
            await self._client.dialect.prompt(
                self.id, turn.content, turn.meta, lambda finished: self._finish(turn, finished)
            )
        except DragomanError as error:
            self.fail(turn, self._client.explained(error))
        except Exception as error:  # whatever it is, a turn ends
            logger.exception("a turn failed")
            self.fail(turn, DragomanError(f"the turn failed: {error}"))
        finally:
            if self._prompting is not None and self._prompting[0] is turn:
                self._prompting = None

    def _finish(self, turn: Turn, finished: Finished) -> None:
        if finished.error is not None:
            self.fail(turn, self._client.explained(finished.error))
        elif not turn.done:
            self.gate.consent.turn_ended("the turn ended")
            self.parking.answered(turn)
            usage = turn.used(finished.usage, self.log.counted_tokens)
            ended = e.TurnEnded(turn.id, finished.stop_reason, usage, meta=finished.meta)
            self._end(turn, ended, None, in_order=True)

    def fail(self, turn: Turn, error: DragomanError) -> None:
        """End a turn with this error, without waiting for the agent."""
        if not turn.done:
            self._failed_with = error
            self.gate.consent.cancel_all("the turn was interrupted")
            self.parking.failed(turn, error)
            ended = e.TurnEnded(turn.id, error=str(error))
            told = error if turn.parked is None else None
            self._end(turn, ended, told, in_order=isinstance(error, RemoteError))

    def _end(
        self, turn: Turn, event: e.TurnEnded, error: DragomanError | None, *, in_order: bool
    ) -> None:
        self.log.end_replay()
        self.steering.turn_ended(in_order=in_order)
        self._turn = self.log.turn = None
        self.gate.consent.begin(None)
        self.log.record(event)
        turn.finish(event, error)
        if self.tracker is not None:
            self.tracker.after(turn)
        self.begin_next()

    def begin_next(self) -> None:
        """Send the next queued prompt, if it can be sent now."""
        if not (self._closing or self._holding or self._client.connection_error is not None):
            self.go_on()

    async def cancel(self, *, meta: Meta = None) -> None:
        """Stop the running turn and wait for the agent to end it. Without a turn, stop what the
        agent does by itself, without waiting.

        Open questions are settled as cancelled, and unfinished tool calls are marked as cancelled.
        Raises CancelIgnored if the agent continues for longer than `Timeouts.cancel`.
        """
        if self._turn is not None:
            await self.cancel_turn(self._turn, meta)
        elif self.state.activity != "idle":
            self.send_cancel(meta)

    async def cancel_turn(self, turn: Turn, meta: Meta = None) -> None:
        """The same for one turn, which may still be queued; `Turn.cancel` does this."""
        self.stop_turn(turn, meta)
        await session_controls.until_stopped(self, self._client, turn)

    def stop_turn(self, turn: Turn, meta: Meta = None) -> None:
        """Ask the agent to stop, without waiting; drop the prompt if it is still queued."""
        self.drop_queued(turn)
        if turn is self._turn and not turn.cancel_requested:
            turn.cancel_requested = True
            self.log.record(e.TurnCancelling(turn.id))
            self.gate.consent.cancel_all("the turn was cancelled")
            if turn.sent:
                self.send_cancel(meta)

    def send_cancel(self, meta: Meta = None) -> None:
        with suppress(DragomanError):  # the connection may be gone
            self._client.dialect.cancel(self.id, meta)

    async def cancel_tool_call(self, tool_call_id: str) -> bool:
        """Have the agent stop one tool call; the turn continues. False if it is over already.

        Raises Unsupported unless the call is `cancellable`.
        """
        self._require_open()
        return await session_controls.cancel_tool_call(self, tool_call_id)

    async def cancel_terminal(self, terminal_id: str) -> bool:
        """Have the agent stop what runs in a terminal of its own; the turn continues. False if it
        is over already. Raises Unsupported unless the terminal is `cancellable`."""
        self._require_open()
        return await session_controls.cancel_terminal(self, terminal_id)

    async def cancel_subagent(self, subagent_id: str) -> bool:
        """Have the agent stop one subagent, and those that it started; the turn continues. Its
        questions are settled as cancelled. False if it is idle already. Raises Unsupported unless
        its `capabilities` allow that, KeyError for one that is unknown."""
        self._require_open()
        return session_controls.cancel_subagent(self, subagent_id)

    @property
    def queued(self) -> list[Turn]:
        """The turns whose prompts are queued, in order."""
        return list(self._queue)

    def edit_queued(self, turn: Turn, prompt: PromptInput) -> None:
        """Replace a prompt that is still queued. Raises ValueError if the new one is empty,
        KeyError if it was sent or dropped."""
        if not self.steering.is_here(turn):
            raise KeyError(turn.id)
        turn.content, turn.warnings = self._prepared(prompt)
        stage = None if turn.steer is None else "waiting"
        self.log.record(e.PromptQueued(turn.id, turn.content, steer=stage))

    def _prepared(self, prompt: PromptInput) -> tuple[list[Content], list[str]]:
        client = self._client
        return prepare(prompt, client.capabilities, self.cwd, files_are_here=client.files_are_here)

    def drop_queued(self, turn: Turn) -> None:
        """Drop a queued prompt; its turn ends as cancelled, and is not sent. A steer that the
        agent already has is not dropped."""
        if self.steering.is_here(turn):
            self._queue.remove(turn)
            self.log.record(e.PromptUnqueued(turn.id, dropped=True))
            self.steering.dropped(turn)
            turn.finish(e.TurnEnded(turn.id, "cancelled"), None)

    # ── answers ───────────────────────────────────────────────────────────────────────────────

    async def answer(self, request_id: str, option_id: str | None, confirmed: bool = False) -> None:
        """Answer a permission request with one of its options or offers, or refuse it with None;
        the first answer wins. Raises UnknownQuestion if the request is unknown or settled,
        ValueError for an option that it does not have, or for an offer that requires `confirmed`
        without it."""
        self.gate.consent.answer(request_id, option_id, confirmed=confirmed)

    async def answer_elicitation(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Answer a form or address. Raises UnknownQuestion if it is unknown or settled, ValueError
        if the form does not accept the content."""
        self.gate.consent.elicitations.answer(request_id, answer)

    # ── settings ──────────────────────────────────────────────────────────────────────────────

    async def set_mode(self, mode_id: str, *, meta: Meta = None) -> None:
        """Switch the mode. Raises Unsupported for an agent without modes, ValueError for a mode it
        does not have."""
        self._require_open()
        await session_controls.set_mode(self, mode_id, meta)

    async def set_config_option(
        self, option_id: str, value: str | bool, *, meta: Meta = None
    ) -> None:
        """Change a setting. Raises Unsupported for an agent without settings, ValueError for an
        option or a value it does not have."""
        self._require_open()
        await session_controls.set_config_option(self, option_id, value, meta)

    async def set_model(self, model_id: str, *, meta: Meta = None) -> None:
        """Choose a model. Raises Unsupported for an agent that offers no choice, ValueError for a
        model it does not have."""
        self._require_open()
        await session_controls.set_model(self, model_id, meta)

    async def set_title(self, title: str, *, meta: Meta = None) -> None:
        """Rename the session in the agent. Raises Unsupported if the agent does not offer it."""
        self._require_open()
        self._client.require("set_title", "session/set_title")
        stored = await self._client.dialect.set_session_title(self.id, title, meta)
        self.log.record(e.InfoChanged(title=stored))

    # ── what happened in the folders ──────────────────────────────────────────────────────────

    def track_changes(self) -> None:
        """From now on, have git keep what is in the session's folders before and after each turn,
        in Dragoman's data directory, until the session is closed. Raises Unsupported for an agent
        whose files are not on this machine."""
        self.tracker = self.tracker or folder_tracker.of_its_own(self)

    def written(self, turn: Turn | None = None) -> tuple[Change, ...]:
        """The files that Dragoman wrote for the agent, in the whole session or in one turn."""
        return self.gate.changes(None if turn is None else turn.id)

    async def changes(self, turn: Turn | str | None = None) -> FolderChanges:
        """What changed in the session's folders, and who changed it: in the whole session, in one
        turn, or in the restore with this id. Without `track_changes`, only what Dragoman wrote.
        Raises KeyError for a turn that is unknown, Unsupported where nothing is known."""
        return await folder_tracker.changes_of(self, turn)

    async def revert(
        self, turn: Turn | str | None = None, **which: Unpack[RevertOptions]
    ) -> Reverted:
        """Undo what the whole session changed, what one turn changed, or the restore with this id;
        `paths` and `hunks` limit this to some files or hunks. Waits for the end of a running turn.

        What someone changed since stays: if it cannot be separated, RevertConflict is raised, and
        nothing is undone, unless `choices` says for each file whether to `keep` it as it is or to
        `restore` what it was; `force` restores all. Raises KeyError for a turn that is unknown.
        """
        return await folder_tracker.revert(self, turn, **which)

    # ── the end, and starting again ───────────────────────────────────────────────────────────

    async def close(self, *, meta: Meta = None) -> None:
        """End the session, its turn and its terminals; close it in the agent if that is
        supported."""
        await self._client.close_session(self.id, meta=meta)

    async def reconnect(self) -> None:
        """After the agent was lost: start it again and continue this session, if it can.

        Raises SessionNotContinued when the agent can neither resume nor load it, SessionBusy while
        a turn runs, SessionGone once it is closed.
        """
        if self._closing:
            raise SessionGone(self.id)
        if self.busy:
            raise SessionBusy(self.id)
        await self._client.reconnect_session(self)

    def begin_closing(self) -> None:
        """Called by the client: from here on no turn begins."""
        self._closing = True
        self.steering.give_up("the session was closed")
        self.parking.closing()
        for turn in list(self._queue):
            self.drop_queued(turn)

    def lost(self, error: DragomanError) -> None:
        """Called by the client when the connection has ended although nobody closed it."""
        was_at_work = self.at_work
        if self.state.activity != "idle" or self.state.background:
            self.log.record(e.ActivityChanged("idle", []))
        if self._turn is not None:
            self.fail(self._turn, error)
        elif self._failed_with is not error and (was_at_work or self.loss_is_told):
            self.log.record(e.Notice(str(error), "error", source="client"))
        self.fail_queued(error)

    def fail_queued(self, error: DragomanError) -> None:
        self.steering.give_up(str(error))
        while self._queue:
            turn = self._queue.popleft()
            turn.finish(self.log.record_unsent(turn, error), error)

    async def shut(self, reason: str, error: DragomanError | None = None) -> None:
        """Called by the client: settle everything here without talking to the agent. A turn that
        still runs ends with `error`."""
        self.left_at_work = self._prompting is not None and self._prompting[0].sent
        self.begin_closing()
        self.gate.consent.cancel_all(reason)
        if self._turn is not None:
            self.fail(self._turn, error or SessionGone(self.id))
        try:
            await self.gate.close()
            if self.tracker is not None:
                await self.tracker.aclose()
        finally:
            self.end(reason)

    async def abandon(self) -> None:
        """Called by the client when the session could not be opened: it never was."""
        self._closing = True
        self._queue.clear()
        self.log.close(NOT_OPENED)
        await self.gate.close()

    async def detach(self, error: DragomanError) -> None:
        """Stop working here without closing the session: it is going to be continued elsewhere.

        A turn that still runs ends with `error`; prompts that were not sent stay in the state.
        """
        self._closing = True
        self.parking.stop()
        self.log.end_replay()
        if (turn := self._turn) is not None:
            waits_again = self.holds_back and self.state.parked is None
            if turn.sent:
                self.send_cancel()
            turn.cancel_requested = True  # it must not be sent
            if waits_again:
                sentence = f"{error}; its prompt was not sent, and is queued again"
                self.fail(turn, ConnectionClosed(sentence))
                self._put_back(turn)
            else:
                self.fail(turn, error)
        await self.gate.close()
        if self.tracker is not None:
            await self.tracker.aclose()

    @property
    def holds_back(self) -> bool:
        """Whether the turn's prompt has not gone to the agent yet, and is to."""
        turn = self._turn
        return turn is not None and not turn.sent and not turn.cancel_requested

    def _put_back(self, turn: Turn) -> None:
        """Before the prompts that wait already: they are queued again behind it."""
        behind = list(self._queue)
        for each in behind:
            self.steering.begins(each)
            self.log.record(e.PromptUnqueued(each.id))
        self._queue.appendleft(self.turn_for(turn.content, turn.terms))
        for each in self._queue:
            self.log.record(e.PromptQueued(each.id, each.content, each.terms))

    @asynccontextmanager
    async def holding_queue(self) -> AsyncGenerator[None]:
        """No prompt is sent while this lasts; then the next is."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            self.begin_next()

    async def has_stopped(self, seconds: float) -> bool:
        """Whether the agent is done with the last prompt it was sent, though the turn may have
        ended here before; it is waited for."""
        if self._prompting is None or not self._prompting[0].sent:
            return True
        return bool((await asyncio.wait([self._prompting[1]], timeout=seconds))[0])

    def end(self, reason: str) -> None:
        """Called by the client: nothing more happens here, whatever still runs."""
        self.begin_closing()
        self.gate.consent.cancel_all(reason)
        self.log.close(reason)
        for task in self._tasks:
            task.cancel()

    def _require_open(self) -> None:
        if self._closing:
            raise SessionGone(self.id)
        if (error := self._client.connection_error) is not None:
            raise error

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
