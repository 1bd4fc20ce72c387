"""The rules of a UI message stream that bite, in Python: no Node is needed to hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.session import events as e
from dragoman.ui_stream import Chunk, Encoder
from dragoman.ui_stream.chunks import OnlyIn7, Sdk
from dragoman.ui_stream.message_history import Message

_ENDS = ("finish", "abort", "error")
_ONLY_IN_7 = OnlyIn7.__args__


def wire(chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    """The chunks as a page gets them."""
    return msgspec.json.decode(msgspec.json.encode(chunks))


def types_of(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk["type"] for chunk in wire(chunks)]


def started(*events: e.Event, sdk: Sdk = None) -> tuple[Encoder, list[Chunk]]:
    """An encoder in the middle of turn `t`, and what it said to these events."""
    encoder = Encoder("s", sdk=sdk)
    encoder.feed(e.TurnStarted("t", []))
    return encoder, [chunk for event in events for chunk in encoder.feed(event)]


class Page:
    """Holds streams of one message to the rules, as a page would."""

    def __init__(self, sdk: Sdk) -> None:
        self.problems: list[str] = []
        self._sdk = sdk
        self._texts: set[str] = set()
        self._tools: dict[str, str] = {}
        self._step: set[str] = set()
        self._refused: set[str] = set()
        self._has_output: set[str] = set()
        self._asks: dict[str, str] = {}

    def read(self, chunks: Sequence[Chunk]) -> None:
        """One whole stream."""
        told = wire(chunks)
        self._expect(bool(told) and told[0]["type"] == "start", "begins with start")
        ends = [n for n, chunk in enumerate(told) if chunk["type"] in _ENDS]
        self._expect(ends == [len(told) - 1], f"has one end, its last: {ends} of {len(told)}")
        for chunk, original in zip(told, chunks, strict=True):
            is_new = isinstance(original, _ONLY_IN_7)
            self._expect(not is_new or self._sdk == 7, f"{chunk['type']} is for 7 alone")
            self._read(chunk)
        self._expect(not self._texts, f"text is open at the end: {self._texts}")
        open_inputs = [key for key, state in self._tools.items() if state == "input-streaming"]
        self._expect(not open_inputs, f"inputs are open at the end: {open_inputs}")

    def _expect(self, holds: bool, rule: str) -> None:
        if not holds:
            self.problems.append(rule)

    def _read(self, chunk: dict[str, Any]) -> None:
        kind: str = chunk["type"]
        for field, value in chunk.items():
            is_free = field in ("input", "output", "data")
            self._expect(value is not None or is_free, f"{kind} has a null {field}")
        match kind.rpartition("-"):
            case (("text" | "reasoning"), _, ("start" | "delta" | "end")):
                self._read_text(kind, chunk["id"])
            case _ if kind.startswith("tool-"):
                self._read_tool(kind, chunk)
            case _, _, "step":
                self._step = set() if kind == "start-step" else self._step
                self._expect(not self._texts, "text is open where a step begins or ends")
            case _:
                ends = kind in _ENDS
                self._expect(not (ends and self._texts), f"text is open before {kind}")

    def _read_text(self, kind: str, key: str) -> None:
        if kind.endswith("-start"):
            self._expect(key not in self._texts, f"{key} starts twice")
            self._texts.add(key)
        else:
            self._expect(key in self._texts, f"{kind} without a start")
        if kind.endswith("-end"):
            self._texts.discard(key)

    def _read_tool(self, kind: str, chunk: dict[str, Any]) -> None:
        if kind == "tool-approval-response":
            self._refused.discard(self._asks[chunk["approvalId"]])
            return
        key: str = chunk["toolCallId"]
        if kind.startswith("tool-input"):
            self._expect(key not in self._tools or key in self._step, f"{key} is made anew")
            self._step.add(key)
            self._has_output.discard(key)
        else:
            self._expect(key in self._tools, f"{kind} for an unknown tool")
        self._expect(key not in self._refused, f"{kind} behind a denial")
        self._expect(
            kind != "tool-approval-request" or key not in self._has_output,
            f"{key} is asked with an output",
        )
        if kind == "tool-approval-request":
            self._asks[chunk["approvalId"]] = key
        if kind.startswith("tool-output"):
            self._has_output.add(key)
        if kind == "tool-output-denied":
            self._refused.add(key)
        self._tools[key] = "input-streaming" if kind == "tool-input-start" else kind


class Told:
    """A message told in one or more streams, as somebody answered what was asked."""

    def __init__(self, sdk: Sdk = None, session_id: str = "s") -> None:
        self.sdk: Sdk = sdk
        self.encoder = Encoder(session_id, sdk=sdk)
        self.streams: list[list[Chunk]] = [[]]
        self.answers: list[dict[str, bool]] = []
        self.answered: list[dict[str, Any]] = []
        """The message as the page has it when it sends its answers, once for each."""
        self.message = Message()

    def feed(self, *events: e.Event, pending: Any = None) -> None:
        self._add(self.encoder.feed(*events, pending=pending))

    def resume(self, approved: bool) -> None:
        """All that is asked is answered on the page, then the stream goes on."""
        self.answer(dict.fromkeys(sorted(self.encoder.waiting), approved))

    def answer(self, answers: dict[str, bool]) -> None:
        """These are, and others may not be."""
        self.answers.append(answers)
        for part in self.message.message.parts:
            if part.get("state") == "approval-requested" and part["approval"]["id"] in answers:
                part["state"] = "approval-responded"
                part["approval"]["approved"] = answers[part["approval"]["id"]]
        self.streams.append([])
        self.answered.append(msgspec.json.decode(msgspec.json.encode(self.message.message)))
        self._add(self.encoder.resume(answers))

    def close(self) -> None:
        self._add(self.encoder.close())

    def _add(self, chunks: list[Chunk]) -> None:
        self.streams[-1] += chunks
        self.message.apply(*chunks)

    @property
    def parts(self) -> list[dict[str, Any]]:
        return self.message.message.parts

    @property
    def problems(self) -> list[str]:
        page = Page(self.sdk)
        for chunks in self.streams:
            page.read(chunks)
        return page.problems
