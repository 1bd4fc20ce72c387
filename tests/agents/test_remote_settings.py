"""What the settings say of an agent elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.agents.settings.settings_file import AgentSettings, parse_settings
from dragoman.errors import ConfigError
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent


def read(entry: dict[str, Any]) -> AgentSettings:
    return parse_settings(json.dumps({"agent_servers": {"far": entry}}), "file").agents["far"]


def test_an_address_its_headers_and_whose_files() -> None:
    entry = {"url": "wss://h/acp", "headers": {"X-Key": "k"}, "files": "there"}
    assert read(entry).target == RemoteAgent("wss://h/acp", {"X-Key": "k"}, "there")
    assert read({"url": "http://h"}).target == RemoteAgent("http://h")


def test_a_command_may_lead_elsewhere() -> None:
    assert read({"command": "ssh"}).target == AgentCommand("ssh")
    assert read({"command": "ssh", "files": "there"}).target == AgentCommand("ssh", files="there")


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"url": "h"}, "url"),
        ({"url": "ftp://h"}, "url"),
        ({"url": "ws://h", "files": "everywhere"}, "files"),
        ({"url": "ws://h", "files": True}, "files"),
        ({"url": "ws://h", "headers": {"a b": "CANARY"}}, "headers.a b"),
        ({"url": "ws://h", "headers": {"a": "CANARY\r\nb: c"}}, "headers.a"),
        ({"url": "ws://h", "headers": {"a": 1}}, "headers.a"),
    ],
)
def test_what_is_wrong_is_named_and_no_value_is_shown(entry: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(entry)
    assert caught.value.place == f"agent_servers.far.{place}"
    assert "CANARY" not in str(caught.value)
