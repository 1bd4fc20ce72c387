"""What agents say beside ACP: one table, documented, read by the dialects and nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.agents.extensions import EXTENSIONS, quirks_for, tool_name
from dragoman.client.dialects.v1.wire_format import tool_call_update
from dragoman.client.dialects.v2 import wire_format as second
from dragoman.schema import v1, v2

SOURCES = Path(dragoman.__file__).parent
PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "set-up-agents.md"


def test_the_table_is_documented() -> None:
    lines = PAGE.read_text().splitlines()
    for each in EXTENSIONS:
        assert f"| `{'.'.join(each.path)}` | {each.said_by} | {each.meaning} |" in lines


def test_nobody_else_knows_an_agents_own_words() -> None:
    for words in ("claudeCode", '"goose", "toolCall"'):
        found = [file for file in SOURCES.rglob("*.py") if words in file.read_text()]
        assert [file.relative_to(SOURCES).as_posix() for file in found] == ["agents/extensions.py"]


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        ({"claudeCode": {"toolName": "Bash"}}, "Bash"),
        ({"goose": {"toolCall": {"toolName": "write"}}}, "write"),
        ({"toolName": "edit"}, "edit"),
        ({"toolName": ""}, None),
        ({"toolName": 7}, None),
        ({"claudeCode": {}}, None),
        ({"claudeCode": "odd"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_what_is_not_there_is_nothing(meta: dict[str, Any] | None, name: str | None) -> None:
    assert tool_name(meta) == name


def test_both_dialects_read_it() -> None:
    meta = {"claudeCode": {"toolName": "Bash", "toolResponse": {"stdout": "hi"}}}
    one = tool_call_update(v1.ToolCallUpdate(tool_call_id="a", meta=meta))
    two = second.tool_call_update(v2.ToolCallUpdate(tool_call_id="a", meta=meta))
    assert (one.name, one.raw_output) == (two.name, two.raw_output) == ("Bash", {"stdout": "hi"})


def test_hermes_edits_by_tools_of_its_own() -> None:
    assert quirks_for("hermes-agent").edit_tools == ("write_file", "patch")
