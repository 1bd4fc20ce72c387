"""Stored sessions as messages: turns, histories that agents tell again, and what runs still."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from support.ai_sdk_judge import RELEASES, Case, judge
from support.chunk_rules import Told
from support.examples import examples
from support.folding import any_events

from dragoman.session import events as e
from dragoman.session.content import (
    Content,
    ContentItem,
    Image,
    Resource,
    ResourceLink,
    Text,
    UnknownContent,
)
from dragoman.session.facts import Decision, PermissionOption
from dragoman.session.state_limits import Limits
from dragoman.ui_stream import UIMessage, messages
from dragoman.ui_stream.chunks import ToolOutputAvailable
from dragoman.ui_stream.message_history import MAX_MESSAGE, History
from dragoman.ui_stream.message_parts import Parts

OPENED = e.SessionOpened("s", "/work", "new")
YES = PermissionOption("yes", "Yes", "allow_once")


def turn(turn_id: str, *events: e.Event, prompt: str = "go") -> list[e.Event]:
    end = e.TurnEnded(turn_id, "end_turn")
    return [e.TurnStarted(turn_id, [Text(prompt)]), *events, end]


def texts(message: UIMessage) -> list[str]:
    return [part["text"] for part in message.parts if part["type"] == "text"]


def outline(found: list[UIMessage]) -> list[tuple[str, str, list[str]]]:
    return [(message.role, message.id, texts(message)) for message in found]


def test_a_turn_is_a_prompt_and_its_answer() -> None:
    found = messages([OPENED, *turn("t1", e.AgentMessage(Text("a")), e.AgentMessage(Text("b")))])
    assert outline(found) == [("user", "t1-prompt", ["go"]), ("assistant", "t1", ["ab"])]
    assert found[0].metadata is None
    assert found[1].metadata == {"acp": {"sessionId": "s", "stopReason": "end_turn"}}


def test_a_history_keeps_the_newest_messages_and_counts_the_others() -> None:
    history = History(None, (), limit=20_000)
    for number in range(200):
        for event in turn(f"t{number}", e.AgentMessage(Text("x" * 500)), prompt=f"go {number}"):
            history.take(event)
    found = history.all(without_active=False)
    assert len(msgspec.json.encode(found)) <= 20_000
    assert history.dropped + len(found) == 400
    assert found[-1].id == "t199"


def test_a_message_keeps_its_beginning_and_says_how_much_more_there_was() -> None:
    piece = "x" * 1_000_000
    pieces = [e.AgentMessage(Text(piece)) for _ in range(10)]
    tools = [e.ToolCallUpdated(f"c{number}", title=piece) for number in range(5)]
    [_, answer] = messages([OPENED, *turn("t1", *pieces, *tools)])
    assert sum(map(len, texts(answer))) <= MAX_MESSAGE
    assert answer.metadata is not None
    assert answer.metadata["acp"]["cut"] > 2_000_000
    assert answer.metadata["acp"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(("character", "size"), [("x", 1), ("\1", 6), ("\U0001f600", 4)])
def test_what_is_kept_of_a_message_and_what_is_cut_are_bytes_of_json(
    character: str, size: int
) -> None:
    pieces = [e.AgentMessage(Text(character * 1_000)) for _ in range(9_000)]
    [_, answer] = messages([OPENED, *turn("t1", *pieces)])
    assert answer.metadata is not None
    [text] = texts(answer)
    assert MAX_MESSAGE - 10_000 <= len(text) * size <= MAX_MESSAGE
    assert answer.metadata["acp"]["cut"] == (9_000_000 - len(text)) * size


def test_of_many_tool_calls_in_a_turn_the_encoder_holds_the_newest() -> None:
    parts = Parts(Limits(entries=20))
    for number in range(1_000):
        parts.merge(e.ToolCallUpdated(f"c{number}", title="Run", content=[ContentItem(Text("a"))]))
        parts.show_call(parts.call(f"c{number}"))
    told = parts.taken()
    ended = [chunk for chunk in told if isinstance(chunk, ToolOutputAvailable)]
    assert len({chunk.tool_call_id for chunk in ended}) >= 980
    assert parts.part("c0") is None
    assert parts.part("c999") is not None


def test_it_is_what_a_page_makes_of_the_stream() -> None:
    events = [OPENED, *turn("t1", e.AgentThought(Text("hm")), e.ToolCallUpdated("a", title="Run"))]
    story = Told(session_id="s")
    for event in events:
        story.feed(event)
    assert messages(events)[1] == story.message.message


def test_a_session_without_events_has_no_messages() -> None:
    assert messages([]) == messages([OPENED]) == []


def test_an_empty_prompt_is_no_message() -> None:
    events = [e.TurnStarted("t1", [Text("")]), e.TurnEnded("t1", "end_turn")]
    assert [message.role for message in messages(events)] == ["assistant"]


def test_what_a_user_attached_is_there_again() -> None:
    content: list[Content] = [
        Text("look"),
        Image("QQ==", "image/png"),
        Resource("file:///a.txt", content="A"),
        ResourceLink("https://x/a.pdf", "a.pdf", "application/pdf"),
        ResourceLink("file:///b.md", "b.md"),
        UnknownContent("hologram", '{"type":"hologram"}'),
    ]
    found = messages([e.TurnStarted("t1", content), e.TurnEnded("t1", "end_turn")])
    assert found[0].parts == [
        {"type": "text", "text": "look"},
        {"type": "file", "url": "data:image/png;base64,QQ==", "mediaType": "image/png"},
        {
            "type": "file",
            "url": "data:text/plain;base64,QQ==",
            "mediaType": "text/plain",
            "providerMetadata": {"acp": {"uri": "file:///a.txt"}},
        },
        {
            "type": "file",
            "url": "https://x/a.pdf",
            "mediaType": "application/pdf",
            "filename": "a.pdf",
        },
        {
            "type": "data-acp-content",
            "data": {"type": "resource_link", "uri": "file:///b.md", "name": "b.md"},
        },
        {"type": "data-acp-content", "data": {"type": "hologram"}},
    ]
    verdicts = judge([Case(release, messages=found) for release in RELEASES])
    assert [verdict.problems for verdict in verdicts] == [[], []]


def test_a_history_told_again_is_messages_too() -> None:
    history: list[e.Event] = [
        e.UserMessage(Text("one "), replay=True),
        e.UserMessage(Text(""), replay=True),
        e.UserMessage(Text("two"), replay=True),
        e.UserMessage(Image("QQ==", "image/png"), replay=True),
        e.AgentMessage(Text("answer"), replay=True),
        e.ToolCallUpdated("a", title="Run", status="completed", replay=True),
        e.UserMessage(Text("more"), "m1", replay=True),
        e.UserMessage(Text("and more"), "m2", replay=True),
        e.AgentMessage(Text("yes"), replay=True),
    ]
    found = messages([OPENED, *history, *turn("t1", e.AgentMessage(Text("live")))])
    assert outline(found) == [
        ("user", "message-1", ["one two"]),
        ("assistant", "message-2", ["answer"]),
        ("user", "message-3", ["more"]),
        ("user", "message-4", ["and more"]),
        ("assistant", "message-5", ["yes"]),
        ("user", "t1-prompt", ["go"]),
        ("assistant", "t1", ["live"]),
    ]
    assert [part["type"] for part in found[0].parts] == ["text", "file"]


def test_the_prompt_that_an_agent_echoes_is_no_message() -> None:
    found = messages(turn("t1", e.UserMessage(Text("go")), e.AgentMessage(Text("yes"))))
    assert [message.role for message in found] == ["user", "assistant"]


def test_what_comes_behind_a_turn_is_a_message_unless_it_is_about_its_tools() -> None:
    found = messages(
        [
            *turn("t1", e.ToolCallUpdated("a", title="Run")),
            e.ToolCallUpdated("a", status="completed"),
            e.UsageChanged(1, 2),
            e.AgentMessage(Text("by the way")),
            e.UsageChanged(2, 2),
        ]
    )
    assert outline(found)[2:] == [("assistant", "message-3", ["by the way"])]


def test_a_request_that_was_settled_left_no_question() -> None:
    request = e.PermissionRequested("p", [YES], "Run", "a")
    answer = e.PermissionSettled("p", "yes", Decision("allow", "answered"))
    call = e.ToolCallUpdated("a", title="Run", status="pending")
    _, found = messages(turn("t1", call, request, answer, e.ToolCallUpdated("a", status="failed")))
    [tool] = [part for part in found.parts if part["type"] == "dynamic-tool"]
    assert tool["state"] == "output-error"
    assert "approval" not in tool


def running(*events: e.Event) -> list[e.Event]:
    return turn("t1", *events)[:-1]


def test_a_running_turn_is_there_as_far_as_it_goes() -> None:
    _, found = messages(running(e.AgentMessage(Text("so far"))))
    [text] = [part for part in found.parts if part["type"] == "text"]
    assert (text["text"], text["state"]) == ("so far", "done")


def test_a_running_turn_can_be_left_to_the_stream_that_resumes_it() -> None:
    first, second = turn("t0", e.AgentMessage(Text("done"))), running(e.AgentMessage(Text("so")))
    found = messages(first + second, without_active=True)
    assert [message.id for message in found] == ["t0-prompt", "t0", "t1-prompt"]
    assert messages(first, without_active=True) == messages(first)
    assert messages([], without_active=True) == []


def test_a_question_that_waits_is_a_question() -> None:
    call = e.ToolCallUpdated("a", title="Run", status="pending")
    _, found = messages(running(call, e.PermissionRequested("p", [YES], "Run", "a")))
    [tool] = [part for part in found.parts if part["type"] == "dynamic-tool"]
    assert tool["state"] == "approval-requested"


def test_a_question_of_a_turn_that_ended_is_none() -> None:
    call = e.ToolCallUpdated("a", title="Run", status="pending")
    form = e.ElicitationRequested("f", "?", "form")
    _, found = messages(turn("t1", call, e.PermissionRequested("p", [YES], "Run", "a"), form))
    [tool] = [part for part in found.parts if part["type"] == "dynamic-tool"]
    assert tool["state"] == "output-available"


@examples(60)
@given(any_events)
def test_any_session_is_messages(events: list[e.Event]) -> None:
    found = messages(events)
    assert len({message.id for message in found}) <= len(found)
    assert all(message.parts for message in found if message.role == "user")


def test_the_sdk_takes_any_session_as_messages() -> None:
    sessions: list[Any] = []

    @examples(100)
    @given(any_events)
    def collect(events: list[e.Event]) -> None:
        if found := messages(events):
            sessions.append(found)

    collect()
    cases = [Case(release, messages=found) for release in RELEASES for found in sessions]
    for case, verdict in zip(cases, judge(cases), strict=True):
        assert verdict.problems == [], msgspec.to_builtins(case.messages)
