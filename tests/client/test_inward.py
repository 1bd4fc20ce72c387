"""What an agent says in ACP v1, in our words: every kind of update and content, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from dragoman.client.dialects.v1 import wire_format
from dragoman.schema import codec, v1
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.facts import SubagentState

META = {"_meta": {"x": 1}}
NOTES = {"audience": ["user"], "priority": 1.0}


def heard(kind: str, /, **fields: Any) -> e.Event:
    update = {"sessionUpdate": kind, **fields}
    params = msgspec.json.encode({"sessionId": "s", "update": update})
    return wire_format.update(codec.decode(params, v1.SessionNotification).update)


def content(**block: Any) -> c.Content:
    event = heard("agent_message_chunk", content=block)
    assert isinstance(event, e.AgentMessage)
    return event.content


def item(**fields: Any) -> c.ToolContent:
    event = heard("tool_call_update", toolCallId="t", content=[fields])
    assert isinstance(event, e.ToolCallUpdated)
    assert isinstance(event.content, list)
    return event.content[0]


BLOCKS: list[tuple[Any, c.Content]] = [
    ({"type": "text", "text": "hi"}, c.Text("hi")),
    ({"type": "text", "text": "hi", "annotations": NOTES}, c.Text("hi", annotations=NOTES)),
    ({"type": "text", "text": "hi"} | META, c.Text("hi", meta={"x": 1})),
    (
        {"type": "text", "text": "hi", "annotations": NOTES} | META,
        c.Text("hi", annotations=NOTES, meta={"x": 1}),
    ),
    (
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a"},
        c.Image("aGk=", "image/png", "file:///a"),
    ),
    (
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": NOTES},
        c.Audio("aGk=", "audio/wav", annotations=NOTES),
    ),
    (
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "title": "A"}
        | {"mimeType": "text/plain", "description": "d"},
        c.ResourceLink("file:///a", "a", "text/plain", title="A", description="d", size=3),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "text": "in"} | META},
        c.Resource("file:///a", content="in", resource_meta={"x": 1}),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk=", "mimeType": "x/y"}},
        c.Resource("file:///a", blob="aGk=", mime_type="x/y"),
    ),
]


@pytest.mark.parametrize(("block", "expected"), BLOCKS)
def test_content_comes_through(block: Any, expected: c.Content) -> None:
    assert content(**block) == expected


def test_content_of_a_kind_nobody_knows_is_kept_as_it_came() -> None:
    odd = content(type="hologram", depth=3)
    assert isinstance(odd, c.UnknownContent)
    assert (odd.kind, msgspec.json.decode(odd.raw)) == (
        "hologram",
        {"type": "hologram", "depth": 3},
    )


def test_tool_content_comes_through() -> None:
    block = {"type": "text", "text": "hi"}
    assert item(type="content", content=block, **META) == c.ContentItem(c.Text("hi"), {"x": 1})
    assert item(type="diff", path="/a", newText="n", oldText="o") == c.Diff("/a", "n", "o")
    assert item(type="diff", path="/a", newText="n", oldText=None) == c.Diff("/a", "n")
    assert item(type="terminal", terminalId="x") == c.TerminalItem("x")
    odd = item(type="hologram")
    assert isinstance(odd, c.UnknownItem)
    assert odd.kind == "hologram"


STEP = {"content": "one", "priority": "high", "status": "completed"}
SELECT = {
    "type": "select",
    "id": "m",
    "name": "M",
    "description": "d",
    "category": "model",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A", "description": "first"}],
}
UPDATES: list[tuple[str, Any, e.Event]] = [
    ("user_message_chunk", {"content": {"type": "text", "text": "u"}}, e.UserMessage(c.Text("u"))),
    (
        "agent_message_chunk",
        {"content": {"type": "text", "text": "a"}, "messageId": "m"},
        e.AgentMessage(c.Text("a"), "m"),
    ),
    (
        "agent_thought_chunk",
        {"content": {"type": "text", "text": "t"}, "messageId": "m"} | META,
        e.AgentThought(c.Text("t"), "m", meta={"x": 1}),
    ),
    (
        "tool_call",
        {"toolCallId": "t", "title": "Read", "kind": "read", "status": "pending", "name": "read"}
        | {"locations": [{"path": "/a", "line": 2}], "rawInput": {"p": 1}, "rawOutput": "o"},
        e.ToolCallUpdated(
            "t",
            title="Read",
            kind="read",
            status="pending",
            name="read",
            locations=[c.Location("/a", 2)],
            raw_input={"p": 1},
            raw_output="o",
        ),
    ),
    ("tool_call", {"toolCallId": "t", "title": "x"}, e.ToolCallUpdated("t", title="x")),
    (
        "tool_call_update",
        {"toolCallId": "t", "title": None, "status": None, "content": None, "rawInput": None},
        e.ToolCallUpdated("t"),
    ),
    (
        "tool_call_update",
        {"toolCallId": "t", "content": [], "locations": []},
        e.ToolCallUpdated("t", content=[], locations=[]),
    ),
    ("plan", {"entries": [STEP]}, e.PlanUpdated([f.PlanStep("one", "high", "completed")])),
    (
        "plan_update",
        {"plan": {"type": "items", "planId": "p", "entries": [STEP]}},
        e.PlanUpdated([f.PlanStep("one", "high", "completed")], "p"),
    ),
    (
        "plan_update",
        {"plan": {"type": "file", "planId": "p", "uri": "file:///plan"}},
        e.PlanUpdated(plan_id="p", uri="file:///plan"),
    ),
    (
        "plan_update",
        {"plan": {"type": "markdown", "planId": "p", "content": "# P"}},
        e.PlanUpdated(plan_id="p", markdown="# P"),
    ),
    (
        "plan_update",
        {"plan": {"type": "odd", "planId": "p"}},
        e.UnknownUpdate("plan_update/odd", '{"type":"odd","planId":"p"}'),
    ),
    ("plan_removed", {"planId": "p"}, e.PlanRemoved("p")),
    (
        "available_commands_update",
        {"availableCommands": [{"name": "go", "description": "Go", "input": {"hint": "where"}}]},
        e.CommandsChanged([f.Command("go", "Go", "where")]),
    ),
    ("current_mode_update", {"currentModeId": "m"}, e.ModeChanged("m")),
    (
        "config_option_update",
        {"configOptions": [SELECT, {"type": "odd", "id": "o"}]},
        e.ConfigChanged(
            [
                f.ConfigOption(
                    "m", "M", "a", [f.ConfigChoice("a", "A", "first")], "d", category="model"
                ),
                f.ConfigOption("o", "o", "", [], kind="odd"),
            ]
        ),
    ),
    ("session_info_update", {"title": "T"}, e.InfoChanged(title="T")),
    ("session_info_update", {"updatedAt": None}, e.InfoChanged(updated_at=None)),
    ("usage_update", {"used": 1, "size": 2}, e.UsageChanged(1, 2)),
    (
        "usage_update",
        {"used": 1, "size": 2, "cost": {"amount": 1.5, "currency": "EUR"}},
        e.UsageChanged(1, 2, f.Cost(1.5, "EUR")),
    ),
    *(
        (
            "usage_update",
            {"used": 1, "size": 2, "cost": {"amount": amount, "currency": currency}},
            e.UsageChanged(1, 2),
        )
        for amount, currency in [(1.7e308, "EUR"), (-1.0, "EUR"), (1.0, ""), (1.0, "x" * 17)]
    ),
    (
        "notice",
        {"severity": "error", "title": "T", "description": "d"},
        e.Notice("T", "error", "d"),
    ),
    (
        "compaction_update",
        {"compactionId": "c", "status": "failed", "error": "e", "summary": None},
        e.CompactionUpdated("c", "failed", None, "e"),
    ),
    (
        "compaction_update",
        {"compactionId": "c", "status": "completed", "summary": [{"type": "text", "text": "s"}]},
        e.CompactionUpdated("c", "completed", [c.Text("s")]),
    ),
    (
        "compaction_summary_chunk",
        {"compactionId": "c", "content": {"type": "text", "text": "s"}},
        e.CompactionSummary("c", c.Text("s")),
    ),
    (
        "subagent_update",
        {"sessionId": "child", "title": "T", "cwd": None, "state": {"state": "idle"}},
        e.SubagentUpdated("child", title="T", cwd=None, state=SubagentState("idle")),
    ),
    (
        "session_message",
        {"messageId": "m", "senderSessionId": "a", "content": [{"type": "text", "text": "s"}]},
        e.PeerMessageUpdated("m", sender_session_id="a", content=[c.Text("s")]),
    ),
    (
        "session_message_chunk",
        {"messageId": "m", "content": {"type": "text", "text": "s"}},
        e.PeerMessageChunk("m", c.Text("s")),
    ),
]


@pytest.mark.parametrize(("kind", "fields", "expected"), UPDATES)
def test_an_update_becomes_an_event(kind: str, fields: Any, expected: e.Event) -> None:
    assert heard(kind, **fields) == expected


def test_every_kind_of_update_has_its_sentence_here() -> None:
    tried = {kind for kind, _, _ in UPDATES}
    assert tried == v1.STABLE_UPDATES | v1.UNSTABLE_UPDATES


def test_what_an_update_does_not_speak_of_is_unchanged() -> None:
    event = heard("tool_call_update", toolCallId="t", status="completed")
    assert isinstance(event, e.ToolCallUpdated)
    others = (event.title, event.name, event.kind, event.content, event.locations)
    assert set(map(type, others)) == {type(UNSET)}
    assert (event.raw_input, event.raw_output) == (UNSET, UNSET)


def test_metadata_comes_through_with_every_update() -> None:
    for kind, fields, _ in UPDATES:
        event = heard(kind, **(fields | META))
        assert event.meta == {"x": 1} or isinstance(event, e.UnknownUpdate), kind
