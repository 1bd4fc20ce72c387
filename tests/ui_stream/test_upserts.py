"""What newer agents tell: words said anew, changes without texts, terminals of their own."""

from __future__ import annotations

from dragoman.session import events as e
from dragoman.session.content import Diff, Text
from dragoman.session.state import Terminal
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.chunks import TextDelta, TextStart
from dragoman.ui_stream.encoder import Encoder


def test_a_message_told_anew_is_a_part_of_its_own() -> None:
    encoder = Encoder("s")
    encoder.feed(e.TurnStarted("t", [Text("hi")]))
    said = [
        e.AgentMessage(Text("A"), "m"),
        e.AgentMessage(Text("B"), "m", replaces=True),
        e.AgentMessage(Text("C"), "m"),
        e.ActivityChanged("running"),
    ]
    chunks = encoder.feed(*said)
    parts = {chunk.id: "" for chunk in chunks if isinstance(chunk, TextStart)}
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            parts[chunk.id] += chunk.delta
    assert list(parts.values()) == ["A", "BC"]


def test_a_change_without_texts_keeps_what_is_done() -> None:
    diff = Diff("/b", "", operation="move", old_path="/a", patch="diff --git", file_type="text")
    (told,) = acp_json.tool_content([diff])
    change = {"operation": "move", "path": "/b", "oldPath": "/a", "fileType": "text"}
    patch = {"format": "git_patch", "text": "diff --git"}
    assert told == {"type": "diff", "path": "/b", "changes": [change], "patch": patch}
    (bare,) = acp_json.tool_content([Diff("/b", "", operation="delete")])
    assert "patch" not in bare


def test_a_terminal_of_the_agents_own_shows_its_command() -> None:
    assert acp_json.terminal(Terminal("t", command="make all"))["command"] == ["make all"]
    assert "command" not in acp_json.terminal(Terminal("t"))
