"""Turns updates that describe a state into events that describe a change. Pure.

Version 2 tells messages and terminals as a whole or by what changed, by their ids. Compared with
what is known, most of that is nothing new, or something more: only what really takes words back
becomes a replacement.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from itertools import groupby

from msgspec import UNSET, UnsetType

from dragoman.client.dialects import translation
from dragoman.schema import v2
from dragoman.session import events as e
from dragoman.session.content import Content, Text
from dragoman.session.state import (
    AgentEntry,
    SessionState,
    Terminal,
    ThoughtEntry,
    UserEntry,
)
from dragoman.session.state_limits import ID, LIMITS, drop_oldest

Message = v2.UserMessage | v2.AgentMessage | v2.AgentThought
Spoken = e.UserMessage | e.AgentMessage | e.AgentThought
Entry = UserEntry | AgentEntry | ThoughtEntry
_KINDS: dict[type[Message], tuple[type[Spoken], type[Entry]]] = {
    v2.UserMessage: (e.UserMessage, UserEntry),
    v2.AgentMessage: (e.AgentMessage, AgentEntry),
    v2.AgentThought: (e.AgentThought, ThoughtEntry),
}


# ── messages ──────────────────────────────────────────────────────────────────────────────────


def message(wire: Message, known: SessionState | None) -> list[e.Event]:
    """What a whole message adds to what is known of it."""
    kind, entry_type = _KINDS[type(wire)]
    meta = wire.meta or None
    unchanged = [] if meta is None else [kind(Text(""), wire.message_id, meta=meta)]
    if wire.content is UNSET:
        return [*unchanged]
    now = translation.contents(wire.content or [])
    entry = None if known is None else known.message(entry_type, wire.message_id)
    before = [] if entry is None else entry.content
    more = _added(before, now)
    parts = now or [Text("")] if more is None else more
    events = [kind(part, wire.message_id, meta=meta) for part in parts]
    if more is None:
        events[0].replaces = True
    return [*(events or unchanged)]


def _added(before: list[Content], now: list[Content]) -> list[Content] | None:
    """What `now` has after `before`; None if it does not start with `before`."""
    if not before:
        return now
    now = _joined(now)
    *same, last = before
    if now[: len(same)] != same or len(now) < len(before):
        return None
    end, rest = now[len(same)], now[len(before) :]
    if end == last:
        return rest
    if _is_plain(end) and _is_plain(last) and end.text.startswith(last.text):
        return [Text(end.text[len(last.text) :]), *rest]
    return None


def _joined(parts: list[Content]) -> list[Content]:
    """Neighbouring plain text as one, which is how it is kept."""
    joined: list[Content] = []
    for is_plain, group in groupby(parts, _is_plain):
        some = list(group)
        joined += [Text("".join(each.text for each in some))] if is_plain else some
    return joined


def _is_plain(part: Content) -> bool:
    return type(part) is Text and part.annotations is None and part.meta is None


# ── terminals ─────────────────────────────────────────────────────────────────────────────────


class Terminals:
    """The agent's own terminals of one session: what they print, byte by byte, as text.

    Pieces may end inside a character, so a decoder is kept for each terminal that prints; an agent
    may name terminals without end, so the first makes room for the newest.
    """

    def __init__(self) -> None:
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def chunk(self, wire: v2.TerminalOutputChunk) -> list[e.Event]:
        text = self._decoder(wire.terminal_id).decode(_bytes(wire.data))
        told = e.TerminalOutput(wire.terminal_id, text, meta=wire.meta)
        return [told] if text or wire.meta else []

    def update(self, wire: v2.TerminalUpdate, known: SessionState | None) -> list[e.Event]:
        terminal = None if known is None else known.terminals.get(wire.terminal_id)
        events: list[e.Event] = []
        if (started := _started(wire, terminal)) is not None:
            events.append(started)
        events += self._printed(wire, terminal)
        ended = _exit(wire.exit_status, terminal, again=started is not None)
        if ended is not None:
            events += self._ended(wire.terminal_id, ended)
        if wire.meta and started is None:  # which would have it
            events.append(e.TerminalOutput(wire.terminal_id, "", meta=wire.meta))
        return events

    def _decoder(self, terminal_id: str) -> codecs.IncrementalDecoder:
        key = terminal_id[:ID]
        found = self._decoders.get(key)
        if found is None:
            found = codecs.getincrementaldecoder("utf-8")("replace")
            self._decoders[key] = found
            drop_oldest(self._decoders, LIMITS.others)
        return found

    def _printed(self, wire: v2.TerminalUpdate, terminal: Terminal | None) -> list[e.Event]:
        """A snapshot is all there is: what came before it counts no more."""
        if wire.output is UNSET:
            return []
        decoder = self._decoder(wire.terminal_id)
        decoder.reset()
        text = "" if wire.output is None else decoder.decode(_bytes(wire.output.data))
        before = "" if terminal is None else "".join(terminal.pieces)
        if text.startswith(before):
            more = text[len(before) :]
            return [e.TerminalOutput(wire.terminal_id, more)] if more else []
        return [e.TerminalOutput(wire.terminal_id, text, replaces=True)]

    def _ended(self, terminal_id: str, ended: v2.TerminalExitStatus) -> list[e.Event]:
        cut_off = self._decoder(terminal_id).decode(b"", final=True)
        del self._decoders[terminal_id[:ID]]
        printed = [e.TerminalOutput(terminal_id, cut_off)] if cut_off else []
        return [*printed, e.TerminalExited(terminal_id, ended.exit_code, ended.signal)]


def _started(wire: v2.TerminalUpdate, known: Terminal | None) -> e.TerminalStarted | None:
    """None if nothing changed in what is shown above its output."""
    before = Terminal(wire.terminal_id) if known is None else known
    can, ends = wire.capabilities, isinstance(wire.exit_status, v2.TerminalExitStatus)
    # What has ended cannot be stopped, and need not be said to be so.
    cancellable = before.cancellable if can is UNSET or ends else bool(can and can.cancel)
    now = e.TerminalStarted(
        wire.terminal_id,
        [],
        _patched(before.cwd, wire.cwd),
        _patched(before.command, wire.command),
        cancellable,
        meta=wire.meta or None,
    )
    runs_again = wire.exit_status is None and not before.running
    as_before = (now.cwd, now.command, cancellable) == (
        before.cwd,
        before.command,
        before.cancellable,
    )
    return None if known is not None and as_before and not runs_again else now


def _patched(before: str, wire: str | UnsetType | None) -> str:
    return before if wire is UNSET else wire or ""


def _exit(
    wire: v2.TerminalExitStatus | UnsetType | None, known: Terminal | None, *, again: bool
) -> v2.TerminalExitStatus | None:
    """How it ended, if that is news; one that was begun `again` for another word is still over."""
    if isinstance(wire, v2.TerminalExitStatus):
        now = (False, wire.exit_code, wire.signal)
        was = None if known is None else (known.running, known.exit_code, known.signal)
        return wire if again or now != was else None
    if again and wire is UNSET and known is not None and not known.running:
        return v2.TerminalExitStatus(exit_code=known.exit_code, signal=known.signal)
    return None


def _bytes(data: str) -> bytes:
    """Text that is not base64 is shown as it came: better odd than lost."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return data.encode("utf-8", "replace")
