"""A turn as an AI SDK UI message stream: `feed(event)` gives the chunks that follow from it.

Pure: times come in with the events, and nothing here knows how the chunks travel. One encoder is
one message, from the start of its turn to the end. Where the agent waits for an answer the stream
ends and the encoder waits; `resume` continues it under the same message id.

A permission is the approval of a tool. A form has no such thing in the SDK: it is a data part,
`data-acp-elicitation`, and its answer comes back in the request's `acp` or by another way in.
Release 5 knows no approvals either: there a permission is the part `data-acp-permission` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.state import ToolCall
from dragoman.session.state_limits import ID
from dragoman.ui_stream import acp_json, data_parts
from dragoman.ui_stream.acp_json import given
from dragoman.ui_stream.chunks import (
    Abort,
    Chunk,
    Data,
    Error,
    Finish,
    FinishReason,
    Json,
    MessageMetadata,
    Sdk,
    Start,
    ToolApprovalResponse,
    for_five,
)
from dragoman.ui_stream.message_parts import Kind, Parts, part_of
from dragoman.ui_stream.tool_parts import ToolPart

FINISH_REASONS: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_turn_requests": "other",
    "refusal": "content-filter",
}
_CUT_SHORT = "the turn ended before this did"
_MAX_REQUESTS = 10_000
_REQUESTS = (e.PermissionRequested, e.ElicitationRequested)
_SETTLEMENTS = (e.PermissionSettled, e.ElicitationSettled)


class Encoder:
    """Turns events into chunks. `session_id` goes into the message's metadata; `sdk` is the release
    of the reader."""

    def __init__(self, session_id: str = "", *, sdk: Sdk = None) -> None:
        self.session_id = session_id
        self.message_id: str | None = None
        self.open = False
        """Whether a stream is being written: it has started and not yet ended."""
        self.ended = False
        """Whether the message is complete."""
        self._sdk: Sdk = sdk
        self._parts = Parts()
        self._backlog: list[e.Event] = []
        self._cancelling = False
        self._requests: dict[str, data_parts.Request | None] = {}
        """What was asked; None for what is settled, of which only the newest are remembered."""
        # Asked of the page; the part is None for an elicitation.
        self._asked: dict[str, ToolPart | None] = {}
        self._steps = self._each_step()
        # Answered on the page, and not yet settled here; None is an answer we were not told.
        self._answered: dict[str, tuple[ToolPart, bool | None]] = {}

    @property
    def waiting(self) -> frozenset[str]:
        """The requests that must be answered before `resume`."""
        return frozenset() if self.open or self.ended else frozenset(self._asked)

    @property
    def due(self) -> float | None:
        """When to call `tick`, in the time of the events; None while nothing is held back."""
        return self._parts.throttle.due if self.open else None

    # ── what goes in and comes out ────────────────────────────────────────────────────────────

    def feed(
        self, *events: e.Event, pending: Container[str] | None = None, more: bool = False
    ) -> list[Chunk]:
        """The chunks for these events, which follow each other.

        `pending` has the ids of the requests that still wait for an answer; the encoder presents
        only those. Without it, it presents every request that these events do not settle. It then
        waits, and keeps what it is fed for `resume`. With `more` events to come, it does not wait
        yet.
        """
        if self.waiting:
            self._backlog += events
            return []
        settled = {event.request_id for event in events if isinstance(event, _SETTLEMENTS)}
        for event in events:
            if isinstance(event, _REQUESTS):
                key = event.request_id
                self._request(event, ask=key not in settled if pending is None else key in pending)
            else:
                self._take(event)
        if self.open and self._asked and not more:
            self._park(events[-1].at if events else 0.0)
        return self._taken()

    def begin(self, message_id: str) -> list[Chunk]:
        """Start a message outside any turn, for what an agent says by itself."""
        self._start(message_id)
        return self._taken()

    def resume(self, answers: Mapping[str, bool] | None = None) -> list[Chunk]:
        """Continue after an answer, with a new stream for the same message.

        `answers` has what the page shows as answered, by request. With None, every request counts
        as answered, and its answer comes with a later event.
        """
        if not self.waiting or self.message_id is None:
            return []
        for key in [key for key in self._asked if answers is None or key in answers]:
            if (part := self._asked.pop(key)) is not None:
                part.waits = False
                self._answered[key] = part, None if answers is None else answers[key]
        self._start(self.message_id)
        self._parts.unpark()
        backlog, self._backlog = self._backlog, []
        return self.feed(*backlog)

    def tick(self, at: float) -> list[Chunk]:
        """The chunks that were held back and are due now."""
        if self.open:
            self._parts.show(at)
        return self._taken()

    def close(self, ending: Finish | Abort | Error | None = None) -> list[Chunk]:
        """End the message as it is, when the rest of its turn is unknown."""
        if self.open:
            is_cut = isinstance(ending, Abort | Error)
            self._close_parts(0.0, _CUT_SHORT if is_cut else None)
            self._parts.emit(ending or Finish())
        self.open, self.ended = False, True
        return self._taken()

    def _taken(self) -> list[Chunk]:
        chunks = self._parts.taken()
        return [for_five(chunk) for chunk in chunks] if self._sdk == 5 else chunks

    # ── the message ───────────────────────────────────────────────────────────────────────────

    def _take(self, event: e.Event) -> None:
        if isinstance(event, _BEGINNINGS):
            self._steps[type(event)](event)
        elif self.open:
            if type(event) in _MERGED:
                self._parts.merge(event)
            self._steps[type(event)](event)
            if self.open:
                self._parts.show(event.at)

    def _each_step(self) -> dict[type[Any], Callable[[Any], None]]:
        return {
            e.SessionOpened: self._session_opened,
            e.SessionClosed: self._ignored,
            e.TurnStarted: self._turn_started,
            e.TurnCancelling: self._turn_cancelling,
            e.TurnEnded: self._turn_ended,
            e.UserMessage: self._ignored,
            e.AgentMessage: self._agent_message,
            e.AgentThought: self._agent_thought,
            e.ToolCallUpdated: self._tool_call,
            e.PlanUpdated: self._plan,
            e.PlanRemoved: self._plan_removed,
            e.CommandsChanged: self._fact,
            e.ModeChanged: self._fact,
            e.ConfigChanged: self._fact,
            e.InfoChanged: self._fact,
            e.UsageChanged: self._usage,
            e.Notice: self._notice,
            e.LimitReached: self._notice,
            e.TurnLimited: self._notice,
            e.ParkingChanged: self._notice,
            e.CompactionUpdated: self._compaction,
            e.CompactionSummary: self._compaction,
            e.SubagentUpdated: self._subagent,
            e.SubagentEvent: self._subagent,
            e.PeerMessageUpdated: self._peer_message,
            e.PeerMessageChunk: self._peer_message,
            e.ActivityChanged: self._ignored,
            e.UnknownUpdate: self._fact,
            e.PermissionSettled: self._settled,
            e.AccessDecided: self._ignored,
            e.ElicitationSettled: self._settled,
            e.TerminalStarted: self._terminal_changed,
            e.TerminalOutput: self._terminal_changed,
            e.TerminalExited: self._terminal_exited,
            e.TerminalReleased: self._ignored,
            e.FileWritten: self._ignored,
            e.FileReverted: self._ignored,
            e.WorkspaceSnapshot: self._fact,
            e.ProgramsRan: self._fact,
            e.PromptQueued: self._ignored,
            e.PromptUnqueued: self._ignored,
            e.Steered: self._steered,
        }

    def _session_opened(self, event: e.SessionOpened) -> None:
        self.session_id = self.session_id or event.session_id

    def _steered(self, event: e.Steered) -> None:
        if self.open and event.content:
            self._parts.append(data_parts.steer(event))

    def _turn_started(self, event: e.TurnStarted) -> None:
        if self.message_id is None:
            self._start(event.turn_id)

    def _start(self, message_id: str) -> None:
        self.message_id = message_id
        self.open = True
        metadata = _metadata(sessionId=self.session_id or None)
        self._parts.emit(Start(message_id=message_id, message_metadata=metadata))

    def _turn_cancelling(self, event: e.TurnCancelling) -> None:
        self._cancelling = self._cancelling or event.turn_id == self.message_id

    def _turn_ended(self, event: e.TurnEnded) -> None:
        if event.turn_id != self.message_id:
            return
        self._close_parts(event.at, self._failure(event))
        tokens = None if event.usage is None else acp_json.tokens(event.usage)
        metadata = _metadata(stopReason=event.stop_reason, tokens=tokens, error=event.error)
        if metadata and (event.error is not None or event.stop_reason == "cancelled"):
            self._tell(metadata)
            self._parts.emit(Abort() if event.error is None else Error(error_text=event.error))
        else:
            reason = FINISH_REASONS.get(event.stop_reason or "", "other")
            self._parts.emit(Finish(finish_reason=reason, message_metadata=metadata))
        self.open, self.ended = False, True

    def _failure(self, event: e.TurnEnded) -> str | None:
        if event.error is not None:
            return _CUT_SHORT
        is_cancelled = self._cancelling or event.stop_reason == "cancelled"
        return "cancelled" if is_cancelled else None

    def _close_parts(self, at: float, failure: str | None) -> None:
        self._show_answers()
        self._parts.close(at, failure)

    def _show_answers(self) -> None:
        """Without an outcome, an answered part makes the page send its answer again at once."""
        for part, answer in self._answered.values():
            self._parts.emit(*part.answered(answer is not False))

    def _park(self, at: float) -> None:
        self._show_answers()
        self._parts.park(at)
        self._parts.emit(Finish(finish_reason="tool-calls"))
        self.open = False

    def _tell(self, metadata: Json) -> None:
        self._parts.emit(MessageMetadata(message_metadata=metadata))

    # ── what the agent says and does ──────────────────────────────────────────────────────────

    def _agent_message(self, event: e.AgentMessage) -> None:
        self._speak(event, "text")

    def _agent_thought(self, event: e.AgentThought) -> None:
        self._speak(event, "reasoning")

    def _speak(self, event: e.AgentMessage | e.AgentThought, kind: Kind) -> None:
        content = event.content
        if event.replaces:
            self._parts.end_text()  # streamed text cannot be withdrawn, only sent again
        if not isinstance(content, Text):
            self._parts.append(part_of(content, kind, self._sdk))
        elif content.text:
            self._parts.say(kind, event.message_id, content.text, event.meta)

    def _tool_call(self, event: e.ToolCallUpdated) -> None:
        self._parts.change_call(self._parts.call(event.tool_call_id[:ID]))

    def _plan(self, event: e.PlanUpdated) -> None:
        self._parts.put(Data("data-acp-plan", acp_json.plan(event), id=event.plan_id or "plan"))

    def _plan_removed(self, event: e.PlanRemoved) -> None:
        if self._parts.has("data-acp-plan", event.plan_id):
            empty: Json = {"planId": event.plan_id, "entries": []}
            self._parts.put(Data("data-acp-plan", empty, id=event.plan_id))

    def _usage(self, event: e.UsageChanged) -> None:
        self._tell({"acp": {"usage": acp_json.usage(event.usage)}})

    def _fact(self, event: data_parts.Fact) -> None:
        self._parts.emit(data_parts.fact(event))

    def _notice(self, event: e.Notice) -> None:
        self._parts.append(data_parts.notice(event))

    def _compaction(self, event: e.CompactionUpdated | e.CompactionSummary) -> None:
        self._parts.throttle.hold(f"compaction:{event.compaction_id[:ID]}")

    def _peer_message(self, event: e.PeerMessageUpdated | e.PeerMessageChunk) -> None:
        self._parts.throttle.hold(f"peer:{event.message_id[:ID]}")

    def _subagent(self, event: e.SubagentUpdated | e.SubagentEvent) -> None:
        self._parts.throttle.hold(f"subagent:{event.session_id[:ID]}")

    def _terminal_changed(self, event: e.TerminalStarted | e.TerminalOutput) -> None:
        self._parts.throttle.hold(f"terminal:{event.terminal_id[:ID]}")

    def _terminal_exited(self, event: e.TerminalExited) -> None:
        self._parts.end_terminal(event.terminal_id[:ID])

    def _ignored(self, event: e.Event) -> None:
        """Known to the page already, or a record that no message shows."""

    # ── questions ─────────────────────────────────────────────────────────────────────────────

    def _request(self, event: data_parts.Request, *, ask: bool) -> None:
        if not self.open or event.request_id in self._requests:
            return
        self._requests[event.request_id] = event
        if ask:
            self._parts.put(data_parts.request(event, None), attached=True)
            part = None
            if isinstance(event, e.PermissionRequested) and self._sdk != 5:
                part = self._ask(event)
            self._asked[event.request_id] = part

    def _ask(self, event: e.PermissionRequested) -> ToolPart:
        """On the tool call's own part where that can be asked, else on one for the request. A call
        of a subagent has no part of its own."""
        is_ours = event.tool_call_id is not None and event.subagent is None
        part = self._parts.part(event.tool_call_id or "") if is_ours else None
        self._parts.show(event.at, all_of_it=True)  # it is not reported while it is asked about
        if part is None or not part.can_be_asked(self._parts.step):
            part = self._parts.own_call(_call_for(event))
        self._parts.emit(*part.ask(event.request_id))
        return part

    def _settled(self, event: data_parts.Settlement) -> None:
        request = self._requests.get(event.request_id)
        is_permission = isinstance(event, e.PermissionSettled)
        if request is None or isinstance(request, e.PermissionRequested) != is_permission:
            return
        self._requests[event.request_id] = None
        if len(self._requests) > _MAX_REQUESTS:
            del self._requests[next(iter(self._requests))]
        self._parts.put(data_parts.request(request, event), attached=True)
        part, answer = self._answer_to(event.request_id)
        if part is None or not isinstance(event, e.PermissionSettled):
            return
        allowed = allows(event)
        if self._parts.is_own(part.id):
            _conclude(self._parts.call(part.id), event, allowed)
        self._settle(event.request_id, part, answer, allowed)
        self._parts.show_call(self._parts.call(part.id))

    def _answer_to(self, request_id: str) -> tuple[ToolPart | None, bool | None]:
        """The part that was asked and what the page shows as its answer."""
        unanswered = self._asked.pop(request_id, None)
        if unanswered is not None:
            unanswered.waits = False
        if unanswered is not None and self._sdk == 7:
            return unanswered, None
        # In release 6 only the page itself can say so: a part it did not answer stays as it is.
        return self._answered.pop(request_id, (None, None))

    def _settle(self, request_id: str, part: ToolPart, answer: bool | None, allowed: bool) -> None:
        # A part that shows an outcome already would be left half open by another answer.
        if self._sdk == 7 and answer != allowed and part.asked is not None:
            self._parts.emit(ToolApprovalResponse(approval_id=request_id, approved=allowed))
            answer = allowed
        self._parts.emit(*part.answered(allowed if answer is None else answer))


def allows(event: e.PermissionSettled) -> bool:
    """Whether the approval of a tool that this settles is a yes."""
    return event.decision.effect in ("allow", "answered")


def _metadata(**fields: Any) -> Json | None:
    found = given(**fields)
    return {"acp": found} if found else None


def _call_for(event: e.PermissionRequested) -> ToolCall:
    wanted = given(
        toolCallId=event.tool_call_id,
        operation=event.operation,
        paths=event.paths or None,
        argv=event.argv,
        cwd=event.cwd,
        askedBy=event.asked_by,
    )
    return ToolCall(
        id=f"permission:{event.request_id}",
        name=event.operation,
        title=event.title,
        raw_input=wanted,
    )


def _conclude(call: ToolCall, event: e.PermissionSettled, allowed: bool) -> None:
    call.status = "completed" if allowed else "failed"
    reason = event.decision.reason
    call.raw_output = given(optionId=event.option_id, reason=reason) if allowed else reason


_BEGINNINGS = (e.SessionOpened, e.TurnStarted)
_MERGED: frozenset[type[Any]] = frozenset(
    {
        e.ToolCallUpdated,
        e.CompactionUpdated,
        e.CompactionSummary,
        e.PeerMessageUpdated,
        e.PeerMessageChunk,
        e.SubagentUpdated,
        e.SubagentEvent,
        e.TerminalStarted,
        e.TerminalOutput,
        e.TerminalExited,
    }
)
"""Of these a page is shown the sum, as the session's own fold makes it."""
