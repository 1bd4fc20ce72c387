"""The searchable text of a session: whole messages, joined from their pieces. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

from dragoman.session import events as e
from dragoman.store.records import Said

_MAX_TEXT = 1_000_000
"""Characters of one message that search knows."""
_MAX_TITLE = 1_000
_MAX_PIECES = 4_096
"""That are held before they are joined: each costs more than its words."""


_Message: TypeAlias = e.AgentMessage | e.UserMessage
_id_of, _text_of = attrgetter("message_id"), attrgetter("content.text")


class Texts:
    """Takes the events of a session in order, and yields each message once it is complete."""

    def __init__(self) -> None:
        self._kind: type[_Message] | None = None
        """Of the events that continue the message so far."""
        self._id: str | None = None
        self._seq = 0
        self._pieces: list[str] = []
        self._size = 0
        self._title = ""

    def feed(self, events: Sequence[e.Event]) -> list[Said]:
        """The texts that these events complete."""
        # Nearly every event is another piece of the same answer.
        if {*map(type, events)} == {self._kind} and {*map(_id_of, events)} == {self._id}:
            self._add(map(_text_of, events))
            return []
        whole: list[Said] = []
        for event in events:
            if type(event) is self._kind and _id_of(event) == self._id:
                self._add((event.text,))
            elif type(event) in _CONCERNED:
                whole += self._other(event)
        return whole

    def _add(self, words: Iterable[str]) -> None:
        if (room := _MAX_TEXT - self._size) > 0 and (text := "".join(words)):
            self._pieces.append(text[:room])
            self._size += len(text)
            if len(self._pieces) == _MAX_PIECES:
                self._pieces = ["".join(self._pieces)]

    def _other(self, event: e.Event) -> list[Said]:
        if isinstance(event, e.InfoChanged):
            return self._titled(event)
        whole = self.rest()
        if isinstance(event, e.TurnStarted | e.Steered):
            whole += _said(event.seq, "user", event.text)
        if isinstance(event, _Message) and event.text:
            self._kind, self._id, self._seq = type(event), event.message_id, event.seq
            self._add((event.text,))
        return whole

    def _titled(self, event: e.InfoChanged) -> list[Said]:
        """Agents send the same title repeatedly."""
        title = (event.title or "")[:_MAX_TITLE]
        if title == self._title:
            return []
        self._title = title
        return _said(event.seq, "title", title)

    def rest(self) -> list[Said]:
        """The message so far, taken as whole."""
        kind = "agent" if self._kind is e.AgentMessage else "user"
        said = _said(self._seq, kind, "".join(self._pieces))
        self._kind = None
        self._pieces.clear()
        self._size = 0
        return said


_CONCERNED = frozenset(
    (
        e.AgentMessage,
        e.UserMessage,
        e.InfoChanged,
        e.TurnStarted,
        e.Steered,
        e.TurnEnded,
        e.ToolCallUpdated,
        e.SessionClosed,
    )
)
"""Events with a text of their own, or that end a message."""


def _said(seq: int, kind: Literal["user", "agent", "title"], text: str) -> list[Said]:
    return [Said(seq, kind, text[:_MAX_TEXT])] if text.strip() else []
