"""What the settings say of the proxies before an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.agents.settings.settings_file import AgentSettings, parse_settings
from dragoman.errors import ConfigError
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent


def read(proxies: Any) -> AgentSettings:
    entry = {"command": "agent", "proxies": proxies}
    return parse_settings(json.dumps({"agent_servers": {"it": entry}}), "file").agents["it"]


def test_proxies_are_commands_and_addresses_in_their_order() -> None:
    found = read(
        [
            {"command": "one", "args": ["-v"], "env": {"KEY": "k"}},
            {"url": "wss://h/two", "headers": {"X-Key": "k"}, "files": "here"},
        ]
    )
    assert found.proxies == (
        AgentCommand("one", ("-v",), {"KEY": "k"}),
        RemoteAgent("wss://h/two", {"X-Key": "k"}, "here"),
    )
    assert found.target == AgentCommand("agent")


def test_without_any_there_are_none() -> None:
    assert read([]).proxies == ()


@pytest.mark.parametrize(
    ("proxies", "place"),
    [
        ({"command": "one"}, ""),
        ("one", ""),
        (["one"], "[0]"),
        ([{"command": "one"}, {}], "[1]"),
        ([{"command": "one", "url": "ws://h"}], "[0]"),
        ([{"command": ["CANARY"]}], "[0].command"),
        ([{"command": "one", "args": "CANARY"}], "[0].args"),
        ([{"command": "one", "env": {"K": 1}}], "[0].env.K"),
        ([{"command": "one", "secret": "CANARY"}], "[0].secret"),
        ([{"url": "https://h/CANARY"}], "[0].url"),
        ([{"url": "ws://h", "headers": {"a": "CANARY\r\n"}}], "[0].headers.a"),
    ],
)
def test_what_is_wrong_is_named_and_no_value_is_shown(proxies: Any, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(proxies)
    assert caught.value.place == f"agent_servers.it.proxies{place}"
    assert "CANARY" not in str(caught.value)
