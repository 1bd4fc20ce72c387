"""Our content and facts in ACP's own words, held to what ACP's own schema reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.client.dialects.v1 import wire_format
from dragoman.schema import codec, v1
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.ui_stream import acp_json

CONTENT: list[c.Content] = [
    c.Text("hi", annotations={"audience": ["user"]}, meta={"x": 1}),
    c.Image("QQ==", "image/png", "file:///a.png"),
    c.Audio("QQ==", "audio/wav"),
    c.ResourceLink("file:///a", "a", "text/plain", title="A", description="An a", size=3),
    c.Resource("file:///a", content="", resource_meta={"y": 2}),
    c.Resource("file:///a", blob="QQ==", mime_type="image/png"),
    c.UnknownContent("hologram", '{"type":"hologram","x":1}'),
]
ITEMS: list[c.ToolContent] = [
    c.ContentItem(c.Text("hi"), meta={"x": 1}),
    c.Diff("/a", "new"),
    c.Diff("/a", "new", "old"),
    c.TerminalItem("t"),
    c.UnknownItem("odd", '{"type":"odd"}'),
]


def read_as(told: Any, kind: Any) -> Any:
    return codec.decode(msgspec.json.encode(told), kind)


@pytest.mark.parametrize("part", CONTENT)
def test_content_is_read_back_as_it_was(part: c.Content) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": acp_json.content(part)}
    notification = read_as({"sessionId": "s", "update": chunk}, v1.SessionNotification)
    event = wire_format.update(notification.update)
    assert isinstance(event, e.AgentMessage)
    assert event.content == part


@pytest.mark.parametrize("item", ITEMS)
def test_tool_content_is_read_back_as_it_was(item: c.ToolContent) -> None:
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "a",
        "content": acp_json.tool_content([item]),
        "locations": acp_json.locations([c.Location("/a", 3), c.Location("/b")]),
    }
    wire = read_as({"sessionId": "s", "update": update}, v1.SessionNotification).update
    event = wire_format.tool_call_update(wire)
    assert event.content == [item]
    assert event.locations == [c.Location("/a", 3), c.Location("/b")]


def test_what_is_no_object_is_kept_as_text() -> None:
    assert acp_json.raw("odd", "[1]") == {"type": "odd", "raw": "[1]"}
    assert acp_json.raw("odd", "{") == {"type": "odd", "raw": "{"}


def test_choices_are_told_with_their_group() -> None:
    choice = f.ConfigChoice("a", "A", "The first", "Letters")
    [option] = acp_json.config_options([f.ConfigOption("m", "Model", "a", [choice], "Which", "c")])
    assert option == {
        "id": "m",
        "name": "Model",
        "description": "Which",
        "category": "c",
        "type": "select",
        "currentValue": "a",
        "options": [{"value": "a", "name": "A", "description": "The first", "group": "Letters"}],
    }


def test_a_resource_with_text_and_bytes_says_both() -> None:
    told = acp_json.content(c.Resource("file:///a", content="A", blob="QQ=="))
    assert told["resource"] == {"uri": "file:///a", "text": "A", "blob": "QQ=="}
