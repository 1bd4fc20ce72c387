"""The message in progress: its step, open text, tools and data parts, resent at a bounded rate.

Collects the chunks that change it. What the events mean is for the encoder to say.

A small part is sent whenever it changes. A large one rests the longer the more there is of it:
otherwise an agent could have megabytes told again by every word that it adds.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from math import inf
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.session import content as c
from dragoman.session.events import Event
from dragoman.session.reduce import reduce
from dragoman.session.state import CompactionEntry, PeerMessageEntry, SessionState, ToolCall
from dragoman.session.state_limits import ID, LIMITS, Limits
from dragoman.ui_stream import acp_json, data_parts
from dragoman.ui_stream.chunks import (
    Chunk,
    Data,
    File,
    FinishStep,
    Json,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningFile,
    ReasoningStart,
    Sdk,
    SourceDocument,
    SourceUrl,
    StartStep,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.ui_stream.tool_parts import FINAL_STATUSES, ToolPart, provider_metadata

_encode = msgspec.json.Encoder(order="deterministic").encode


class Parts:
    """`state` has what was merged of the agent's tool calls and terminals, within its limits: what
    leaves it ends here as it is."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.state = SessionState()
        self._limits = limits
        self._left = 0
        self.step = 0
        self.throttle = Throttle()
        self._out: list[Chunk] = []
        self._in_step = False
        self._text = OpenText()
        self._tools: dict[str, ToolPart] = {}
        self._own_calls: dict[str, ToolCall] = {}
        self._data: dict[tuple[str, str], int] = {}
        """What each part says, as a hash: it is sent again only when that changes."""

    def merge(self, event: Event) -> None:
        reduce(self.state, event, self._limits)
        if self.state.entries_before > self._left:
            self._left = self.state.entries_before
            self._forget()

    def _forget(self) -> None:
        gone = [key for key in self._tools if self._known(key) is None]
        for key in gone:
            self.throttle.wake(f"tool:{key}")
            self.emit(*self._tools.pop(key).close(ToolCall(id=key), None))
            self._data.pop(("data-acp-tool", key), None)
        for key in list(self._data)[: -2 * self._limits.entries]:
            del self._data[key]

    def emit(self, *chunks: Chunk) -> None:
        self._out += chunks

    def taken(self) -> list[Chunk]:
        """What was collected since the last time."""
        out, self._out = self._out, []
        return out

    def append(self, part: Chunk) -> None:
        """A whole part behind all others."""
        self._begin()
        self.emit(part)

    def _begin(self) -> None:
        """In a step: a page sends an answer only of the last one, so none begins while a tool of
        the step before is asked about."""
        self.end_text()
        if not self._in_step and not any(part.waits for part in self._tools.values()):
            self._in_step = True
            self.step += 1
            self.emit(StartStep())

    def end_text(self) -> None:
        self.emit(*self._text.end())

    def say(self, kind: Kind, message_id: str | None, text: str, meta: Any) -> None:
        if not self._text.continues(kind, message_id):
            self._begin()
            self.emit(self._text.start(kind, message_id, provider_metadata(meta)))
        self.emit(self._text.delta(text))

    def put(self, data: Data, *, attached: bool = False) -> int:
        """A data part with an id, in place of the one before; how much it says.

        `attached` is for what belongs to another part: text continues, and no step begins in which
        a tool of the step before could no longer be asked about.
        """
        assert data.id is not None
        encoded = _encode(data.data)
        key, said = (data.type, data.id), hash(encoded)
        if self._data.get(key) == said:
            return len(encoded)
        if key not in self._data and not attached:
            self._begin()
        self._data[key] = said
        self.emit(data)
        return len(encoded)

    def has(self, data_type: str, data_id: str) -> bool:
        return (data_type, data_id) in self._data

    # ── tools ─────────────────────────────────────────────────────────────────────────────────

    def part(self, tool_call_id: str) -> ToolPart | None:
        return self._tools.get(tool_call_id)

    def change_call(self, call: ToolCall) -> None:
        """Something is new about it; that it has ended is shown at once, the first time."""
        key, part = f"tool:{call.id}", self._tools.get(call.id)
        if call.status in FINAL_STATUSES and part is not None and not part.has_ended:
            part.has_ended = True
            self.throttle.wake(key)
        self.throttle.hold(key)

    def show_call(self, call: ToolCall) -> ToolPart:
        """Bring the page's part to what the call says now."""
        part = self._tools.get(call.id)
        if part is None:
            self._begin()
            part = self._tools[call.id] = ToolPart(call.id, self.step)
        self.emit(*part.update(call, self.step))
        if call.content or call.locations:
            self.put(data_parts.tool(call), attached=True)
        return part

    def own_call(self, call: ToolCall) -> ToolPart:
        """A part for something that is not a tool call of the agent."""
        self._own_calls[call.id] = call
        return self.show_call(call)

    def call(self, tool_call_id: str) -> ToolCall:
        call = self._known(tool_call_id)
        assert call is not None
        return call

    def _known(self, tool_call_id: str) -> ToolCall | None:
        return self._own_calls.get(tool_call_id) or self.state.tool_call(tool_call_id)

    def is_own(self, tool_call_id: str) -> bool:
        return tool_call_id in self._own_calls

    def _each(self) -> Iterator[tuple[ToolPart, ToolCall]]:
        return ((part, self.call(key)) for key, part in self._tools.items())

    def unpark(self) -> None:
        for part, call in self._each():
            self.emit(*part.unpark(call))

    # ── ends ──────────────────────────────────────────────────────────────────────────────────

    def park(self, at: float) -> None:
        """End the step with every tool looking finished, to continue later."""
        self._flush(at)
        for part, call in self._each():
            self.emit(*part.park(call))
        self._finish_step()

    def close(self, at: float, failure: str | None) -> None:
        """End everything that is open; `failure` is why tools did not finish, if that is why."""
        self._flush(at)
        for part, call in self._each():
            self.emit(*part.close(call, failure))
        self._finish_step()

    def _flush(self, at: float) -> None:
        self.show(at, all_of_it=True)
        self.end_text()

    def _finish_step(self) -> None:
        if self._in_step:
            self._in_step = False
            self.emit(FinishStep())

    # ── what is sent as a whole ───────────────────────────────────────────────────────────────

    def end_terminal(self, terminal_id: str) -> None:
        """Its last words are shown at once if they are few."""
        key, terminal = f"terminal:{terminal_id}", self.state.terminals.get(terminal_id)
        if terminal is not None and terminal.size <= SMALL:
            self.throttle.wake(key)
        self.throttle.hold(key)

    def show(self, at: float, *, all_of_it: bool = False) -> None:
        """Send what has changed, unless something was sent a moment ago: then it is held back."""
        for key in self.throttle.release(at, all_of_it=all_of_it):
            kind, _, part_id = key.partition(":")
            least = INTERVAL if kind == "terminal" else 0.0
            self.throttle.rest(key, at, self._show(kind, part_id), least)

    def _show(self, kind: str, part_id: str) -> int:
        """How much it says: nothing if it is no longer known."""
        if kind == "tool":
            call = self._known(part_id)
            return 0 if call is None else self.show_call(call) and call.size
        data = self._merged(kind, part_id)
        return 0 if data is None else self.put(data, attached=kind == "terminal")

    def _merged(self, kind: str, part_id: str) -> Data | None:
        """What the fold has made of all updates about this id."""
        match kind:
            case "terminal":
                terminal = self.state.terminals.get(part_id[:ID])
                data = None if terminal is None else acp_json.terminal(terminal)
                return None if data is None else Data("data-acp-terminal", data, id=part_id)
            case "subagent":
                child = self.state.subagents.get(part_id)
                return None if child is None else data_parts.subagent(child)
            case _:
                match self.state.placed(f"{kind}:{part_id}"):
                    case CompactionEntry() as entry:
                        return data_parts.compaction(entry)
                    case PeerMessageEntry() as entry:
                        return data_parts.peer_message(entry)
                    case _:
                        return None


INTERVAL = 0.25
"""Seconds between two looks at the same terminal."""
SMALL = 4 * 1024
"""Characters of a part that is sent whenever it changes."""
RATE = 256 * 1024
"""Characters of a larger one that are sent per second."""

_MANY = 1_000
"""Parts that rest, beyond which it is worth looking which of them still do."""


class Throttle:
    """Which parts have something new to show, and when it may be shown."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[float, float]] = {}
        """When each that rests was shown, and for how long it rests."""
        self._held: dict[str, None] = {}
        self._soonest = inf
        self._latest = -inf
        self._many = _MANY

    @property
    def due(self) -> float | None:
        """When the first of what is held back may be shown."""
        return min(map(self._due, self._held), default=None)

    def hold(self, key: str) -> None:
        """Something is new here."""
        if key not in self._held:
            self._held[key] = None
            self._soonest = min(self._soonest, self._due(key))

    def release(self, at: float, *, all_of_it: bool = False) -> list[str]:
        """What to show now; the caller says how long it rests then."""
        if not all_of_it and self._latest <= at < self._soonest:
            return []
        ready = [key for key in self._held if all_of_it or self._is_due(key, at)]
        for key in ready:
            del self._held[key]
        self._soonest = min(map(self._due, self._held), default=inf)
        return ready

    def rest(self, key: str, at: float, size: int, least: float = 0.0) -> None:
        """It was shown, and so many characters were sent."""
        seconds = least if size <= SMALL else max(INTERVAL, least, size / RATE)
        self.wake(key)
        if seconds:
            self._shown[key] = at, seconds
            self._latest = max(self._latest, at)
        if len(self._shown) > self._many:
            self._shown = {each: rest for each, rest in self._shown.items() if sum(rest) > at}
            self._many = max(_MANY, 2 * len(self._shown))

    def wake(self, key: str) -> None:
        """It may be shown at once."""
        if self._shown.pop(key, None) is not None and key in self._held:
            self._soonest = -inf

    def _due(self, key: str) -> float:
        at, seconds = self._shown.get(key, (-inf, 0.0))
        return at + seconds

    def _is_due(self, key: str, at: float) -> bool:
        # A clock that was set back must not silence a part.
        shown, seconds = self._shown.get(key, (-inf, 0.0))
        return at - shown >= seconds or at < shown


Kind: TypeAlias = Literal["text", "reasoning"]
ANY_TYPE = "application/octet-stream"


class OpenText:
    """The one text or reasoning part that deltas go to."""

    def __init__(self) -> None:
        self._kind: Kind = "text"
        self._message_id: str | None = None
        self._id: str | None = None
        self._count = 0

    def continues(self, kind: Kind, message_id: str | None) -> bool:
        is_same = self._kind == kind and self._message_id == message_id
        return self._id is not None and is_same

    def start(self, kind: Kind, message_id: str | None, metadata: Json | None) -> Chunk:
        self._count += 1
        self._kind, self._message_id, self._id = kind, message_id, f"{kind}-{self._count}"
        if kind == "text":
            return TextStart(id=self._id, provider_metadata=metadata)
        return ReasoningStart(id=self._id, provider_metadata=metadata)

    def delta(self, text: str) -> Chunk:
        assert self._id is not None
        if self._kind == "text":
            return TextDelta(id=self._id, delta=text)
        return ReasoningDelta(id=self._id, delta=text)

    def end(self) -> Iterator[Chunk]:
        if self._id is None:
            return
        yield TextEnd(id=self._id) if self._kind == "text" else ReasoningEnd(id=self._id)
        self._id = None


def part_of(content: c.Content, kind: Kind, sdk: Sdk) -> Chunk:
    """The part for content that is not plain text."""
    match content:
        case c.ResourceLink():
            return _source(content)
        case c.Image() | c.Audio() | c.Resource():
            url, media_type, metadata = file_of(content)
            file = ReasoningFile if kind == "reasoning" and sdk == 7 else File
            return file(url=url, media_type=media_type, provider_metadata=metadata)
        case _:
            return Data(type="data-acp-content", data=acp_json.content(content))


def file_of(content: c.Image | c.Audio | c.Resource) -> tuple[str, str, Json | None]:
    """Address, media type and what else is known of a file."""
    match content:
        case c.Resource():
            media_type = content.mime_type or ("text/plain" if content.blob is None else ANY_TYPE)
            data = content.blob
            if data is None:
                data = base64.b64encode((content.content or "").encode()).decode()
            return data_url(media_type, data), media_type, {"acp": {"uri": content.uri}}
        case c.Image(uri=str(uri)) if not content.data:
            return uri, content.mime_type, None
        case _:
            uri = content.uri if isinstance(content, c.Image) else None
            metadata = None if uri is None else {"acp": {"uri": uri}}
            return data_url(content.mime_type, content.data), content.mime_type, metadata


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def _source(link: c.ResourceLink) -> Chunk:
    title = link.title or link.name
    if is_web(link.uri):
        return SourceUrl(source_id=link.uri, url=link.uri, title=title or None)
    return SourceDocument(
        source_id=link.uri,
        media_type=link.mime_type or ANY_TYPE,
        title=title,
        filename=link.name or None,
        provider_metadata={"acp": {"uri": link.uri}},
    )


def is_web(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))
