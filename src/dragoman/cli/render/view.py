"""The interface of every view of a turn, the stages that views are shown on, and headings."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.render.event_text import outcome_words
from dragoman.cli.render.style import Style, can_draw
from dragoman.cli.render.wrap import folded
from dragoman.session import events as e
from dragoman.session.state import OPEN_STATUSES, AgentEntry, SessionState, Subagent, answer_of

if TYPE_CHECKING:
    from dragoman.cli.render.status_line import Status
    from dragoman.store.records import SessionRecord


class View(Protocol):
    """Shows a turn, event by event; `state` is the session as it was right after the event."""

    def show(self, event: e.Event, state: SessionState) -> None: ...

    def close(self) -> None: ...


class JsonView(ABC):
    """A view for programs: it says first which session it is about."""

    @abstractmethod
    def begin(self, record: SessionRecord, last_seq: int) -> None:
        """The session is open; what is shown follows its event `last_seq`."""

    @abstractmethod
    def show(self, event: e.Event, state: SessionState) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object: ...


class NoView:
    """Shows nothing: the frames speak for themselves."""

    def show(self, event: e.Event, state: SessionState) -> None:
        pass

    def close(self) -> None:
        pass


class AnswerView(NoView):
    """Shows nothing, and has the answer of the turn that ended last."""

    answer = ""

    def show(self, event: e.Event, state: SessionState) -> None:
        if isinstance(event, e.TurnEnded):
            self.answer = answer_of(state, event.turn_id)


class Stage(ABC):
    """Where sessions are shown: events in a view, prompts above them, remarks below."""

    status: Status

    def present(self, event: e.Event, state: SessionState, *, known: bool = False) -> None:
        """Show an event; one that is `known` without a heading or a remark."""
        if not known:
            self._announce(event)
        self.show(event, state)
        if not known and isinstance(event, e.TurnEnded) and (words := outcome_words(event)):
            self.remark(words, failed=event.error is not None)

    def _announce(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted():
                self.asked(event.text)
            case e.PromptQueued(steer=None | "waiting"):
                self.remark(f"queued: {event.text}")
            case e.Steered() if event.content:
                self._said_meanwhile(event)
            case _:
                pass

    def _said_meanwhile(self, event: e.Steered) -> None:
        if event.outcome in ("delivered", "started"):
            self.asked(event.text)
        else:
            self.remark(steer_words(event), failed=True)

    @abstractmethod
    def asked(self, text: str) -> None:
        """What someone asked, in another window or before."""

    @abstractmethod
    def show(self, event: e.Event, state: SessionState) -> None:
        """The event itself."""

    @abstractmethod
    def remark(self, sentence: str, *, failed: bool = False) -> None:
        """A sentence of ours about the session."""


def steer_words(event: e.Steered) -> str:
    """What became of a steer that was not delivered, and what was said."""
    what = "not delivered" if event.outcome == "refused" else "perhaps not delivered"
    why = f" ({event.reason})" if event.reason else ""
    return f"{what}{why}: {event.text}"


def heading(prefix: str, text: str, style: Style, *codes: str) -> str:
    """Lines of their own, with room above them."""
    first, *more = text.split("\n")
    lines = _laid_out(first, prefix)
    lines += [line for each in more for line in _laid_out(each, " " * len(prefix))]
    return "\n".join(["", *(style(line, *codes) for line in lines), ""])


def _laid_out(line: str, prefix: str) -> list[str]:
    return folded(line, prefix) if can_draw(sys.stdout) else [f"{prefix}{line}"]


# What subagents say and do, in whole lines with their names: several may speak at once. Pure.


_LONGEST = 200
"""Characters of a description."""
_ENDINGS = {"end_turn": "done", None: "idle"}


class SubagentLines:
    """Lines to show after each event: a name, and what there is to say; nothing is said twice."""

    def __init__(self) -> None:
        self._doing: dict[str, str] = {}
        self._calls: dict[tuple[str, str], str] = {}
        self._said: dict[str, int] = {}
        """The number of the last message that was shown, by subagent."""

    def after(self, event: e.Event, state: SessionState) -> Iterator[tuple[str, str]]:
        if event.replay or not isinstance(event, e.SubagentUpdated | e.SubagentEvent):
            return
        if (child := state.subagents.get(event.session_id)) is None:
            return
        if lines := list(self._lines(event, child)):
            name = state.subagent_name(child.session_id)
            yield from ((name, line) for line in lines)

    def _lines(self, event: e.SubagentUpdated | e.SubagentEvent, child: Subagent) -> Iterator[str]:
        is_over = child.state is not None and not child.is_at_work
        yield from self._words(child, is_over=is_over)
        if isinstance(event, e.SubagentEvent) and isinstance(event.event, e.ToolCallUpdated):
            yield from self._call(child, event.event.tool_call_id)
        doing = _doing(child)
        if self._doing.get(child.session_id) != doing:
            is_first = child.session_id not in self._doing
            self._doing[child.session_id] = doing
            yield _described(child, doing) if is_first else doing

    def _words(self, child: Subagent, *, is_over: bool) -> Iterator[str]:
        """A message is shown once something follows it."""
        entries = child.thread.entries
        for entry in entries[-2:] if is_over else entries[-2:-1]:
            if isinstance(entry, AgentEntry) and entry.seq > self._said.get(child.session_id, 0):
                self._said[child.session_id] = entry.seq
                yield from entry.text.strip().split("\n")

    def _call(self, child: Subagent, call_id: str) -> Iterator[str]:
        call = child.thread.tool_call(call_id)
        if call is None or call.status in OPEN_STATUSES:
            return
        key = child.session_id, call.id
        if self._calls.get(key) != call.status:
            self._calls[key] = call.status
            yield f"{call.title or call.name or call.id} ({call.status})"


def _described(child: Subagent, doing: str) -> str:
    """What it is for, when it is first seen: agents call several of them the same."""
    words = " ".join((child.description or "")[:_LONGEST].split())
    return f"{doing} on: {words}" if words and doing == "works" else doing


def _doing(child: Subagent) -> str:
    if child.state is None:
        return "started"
    match child.state.state:
        case "running":
            return "works"
        case "requires_action":
            return "waits for an answer"
        case "idle":
            return _ENDINGS.get(child.state.stop_reason, str(child.state.stop_reason))
        case other:
            return other
