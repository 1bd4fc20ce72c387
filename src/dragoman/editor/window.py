"""One session as an editor has it open: what is stored of it is sent to the editor, in order.

Like every other window, it reads the session's stored events with a cursor, wherever the session
runs. Nothing is sent twice and nothing is left out, also when others prompt, answer or cancel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from dragoman.client.dialects.encoding import MODE, UpdateEncoder, mode_option
from dragoman.editor.editor_questions import EditorQuestions
from dragoman.editor.link import EditorLink
from dragoman.editor.own_terms import OwnTerms
from dragoman.errors import CommandRefused, ConnectionLost, DragomanError, ResourceNotFound
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import readable, stored_state
from dragoman.session import events as e
from dragoman.session.coalesce import coalesce
from dragoman.session.content import Content
from dragoman.session.facts import ConfigChoice, ConfigOption
from dragoman.session.reduce import fold, reduce
from dragoman.session.state import SessionState
from dragoman.store.base import event_pages

logger = logging.getLogger("dragoman.editor")

_LOOK_SECONDS = 1.0
"""How often to look whether a session with a prompt of this editor still has an owner."""
_AGAIN_SECONDS = 0.5
_PLAIN = (e.AgentMessage, e.AgentThought)
"""What changes nothing that the next update depends on."""
_FACTS = (e.CommandsChanged, e.ModeChanged, e.ConfigChanged, e.InfoChanged, e.UsageChanged)
"""What a history leaves out: the last of each comes after it, or in the reply."""

AGENT_OPTION = "agent"
"""The config option that chooses the agent of a new session."""

_DROPPED = e.TurnEnded("", stop_reason="cancelled")
"""The end of a prompt that was taken out of the queue."""


class EditorWindow:
    """A session in one editor. `state` is what the editor knows so far."""

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        link: EditorLink,
        encoder: UpdateEncoder,
        questions: EditorQuestions,
        terms: OwnTerms,
    ) -> None:
        self._terms = terms
        self.id = session_id
        self.state = SessionState()
        self.agent = ""
        self.agents: Sequence[str] = ()
        """The agents that the session can still be given to, while it was not prompted."""
        self._hub = hub
        self._link = link
        self._encoder = encoder
        self._questions = questions
        questions.must_answer = self.is_prompting
        self._ends: dict[str, asyncio.Future[e.TurnEnded]] = {}
        """By turn, those of prompts that this editor sent."""
        self._said: dict[str, None] = {}
        """Steers of this editor: it shows them by itself."""
        self._cancels = 0
        """How often the editor has cancelled: a prompt that was on its way then is meant, too."""
        self._sending = 0
        self._sent = asyncio.Event()
        self._sent.set()
        self._following: asyncio.Task[None] | None = None
        self._closed: Literal["", "continues", "cancels"] = ""

    def options(self, known: Sequence[ConfigOption]) -> list[ConfigOption]:
        """The config options of the agent, after ours; with its modes where they are one."""
        modes = self.state.modes
        has_own = any(option.category == MODE for option in known)
        if self._encoder.modes_are_options and modes is not None and not has_own:
            known = [mode_option(modes), *known]
        if len(self.agents) < 2:
            return list(known)
        choices = [ConfigChoice(name, name) for name in self.agents]
        ours = ConfigOption(
            AGENT_OPTION, "Agent", self.agent, choices, "which agent does the work", AGENT_OPTION
        )
        return [ours, *known]

    def is_mode_option(self, option_id: str) -> bool:
        """Whether an option of that id is ours, and stands for the modes."""
        own = {option.id for option in self.state.config_options}
        return option_id == MODE and MODE not in own and self._encoder.modes_are_options

    # ── what is sent to the editor ───────────────────────────────────────────────────────────────

    async def catch_up(self) -> None:
        """Know the session as it is stored, and tell the editor nothing of it."""
        self.state = await stored_state(self._hub.store, self.id)

    async def tell_history(self) -> None:
        """Tell the editor what is stored, up to now."""
        record = await self._hub.record(self.id)
        async for page in event_pages(self._hub.store, self.id, until=record.last_seq):
            for joined in coalesce(readable(page)):
                if not isinstance(joined.event, _FACTS):
                    self._tell(joined.event)
                reduce(self.state, joined.event)
            await self._link.keep_pace()
        self.state.last_seq = record.last_seq

    def begin(self) -> None:
        """Tell what the reply could not say, and from now on everything as it is stored. Call it
        before the reply goes out: it takes effect right after it."""
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        if self._closed:
            return  # while it was opened
        self._following = asyncio.create_task(self._follow())

    def pause(self) -> None:
        """Tell the editor nothing until `begin` is called again."""
        self._questions.close()
        if self._following is not None:
            self._following.cancel()

    def close(self, *, cancels: bool = False) -> None:
        """Tell the editor nothing more: for it, its prompts are over. What runs continues, unless
        this `cancels` a prompt that is still on its way."""
        self._closed = "cancels" if cancels else "continues"
        self.pause()
        for turn_id in self._ends:
            self._settle(turn_id, _DROPPED)

    async def _follow(self) -> None:
        try:
            self._tell_facts()
            is_there = True
            while is_there:
                is_there = await self._follow_owner()
        except ConnectionLost:
            return  # there is nobody to send it to
        except Exception:
            logger.exception("session %s is no longer shown in the editor", self.id)
            raise

    async def _follow_owner(self) -> bool:
        """Until the session is deleted; True if the process that runs it, this one, can no longer
        record it: another may."""
        try:
            async for page in self._hub.watch(self.id, self.state.last_seq):
                await self._take_all(readable(page))
                self.state.last_seq = page[-1].seq
                self._questions.ask(self.state)
                await self._link.keep_pace()
        except ConnectionLost:
            raise
        except DragomanError as error:
            self._remark(f"the session is no longer recorded here: {error}")
            await asyncio.sleep(_AGAIN_SECONDS)
            return True
        self._remark("the session was deleted")
        self._settle_all("the session was deleted")
        return False

    async def _take_all(self, events: Iterable[e.Event]) -> None:
        plain: list[e.Event] = []
        for event in events:
            if isinstance(event, _PLAIN):
                self._tell(event)
                plain.append(event)
                continue
            if plain:
                fold(self.state, plain)
                plain = []
            await self._take(event)
        if plain:
            fold(self.state, plain)

    async def _take(self, event: e.Event) -> None:
        if isinstance(event, e.TurnStarted | e.Steered | e.PromptUnqueued):
            await self._sent.wait()  # whose it is, the reply to our command says
        if not self._is_own(event):
            self._tell(event)
        reduce(self.state, event)
        self._note_end(event)

    def _is_own(self, event: e.Event) -> bool:
        """Whether the editor shows it by itself."""
        match event:
            case e.TurnStarted(turn_id=turn_id) | e.TurnEnded(turn_id=turn_id):
                return turn_id in self._ends and not self._encoder.echoes_prompts
            case e.Steered(queue_id=queue_id):
                return queue_id in self._said
            case _:
                return False

    def _tell(self, event: e.Event) -> None:
        if isinstance(event, e.ConfigChanged):
            event = e.ConfigChanged(self.options(event.options), meta=event.meta)
        elif isinstance(event, e.ModeChanged) and self._encoder.modes_are_options:
            reduce(self.state, event)  # an option comes as it is now
            event = e.ConfigChanged(self.options(self.state.config_options), seq=event.seq)
        for update in self._encoder.updates(event, self.state):
            self._link.tell(update.subagent or self.id, update.wire)

    def _tell_facts(self) -> None:
        """What replies have no room for."""
        state = self.state
        facts: list[e.Event] = []
        if state.commands:
            facts.append(e.CommandsChanged(state.commands))
        if state.title or state.updated_at:
            facts.append(e.InfoChanged(state.title, state.updated_at))
        if state.usage is not None:
            facts.append(e.UsageChanged(state.usage.used, state.usage.size, state.usage.cost))
        for fact in facts:
            self._tell(fact)
        for wire in self._encoder.standing(state):
            self._link.tell(self.id, wire)
        self._questions.ask(state)

    def _remark(self, sentence: str) -> None:
        """A notice that is on no record."""
        with suppress(ConnectionLost):
            for wire in self._encoder.remark(e.Notice(sentence, "warning", source="client")):
                self._link.tell(self.id, wire)

    # ── what the editor asks for ──────────────────────────────────────────────────────────────

    async def prompt(self, content: list[Content]) -> e.TurnEnded:
        """Send a prompt, and wait for the end of its turn. Raises what `Hub.send` raises. When the
        caller is cancelled, so is the turn, unless the editor is gone."""
        turn_id = await self.send_prompt(content)
        try:
            return await self.end_of(turn_id)
        except asyncio.CancelledError:
            if self._link.is_open:
                await asyncio.shield(asyncio.create_task(self._withdraw(turn_id)))
            raise

    def is_prompting(self) -> bool:
        """Whether a turn of this editor runs, or waits."""
        return bool(self._ends)

    async def send_prompt(self, content: list[Content]) -> str:
        """Send a prompt; the id of its turn. Raises what `Hub.send` raises. When the caller is
        cancelled while it is on its way, it is withdrawn, unless the editor is gone."""
        sending = asyncio.create_task(self._send_prompt(content))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            if self._link.is_open:
                await asyncio.shield(asyncio.create_task(self._recall(sending)))
            sending.cancel()
            raise

    async def _recall(self, sending: asyncio.Task[str]) -> None:
        with suppress(DragomanError):
            await self._withdraw(await sending)

    async def _send_prompt(self, content: list[Content]) -> str:
        cancels = self._cancels
        with self._in_flight():
            command = await self._terms.prompt(self._hub, self.id, content)
            reply = await self._hub.send(self.id, command)
            turn_id: str = reply["turn"]
            self._ends[turn_id] = asyncio.get_running_loop().create_future()
        if self._closed:
            self._settle(turn_id, _DROPPED)
        if self._closed == "cancels" or self._cancels > cancels:
            await self._withdraw(turn_id)
        if (delayed := reply.get("delayed")) is not None:
            self._remark(delayed)
        return turn_id

    async def see_through(self, turn_id: str) -> None:
        """Look after a turn that the editor does not wait for."""
        with suppress(DragomanError):
            await self.end_of(turn_id)

    async def end_of(self, turn_id: str) -> e.TurnEnded:
        """The end of a turn that this editor started. A session that lost its owner is opened here
        for the prompts that wait."""
        end = self._ends[turn_id]
        try:
            while not end.done():
                await asyncio.wait((end,), timeout=_LOOK_SECONDS)
                if not end.done():
                    await self._find_owner()
            return end.result()
        finally:
            self._ends.pop(turn_id, None)

    async def _find_owner(self) -> None:
        if self.id in self._hub.live:
            return
        with suppress(DragomanError):  # the store is away, or another process was quicker
            owner = await self._hub.store.owner(self.id)
            if owner is None or is_gone(owner):
                await self._hub.open(self.id)

    async def cancel(self) -> None:
        """Stop the running turn, and drop what this editor has queued, or is just sending. Raises
        what `Hub.send` raises."""
        self._cancels += 1
        for queued in [each.id for each in self.state.queue if each.id in self._ends]:
            with suppress(DragomanError):
                await self._hub.send(self.id, c.DropQueued(queued))
        await self._hub.send(self.id, c.Cancel())

    async def steer(self, content: list[Content]) -> c.Reply:
        """Say something into the running turn. Raises what `Hub.send` raises."""
        with self._in_flight():
            reply = await self._hub.send(self.id, c.SteerTurn(content))
            self._said[reply["steer"]] = None
        return reply

    async def take_back(self, steer_id: str) -> bool:
        """Whether a steer that was not delivered could be taken out of the queue."""
        try:
            await self._hub.send(self.id, c.DropQueued(steer_id))
        except DragomanError:
            return False  # its turn has begun
        return True

    async def _withdraw(self, turn_id: str) -> None:
        with suppress(DragomanError):
            try:
                await self._hub.send(self.id, c.DropQueued(turn_id))
            except CommandRefused:  # it does not wait; `state` may not know yet whether it does
                if not self._is_over(turn_id):
                    await self._hub.send(self.id, c.Cancel())

    def _is_over(self, turn_id: str) -> bool:
        """Whether it is stored that a turn of this editor has ended."""
        return any(turn.id == turn_id and turn.ending for turn in self.state.turns)

    @contextmanager
    def _in_flight(self) -> Generator[None]:
        """While a command is on its way whose events may be stored before its reply is here."""
        self._sending += 1
        self._sent.clear()
        try:
            yield
        finally:
            self._sending -= 1
            if not self._sending:
                self._sent.set()

    def _note_end(self, event: e.Event) -> None:
        match event:
            case e.TurnEnded(turn_id=turn_id):
                self._settle(turn_id, event)
            case e.PromptUnqueued(queue_id=queue_id, dropped=True):
                self._settle(queue_id, _DROPPED)
            case _:
                pass

    def _settle(self, turn_id: str, ended: e.TurnEnded) -> None:
        end = self._ends.get(turn_id)
        if end is not None and not end.done():
            end.set_result(ended)

    def _settle_all(self, reason: str) -> None:
        for end in self._ends.values():
            if not end.done():
                end.set_exception(ResourceNotFound(reason))
