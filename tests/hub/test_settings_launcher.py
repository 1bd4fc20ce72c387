"""Agents are started by the names in the settings, else by those that are known."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from dragoman import AgentCommand, Policy, RemoteAgent
from dragoman.agents.known import known_command
from dragoman.agents.settings.settings_file import Settings, parse_settings
from dragoman.client.mcp import HttpServer, StdioServer
from dragoman.errors import UnknownAgent, Unsupported
from dragoman.hub.running.settings_launcher import SettingsLauncher, run_in, started_in
from dragoman.session.facts import FenceMode, Offer

SETTINGS = """{
  "agent_servers": {
    "mine": {"command": "./agent", "args": ["--acp"], "process": "per-session"},
    "far": {"url": "https://agent.example"}
  },
  "mcp_servers": [
    {"name": "one", "command": "server", "env": {"KEY": "value"}},
    {"name": "two", "type": "http", "url": "https://two.example"}
  ]
}"""


def launcher(text: str = SETTINGS) -> SettingsLauncher:
    return SettingsLauncher(lambda: parse_settings(text, "settings.json"), Policy())


def test_the_first_agent_of_the_settings_is_the_default() -> None:
    assert launcher().default == "mine"
    assert SettingsLauncher(Settings, Policy()).default == "demo"


def test_a_name_in_the_settings_comes_before_a_known_one() -> None:
    assert launcher().command("mine").args == ("--acp",)
    assert "dragoman.testing.demo" in launcher().command("demo").args
    assert not launcher().is_shared("mine")
    assert launcher().is_shared("demo")


def test_agents_start_with_the_limits_of_the_settings() -> None:
    client = launcher('{"limits": [{"turns": 1, "time": "2m"}]}').client("demo", "/")
    limits = [(each.measure, each.most) for each in client.openings.terms.limits]
    assert limits == [("time", 120), ("turns", 1)]


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(UnknownAgent) as raised:
        launcher().client("nobody", "/")
    assert raised.value.known[:2] == ("mine", "far")
    assert "demo" in raised.value.known


def test_a_remote_agent_is_reached_and_not_started() -> None:
    assert launcher().client("far", "/").name == "far"
    with pytest.raises(Unsupported, match="it has an address, not a command"):
        launcher().command("far")


def test_servers_of_the_settings_come_along() -> None:
    assert launcher().mcp_servers("s-1") == [
        StdioServer(name="one", command="server", env={"KEY": "value"}),
        HttpServer(name="two", url="https://two.example"),
    ]


def test_an_agent_is_started_in_the_workspace_and_still_found() -> None:
    here = os.path.abspath("./agent")
    assert started_in(AgentCommand("./agent"), "/project") == AgentCommand(here, cwd="/project")
    assert started_in(AgentCommand("agent"), "/project").command == "agent"
    elsewhere = AgentCommand("agent", cwd="/elsewhere")
    assert started_in(elsewhere, "/project") == elsewhere


def test_a_proxy_is_started_in_the_workspace_too_and_one_elsewhere_is_reached() -> None:
    assert run_in(AgentCommand("p"), "/project") == AgentCommand("p", cwd="/project")
    assert run_in(RemoteAgent("ws://h"), "/project") == RemoteAgent("ws://h")


class Tap:
    def __call__(self, direction: Literal["sent", "received"], frame: bytes) -> None: ...


def test_each_agent_has_a_tap_of_its_own() -> None:
    found = SettingsLauncher(Settings, Policy(), new_tap=Tap)
    one, two = found.client("demo", "/"), found.client("demo", "/")
    assert isinstance(found.taps[one], Tap)
    assert found.taps[one] is not found.taps[two]


@pytest.mark.parametrize(
    ("entry", "offer", "told"),
    [
        ({}, Offer(), (True, True)),
        ({"files": False}, Offer(), (False, True)),
        ({"terminals": False}, Offer(files=False), (False, False)),
    ],
)
async def test_what_is_switched_off_is_not_offered(
    entry: dict[str, bool], offer: Offer, told: tuple[bool, bool], tmp_path: Path
) -> None:
    demo = known_command("demo")
    agent = {"command": demo.command, "args": list(demo.args), "offer": entry}
    settings = parse_settings(json.dumps({"agent_servers": {"mine": agent}}), "settings.json")
    frames: list[bytes] = []

    def new_tap() -> Callable[[str, bytes], None]:
        return lambda _, frame: frames.append(frame)

    found = SettingsLauncher(lambda: settings, Policy(), new_tap=new_tap, offer=offer)
    async with found.client("mine", str(tmp_path)):
        pass
    offered = json.loads(frames[0])["params"]["clientCapabilities"]
    assert (bool(offered.get("fs")), bool(offered.get("terminal"))) == told


@pytest.mark.parametrize(
    ("settings_say", "session_says", "mode"),
    [
        ("off", "off", None),
        ("off", "ask", "ask"),
        ("require", "on", "require"),
        ("on", "off", "on"),
    ],
)
def test_the_stricter_fence_of_session_and_settings_counts(
    settings_say: str, session_says: FenceMode, mode: str | None
) -> None:
    settings = parse_settings(json.dumps({"fence": settings_say}), "settings.json")
    found = SettingsLauncher(lambda: settings, Policy())
    fence = found.client("demo", "/", Offer(fence=session_says)).fence
    assert (fence and fence.mode) == mode
