"""Each row of the table: what an agent tells, and the chunks that follow."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET
from support.chunk_rules import Told, started, types_of, wire

from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    Content,
    Diff,
    Image,
    Location,
    Resource,
    ResourceLink,
    Text,
    UnknownContent,
)
from dragoman.session.facts import (
    Command,
    ConfigOption,
    Cost,
    Mode,
    PermissionOption,
    PlanStep,
    TokenUsage,
)
from dragoman.ui_stream import Encoder


def fed(*events: e.Event) -> list[dict[str, Any]]:
    return wire(started(*events)[1])


def of_kind(chunks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [chunk for chunk in chunks if chunk["type"] == kind]


# ── the turn ──────────────────────────────────────────────────────────────────────────────────


def test_a_turn_starts_with_its_id_and_the_session() -> None:
    [start] = wire(Encoder("s").feed(e.TurnStarted("t", [Text("go")])))
    assert start == {
        "type": "start",
        "messageId": "t",
        "messageMetadata": {"acp": {"sessionId": "s"}},
    }


def test_the_session_is_known_from_its_opening_too() -> None:
    encoder = Encoder()
    assert encoder.feed(e.SessionOpened("s", "/", "new")) == []
    [start] = wire(encoder.feed(e.TurnStarted("t", [])))
    assert start["messageMetadata"] == {"acp": {"sessionId": "s"}}


def test_without_a_session_there_is_no_metadata() -> None:
    [start] = wire(Encoder().feed(e.TurnStarted("t", [])))
    assert start == {"type": "start", "messageId": "t"}


def test_nothing_is_told_before_the_turn_and_behind_its_end() -> None:
    encoder = Encoder()
    assert encoder.feed(e.AgentMessage(Text("early")), e.PermissionRequested("p", [])) == []
    encoder.feed(e.TurnStarted("t", []))
    encoder.feed(e.TurnEnded("t", "end_turn"))
    assert encoder.ended
    late = [e.AgentMessage(Text("late")), e.TurnStarted("u", []), e.TurnEnded("u")]
    assert encoder.feed(*late) == encoder.tick(9.0) == encoder.close() == encoder.resume() == []


def test_the_step_starts_with_the_first_content() -> None:
    facts = [e.UsageChanged(1, 2), e.ModeChanged("m"), e.AgentMessage(Text("hi"))]
    kinds = [chunk["type"] for chunk in fed(*facts)]
    assert kinds.index("start-step") == kinds.index("text-start") - 1 == 2


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("max_turn_requests", "other"),
        ("refusal", "content-filter"),
        ("from_the_future", "other"),
    ],
)
def test_a_stop_reason_is_a_finish_reason_and_metadata(
    stop_reason: str, finish_reason: str
) -> None:
    [finish] = fed(e.TurnEnded("t", stop_reason))
    assert finish == {
        "type": "finish",
        "finishReason": finish_reason,
        "messageMetadata": {"acp": {"stopReason": stop_reason}},
    }


def test_tokens_are_told_with_the_end() -> None:
    [finish] = fed(e.TurnEnded("t", "end_turn", TokenUsage(3, 1, 2)))
    tokens = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    assert finish["messageMetadata"]["acp"]["tokens"] == tokens


def test_an_end_without_a_reason_is_an_end() -> None:
    assert fed(e.TurnEnded("t")) == [{"type": "finish", "finishReason": "other"}]


def test_a_cancelled_turn_aborts() -> None:
    told = fed(e.AgentMessage(Text("hi")), e.TurnCancelling("t"), e.TurnEnded("t", "cancelled"))
    assert [chunk["type"] for chunk in told[3:]] == [
        "text-end",
        "finish-step",
        "message-metadata",
        "abort",
    ]
    assert told[-2]["messageMetadata"] == {"acp": {"stopReason": "cancelled"}}


def test_an_error_closes_what_is_open_first() -> None:
    told = fed(
        e.AgentMessage(Text("hi")),
        e.ToolCallUpdated("a", status="in_progress"),
        e.AgentThought(Text("hm")),
        e.TurnEnded("t", error="the agent exited"),
    )
    assert [chunk["type"] for chunk in told[-5:]] == [
        "reasoning-end",
        "tool-output-error",
        "finish-step",
        "message-metadata",
        "error",
    ]
    assert told[-1]["errorText"] == "the agent exited"
    assert told[-2]["messageMetadata"]["acp"]["error"] == "the agent exited"


def test_the_end_of_another_turn_is_no_end() -> None:
    encoder, chunks = started(e.TurnCancelling("u"), e.TurnEnded("u", "cancelled"))
    assert chunks == []
    assert encoder.open


def test_closing_ends_the_message_as_it_stands() -> None:
    encoder, _ = started(e.AgentMessage(Text("hi")), e.ToolCallUpdated("a"))
    assert types_of(encoder.close()) == [
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "finish",
    ]
    assert encoder.ended


# ── messages and thoughts ─────────────────────────────────────────────────────────────────────


def test_text_is_one_part_while_kind_and_message_stay() -> None:
    told = fed(*(e.AgentMessage(Text(word), "m") for word in ("one ", "", "two")))
    assert told == [
        {"type": "start-step"},
        {"type": "text-start", "id": "text-1"},
        {"type": "text-delta", "id": "text-1", "delta": "one "},
        {"type": "text-delta", "id": "text-1", "delta": "two"},
    ]


def test_a_thought_is_reasoning_and_ends_the_text() -> None:
    told = fed(e.AgentMessage(Text("one")), e.AgentThought(Text("hm")), e.AgentMessage(Text("two")))
    assert [chunk["type"] for chunk in told[1:]] == [
        *("text-start", "text-delta", "text-end"),
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta"),
    ]
    assert len({chunk["id"] for chunk in told[1:]}) == 3


def test_another_message_id_is_another_part() -> None:
    told = fed(e.AgentMessage(Text("one"), "m1"), e.AgentMessage(Text("two"), "m2"))
    assert len(of_kind(told, "text-start")) == 2


def test_a_tool_ends_the_text_and_its_updates_do_not() -> None:
    told = fed(
        e.AgentMessage(Text("one")),
        e.ToolCallUpdated("a", title="Run"),
        e.AgentMessage(Text("two")),
        e.ToolCallUpdated("a", status="in_progress", content=[Diff("/x", "y")]),
        e.TerminalOutput("x", "line"),
        e.AgentMessage(Text("three")),
    )
    deltas = of_kind(told, "text-delta")
    assert [chunk["id"] for chunk in deltas] == ["text-1", "text-2", "text-2"]


def test_the_agents_metadata_travels_with_its_text() -> None:
    told = fed(e.AgentMessage(Text("hi"), meta={"claudeCode": {"x": 1}}))
    assert told[1]["providerMetadata"] == {"claudeCode": {"x": 1}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            Image("QQ==", "image/png"),
            {"type": "file", "url": "data:image/png;base64,QQ==", "mediaType": "image/png"},
        ),
        (
            Image("QQ==", "image/png", "http://x/a.png"),
            {
                "type": "file",
                "url": "data:image/png;base64,QQ==",
                "mediaType": "image/png",
                "providerMetadata": {"acp": {"uri": "http://x/a.png"}},
            },
        ),
        (
            Image("", "image/png", "http://x/a.png"),
            {"type": "file", "url": "http://x/a.png", "mediaType": "image/png"},
        ),
        (
            Audio("QQ==", "audio/wav"),
            {"type": "file", "url": "data:audio/wav;base64,QQ==", "mediaType": "audio/wav"},
        ),
        (
            Resource("file:///a.txt", content="é"),
            {
                "type": "file",
                "url": "data:text/plain;base64,w6k=",
                "mediaType": "text/plain",
                "providerMetadata": {"acp": {"uri": "file:///a.txt"}},
            },
        ),
        (
            Resource("file:///a", blob="QQ=="),
            {
                "type": "file",
                "url": "data:application/octet-stream;base64,QQ==",
                "mediaType": "application/octet-stream",
                "providerMetadata": {"acp": {"uri": "file:///a"}},
            },
        ),
        (
            ResourceLink("https://x/a", "a"),
            {"type": "source-url", "sourceId": "https://x/a", "url": "https://x/a", "title": "a"},
        ),
        (
            ResourceLink("file:///a.md", "a.md", "text/markdown", title="A"),
            {
                "type": "source-document",
                "sourceId": "file:///a.md",
                "mediaType": "text/markdown",
                "title": "A",
                "filename": "a.md",
                "providerMetadata": {"acp": {"uri": "file:///a.md"}},
            },
        ),
        (
            UnknownContent("hologram", '{"type":"hologram","x":1}'),
            {"type": "data-acp-content", "data": {"type": "hologram", "x": 1}},
        ),
    ],
)
def test_other_content_is_a_part_of_its_own(content: Content, expected: dict[str, Any]) -> None:
    told = fed(e.AgentMessage(Text("hi")), e.AgentMessage(content))
    assert told[3:] == [{"type": "text-end", "id": "text-1"}, expected]


def test_a_picture_in_a_thought_is_told_apart_where_that_can_be() -> None:
    thought = e.AgentThought(Image("QQ==", "image/png"))
    kinds = [types_of(started(thought, sdk=sdk)[1])[-1] for sdk in (None, 6, 7)]
    assert kinds == ["file", "file", "reasoning-file"]


# ── plans, facts, usage ───────────────────────────────────────────────────────────────────────


def test_a_plan_is_replaced_in_place() -> None:
    story = Told()
    story.feed(e.TurnStarted("t", []))
    story.feed(e.PlanUpdated([PlanStep("one")]), e.AgentMessage(Text("hi")))
    story.feed(e.PlanUpdated([PlanStep("one", status="completed")]))
    plans = [part for part in story.parts if part["type"] == "data-acp-plan"]
    entry = {"content": "one", "priority": "medium", "status": "completed"}
    assert plans == [{"type": "data-acp-plan", "id": "plan", "data": {"entries": [entry]}}]


def test_the_same_plan_again_is_not_told() -> None:
    assert len(of_kind(fed(e.PlanUpdated([]), e.PlanUpdated([])), "data-acp-plan")) == 1


def test_a_plan_can_be_markdown_or_a_file() -> None:
    told = fed(
        e.PlanUpdated(plan_id="a", markdown="# go"), e.PlanUpdated(plan_id="b", uri="file:///p")
    )
    assert [chunk["data"] for chunk in told[1:]] == [
        {"planId": "a", "content": "# go"},
        {"planId": "b", "uri": "file:///p"},
    ]


def test_a_removed_plan_is_empty_and_an_unknown_one_nothing() -> None:
    told = fed(e.PlanRemoved("x"), e.PlanUpdated([PlanStep("one")], "x"), e.PlanRemoved("x"))
    assert [chunk["data"] for chunk in told[1:]][-1] == {"planId": "x", "entries": []}
    assert len(told) == 3


@pytest.mark.parametrize(
    ("event", "name", "data"),
    [
        (
            e.CommandsChanged([Command("go", "Go on", "where"), Command("help")]),
            "commands",
            {
                "availableCommands": [
                    {"name": "go", "description": "Go on", "input": {"hint": "where"}},
                    {"name": "help", "description": ""},
                ]
            },
        ),
        (e.ModeChanged("ask"), "mode", {"currentModeId": "ask"}),
        (
            e.ModeChanged("ask", [Mode("ask", "Ask")]),
            "mode",
            {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]},
        ),
        (
            e.ConfigChanged([ConfigOption("v", "Verbose", True)]),
            "config",
            {
                "configOptions": [
                    {"id": "v", "name": "Verbose", "type": "boolean", "currentValue": True}
                ]
            },
        ),
        (e.InfoChanged("A title"), "title", {"title": "A title"}),
        (e.InfoChanged(None, UNSET), "title", {"title": None}),
        (
            e.UnknownUpdate("weather", '{"sky":"clear"}'),
            "unknown",
            {"kind": "weather", "update": {"sky": "clear"}},
        ),
        (
            e.UnknownUpdate("weather", "no json"),
            "unknown",
            {"kind": "weather", "update": {"type": "weather", "raw": "no json"}},
        ),
    ],
)
def test_a_fact_passes_through_and_stays_nowhere(
    event: e.Event, name: str, data: dict[str, Any]
) -> None:
    assert fed(event) == [{"type": f"data-acp-{name}", "data": data, "transient": True}]


def test_usage_is_metadata() -> None:
    [told] = fed(e.UsageChanged(10, 100, Cost(0.5, "EUR")))
    usage = {"used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "EUR"}}
    assert told == {"type": "message-metadata", "messageMetadata": {"acp": {"usage": usage}}}


def test_a_notice_stays_in_the_message() -> None:
    told = fed(e.Notice("Careful", "warning", "It is hot"))
    assert told[1] == {
        "type": "data-acp-notice",
        "data": {
            "title": "Careful",
            "severity": "warning",
            "description": "It is hot",
            "source": "agent",
        },
    }


def test_a_compaction_is_one_part_that_grows() -> None:
    told = fed(
        e.CompactionUpdated("c", "in_progress"),
        e.CompactionSummary("c", Text("short")),
        e.CompactionUpdated("c", "completed"),
    )
    assert {chunk["id"] for chunk in told[1:]} == {"c"}
    assert told[-1]["data"] == {
        "compactionId": "c",
        "status": "completed",
        "summary": [{"type": "text", "text": "short"}],
    }


def test_messages_between_sessions_and_children_are_parts_that_grow() -> None:
    told = fed(
        e.PeerMessageUpdated("m", sender_session_id="s2", content=[Text("a")]),
        e.PeerMessageChunk("m", Text("b")),
        e.SubagentUpdated("s3", title="Child"),
    )
    words = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert told[2]["data"] == {"messageId": "m", "senderSessionId": "s2", "content": words}
    assert told[3] == {
        "type": "data-acp-subagent",
        "data": {"sessionId": "s3", "title": "Child"},
        "id": "s3",
    }


@pytest.mark.parametrize(
    "event",
    [
        e.UserMessage(Text("go")),
        e.SessionClosed(),
        e.TerminalReleased("x"),
        e.FileWritten("/x", "y"),
        e.PromptQueued("q", []),
        e.PromptUnqueued("q"),
    ],
)
def test_what_the_page_knows_or_need_not_know_is_not_told(event: e.Event) -> None:
    assert fed(event) == []


# ── terminals ─────────────────────────────────────────────────────────────────────────────────


def outputs(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["data"]["output"] for chunk in of_kind(chunks, "data-acp-terminal")]


def test_a_terminal_is_one_part_with_the_end_of_what_it_printed() -> None:
    told = fed(
        e.TerminalStarted("x", ["ls", "-l"], "/work", at=1.0),
        e.TerminalOutput("x", "one\n", at=2.0),
        e.TerminalExited("x", 0, at=3.0),
    )
    assert {(chunk["type"], chunk["id"]) for chunk in told} == {("data-acp-terminal", "x")}
    assert told[-1]["data"] == {
        "terminalId": "x",
        "command": ["ls", "-l"],
        "cwd": "/work",
        "output": "one\n",
        "running": False,
        "exitCode": 0,
    }


def test_a_terminal_is_told_a_few_times_a_second_and_at_its_end() -> None:
    lines = [e.TerminalOutput("x", "a", at=n / 100) for n in range(100)]
    told = fed(*lines, e.TerminalExited("x", 1, at=1.0))
    assert outputs(told) == ["a" * n for n in (1, 26, 51, 76, 100)]


def test_what_is_held_back_comes_when_it_is_due() -> None:
    encoder, _ = started(e.TerminalOutput("x", "a", at=1.0))
    assert encoder.due is None
    assert encoder.feed(e.TerminalOutput("x", "b", at=1.1)) == []
    assert encoder.due == 1.25
    assert encoder.tick(1.2) == []
    assert outputs(wire(encoder.tick(1.25))) == ["ab"]
    assert encoder.due is None


def test_any_event_brings_what_is_due() -> None:
    told = fed(
        e.TerminalOutput("x", "a", at=1.0),
        e.TerminalOutput("x", "b", at=1.1),
        e.AgentMessage(Text("hi"), at=1.5),
    )
    assert outputs(told) == ["a", "ab"]


def test_what_is_held_back_comes_before_the_end() -> None:
    told = fed(
        e.TerminalOutput("x", "a", at=1.0),
        e.TerminalOutput("x", "b", at=1.1),
        e.TurnEnded("t", "end_turn", at=1.1),
    )
    assert outputs(told) == ["a", "ab"]
    assert told[-1]["type"] == "finish"


def test_a_clock_that_is_set_back_silences_no_terminal() -> None:
    told = fed(e.TerminalOutput("x", "a", at=100.0), e.TerminalOutput("x", "b", at=5.0))
    assert outputs(told) == ["a", "ab"]


def test_only_the_end_of_a_long_output_is_told() -> None:
    told = fed(e.TerminalOutput("x", "a" * 20_000, at=1.0))
    assert len(outputs(told)[0]) == 16 * 1024
    assert told[0]["data"]["truncated"] is True


# ── what tools touch ──────────────────────────────────────────────────────────────────────────


def test_what_a_tool_touches_is_in_a_part_beside_it() -> None:
    told = fed(
        e.ToolCallUpdated("a", kind="edit", content=[Diff("/x", "new", "old")]),
        e.ToolCallUpdated("a", locations=[Location("/x", 3)]),
        e.ToolCallUpdated("a", status="failed"),
    )
    diff = {"type": "diff", "path": "/x", "oldText": "old", "newText": "new"}
    beside = of_kind(told, "data-acp-tool")
    assert [chunk["data"] for chunk in beside] == [
        {"toolCallId": "a", "kind": "edit", "content": [diff]},
        {
            "toolCallId": "a",
            "kind": "edit",
            "content": [diff],
            "locations": [{"path": "/x", "line": 3}],
        },
    ]
    assert told[-1]["type"] == "tool-output-error"


# ── subagents ─────────────────────────────────────────────────────────────────────────────────


def test_what_a_subagent_does_is_in_its_own_part() -> None:
    told = fed(
        e.SubagentUpdated("s3", title="Child"),
        e.SubagentEvent("s3", e.AgentMessage(Text("Hel"), "m")),
        e.AgentMessage(Text("mine")),
        e.SubagentEvent("s3", e.AgentMessage(Text("lo"), "m")),
        e.SubagentEvent("s3", e.ToolCallUpdated("c", title="Read", status="completed")),
        e.SubagentEvent("s3", e.PlanUpdated([PlanStep("Look")])),
        e.SubagentEvent("s3", e.UsageChanged(1, 10)),
        e.SubagentUpdated("s4", title="Grandchild", parent="s3"),
    )
    parts = {part["id"]: part["data"] for part in of_kind(told, "data-acp-subagent")}
    assert parts["s3"] == {
        "sessionId": "s3",
        "title": "Child",
        "usage": {"used": 1, "size": 10},
        "entries": [
            {"type": "agent", "text": "Hello"},
            {
                "type": "tool_call",
                "toolCallId": "c",
                "title": "Read",
                "kind": "other",
                "status": "completed",
            },
            {"type": "plan", "entries": [{"content": "Look"}]},
        ],
    }
    assert parts["s4"]["parent"] == "s3"
    assert [part["delta"] for part in of_kind(told, "text-delta")] == ["mine"]
    assert not of_kind(told, "tool-input-start")


def test_a_question_of_a_subagent_says_who_asks_on_a_part_of_its_own() -> None:
    """Its tool call may have the id of one of the session's."""
    told = fed(
        e.ToolCallUpdated("c", title="Mine", status="in_progress"),
        e.SubagentEvent("s3", e.ToolCallUpdated("c", title="Theirs")),
        e.PermissionRequested(
            request_id="p",
            options=[PermissionOption("y", "Yes", "allow_once")],
            tool_call_id="c",
            subagent="s3",
            asked_by="Child",
        ),
    )
    [asked] = of_kind(told, "data-acp-permission")
    assert (asked["data"]["subagent"], asked["data"]["askedBy"]) == ("s3", "Child")
    [approval] = of_kind(told, "tool-approval-request")
    assert approval["toolCallId"] == "permission:p"
