"""Tool calls: merged here, and told as the page's part needs it."""

from __future__ import annotations

from typing import Any

import pytest
from support.chunk_rules import started, wire

from dragoman.session import events as e
from dragoman.session.content import ContentItem, Diff, TerminalItem, Text, UnknownItem

OURS = {"dynamic": True, "providerExecuted": True}


def fed(*events: e.Event) -> list[dict[str, Any]]:
    """The chunks about the tool itself."""
    told = wire(started(*events)[1])
    return [chunk for chunk in told if chunk["type"].startswith("tool-")]


def kinds(*events: e.Event) -> list[str]:
    return [chunk["type"].removeprefix("tool-") for chunk in fed(*events)]


def test_a_pending_call_is_an_input_that_starts() -> None:
    call = e.ToolCallUpdated(
        "toolu_123",
        title="`ls -la /tmp`",
        name="Bash",
        kind="execute",
        status="pending",
        raw_input={"command": "ls -la /tmp"},
        meta={"claudeCode": {"toolName": "Bash"}},
    )
    head = {
        "toolCallId": "toolu_123",
        "toolName": "Bash",
        "title": "`ls -la /tmp`",
        "providerMetadata": {"claudeCode": {"toolName": "Bash"}},
        **OURS,
    }
    assert fed(call) == [
        {"type": "tool-input-start", **head},
        {"type": "tool-input-available", **head, "input": {"command": "ls -la /tmp"}},
    ]


def test_the_input_is_available_as_soon_as_it_is_known() -> None:
    first, then = e.ToolCallUpdated("a", title="Run"), e.ToolCallUpdated("a", raw_input={"x": 1})
    assert kinds(first) == ["input-start"]
    assert kinds(first, then) == ["input-start", "input-available"]


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("shell", "Run", "shell"),
        (None, "Run", "Run"),
        (None, None, "unknown"),
    ],
)
def test_the_name_of_a_tool(name: str | None, title: str | None, expected: str) -> None:
    assert fed(e.ToolCallUpdated("a", title, name))[0]["toolName"] == expected


def test_metadata_that_is_no_object_goes_under_a_name_of_ours() -> None:
    told = fed(e.ToolCallUpdated("a", meta={"x": 1, "acp": {"y": 2}, "other": {"z": None}}))
    assert told[0]["providerMetadata"] == {"acp": {"y": 2, "x": 1}, "other": {"z": None}}


def test_an_unknown_status_reads_as_pending() -> None:
    assert kinds(e.ToolCallUpdated("a", status="dreaming", raw_output="x")) == ["input-start"]


def test_a_call_in_progress_has_its_input() -> None:
    told = fed(e.ToolCallUpdated("a", status="in_progress"))
    assert [chunk["type"] for chunk in told] == ["tool-input-start", "tool-input-available"]
    assert told[1]["input"] == {}


def test_progress_is_a_preliminary_output() -> None:
    told = fed(
        e.ToolCallUpdated("a", status="in_progress"),
        e.ToolCallUpdated("a", content=[TerminalItem("x")]),
    )
    assert told[2:] == [
        {
            "type": "tool-output-available",
            "toolCallId": "a",
            "output": [{"type": "terminal", "terminalId": "x"}],
            "preliminary": True,
            **OURS,
        }
    ]


@pytest.mark.parametrize(
    ("update", "output"),
    [
        (e.ToolCallUpdated("a", raw_output={"n": 1}, content=[Diff("/x", "y")]), {"n": 1}),
        (
            e.ToolCallUpdated(
                "a",
                content=[
                    ContentItem(Text("hi")),
                    Diff("/x", "new"),
                    UnknownItem("odd", '{"type":"odd"}'),
                ],
            ),
            [
                {"type": "content", "content": {"type": "text", "text": "hi"}},
                {"type": "diff", "path": "/x", "newText": "new"},
                {"type": "odd"},
            ],
        ),
        (e.ToolCallUpdated("a"), []),
    ],
)
def test_what_a_completed_call_gives(update: e.ToolCallUpdated, output: Any) -> None:
    update.status = "completed"
    last = fed(update)[-1]
    assert last == {"type": "tool-output-available", "toolCallId": "a", "output": output, **OURS}


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (e.ToolCallUpdated("a", raw_output="no such file"), "no such file"),
        (e.ToolCallUpdated("a", raw_output={"error": "denied"}), "denied"),
        (e.ToolCallUpdated("a", raw_output={"message": "late"}), "late"),
        (e.ToolCallUpdated("a", raw_output={"code": 1}), "the tool call failed"),
        (e.ToolCallUpdated("a", content=[ContentItem(Text("it broke"))]), "it broke"),
        (e.ToolCallUpdated("a"), "the tool call failed"),
    ],
)
def test_what_a_failed_call_says(update: e.ToolCallUpdated, text: str) -> None:
    update.status = "failed"
    assert fed(update)[-1] == {
        "type": "tool-output-error",
        "toolCallId": "a",
        "errorText": text,
        **OURS,
    }


def test_an_update_says_only_what_changed() -> None:
    call = e.ToolCallUpdated("a", title="Run", status="completed", raw_output="x")
    again = e.ToolCallUpdated("a", title="Run", status="completed")
    assert kinds(call, again) == kinds(call)


def test_a_title_that_comes_late_is_told_and_the_output_again() -> None:
    told = fed(
        e.ToolCallUpdated("a", status="in_progress", raw_output="x"),
        e.ToolCallUpdated("a", title="Run"),
    )
    assert [chunk["type"] for chunk in told[-2:]] == [
        "tool-input-available",
        "tool-output-available",
    ]
    assert told[-2]["title"] == told[-2]["toolName"] == "Run"


def test_a_title_before_the_input_starts_it_again() -> None:
    assert kinds(e.ToolCallUpdated("a"), e.ToolCallUpdated("a", title="Run")) == [
        "input-start",
        "input-start",
    ]


def test_an_output_that_comes_late_replaces_the_first() -> None:
    told = fed(
        e.ToolCallUpdated("a", status="completed"), e.ToolCallUpdated("a", raw_output="more")
    )
    assert [chunk.get("output") for chunk in told[-2:]] == [[], "more"]


@pytest.mark.parametrize(
    ("end", "last"),
    [
        (e.TurnEnded("t", "end_turn"), {"type": "tool-output-available", "output": []}),
        (e.TurnEnded("t", "cancelled"), {"type": "tool-output-error", "errorText": "cancelled"}),
        (
            e.TurnEnded("t", error="crash"),
            {"type": "tool-output-error", "errorText": "the turn ended before this did"},
        ),
    ],
)
def test_a_call_left_open_ends_with_its_turn(end: e.TurnEnded, last: dict[str, Any]) -> None:
    told = fed(e.ToolCallUpdated("a", status="in_progress"), end)[-1]
    assert told == {"toolCallId": "a", **last, **OURS}


def test_a_call_open_when_the_turn_was_being_cancelled_is_cancelled() -> None:
    told = fed(e.ToolCallUpdated("a"), e.TurnCancelling("t"), e.TurnEnded("t", "end_turn"))
    assert told[-1]["errorText"] == "cancelled"


def test_a_call_that_is_done_stays_as_it_is_at_the_end() -> None:
    done = [e.ToolCallUpdated("a", status="completed"), e.ToolCallUpdated("b", status="failed")]
    assert kinds(*done, e.TurnEnded("t", error="crash")) == kinds(*done)
