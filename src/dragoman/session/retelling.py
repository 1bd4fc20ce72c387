"""Tells what an agent repeats of a known history from what is new. Pure.

What comes before the reply to `session/load` is history by definition. After it, only what repeats
known entries in their order is. Whatever is in doubt counts as new: nothing may be lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeAlias

from msgspec import UNSET

from dragoman.lazy_pattern import lazy_pattern
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.state import (
    OVER_STATUSES,
    AgentEntry,
    AnyEntry,
    PlanEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
    UserEntry,
)

_MOST_HELD = 10_000
_MOST_HELD_BYTES = 1024 * 1024
"""Of the events that wait for what follows them: they are in memory alone."""

_MOST_LOOKS = 20_000
_MOST_LOOKS_IN_ALL = 500_000
"""At messages that known words may continue in, if they do not continue where they should: for one
event, and for all. An agent chooses how many begin alike."""
_LOOK = 1000
"""So many characters take another look."""
_blank = lazy_pattern(r"\s*")

_Spoken: TypeAlias = UserEntry | AgentEntry | ThoughtEntry
_Phase: TypeAlias = Literal["opening", "settling", "idle", "turn"]
Told: TypeAlias = tuple[e.Event, int]
"""An event and the bytes it came in."""

_ENTRY_OF: dict[type[Any], type[_Spoken]] = {
    e.UserMessage: UserEntry,
    e.AgentMessage: AgentEntry,
    e.AgentThought: ThoughtEntry,
}
_MAY_RECUR = (e.AgentMessage, e.AgentThought, e.PlanUpdated)
_FIELDS = ("title", "kind", "content", "locations", "raw_input", "raw_output")


class _Match(Enum):
    WHOLE = 1
    """It repeats a known entry, to its end."""
    PART = 2
    """It may: it is the beginning of one."""
    NO = 3


class Retelling:
    """What an agent sends of a session whose `state` is known, from its opening to the first turn.

    `hear` returns what is new. What can only be judged by what follows is held until then.
    """

    def __init__(self, state: SessionState) -> None:
        self.over = False
        """Whether the agent has begun to answer a prompt: nothing is compared after that."""
        self._state = state
        self._last_seq = state.last_seq
        self._bounded = state.entries_before > 0
        self._terminals = {each.id for each in state.terminals.values() if not each.running}
        self._phase: _Phase = "opening"
        self._begun = self._may_be_late = False
        self._is_late = False
        """Whether something was repeated after the reply."""
        self._prompt = ""
        self._held: list[tuple[e.Event, int, _Match]] = []
        self._way: Literal["load", "resume", "fork"] = "load"
        known = state.subagents.items()
        self._subagents = {
            key: Retelling(each.thread) for key, each in known if each.thread.entry_count
        }

    # ── what happens to the session ─────────────────────────────────────────────────────────

    def answered(self, way: Literal["load", "resume", "fork"]) -> None:
        """The agent has opened the session."""
        self._way = way
        for child in self._subagents.values():
            child.answered(way)
        if self._phase == "opening":
            self._phase = "idle" if way == "fork" else "settling"
        self._may_be_late = way == "load" and not self._begun

    def settled(self) -> list[Told]:
        """The agent was silent for a while: what was held between repeated pieces is new. A session
        that was resumed has no history to come."""
        self._phase = "idle"
        if self._way == "resume":
            return self.ended()
        news = [(event, size) for event, size, match in self._held if match is _Match.NO]
        self._held = [each for each in self._held if each[2] is not _Match.NO]
        return [*news, *self._of_subagents(Retelling.settled)]

    def prompted(self, prompt: str) -> list[Told]:
        """A prompt goes out. A history that began before may continue until the agent answers."""
        news = self.settled()
        if not self._begun and any(match is _Match.WHOLE for _, _, match in self._held):
            news += self._released()
        news += self._of_subagents(Retelling.ended)
        self._subagents.clear()
        self._phase, self._prompt = "turn", prompt.strip()
        if not (self._begun or self._may_be_late) or self._is_complete():
            return [*news, *self.ended()]
        return news

    def _is_complete(self) -> bool:
        """Whether the last that either side said was repeated."""
        said = [each for each in self._known if isinstance(each, UserEntry | AgentEntry)]
        return not said or self._voices[type(said[-1])].at_end

    def works(self) -> list[Told]:
        """The agent says or wants something else: in a turn, it works on the answer."""
        if self._phase != "turn":
            return self._released()
        if self._is_late or (not self._begun and self._voices[AgentEntry].all_repeated):
            self._drop_repeated()
        return self.ended()

    def ended(self) -> list[Told]:
        """The turn or the session ends, and the comparison with it: what is held is new."""
        self.over = True
        return [*self._released(), *self._of_subagents(Retelling.ended)]

    def _of_subagents(self, happens: Callable[[Retelling], list[Told]]) -> list[Told]:
        return [
            (e.SubagentEvent(key, told), size)
            for key, child in self._subagents.items()
            for told, size in happens(child)
        ]

    def _released(self) -> list[Told]:
        held, self._held = self._held, []
        for voice in self._voices.values() if held else ():
            if not self._begun:
                voice.forget()
            voice.restart()
        return [(event, size) for event, size, _ in held]

    # ── what the agent sends ────────────────────────────────────────────────────────────────

    def hear(self, event: e.Event, size: int) -> list[Told]:
        if isinstance(event, e.SubagentEvent):
            return self._hear_subagent(event, size)
        match = self._match(event)
        if self._phase == "opening":
            self._begun = True
            return []
        if self._phase == "turn":
            return self._in_turn(event, size, match)
        if match is _Match.WHOLE and self._is_repeated(event):
            # What came between repeated pieces is part of the history, in the agent's own words.
            self._begun = self._is_late = True
            return self._released_except(event)
        if match is _Match.WHOLE and self._has_room(size):
            self._held = [(one, size, _whole(one, event, was)) for one, size, was in self._held]
            self._held.append((event, size, match))
            return []
        amid = self._phase == "settling" and (self._begun or self._bounded)
        if self._has_room(size) and (match is _Match.PART or amid):
            self._held.append((event, size, match))
            return []
        return [*self._released(), (event, size)]

    def _hear_subagent(self, event: e.SubagentEvent, size: int) -> list[Told]:
        """Compared with the thread of that subagent; what one tells that has none is not known."""
        if self._phase == "turn":
            return [*self.works(), (event, size)]
        self._begun = self._begun or self._phase == "opening"
        if (child := self._subagents.get(event.session_id)) is None:
            event.replay = self._phase == "opening"
            return [(event, size)]
        news = child.hear(event.event, size)
        return [(e.SubagentEvent(event.session_id, told), held) for told, held in news]

    def _is_repeated(self, event: e.Event) -> bool:
        """Once the agent was silent, one message in old words may be a report: it takes something
        else that is repeated to tell. Agents do not speak for the user, nor reuse ids."""
        if self._phase == "settling" or self._begun or not isinstance(event, _MAY_RECUR):
            return True
        return any(match is _Match.WHOLE for _, _, match in self._held)

    def _in_turn(self, event: e.Event, size: int, match: _Match) -> list[Told]:
        """An answer may repeat old words: they are dropped only once something else follows."""
        if match is _Match.NO or not self._has_room(size):
            return [*self.works(), (event, size)]
        if match is _Match.WHOLE and self._is_old_prompt(event):
            self._begun = self._is_late = True
            self._held.clear()
        else:
            self._held.append((event, size, match))
        return []

    def _is_old_prompt(self, event: e.Event) -> bool:
        """Agents do not speak for the user, except to echo the prompt."""
        return isinstance(event, e.UserMessage) and (
            self._voices[UserEntry].repeated_last != self._prompt
        )

    def _has_room(self, size: int) -> bool:
        held = sum(each[1] for each in self._held)
        return len(self._held) < _MOST_HELD and held + size <= _MOST_HELD_BYTES

    def _released_except(self, repeated: e.Event) -> list[Told]:
        """After the load's own wait, only the beginning of what was repeated is dropped."""
        held, self._held = self._held, []
        if self._phase != "idle":
            return []
        return [
            (event, size)
            for event, size, match in held
            if match is not _Match.WHOLE and type(event) is not type(repeated)
        ]

    def _drop_repeated(self) -> None:
        whole = [n for n, each in enumerate(self._held, 1) if each[2] is _Match.WHOLE]
        del self._held[: whole[-1] if whole else 0]

    # ── the comparison ──────────────────────────────────────────────────────────────────────

    @cached_property
    def _known(self) -> list[AnyEntry]:
        """Not looked at before it is needed: most agents repeat nothing, or in time."""
        return [each for each in self._state.entries if each.seq <= self._last_seq]

    @cached_property
    def _voices(self) -> dict[type[_Spoken], _Voice]:
        return {
            kind: _Voice([each for each in self._known if isinstance(each, kind) and each.pieces])
            for kind in _ENTRY_OF.values()
        }

    def _match(self, event: e.Event) -> _Match:
        match event:
            case e.UserMessage() | e.AgentMessage() | e.AgentThought():
                return self._voices[_ENTRY_OF[type(event)]].match(event)
            case e.ToolCallUpdated():
                known = self._repeats_call(event)
            case e.PlanUpdated():
                known = any(_same_plan(each, event) for each in self._known)
            case e.TerminalStarted() | e.TerminalOutput() | e.TerminalExited():
                known = event.terminal_id in self._terminals
            case _:
                known = False
        return _Match.WHOLE if known else _Match.NO

    def _repeats_call(self, event: e.ToolCallUpdated) -> bool:
        """A call that is over is begun and ended again; one that is about something else has its id
        from another process of the agent."""
        call = self._state.tool_call(event.tool_call_id)
        if call is None or call.seq > self._last_seq:
            return False
        if event.more or not all(_unchanged(call, event, field) for field in _FIELDS):
            return False
        return _unchanged(call, event, "status") or (
            call.status in OVER_STATUSES and event.status not in OVER_STATUSES
        )


class _Voice:
    """What one side has said, message by message, and how much of it was repeated."""

    def __init__(self, entries: Sequence[_Spoken]) -> None:
        self._pieces = [each.pieces for each in entries]
        self._texts = [each.text.strip() for each in entries]
        self._ends = [each.text[-1:].isspace() for each in entries]
        self._lengths = [len(t) + each.cut for t, each in zip(self._texts, entries, strict=True)]
        self._places = {each.message_id: n for n, each in enumerate(entries) if each.message_id}
        self._starts: dict[str, list[int]] = {}
        for n, text in enumerate(self._texts):
            self._starts.setdefault(text[:1], []).append(n)
        self._next = 0
        """The first message that was not repeated."""
        self._skipped = False
        self._at = self._offset = 0
        """Where the running message is to continue."""
        self._run: list[str] = []
        self._looks = _MOST_LOOKS_IN_ALL
        """How many are left."""

    @property
    def at_end(self) -> bool:
        return self._next == len(self._texts)

    @property
    def all_repeated(self) -> bool:
        """Of several messages: an answer may well begin with the only one there was."""
        return self.at_end and not self._skipped and len(self._texts) > 1

    @property
    def repeated_last(self) -> str:
        return self._texts[self._next - 1] if self._next else ""

    def forget(self) -> None:
        """Nothing was repeated: what seemed to be is new."""
        self._next, self._skipped = 0, False

    def restart(self) -> None:
        self._at, self._offset, self._run = self._next, 0, []

    def match(self, event: e.UserMessage | e.AgentMessage | e.AgentThought) -> _Match:
        if not isinstance(event.content, Text):
            return _Match.WHOLE if self._has_piece(event.content) else _Match.NO
        if event.replaces:
            self.restart()
        text = event.text
        if not self._offset and not text.strip():
            return self._match_blank()
        end = self._end_of(text, self._places.get(event.message_id or ""))
        if end is None:
            self.restart()
            return _Match.NO
        self._at, self._offset = end
        if self._offset:
            self._run.append(text)
            return _Match.PART
        self._next, self._run = self._at, []
        return _Match.WHOLE

    def _match_blank(self) -> _Match:
        """Space after a message belongs to it, or to what follows."""
        if not self._next:
            return _Match.NO
        return _Match.WHOLE if self._ends[self._next - 1] else _Match.PART

    def _has_piece(self, content: object) -> bool:
        return any(content in pieces for pieces in self._pieces[self._next :])

    def _end_of(self, text: str, place: int | None) -> tuple[int, int] | None:
        """Where the known words end that are the same; in the message at `place` if that is known,
        otherwise where the last piece ended, or from the start of a later message."""
        if place is not None:
            return self._follow(place, self._offset if place == self._at else 0, text)
        before = self._looks
        end = self._follow(self._at, self._offset, text)
        self._looks = before
        return self._search("".join((*self._run, text))) if end is None else end

    def _search(self, text: str) -> tuple[int, int] | None:
        """Where these words end, from the start of the first message that they are known in."""
        begin = _after_blank(text, 0)
        starts = self._starts.get(text[begin : begin + 1], [])
        before = self._looks
        for start in starts[bisect_left(starts, self._next) :]:
            if self._looks <= 0 or before - self._looks >= _MOST_LOOKS:
                return None
            if (end := self._follow(start, 0, text)) is not None:
                self._skipped = self._skipped or start > self._next
                self._looks = before  # only what is in vain counts
                return end
        return None

    def _follow(self, at: int, offset: int, text: str) -> tuple[int, int] | None:
        """Messages may be joined or split, and the space between them may differ."""
        here = 0 if offset else _after_blank(text, 0)
        while here < len(text) and at < len(self._texts):
            count = min(len(text) - here, self._lengths[at] - offset)
            kept = max(0, min(count, len(self._texts[at]) - offset))  # the rest was cut
            self._looks -= 1 + kept // _LOOK
            if not self._texts[at].startswith(text[here : here + kept], offset):
                return None
            if offset + count < self._lengths[at]:
                return at, offset + count
            at, offset, here = at + 1, 0, _after_blank(text, here + count)
            if here == len(text):
                return at, 0
        return None


def _after_blank(text: str, at: int) -> int:
    found = _blank.match(text, at)
    return at if found is None else found.end()


def _whole(held: e.Event, whole: e.Event, match: _Match) -> _Match:
    """What a message begins with is as whole as its end."""
    return _Match.WHOLE if match is _Match.PART and type(held) is type(whole) else match


def _same_plan(entry: AnyEntry, event: e.PlanUpdated) -> bool:
    fields = ("plan_id", "steps", "markdown", "uri")
    return isinstance(entry, PlanEntry) and all(
        getattr(entry, field) == getattr(event, field) for field in fields
    )


def _unchanged(call: ToolCall, event: e.ToolCallUpdated, field: str) -> bool:
    value = getattr(event, field)
    return value is UNSET or (value or None) == (getattr(call, field) or None)
