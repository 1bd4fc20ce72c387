"""Events: written down and read again they are the same, and each has its words for people."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET
from support.examples import EXAMPLES
from support.folding import KINDS, any_event, event_of

from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    Content,
    ContentItem,
    Diff,
    Image,
    Resource,
    ResourceLink,
    TerminalItem,
    Text,
    ToolContent,
    UnknownContent,
    UnknownItem,
)
from dragoman.session.facts import (
    BackgroundWork,
    ContextUsage,
    Cost,
    PermissionOption,
    PlanStep,
    SubagentState,
)
from dragoman.store.earlier_format import current_event


@EXAMPLES
@given(any_event)
def test_an_event_written_down_is_read_again_as_it_was(event: e.Event) -> None:
    assert event_of(msgspec.json.encode(event)) == event


def test_every_event_has_a_name_of_its_own_on_disk() -> None:
    names = [kind.__struct_config__.tag for kind in KINDS]
    assert len(set(names)) == len(KINDS)


def test_what_a_kind_says_of_itself_is_consistent_and_not_written_down() -> None:
    for kind in KINDS:
        assert kind.is_history or not kind.is_answer, kind
        assert kind.from_agent or not kind.is_answer, kind
        assert {"from_agent", "is_history", "is_answer"}.isdisjoint(kind.__struct_fields__)
    # One of them may be ours: then it says nothing about the agent.
    assert not any(kind.from_agent for kind in (e.Notice, e.TerminalOutput, e.PermissionRequested))
    # What a subagent tells is what the event inside says of itself.
    told_again = {kind for kind in KINDS if kind.is_history and not kind.is_answer}
    told_again.remove(e.SubagentEvent)
    terminals = {e.TerminalStarted, e.TerminalOutput, e.TerminalExited}
    assert told_again == {e.UserMessage, *terminals}


def test_an_event_is_written_without_what_it_does_not_say() -> None:
    event = e.AgentMessage(Text("hi"), seq=1)
    expected = {"type": "agent_message", "seq": 1, "content": {"type": "text", "text": "hi"}}
    assert msgspec.to_builtins(event) == expected


def test_unchanged_and_cleared_are_not_the_same() -> None:
    unchanged = event_of(b'{"type":"tool_call","toolCallId":"a"}')
    cleared = event_of(b'{"type":"tool_call","toolCallId":"a","title":null}')
    assert isinstance(unchanged, e.ToolCallUpdated)
    assert isinstance(cleared, e.ToolCallUpdated)
    assert (unchanged.title, cleared.title) == (UNSET, None)


def test_a_question_stored_before_it_was_one_struct_is_read_as_it_was() -> None:
    stored = (
        b'{"type":"permission_requested","request_id":"p","seq":3,"at":1.5,"title":"Edit",'
        b'"options":[{"id":"y","name":"Yes","kind":"allow_once"}],"tool_call_id":"c",'
        b'"description":"allow writing /a","claimed":true}'
    )
    event = event_of(current_event(stored))
    assert event == e.PermissionRequested(
        "p",
        [PermissionOption("y", "Yes", "allow_once")],
        "Edit",
        "c",
        always="allow writing /a",
        claimed=True,
        seq=3,
        at=1.5,
    )
    assert b"description" not in msgspec.json.encode(event)


def test_what_runs_in_the_background_is_read_from_events_stored_as_the_agent_sent_it() -> None:
    activity = event_of(
        b'{"type":"activity","background":[{"type":"subagent","sessionId":"child"},{"type":"_x"}]}'
    )
    assert activity == e.ActivityChanged(
        background=[BackgroundWork("subagent", session_id="child"), BackgroundWork("_x")]
    )
    stored = (
        b'{"type":"subagent","session_id":"child",'
        b'"state":{"state":"idle","stopReason":"end_turn","usage":{"totalTokens":3},"_meta":{}}}'
    )
    child = event_of(current_event(stored))
    done = SubagentState("idle", stop_reason="end_turn", usage={"totalTokens": 3})
    assert child == e.SubagentUpdated("child", state=done)


def settled(**decision: Any) -> bytes:
    event = {"type": "permission_settled", "request_id": "p", "option_id": None}
    return current_event(msgspec.json.encode({**event, "decision": decision}))


@pytest.mark.parametrize(
    ("effect", "reason", "by"),
    [
        ("allow", "answered", "person"),
        ("deny", "refused", "person"),
        ("deny", "there is nobody to ask", "default"),
        ("cancelled", "there is nobody to ask; the request offers no way to refuse", "default"),
        ("deny", "a rule requires asking, and there is nobody to ask", "nobody"),
        ("deny", "fs/write_text_file is switched off here", "offer"),
        ("cancelled", "the turn was cancelled", "cancel"),
        ("allow", "as recorded", None),
    ],
)
def test_an_event_stored_before_decisions_named_their_decider_says_who_it_was(
    effect: str, reason: str, by: str | None
) -> None:
    event = event_of(settled(effect=effect, reason=reason))
    assert isinstance(event, e.PermissionSettled)
    assert event.decision.by == by
    by_rule = event_of(settled(effect="deny", reason="a rule denies it", rule={"effect": "deny"}))
    assert isinstance(by_rule, e.PermissionSettled)
    assert by_rule.decision.by == "rule"


def test_what_a_decision_says_of_its_decider_counts_whatever_its_reason_says() -> None:
    event = event_of(settled(effect="deny", reason="answered", by="host"))
    assert isinstance(event, e.PermissionSettled)
    assert event.decision.by == "host"


SAYING: list[tuple[e.Event, str]] = [
    (e.TurnStarted("t", [Text("a"), Image("x", "image/png"), Text("b")]), "ab"),
    (e.TurnEnded("t", error="gone"), "gone"),
    (e.TurnEnded("t", "end_turn"), ""),
    (e.UserMessage(Text("u")), "u"),
    (e.AgentThought(Text("t")), "t"),
    (e.ToolCallUpdated("a", title="Read"), "Read"),
    (e.ToolCallUpdated("a"), ""),
    (e.PlanUpdated([PlanStep("one"), PlanStep("two")]), "one\ntwo"),
    (e.PlanUpdated(markdown="# Plan"), "# Plan"),
    (e.Notice("Slow"), "Slow"),
    (e.Notice("Slow", description="busy"), "Slow: busy"),
    (e.CompactionUpdated("c", "completed", [Text("a"), Text("b")]), "ab"),
    (e.CompactionUpdated("c", "completed"), ""),
    (e.CompactionSummary("c", Text("x")), "x"),
    (e.PeerMessageUpdated("m", content=[Text("x")]), "x"),
    (e.PeerMessageUpdated("m"), ""),
    (e.PeerMessageChunk("m", Text("x")), "x"),
    (e.PermissionRequested("p", [], title="Edit"), "Edit"),
    (e.ElicitationRequested("q", "Which?", "form"), "Which?"),
    (e.TerminalOutput("x", "out"), "out"),
    (e.PromptQueued("q", [Text("later")]), "later"),
    (e.ModeChanged("m"), ""),
]


@pytest.mark.parametrize(("event", "text"), SAYING, ids=lambda value: type(value).__name__)
def test_the_text_of_an_event_is_what_a_person_reads(event: e.Event, text: str) -> None:
    assert event.text == text


CONTENT: list[tuple[Content | ToolContent, str]] = [
    (Text("t"), "t"),
    (Image("d", "image/png"), ""),
    (Audio("d", "audio/wav"), ""),
    (ResourceLink("u", "n"), ""),
    (Resource("u", content="inside"), "inside"),
    (Resource("u", blob="d"), ""),
    (UnknownContent("k", "{}"), ""),
    (ContentItem(Text("t")), "t"),
    (Diff("/a", "new"), ""),
    (TerminalItem("x"), ""),
    (UnknownItem("k", "{}"), ""),
]


@pytest.mark.parametrize(("content", "text"), CONTENT, ids=lambda value: type(value).__name__)
def test_content_that_is_not_words_has_no_text(content: Content | ToolContent, text: str) -> None:
    assert content.text == text


def test_usage_comes_as_one_value() -> None:
    cost = Cost(1.5, "USD")
    assert e.UsageChanged(1, 2, cost).usage == ContextUsage(1, 2, cost)
