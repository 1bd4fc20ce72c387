"""Permissions and forms: the stream ends, the turn waits, and the message goes on."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk_judge import RELEASES, Case, judge, stream_of
from support.chunk_rules import Told, types_of, wire

from dragoman.session import events as e
from dragoman.session.content import Diff, Text
from dragoman.session.facts import Decision, PermissionOption
from dragoman.ui_stream.chunks import Sdk

YES = PermissionOption("yes", "Yes", "allow_once")
NO = PermissionOption("no", "No", "reject_once")
RUN = e.ToolCallUpdated("a", title="Run", status="pending", raw_input={"command": "ls"})
DONE = e.ToolCallUpdated("a", status="completed", raw_output="fine")
END = e.TurnEnded("t", "end_turn")


def asked(request_id: str = "p", tool: str | None = "a") -> e.PermissionRequested:
    return e.PermissionRequested(request_id, [YES, NO], "Run", tool)


def settled(effect: str, request_id: str = "p") -> e.PermissionSettled:
    option = {"allow": "yes", "deny": "no"}.get(effect)
    return e.PermissionSettled(request_id, option, Decision(effect, "answered"))


def told(*events: e.Event, sdk: Sdk = None) -> Told:
    """A turn `t` as far as these events, one by one."""
    story = Told(sdk)
    for event in (e.TurnStarted("t", []), *events):
        story.feed(event)
    return story


def tool(story: Told, tool_call_id: str = "a") -> dict[str, Any]:
    [part] = [part for part in story.parts if part.get("toolCallId") == tool_call_id]
    return part


def data(story: Told, name: str) -> list[dict[str, Any]]:
    return [part["data"] for part in story.parts if part["type"] == f"data-acp-{name}"]


def verdicts(story: Told) -> list[list[str]]:
    """What each release that can read it says."""
    releases = RELEASES if story.sdk is None else [story.sdk]
    streams = [*map(stream_of, story.streams)]
    return [v.problems for v in judge([Case(r, streams, story.answers) for r in releases]) if v]


# ── asking ────────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_an_approval_and_the_end_of_the_stream() -> None:
    story = told(RUN, asked())
    assert types_of(story.streams[0])[-5:] == [
        "tool-input-available",
        "data-acp-permission",
        "tool-approval-request",
        "finish-step",
        "finish",
    ]
    assert wire(story.streams[0])[-1] == {"type": "finish", "finishReason": "tool-calls"}
    assert tool(story)["state"] == "approval-requested"
    assert story.encoder.waiting == {"p"}
    assert not story.encoder.open
    assert not story.encoder.ended
    assert story.encoder.due is None


def test_what_an_option_does_is_told_in_our_words_and_a_false_label_is_marked() -> None:
    options = [
        PermissionOption("a", "Reject", "allow_once"),
        PermissionOption("b", "Allow", "reject_once"),
    ]
    request = e.PermissionRequested("p", options, operation="execute", argv=["make"], cwd="/w/sub")
    [permission] = data(told(RUN, request), "permission")
    assert permission["cwd"] == "/w/sub"
    assert [(each["words"], each["warning"]) for each in permission["options"]] == [
        ("Allow once", "the agent calls this “Reject”, but it allows"),
        ("Reject", "the agent calls this “Allow”, but it rejects"),
    ]


def test_the_options_and_what_they_cover_are_told_beside_it() -> None:
    request = e.PermissionRequested(
        "p", [YES], "Edit", "a", "write", ["/x"], content=[Diff("/x", "new")], always="allow it"
    )
    [permission] = data(told(RUN, request), "permission")
    assert permission == {
        "requestId": "p",
        "toolCallId": "a",
        "title": "Edit",
        "always": "allow it",
        "options": [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once", "words": "Allow once"}
        ],
        "operation": "write",
        "paths": ["/x"],
        "content": [{"type": "diff", "path": "/x", "newText": "new"}],
        "status": "pending",
    }


def test_what_an_answer_for_always_leads_to_is_told_with_its_option() -> None:
    always = PermissionOption("x", "Always", "allow_always", "from now on: allow it")
    [permission] = data(told(RUN, e.PermissionRequested("p", [YES, always])), "permission")
    consequences = [option.get("consequence") for option in permission["options"]]
    assert consequences == [None, "from now on: allow it"]


def test_a_part_that_is_asked_carries_no_output() -> None:
    story = told(RUN, e.ToolCallUpdated("a", status="in_progress", raw_output="so far"), asked())
    assert "output" not in tool(story)
    assert verdicts(story) == [[], []]


def test_every_other_unfinished_tool_is_parked() -> None:
    story = told(
        RUN,
        e.ToolCallUpdated("b", title="Other", status="in_progress"),
        e.ToolCallUpdated("c", title="Third"),
        e.ToolCallUpdated("d", title="Done", status="failed"),
        asked(),
    )
    states = [tool(story, key)["state"] for key in "bcd"]
    assert states == ["output-available", "output-available", "output-error"]
    assert not any("preliminary" in tool(story, key) for key in "bc")


def test_a_parked_tool_goes_on_with_the_stream() -> None:
    story = told(RUN, e.ToolCallUpdated("b", title="Other", status="in_progress"), asked())
    story.resume(approved=True)
    assert tool(story, "b")["preliminary"] is True
    story.feed(e.ToolCallUpdated("b", status="completed", raw_output="x"))
    assert tool(story, "b")["output"] == "x"
    assert "preliminary" not in tool(story, "b")


def test_a_parked_tool_never_goes_back_to_an_unknown_input() -> None:
    """Its part stands in an earlier step, where no input could be told any more."""
    story = told(RUN, e.ToolCallUpdated("b", status="pending"), asked())
    story.resume(approved=True)
    story.feed(e.ToolCallUpdated("b", title="Other"), e.AgentMessage(Text("on")), END)
    assert story.problems == []
    assert verdicts(story) == [[], []]


def test_what_happens_while_it_waits_is_told_when_it_goes_on() -> None:
    story = told(RUN, asked())
    before = len(story.streams[0])
    story.feed(e.AgentMessage(Text("meanwhile")), e.UsageChanged(1, 2))
    assert len(story.streams[0]) == before
    story.resume(approved=True)
    assert types_of(story.streams[1])[-1] == "message-metadata"
    assert "text-delta" in types_of(story.streams[1])


def test_what_a_rule_has_settled_is_not_asked() -> None:
    by_rule = [asked(), settled("allow")]
    one_by_one = Told()
    one_by_one.feed(e.TurnStarted("t", []), RUN)
    for event in by_rule:
        one_by_one.feed(event, pending={})
    at_once = Told()
    at_once.feed(e.TurnStarted("t", []), RUN, *by_rule)
    for story in (one_by_one, at_once):
        assert story.encoder.open
        assert tool(story)["state"] == "input-available"
        [permission] = data(story, "permission")
        assert permission["status"] == "settled"
        assert permission["decision"] == {
            "effect": "allow",
            "reason": "answered",
            "by": "person",
        }


def test_the_same_request_twice_is_asked_once() -> None:
    story = told(RUN, asked())
    story.resume(approved=True)
    story.feed(asked())
    assert story.encoder.open


def test_requests_that_come_together_are_asked_together() -> None:
    story = Told()
    other = e.ToolCallUpdated("b", title="Other", raw_input={"x": 1})
    story.feed(e.TurnStarted("t", []), RUN, other, asked(), asked("q", "b"))
    assert story.encoder.waiting == {"p", "q"}
    assert types_of(story.streams[0]).count("finish") == 1
    story.resume(approved=True)
    story.feed(settled("allow"), settled("deny", "q"), DONE, END)
    assert verdicts(story) == [[], []]


def test_a_request_that_comes_while_another_waits_is_asked_next() -> None:
    story = told(RUN, e.ToolCallUpdated("b", title="Other", raw_input={"x": 1}), asked())
    story.feed(asked("q", "b"), settled("allow"))
    story.resume(approved=True)
    assert story.encoder.waiting == {"q"}
    assert tool(story, "b")["state"] == "approval-requested"
    story.feed(settled("allow", "q"))
    story.resume(approved=True)
    story.feed(DONE, e.ToolCallUpdated("b", status="completed"), END)
    assert verdicts(story) == [[], []]
    assert story.problems == []


def test_a_tool_of_an_earlier_step_is_asked_on_a_part_of_its_own() -> None:
    """Its own part holds the output it was parked with, and could not be rid of it."""
    story = told(RUN, e.ToolCallUpdated("b", title="Other", raw_input={"x": 1}), asked())
    story.resume(approved=True)
    story.feed(e.AgentMessage(Text("on we go")), asked("q", "b"))
    assert tool(story, "permission:q")["state"] == "approval-requested"
    story.resume(approved=True)
    story.feed(settled("allow", "q"), END)
    assert verdicts(story) == [[], []]


def test_what_begins_while_a_tool_of_the_step_before_is_asked_about_begins_no_step() -> None:
    """A page sends answers of the last step alone."""
    form = e.ElicitationRequested("form", "?", "form")
    story = told(e.ToolCallUpdated("b", title="Other", raw_input={"x": 1}), form)
    story.resume(approved=True)
    # One behind the other, as they come when there is no time between them.
    more = e.ToolCallUpdated("c", title="More", status="completed", raw_input={"x": 2})
    story.feed(asked("q", "b"), more)
    assert tool(story, "b")["state"] == "approval-requested"
    story.resume(approved=True)
    story.feed(settled("allow", "q"), END)
    assert verdicts(story) == [[], []]


@pytest.mark.parametrize("sdk", [6, 7])
def test_a_question_that_somebody_else_settled_keeps_no_step_from_beginning(sdk: Sdk) -> None:
    story = Told(sdk)
    other = e.ToolCallUpdated("b", title="Other", raw_input={"x": 1})
    story.feed(e.TurnStarted("t", []), RUN, other, asked(), asked("q", "b"))
    story.answer({"p": True})
    story.feed(settled("allow"), settled("allow", "q"))
    while story.encoder.waiting:
        story.answer({})
    story.feed(e.AgentMessage(Text("on we go")))
    assert "start-step" in types_of(story.streams[-1])


def test_a_question_that_was_settled_is_not_asked_again() -> None:
    story = told(e.PermissionRequested("p", [YES, NO], "Run ls"))
    story.resume(approved=True)
    story.feed(settled("allow"))
    story.feed(e.PermissionRequested("p", [YES, NO], "Run ls"))
    assert not story.encoder.waiting
    story.feed(END)
    assert story.problems == []


def test_a_question_is_settled_by_what_settles_its_kind() -> None:
    story = told(e.PermissionRequested("p", [YES, NO], "Run ls"))
    story.resume(approved=True)
    story.feed(e.ElicitationSettled("p", "accept"), settled("allow"), END)
    assert tool(story, "permission:p")["output"] == {"optionId": "yes", "reason": "answered"}
    assert verdicts(story) == [[], []]


def test_what_we_ask_ourselves_has_a_part_of_its_own() -> None:
    request = e.PermissionRequested("p", [YES, NO], "Run ls", None, "execute", argv=["ls"])
    story = told(request)
    part = tool(story, "permission:p")
    assert part["toolName"] == "execute"
    assert part["title"] == "Run ls"
    assert part["input"] == {"operation": "execute", "argv": ["ls"]}
    story.resume(approved=True)
    story.feed(settled("allow"))
    assert tool(story, "permission:p")["output"] == {"optionId": "yes", "reason": "answered"}
    story.feed(END)
    assert verdicts(story) == [[], []]


def test_our_own_question_that_is_refused_although_the_page_said_yes_is_an_error() -> None:
    story = told(e.PermissionRequested("p", [YES, NO], "Run ls"))
    story.resume(approved=True)
    story.feed(settled("deny"), END)
    assert tool(story, "permission:p")["errorText"] == "answered"
    assert verdicts(story) == [[], []]


# ── going on ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sdk", [None, 6, 7])
def test_an_approved_tool_goes_on_to_its_output(sdk: Sdk) -> None:
    story = told(RUN, asked(), sdk=sdk)
    story.resume(approved=True)
    story.feed(settled("allow"), e.ToolCallUpdated("a", title="Run it"), DONE, END)
    start = wire(story.streams[1])[0]
    assert (start["type"], start["messageId"]) == ("start", "t")
    assert (tool(story)["state"], tool(story)["output"]) == ("output-available", "fine")
    assert story.problems == []
    assert not any(verdicts(story))


@pytest.mark.parametrize("sdk", [None, 6, 7])
def test_a_refused_tool_is_denied_whatever_the_agent_says_of_it(sdk: Sdk) -> None:
    story = told(RUN, asked(), sdk=sdk)
    story.resume(approved=False)
    story.feed(settled("deny"), e.ToolCallUpdated("a", status="failed", raw_output="no"), END)
    assert tool(story)["state"] == "output-denied"
    assert types_of(story.streams[1]).count("tool-output-denied") == 1
    assert not any(verdicts(story))


def test_release_7_is_told_how_it_was_settled() -> None:
    story = told(RUN, asked(), sdk=7)
    story.resume(approved=False)
    story.feed(settled("allow"), DONE, END)  # somebody else was faster
    assert tool(story)["approval"] == {"id": "p", "approved": True}
    assert tool(story)["state"] == "output-available"
    assert not any(verdicts(story))


def test_release_6_keeps_to_what_its_page_shows() -> None:
    story = told(RUN, asked(), sdk=6)
    story.resume(approved=False)
    story.feed(settled("allow"), DONE, END)
    assert tool(story)["state"] == "output-denied"
    [permission] = data(story, "permission")
    assert permission["optionId"] == "yes"
    assert not any(verdicts(story))


def test_without_the_pages_answers_the_outcome_is_theirs() -> None:
    story = told(RUN, asked())
    chunks = story.encoder.resume()
    chunks += story.encoder.feed(settled("deny"))
    assert types_of(chunks)[-1] == "tool-output-denied"


@pytest.mark.parametrize("sdk", [None, 6, 7])
def test_what_was_answered_elsewhere_leaves_a_stream_the_sdk_takes(sdk: Sdk) -> None:
    """One of two is answered on the page, the other by somebody else."""
    story = Told(sdk)
    other = e.ToolCallUpdated("b", title="Other", raw_input={"x": 1})
    story.feed(e.TurnStarted("t", []), RUN, other, asked(), asked("q", "b"))
    story.feed(settled("allow"), settled("allow", "q"))
    story.answer({"p": True})
    story.feed(DONE, e.ToolCallUpdated("b", status="completed"), END)
    expected = "output-available" if sdk == 7 else "approval-requested"
    assert tool(story, "b")["state"] == expected
    assert story.encoder.ended
    assert not any(verdicts(story))


def test_a_request_that_the_page_did_not_answer_is_waited_for_again() -> None:
    story = Told()
    other = e.ToolCallUpdated("b", title="Other", raw_input={"x": 1})
    story.feed(e.TurnStarted("t", []), RUN, other, asked(), asked("q", "b"))
    story.answer({"p": True})
    assert story.encoder.waiting == {"q"}
    assert types_of(story.streams[1])[-1] == "finish"
    assert tool(story, "b")["state"] == "approval-requested"


@pytest.mark.parametrize(("sdk", "approved"), [(6, True), (6, False), (7, True), (7, False)])
def test_a_turn_that_ends_before_its_answer_counts_is_over(sdk: Sdk, approved: bool) -> None:
    story = told(RUN, asked(), sdk=sdk)
    story.resume(approved=approved)
    story.feed(e.TurnEnded("t", error="the agent exited"))
    assert tool(story)["state"] == ("output-error" if approved else "output-denied")
    assert not any(verdicts(story))


def test_a_turn_cancelled_while_it_waits_ends_when_the_page_comes_back() -> None:
    story = told(RUN, asked())
    story.feed(e.TurnCancelling("t"), settled("cancelled"), e.TurnEnded("t", "cancelled"))
    assert not story.encoder.ended
    story.resume(approved=True)
    assert story.encoder.ended
    assert tool(story)["errorText"] == "cancelled"
    assert verdicts(story) == [[], []]


def test_a_tool_may_be_asked_about_twice() -> None:
    story = told(RUN, asked())
    story.resume(approved=True)
    story.feed(settled("allow"), e.ToolCallUpdated("a", status="in_progress", raw_output="x"))
    story.feed(asked("q"))
    assert tool(story)["approval"] == {"id": "q"}
    story.resume(approved=False)
    story.feed(settled("deny", "q"), END)
    assert verdicts(story) == [[], []]


def test_an_answer_to_nothing_is_nothing() -> None:
    story = told(RUN)
    assert story.encoder.feed(settled("allow")) == []
    assert story.encoder.resume() == []


def test_an_encoder_that_is_closed_waits_no_more() -> None:
    story = told(RUN, asked())
    assert story.encoder.close() == []
    assert story.encoder.waiting == frozenset()


# ── forms ─────────────────────────────────────────────────────────────────────────────────────


def test_a_form_is_a_data_part_and_the_end_of_the_stream() -> None:
    schema = {"type": "object"}
    story = told(RUN, e.ElicitationRequested("f", "Who are you?", "form", schema))
    assert types_of(story.streams[0])[-1] == "finish"
    assert story.encoder.waiting == {"f"}
    assert data(story, "elicitation") == [
        {
            "requestId": "f",
            "message": "Who are you?",
            "mode": "form",
            "requestedSchema": schema,
            "status": "pending",
        }
    ]
    assert verdicts(story) == [[], []]


def test_a_form_that_is_answered_goes_on_in_the_same_message() -> None:
    story = told(e.ElicitationRequested("f", "Sign in", "url", url="https://x"))
    story.feed(e.ElicitationSettled("f", "accept"))
    story.resume(approved=True)
    story.feed(e.AgentMessage(Text("thanks")), END)
    [form] = data(story, "elicitation")
    assert (form["status"], form["action"], form["url"]) == ("settled", "accept", "https://x")
    assert verdicts(story) == [[], []]


@pytest.mark.parametrize(("sdk", "approved"), [(6, True), (6, False), (7, True), (7, False)])
def test_an_answer_that_does_not_count_yet_is_not_sent_again(sdk: Sdk, approved: bool) -> None:
    """Something else is asked before the first answer is settled."""
    story = told(RUN, asked(), sdk=sdk)
    story.resume(approved=approved)
    story.feed(e.ElicitationRequested("f", "?", "form"))
    assert tool(story)["state"] == ("output-available" if approved else "output-denied")
    story.resume(approved=True)
    story.feed(settled("allow" if approved else "deny"), DONE, END)
    assert tool(story)["state"] == ("output-available" if approved else "output-denied")
    assert story.problems == []
    assert not any(verdicts(story))
