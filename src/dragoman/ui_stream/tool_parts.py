"""One tool call as a UI part, and the chunks that bring the page up to date with it.

A page finds a part for `tool-input-*` in the current step alone, for its output anywhere. A part
that was refused takes nothing but the denial, and one that waits for an answer has no output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from dragoman.session.state import ToolCall
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.chunks import (
    Chunk,
    Json,
    ToolApprovalRequest,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutputAvailable,
    ToolOutputDenied,
    ToolOutputError,
    is_object,
)

FINAL_STATUSES = frozenset({"completed", "failed"})
_STARTED_STATUSES = frozenset({"in_progress", *FINAL_STATUSES})

Result: TypeAlias = ToolOutputAvailable | ToolOutputError | ToolOutputDenied


class Head(msgspec.Struct, frozen=True):
    """The header of a tool call; `input` is None until it is known."""

    name: str
    title: str | None
    metadata: Json | None
    input: Any


class ToolPart:
    """The page's part for one tool call; `step` is the one it is in."""

    def __init__(self, tool_call_id: str, step: int) -> None:
        self.id = tool_call_id
        self.step = step
        self.asked: str | None = None
        """The request that has no outcome yet, if there is one."""
        self.waits = False
        """The page has not answered it."""
        self.refused = False
        self.approved = False
        self.has_ended = False
        """The agent has said so once."""
        self._head: Head | None = None
        self._result: Result | None = None

    @property
    def is_final(self) -> bool:
        result = self._result
        return result is not None and not _is_preliminary(result)

    @property
    def _is_settled(self) -> bool:
        """Whether nothing more may be said about it, or not yet."""
        return self.refused or self.asked is not None

    def update(self, call: ToolCall, step: int) -> Iterator[Chunk]:
        """What changed about the call; `step` is the current one."""
        if self._is_settled:
            return
        result = result_of(call)
        head = self._ahead(head_of(call))
        # Telling the input again would take back an approval that has no output yet.
        keeps_approval = self.approved and self._result is None and result is None
        if head != self._head and self.step == step and not keeps_approval:
            yield from self._tell(head)
        if result is not None and result != self._result:
            yield from self._end(result)

    def _ahead(self, head: Head) -> Head:
        """An input that was once reported stays known, even if the call no longer mentions it."""
        if self._head is None or self._head.input is None:
            return head
        return _with_input(head)

    def can_be_asked(self, step: int) -> bool:
        return self.step == step and not self._is_settled and not self.is_final

    def ask(self, request_id: str) -> Iterator[Chunk]:
        """Ask for approval; only of a part that can be asked."""
        assert self._head is not None
        if self._head.input is None or self._result is not None:
            # Told again, because that takes an earlier output away.
            yield from self._tell(_with_input(self._head))
        self.asked, self.approved, self.waits = request_id, False, True
        yield ToolApprovalRequest(approval_id=request_id, tool_call_id=self.id)

    def answered(self, approved: bool) -> Iterator[Chunk]:
        """The page shows this answer to what was asked."""
        was_refused, self.refused = self.refused, not approved
        self.asked, self.approved, self.waits = None, approved, False
        if self.refused and not was_refused:
            self._result = ToolOutputDenied(tool_call_id=self.id)
            yield self._result

    def park(self, call: ToolCall) -> Iterator[Chunk]:
        """Look finished, so that the page may send an answer while the call continues."""
        if not self._is_settled and not self.is_final:
            yield from self._end(_output(call))

    def unpark(self, call: ToolCall) -> Iterator[Chunk]:
        if not self._is_settled and self.is_final and call.status not in FINAL_STATUSES:
            yield from self._end(_output(call, preliminary=True))

    def close(self, call: ToolCall, failure: str | None) -> Iterator[Chunk]:
        """The turn is over, and so is this, whatever the agent said of it last."""
        if self._is_settled or (self.is_final and call.status in FINAL_STATUSES):
            return
        yield from self._end(_output(call) if failure is None else _error(self.id, failure))

    def _tell(self, head: Head) -> Iterator[Chunk]:
        if self._head is None or head.input is None:
            yield ToolInputStart(tool_call_id=self.id, **_shown(head))
        if head.input is not None:
            yield _input(self.id, head)
        self._head = head
        self._result = None

    def _end(self, result: Result) -> Iterator[Chunk]:
        assert self._head is not None
        if self._head.input is None:
            self._head = _with_input(self._head)
            yield _input(self.id, self._head)
        self._result = result
        yield result


# ── what a call says ──────────────────────────────────────────────────────────────────────────


def head_of(call: ToolCall) -> Head:
    head = Head(tool_name(call), call.title or None, provider_metadata(call.meta), call.raw_input)
    return _with_input(head) if call.status in _STARTED_STATUSES else head


def _with_input(head: Head) -> Head:
    nothing: Json = {}
    return head if head.input is not None else msgspec.structs.replace(head, input=nothing)


def tool_name(call: ToolCall) -> str:
    """The agent's name for the tool, else the title."""
    return call.name or call.title or "unknown"


def provider_metadata(meta: Json | None) -> Json | None:
    """The agent's `_meta`: the SDK takes objects alone, so anything else goes under `acp`."""
    if not meta:
        return None
    found: Json = {key: dict[str, Any](value) for key, value in meta.items() if is_object(value)}
    others = {key: value for key, value in meta.items() if not is_object(value)}
    if others:
        found["acp"] = {**found.get("acp", {}), **others}
    return found


def result_of(call: ToolCall) -> Result | None:
    """What came of it so far; an unknown status reads as pending."""
    match call.status:
        case "completed":
            return _output(call)
        case "failed":
            return _error(call.id, error_text(call))
        case "in_progress" if call.raw_output is not None or call.content:
            return _output(call, preliminary=True)
        case _:
            return None


def output_of(call: ToolCall) -> Any:
    """The raw output, else the content."""
    return acp_json.tool_content(call.content) if call.raw_output is None else call.raw_output


def error_text(call: ToolCall) -> str:
    match output_of(call):
        case str(text) if text:
            return text
        case {"error": str(text)} | {"message": str(text)} if text:
            return text
        case _:
            words = "\n".join(item.text for item in call.content if item.text)
            return words or "the tool call failed"


def _input(tool_call_id: str, head: Head) -> Chunk:
    return ToolInputAvailable(tool_call_id=tool_call_id, input=head.input, **_shown(head))


def _shown(head: Head) -> Json:
    """What both chunks about an input say of the call."""
    return {
        "tool_name": head.name,
        "title": head.title,
        "dynamic": True,
        "provider_executed": True,
        "provider_metadata": head.metadata,
    }


def _output(call: ToolCall, *, preliminary: bool = False) -> ToolOutputAvailable:
    return ToolOutputAvailable(
        tool_call_id=call.id,
        output=output_of(call),
        preliminary=preliminary or None,
        dynamic=True,
        provider_executed=True,
    )


def _error(tool_call_id: str, text: str) -> ToolOutputError:
    return ToolOutputError(
        tool_call_id=tool_call_id, error_text=text, dynamic=True, provider_executed=True
    )


def _is_preliminary(result: Result) -> bool:
    return isinstance(result, ToolOutputAvailable) and result.preliminary is True
