"""The searchable text of a session, and the words around what is found in it. Pure.

Messages are joined from their pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeAlias

from msgspec.structs import replace

from dragoman.lazy_pattern import lazy_pattern
from dragoman.safe_text import decomposed
from dragoman.session import events as e
from dragoman.store.records import Said, SaidKind

_MAX_TEXT = 1_000_000
"""Characters of one message that search knows."""
_MAX_TITLE = 1_000
_MAX_PIECES = 4_096
"""That are held before they are joined: each costs more than its words."""
_MAX_SPEAKING = 32
"""Subagents whose messages are held at once."""
_MAX_SUBAGENT_TEXT = _MAX_TEXT // _MAX_SPEAKING


_Message: TypeAlias = e.AgentMessage | e.UserMessage
_id_of, _text_of = attrgetter("message_id"), attrgetter("content.text")


class Texts:
    """Takes the events of a session in order, and yields each message once it is complete."""

    def __init__(self, most: int = _MAX_TEXT) -> None:
        self._most = most
        self._kind: type[_Message] | None = None
        """Of the events that continue the message so far."""
        self._id: str | None = None
        self._seq = 0
        self._pieces: list[str] = []
        self._size = 0
        self._title = ""
        self._subagents: dict[str, Texts] = {}
        """Those that are in the middle of a message."""

    def feed(self, events: Sequence[e.Event]) -> list[Said]:
        """The texts that these events complete."""
        # Nearly every event is another piece of the same answer.
        if {*map(type, events)} == {self._kind} and {*map(_id_of, events)} == {self._id}:
            self._add(map(_text_of, events))
            return []
        whole: list[Said] = []
        for event in events:
            if type(event) is e.SubagentEvent:
                whole += self._told(event)
            else:
                whole += self._take(event, event.seq)
        return whole

    def _take(self, event: e.Event, seq: int) -> list[Said]:
        if type(event) is self._kind and _id_of(event) == self._id:
            self._add((event.text,))
            return []
        return self._other(event, seq) if type(event) in _CONCERNED else []

    def _add(self, words: Iterable[str]) -> None:
        if (room := self._most - self._size) > 0 and (text := "".join(words)):
            self._pieces.append(text[:room])
            self._size += len(text)
            if len(self._pieces) == _MAX_PIECES:
                self._pieces = ["".join(self._pieces)]

    def _other(self, event: e.Event, seq: int) -> list[Said]:
        if isinstance(event, e.InfoChanged):
            return self._titled(event)
        whole = self.rest() if isinstance(event, _ENDS) else self._message()
        if isinstance(event, e.TurnStarted | e.Steered):
            whole += _said(seq, "user", event.text)
        if isinstance(event, _Message) and event.text:
            self._kind, self._id, self._seq = type(event), event.message_id, seq
            self._add((event.text,))
        return whole

    def _titled(self, event: e.InfoChanged) -> list[Said]:
        """Agents send the same title repeatedly."""
        title = (event.title or "")[:_MAX_TITLE]
        if title == self._title:
            return []
        self._title = title
        return _said(event.seq, "title", title)

    def _told(self, event: e.SubagentEvent) -> list[Said]:
        """Several speak at once: each has a message of its own, up to so many of them."""
        key, told = event.session_id, event.event
        if isinstance(told, e.InfoChanged):
            return []
        texts = self._subagents.pop(key, None) or Texts(_MAX_SUBAGENT_TEXT)
        whole = texts._take(told, event.seq)
        if texts._kind is not None:
            self._subagents[key] = texts
        if len(self._subagents) > _MAX_SPEAKING:
            whole += self._subagents.pop(next(iter(self._subagents))).rest()
        return [replace(said, kind="subagent") for said in whole]

    def rest(self) -> list[Said]:
        """The messages so far, taken as whole."""
        whole = self._message()
        for texts in self._subagents.values():
            whole += [replace(said, kind="subagent") for said in texts.rest()]
        self._subagents.clear()
        return whole

    def _message(self) -> list[Said]:
        kind = "agent" if self._kind is e.AgentMessage else "user"
        said = _said(self._seq, kind, "".join(self._pieces))
        self._kind = None
        self._pieces.clear()
        self._size = 0
        return said


_ENDS = (e.TurnEnded, e.SessionClosed)
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


def _said(seq: int, kind: SaidKind, text: str) -> list[Said]:
    return [Said(seq, kind, text[:_MAX_TEXT])] if text.strip() else []


_SNIPPET_WORDS = 16
_WORDS_BEFORE = 5
_MAX_WORD = 200
# An accent may be a character of its own; of many in a row the rest is skipped.
_word = lazy_pattern("(?:[^\\W_][\u0300-\u036f]{0,8})+")
_MAX_WORDS = 32
_piece = lazy_pattern(r'"([^"]*)"|([^\s"]+)')


def pieces(text: str) -> tuple[list[str], bool]:
    """What was typed between blanks or in quotes; whether the last may be the beginning of a
    word. What holds no letter or digit is left out: no index has it."""
    found = list(_piece.finditer(text.replace("\0", " ")))[:_MAX_WORDS]
    typed = [(each[1] if each[1] is not None else each[2]) for each in found]
    kept = [piece for piece in typed if any(map(str.isalnum, piece))]
    is_open = bool(kept) and kept[-1] == typed[-1] and not text.rstrip(" ").endswith('"')
    return kept, is_open


def snippet(text: str, typed: str) -> str:
    """Some words around the first that was found, with all that were found marked."""
    parts = list(words(text))
    found = sorted(_found([part[0] for part in parts], typed))
    first = max(found[0][0] - _WORDS_BEFORE, 0) if found else 0
    if first + _SNIPPET_WORDS > len(parts):
        first = max(len(parts) - _SNIPPET_WORDS, 0)
    last = min(first + _SNIPPET_WORDS, len(parts)) - 1
    if last < 0:
        return text[:100]
    begin = 0 if first == 0 else parts[first][1]
    end = len(text) if last == len(parts) - 1 else parts[last][2]
    marks = [(parts[a][1], parts[b][2]) for a, b in found if a >= first and b <= last]
    marked = _marked(text, begin, end, marks)
    return f"{'…' if first else ''}{marked}{'' if end == len(text) else '…'}"


def _found(plain: list[str], typed: str) -> Iterator[tuple[int, int]]:
    """Where each piece of what was typed stands: its first word and its last."""
    kept, is_open = pieces(typed)
    for number, piece in enumerate(kept, 1):
        phrase = [part[0] for part in words(piece)]
        is_prefix = is_open and number == len(kept)
        for start in range(len(plain) - len(phrase) + 1) if phrase else ():
            if _stands(plain[start : start + len(phrase)], phrase, is_prefix):
                yield start, start + len(phrase) - 1


def _stands(there: list[str], phrase: list[str], is_prefix: bool) -> bool:
    if there[:-1] != phrase[:-1]:
        return False
    return there[-1].startswith(phrase[-1]) if is_prefix else there[-1] == phrase[-1]


def _marked(text: str, begin: int, end: int, marks: list[tuple[int, int]]) -> str:
    shown, at = "", begin
    for start, stop in marks:
        if start >= at:
            shown += f"{text[at:start]}\x01{text[start:stop]}\x02"
            at = stop
    return shown + text[at:end]


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """Each with the places where it begins and ends."""
    for found in _word.finditer(text):
        if word := _plain(found[0]):
            yield word, found.start(), found.end()


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()[:_MAX_WORD]
    parts = decomposed(word.casefold())
    return "".join(part for part in parts if part.isalnum())[:_MAX_WORD]
