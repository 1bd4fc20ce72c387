"""A session that this process runs: it is recorded, and any process may steer it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

import msgspec

from dragoman.client.client_options import tracing
from dragoman.client.dialects.dialect import Dialect
from dragoman.client.sessions.parking import taken_over
from dragoman.client.sessions.prompts import PromptInput
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.session_controls import stop_by_closing
from dragoman.client.sessions.turn import Turn
from dragoman.errors import (
    AuthRequired,
    CancelIgnored,
    CommandRefused,
    DragomanError,
    LeaseLost,
    PromptTooLarge,
    RevertConflict,
    SessionGone,
    SessionNotContinued,
    StoreAway,
    StoreFull,
    Unsupported,
)
from dragoman.host.forms.elicitation import ElicitationAnswer, FormError
from dragoman.host.permissions.consent import rules_of
from dragoman.host.rules.access import Operation
from dragoman.host.rules.rule import Rule, covered
from dragoman.host.workspace.changes import Change
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.agent_pool import PooledAgent
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.hub.running.restores import (
    Restores,
    must_be_in_place,
    must_be_something,
    must_be_whole_files,
)
from dragoman.hub.running.written_files import read_own, read_written
from dragoman.hub.stored.stored_sessions import (
    WORTH_A_SNAPSHOT,
    described,
    status_of,
    written_snapshot,
)
from dragoman.session import events as e
from dragoman.session.facts import Parking, TurnTerms
from dragoman.session.state import SessionState
from dragoman.store.base import Store
from dragoman.store.records import SessionChange

logger = logging.getLogger("dragoman.hub")

_CLOSE_SECONDS = 5.0
_TITLE_SECONDS = 5.0
"""How long an agent may take to close a session whose turn it did not stop."""


class RunningSession:
    """One session, the recorder of its events, and its agent. Events up to number `last_before` are
    from before it ran here. `home` is this machine, where the store has several."""

    def __init__(
        self,
        store: Store,
        recording: EventRecorder,
        agent: PooledAgent,
        session: Session,
        *,
        last_before: int,
        home: str | None = None,
    ) -> None:
        self.record = recording.record
        self.recording = recording
        self.limits = recording.limits
        self.agent = agent
        self.session = session
        self.used_at = time.monotonic()
        self._store = store
        self._snapshot_at = max(WORTH_A_SNAPSHOT, self.record.last_seq * 5 // 4)
        self._reconnecting = asyncio.Lock()
        self._recalling = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        self._last_before = last_before
        self._recalled: list[Change] = []
        self._opened_on: Dialect | None = agent.client.dialect
        # It continues in a new process when it is next used: nothing is lost.
        session.loss_is_told = False
        self.record.agent_session_id = session.id
        recording.describe = self.describe
        recording.on_much = self._too_much
        session.before_turn = self._on_record
        self.home = home
        session.parking.prepare = self._reconnected
        session.parking.is_read_elsewhere = True
        self.restores: Restores | None = None
        """Undoes what happened in its folders, where there are snapshots of them."""
        for turn in session.queued:
            turn.discard()
            if turn.terms is not None:
                turn.terms, lost = kept_terms(turn.terms, home)
                turn.warnings += lost
        # What was stored while it was being opened said nothing of the agent's name for it.
        recording.refresh()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def state(self) -> SessionState:
        """Ahead of what is stored by what is being written."""
        return self.session.state

    @property
    def is_stored(self) -> bool:
        """Whether a reader may see all of the state: what is not durable may never have been."""
        return self.record.last_seq >= self.state.last_seq

    @property
    def idle(self) -> bool:
        return not (self.session.busy or self.session.queued or self.state.parked)

    @property
    def is_unused(self) -> bool:
        """Whether it is a new session in which nothing was asked: nobody will want to continue
        it."""
        asked = self.state.turns or self.state.queue or self.record.name is not None
        return self.session.continuity == "new" and not asked

    def is_parked_for(self, seconds: float) -> bool:
        """Whether all it does is wait for a person, or for a limit that ends no sooner."""
        parked = self.state.parked
        if parked is None or self.session.busy or self.session.queued:
            return False
        return parked.resumes_at is None or parked.resumes_at - time.time() > seconds

    # ── what is stored ────────────────────────────────────────────────────────────────────────

    def describe(self) -> SessionChange:
        """What the list of sessions should say, written along with the events."""
        self.used_at = time.monotonic()
        return described(self.record, self.state, self._store.now())

    @property
    def wants_snapshot(self) -> bool:
        return self.record.last_seq >= self._snapshot_at

    async def save_snapshot(self) -> None:
        """So that the session opens without folding all of it again."""
        self._snapshot_at = self.state.last_seq * 5 // 4 + 1
        snapshot = written_snapshot(self.id, self.state)
        if snapshot is None:
            return
        await self.recording.settled()
        if self.record.last_seq >= snapshot.seq:
            await self._store.save_snapshot(self.recording.lease, snapshot)

    def _too_much(self) -> None:
        """The store has been away for so long, and the agent said so much, that it has to stop;
        all of it is kept, and goes on record."""
        if self.session.busy and self._stopping is None:
            logger.warning("session %s: cancelling its turn, since too much is waiting", self.id)
            why = f"{self._away}: the turn was cancelled because too much was waiting to be stored"
            self.session.log.record(e.Notice(why, severity="warning", source="client"))
            self._stopping = asyncio.create_task(self._stop_turn())

    async def _stop_turn(self) -> None:
        try:
            with suppress(DragomanError):
                await self.session.cancel()
        finally:
            self._stopping = None

    async def detach(self, error: DragomanError) -> None:
        """Stop running it; all that has happened is stored. A turn that still runs ends with the
        error, queued prompts wait for the next owner."""
        await self.give_up_restores()
        await self.session.detach(error)
        await self.recording.seal()

    async def give_up_restores(self) -> None:
        """Those that wait for the turn to end."""
        if self.restores is not None:
            await self.restores.aclose()

    # ── what is asked of it ───────────────────────────────────────────────────────────────────

    async def execute(self, command: c.Command, *, patiently: bool = False) -> c.Reply:
        """Do it. Raises CommandRefused. While the store is away the reply has a sentence on what is
        `delayed`; a caller that asks `patiently` waits until it is on record, or never will be."""
        self.used_at = time.monotonic()
        try:
            reply = await self._execute(command)
        except KeyError as error:
            sentence = f"{error.args[0]} is unknown or already settled"
            raise CommandRefused(self.id, "settled", sentence) from error
        except DragomanError as error:
            raise refused(self.id, error) from error
        except ValueError as error:
            detail = {"fields": error.fields} if isinstance(error, FormError) else None
            raise CommandRefused(self.id, "invalid", str(error), detail) from error
        if patiently:
            await self.recording.settled()
        elif not await self.recording.stored():
            return reply | {"delayed": f"{self._away}: {_DELAYED}"}
        if self.recording.error is not None:
            raise refused(self.id, self.recording.error)
        return reply

    @property
    def _away(self) -> str:
        """Why the store is, or was, in a few words."""
        return (self._store.away or "the database was unavailable").partition(":")[0]

    async def _on_record(self) -> None:
        """A turn that is not on record is not run: another host may have taken the session, and
        would run it too."""
        await self.recording.settled()
        if self.recording.error is not None:
            raise self.recording.error

    async def _execute(self, command: c.Command) -> c.Reply:
        match command:
            case c.Prompt() | c.RuledPrompt() | c.SteerTurn():
                # With the trace context that came with it, else that of our caller.
                if not (trace := command.trace):
                    return await self._take(command)
                with tracing(trace.get("traceparent"), trace.get("tracestate")):
                    return await self._take(command)
            case c.Cancel():
                return await self._cancel()
            case c.CancelToolCall() | c.CancelTerminal() | c.CancelSubagent():
                return {"cancelled": await self._stop(command)}
            case c.Revert() | c.Restore():
                return await self._revert(command)
            case c.ContinueParked(now):
                return await self._continue_parked(now)
            case c.TakeOver(session_id, parked):
                return await self._take_over(session_id, parked)
            case c.Rename(title):
                await self._rename(title)
            case c.SetMode() | c.SetConfig() | c.SetModel():
                await self._set(command)
            case _:
                await self._settle(command)
        return {}

    async def _take_over(self, session_id: str, parked: Parking) -> c.Reply:
        self.session.log.record(taken_over(session_id, parked.id))
        terms, lost = parked.terms, list[str]()
        if terms is not None:
            terms, lost = kept_terms(terms, self.home)
        for sentence in lost:
            self.session.log.record(e.Notice(sentence, "warning", source="client"))
        return {"turn": (await self.prompt(parked.content, terms)).id}

    async def _continue_parked(self, now: bool) -> c.Reply:
        if now:
            return {"turn": (await self.session.parking.send_now()).id}
        self.session.parking.wait()
        return {}

    async def _revert(self, command: c.Revert | c.Restore) -> c.Reply:
        turn_id, paths, restores = command.turn_id, command.paths, self.restores
        timeline = None if restores is None else restores.timeline
        if restores is not None and restores.timeline.has_snapshots(turn_id):
            return await restores.revert(command)
        must_be_whole_files(self.id, command, timeline)
        gate = self.session.gate
        if turn_id is None or not gate.changes(turn_id):
            await self.recall()
            earlier = [each for each in self._recalled if turn_id in (None, each.turn)]
            must_be_in_place(gate.workspace, [*earlier, *gate.changes(turn_id)], paths)
        undone = await gate.revert(turn_id, paths=paths, force=command.force)
        reply: c.Reply = {"paths": [str(change.path) for change in undone]}
        return must_be_something(self.id, reply, command, timeline)

    async def _take(self, command: c.Prompt | c.RuledPrompt | c.SteerTurn) -> c.Reply:
        terms = None
        match command:
            case c.SteerTurn():
                return await self._steer(command.content)
            case c.RuledPrompt():
                terms = command.terms
                check_terms(terms, self.id, home=self.home, offered=self.session.gate.offered)
            case c.Prompt():
                pass
        turn = await self.prompt(command.content, terms)
        return {"turn": turn.id, "queued": turn in self.session.queued}

    async def recall(self) -> None:
        """Have the session's `changes` and `revert` know of what it wrote before it was run here.
        Raises Unsupported where what serves files keeps nothing of them."""
        async with self._recalling:
            if self._last_before:
                before = await read_own(self._store, self.record, until=self._last_before)
                self.session.gate.recall(earlier := before.to_undo())
                self._recalled = [each.without_contents() for each in earlier]
                self._last_before = 0

    async def told(self) -> list[Change]:
        """What the file says was written that an imported session came from."""
        if self.record.imported is None:
            return []
        until = self.record.imported.events
        written = await read_written(self._store, self.id, until=until)
        return [change for change in written.changes(None) if change.is_imported]

    async def _set(self, command: c.SetMode | c.SetConfig | c.SetModel) -> None:
        await self._reconnected()
        match command:
            case c.SetMode(mode_id):
                await self.session.set_mode(mode_id)
            case c.SetConfig(option_id, value):
                await self.session.set_config_option(option_id, value)
            case c.SetModel(model_id):
                await self.session.set_model(model_id)

    async def _settle(self, command: c.Command) -> None:
        """What waits: a question, or a prompt."""
        session = self.session
        match command:
            case c.AnswerPermission(request_id, option_id, confirmed):
                await session.answer(request_id, option_id, confirmed)
            case c.AnswerElicitation(request_id, action, content):
                answer = ElicitationAnswer(action, content)
                await session.answer_elicitation(request_id, answer)
            case c.EditQueued(queue_id, content):
                turn = self._queued(queue_id)
                self._check_queue(each for each in session.queued if each is not turn)
                session.edit_queued(turn, content)
            case c.DropParked(handed_to):
                session.parking.drop(handed_to)
            case c.Note(text):
                session.log.record(e.Notice(text, source="client"))
            case c.DropQueued(queue_id):
                session.drop_queued(self._queued(queue_id))
            case _:
                raise Unsupported(f"{type(command).__name__} here")

    async def prompt(self, prompt: PromptInput, terms: TurnTerms | None = None) -> Turn:
        """Send a prompt, or queue it; an agent that was lost is started again first. The `terms`
        hold for its turn alone.

        Raises SessionNotContinued when it comes back without its memory, ValueError when there is
        nothing in the prompt, CommandRefused when too many wait already.
        """
        await self._reconnected()
        if self.session.steering.holds_queue:  # else the first of those that wait is sent now
            self._check_queue(self.session.queued)
        turn = self.session.prompt(prompt, terms=terms)
        # Its events are read where they are stored: what nobody takes here would only pile up.
        turn.discard()
        return turn

    async def _steer(self, content: PromptInput) -> c.Reply:
        await self._reconnected()
        if self.session.steering.holds_queue:
            self._check_queue(self.session.queued)
        steer = await self.session.steer(content)
        if steer.turn is not None:
            steer.turn.discard()
        return {
            "steer": steer.id,
            "outcome": steer.outcome,
            "way": steer.way,
            "reason": steer.reason,
            "turn": None if steer.turn is None else steer.turn.id,
        }

    def _check_queue(self, waiting: Iterable[Turn]) -> None:
        """Whether there is room for one more. Raises CommandRefused."""
        sizes = [len(msgspec.json.encode(turn.content)) for turn in waiting]
        most = self.limits
        if len(sizes) < most.queued_prompts and sum(sizes) < most.queued_bytes:
            return
        sentence = (
            f"the queue is full: {len(sizes)} prompts with {sum(sizes):,} bytes wait; the limit is "
            f"{most.queued_prompts} prompts or {most.queued_bytes >> 20} MiB; wait, or drop some"
        )
        raise CommandRefused(self.id, "queue_full", sentence)

    async def go_on_with(self, turn: Turn) -> None:
        """Send what waits from before, up to this one and beyond. Raises as `prompt` does."""
        await self._reconnected()
        if turn in self.session.queued:
            self.session.go_on()

    async def _reconnected(self) -> None:
        """With its agent there, whatever became of it before.

        When another session has started the agent again, it does not know of this one yet.
        """
        client = self.agent.client
        async with self._reconnecting:
            if client.connection_error is not None or client.dialect is not self._opened_on:
                await self.session.reconnect()
                self._opened_on = client.dialect
                self.agent.started_again()

    @property
    def in_brief(self) -> c.Reply:
        """What a person needs to tell it from others that use the same agent."""
        record = self.record
        named = {"id": record.id, "title": record.title, "name": record.name}
        return named | {"status": status_of(self.state)}

    @property
    def loses_by_a_kill(self) -> bool:
        """Whether the end of its process costs it more than the time to be continued."""
        agent = self.agent.client.capabilities
        return self.session.at_work or not (agent.load or agent.resume)

    async def stop_alone(self) -> bool:
        """Have the agent close this session, whatever it does, and continue the others. It is
        continued when it is used next. False where the agent cannot, or does not."""
        if self.agent.client.capabilities.close:
            self._opened_on = None  # it may be closed there although its turn continues
        return await stop_by_closing(self.session, self.agent.client, _CLOSE_SECONDS)

    async def _cancel(self) -> c.Reply:
        busy = self.session.busy
        await self.session.cancel()
        return {"cancelled": busy}

    async def _stop(self, command: c.CancelToolCall | c.CancelTerminal | c.CancelSubagent) -> bool:
        """One thing of a turn; False for what is over already."""
        match command:
            case c.CancelToolCall(call_id):
                if self.state.tool_call(call_id) is None:
                    raise _unknown(self.id, "tool call", call_id)
                return await self.session.cancel_tool_call(call_id)
            case c.CancelTerminal(terminal_id):
                if terminal_id not in self.state.terminals:
                    raise _unknown(self.id, "terminal", terminal_id)
                return await self.session.cancel_terminal(terminal_id)
            case c.CancelSubagent(subagent_id):
                if subagent_id not in self.state.subagents:
                    raise _unknown(self.id, "subagent", subagent_id)
                return await self.session.cancel_subagent(subagent_id)

    def _queued(self, queue_id: str) -> Turn:
        for turn in self.session.queued:
            if turn.id == queue_id and self.session.steering.is_here(turn):
                return turn
        raise KeyError(queue_id)

    async def take_title(self) -> None:
        """What the agent calls the session in its list: some say it nowhere else."""
        if self.state.title:
            return
        with suppress(DragomanError, TimeoutError):  # it is only a title
            async with asyncio.timeout(_TITLE_SECONDS):
                async for info in self.agent.client.list_sessions():
                    if info.id == self.session.id and info.title:
                        self.session.log.record(e.InfoChanged(info.title))
                        return

    async def _rename(self, title: str) -> None:
        self.record.title, self.record.renamed = title, True
        change = SessionChange(title=title, renamed=True)
        await self._store.change_session(self.id, change)
        # The agent's own list should say the same, where it can.
        client = self.agent.client
        if client.capabilities.set_title and title and client.connection_error is None:
            await self.session.set_title(title)


_DELAYED = (
    "the command is kept on this host, and continues when it is back, unless another host or "
    "process has taken the session by then"
)
_CODES: dict[type[DragomanError], str] = {
    Unsupported: "unsupported",
    PromptTooLarge: "too_large",
    SessionNotContinued: "not_continued",
    SessionGone: "session_gone",
    CancelIgnored: "cancel_ignored",
    LeaseLost: "owner_gone",
    RevertConflict: "conflict",
    AuthRequired: "auth_required",
    StoreAway: "store_away",
    StoreFull: "store_full",
}


def _unknown(session_id: str, kind: str, wanted: str) -> CommandRefused:
    code = f"unknown_{kind.replace(' ', '_')}"
    return CommandRefused(session_id, code, f"no {kind} {wanted} in this session")


def refused(session_id: str, error: DragomanError) -> CommandRefused:
    """The answer to a caller, who may be in another process."""
    if isinstance(error, CommandRefused):
        return error
    detail = None
    if isinstance(error, RevertConflict):
        detail = {"reasons": error.reasons, "byForce": error.by_force}
    return CommandRefused(session_id, _CODES.get(type(error), "failed"), str(error), detail)


# ── rules that come with a prompt ───────────────────────────────────────────────────────────────

# The rules that come with a prompt from another process: whether they may hold here.
#
# All processes of one store belong to one person, so their rules are as good as ours; but what is
# allowed on one machine is not allowed on another, which has other files. Rules that deny or ask
# hold everywhere, as stored ones do.


MOST_BYTES = 256 << 10
"""Of rules, as JSON: they are stored with the prompt, and again with its turn."""

_METHODS: dict[Operation, str] = {"write": "fs/write_text_file", "execute": "terminal/create"}


def check_terms(
    terms: TurnTerms, session_id: str, *, home: str | None, offered: Collection[str]
) -> None:
    """Raises CommandRefused for terms that cannot hold on this `home`, whose agent was `offered`
    these methods."""

    def refused(code: str, sentence: str) -> CommandRefused:
        return CommandRefused(session_id, code, sentence)

    try:
        rules = rules_of(terms)
    except (ValueError, TypeError) as error:
        raise refused("invalid", f"a rule cannot be read: {error}") from error
    allowing = [rule for rule in rules if rule.effect == "allow"]
    words = " ".join(terms.options)
    if len(msgspec.json.encode(terms.rules)) > MOST_BYTES:
        sentence = f"rules for one turn may have at most {MOST_BYTES >> 10} KiB; store some of them"
        raise refused("too_large", sentence)
    if allowing and terms.home != home:
        sentence = f"the session runs on another machine, where {words} cannot allow anything"
        raise refused("elsewhere", f"{sentence}: run it there, or answer its questions")
    for operation, method in _METHODS.items():
        if method not in offered and _is_meant(allowing, operation):
            sentence = f"the process that runs the session does not offer {method} to its agent"
            raise refused("not_offered", f"{sentence}, so {words} allows nothing")


def _is_meant(allowing: list[Rule], operation: Operation) -> bool:
    """Whether a rule is for this alone; --yolo is for much else, too."""
    return any(covered(rule) == frozenset((operation,)) and not rule.anywhere for rule in allowing)


def kept_terms(terms: TurnTerms, home: str | None) -> tuple[TurnTerms, list[str]]:
    """What holds of the terms of a prompt that waited for another owner, and in a sentence what
    does not."""
    if terms.home == home and _are_readable(terms):
        return terms, []
    strict = [fields for fields in terms.rules if fields.get("effect") != "allow"]
    if len(strict) == len(terms.rules) and _are_readable(terms):
        return terms, []
    lost = f"the prompt was queued with {' '.join(terms.options)}, which allows nothing here"
    kept = msgspec.structs.replace(terms, rules=strict, options=[])
    return kept if _are_readable(kept) else TurnTerms(by=terms.by, on_ask="reject"), [lost]


def _are_readable(terms: TurnTerms) -> bool:
    try:
        rules_of(terms)
    except (ValueError, TypeError):
        return False
    return True
