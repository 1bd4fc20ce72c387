"""What search should find of a session: whole messages, put together from their pieces. Pure."""

from __future__ import annotations

from typing import Literal

from dragoman.session import events as e
from dragoman.store.records import Said

_MAX_TEXT = 1_000_000
"""Characters of one message that search knows."""
_MAX_TITLE = 1_000
_MAX_PIECES = 4_096
"""That are held before they are joined: each costs more than its words."""


class Texts:
    """Feed it the events of a session, in order; a message is given out once it is whole."""

    def __init__(self) -> None:
        self._kind: Literal["user", "agent"] = "agent"
        self._message_id: str | None = None
        self._seq = 0
        self._pieces: list[str] = []
        self._size = 0
        self._title = ""

    def feed(self, event: e.Event) -> list[Said]:
        """What is known to be whole now that this has happened."""
        # By exact type: this runs for every event, and most are pieces of an answer.
        kind = type(event)
        if kind is e.AgentMessage or kind is e.UserMessage:
            return self._spoken(event, "agent" if kind is e.AgentMessage else "user")
        if kind is e.TurnStarted:
            return [*self.rest(), *_said(event.seq, "user", event.text)]
        if isinstance(event, e.InfoChanged):
            return self._titled(event)
        return self.rest() if kind in _BETWEEN_MESSAGES else []

    def _titled(self, event: e.InfoChanged) -> list[Said]:
        """Agents tell the same title again and again."""
        title = (event.title or "")[:_MAX_TITLE]
        if title == self._title:
            return []
        self._title = title
        return _said(event.seq, "title", title)

    def _spoken(self, event: e.Event, kind: Literal["user", "agent"]) -> list[Said]:
        message_id = getattr(event, "message_id", None)
        whole: list[Said] = []
        if not self._pieces or kind != self._kind or message_id != self._message_id:
            whole = self.rest()
            self._kind, self._message_id, self._seq = kind, message_id, event.seq
        if (room := _MAX_TEXT - self._size) > 0 and (text := event.text):
            self._pieces.append(text[:room])
            self._size += len(text)
            if len(self._pieces) == _MAX_PIECES:
                self._pieces = ["".join(self._pieces)]
        return whole

    def rest(self) -> list[Said]:
        """The message that is under way, taken as whole."""
        said = _said(self._seq, self._kind, "".join(self._pieces))
        self._pieces.clear()
        self._size = 0
        return said


_BETWEEN_MESSAGES = frozenset((e.TurnEnded, e.ToolCallUpdated, e.SessionClosed))


def _said(seq: int, kind: Literal["user", "agent", "title"], text: str) -> list[Said]:
    return [Said(seq, kind, text[:_MAX_TEXT])] if text.strip() else []
