"""`agents providers`, what is sent to an agent at each start, and the list of its own sessions."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from support.command import PROGRAMS, Dragoman

AGENT = PROGRAMS / "providers_agent.py"
GATEWAY = ("--api-type", "anthropic", "--base-url", "https://llm.example")


@pytest.fixture
def named(dragoman: Dragoman) -> Dragoman:
    """With the agent in its settings."""
    entry = {"command": sys.executable, "args": ["-S", str(AGENT)]}
    dragoman.write_settings({"agent_servers": {"it": entry}})
    return dragoman


def saved(dragoman: Dragoman) -> Any:
    document = json.loads(dragoman.settings.read_text())
    return document["agent_servers"]["it"].get("providers")


def test_they_are_listed(named: Dragoman) -> None:
    done = named("agents", "providers", "it")
    assert (done.code, done.err) == (0, "")
    main = "  main  openai at https://api.example  (supports openai, anthropic)"
    assert done.lines == [main, "  more  off"]
    [main, _] = json.loads(named("agents", "providers", "it", "--json").out)
    assert (main["providerId"], main["current"]["apiType"]) == ("main", "openai")


def test_one_that_is_set_is_sent_each_time_the_agent_starts(named: Dragoman) -> None:
    done = named("agents", "providers", "it", "set", "main", *GATEWAY, "--header", "x-team=a=b")
    assert done.lines[0] == "  main  anthropic at https://llm.example  (supports openai, anthropic)"
    where = {"apiType": "anthropic", "baseUrl": "https://llm.example"}
    told = json.loads(named("-a", "it", "-o", "simple", "hello").out)
    assert told[:2] == [where, {"x-team": "a=b"}]
    assert named("agents", "providers", "it", "disable", "main").lines[0].startswith("  main  off")
    assert saved(named) == {"main": None}
    assert json.loads(named("-a", "it", "-o", "simple", "hello").out)[0] is None
    assert named("agents", "providers", "it", "reset", "main").code == 0
    assert saved(named) is None
    assert json.loads(named("-a", "it", "-o", "simple", "hello").out)[0]["apiType"] == "openai"


def test_headers_come_from_a_file_or_standard_input(named: Dragoman) -> None:
    file = named.workspace / "headers.json"
    file.write_text('{"Authorization": "Bearer k"}')
    words = ("agents", "providers", "it", "set", "main", *GATEWAY, "--headers-file")
    assert named(*words, str(file)).code == 0
    assert saved(named)["main"]["headers"] == {"Authorization": "Bearer k"}
    assert named(*words, "-", stdin='{"x": "y"}').code == 0
    assert saved(named)["main"]["headers"] == {"x": "y"}


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("set",), "set needs the id of a provider: set ID"),
    (("set", "main"), "set needs --api-type and --base-url"),
    (("disable", "main", "--base-url", "x"), "--api-type, --base-url and headers belong to set"),
    (("set", "other", *GATEWAY), "it has no model provider other; it has: main, more"),
    (
        ("set", "main", "--api-type", "x", "--base-url", "y"),
        "--api-type x: it supports openai, anthropic",
    ),
    (("set", "main", *GATEWAY, "--header", "x"), "--header x: expected NAME=VALUE"),
    (
        ("set", "main", *GATEWAY, "--headers-file", "no"),
        "--headers-file no: no such file or directory",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_what_is_wrong_is_said_and_changes_nothing(
    named: Dragoman, words: tuple[str, ...], sentence: str
) -> None:
    done = named("agents", "providers", "it", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"dragoman: {sentence}\n"
    assert saved(named) is None


def test_a_header_that_is_not_valid_does_not_break_the_settings(named: Dragoman) -> None:
    done = named("agents", "providers", "it", "set", "main", *GATEWAY, "--header", "x y=1")
    assert (done.code, done.out) == (2, "")
    assert "agent_servers.it.providers.main.headers.x y: expected a valid header name" in done.err
    assert saved(named) is None


def test_an_agent_that_cannot_be_told_its_providers_does_not_start(dragoman: Dragoman) -> None:
    entry: dict[str, Any] = {"command": sys.executable, "args": ["-m", "dragoman", "demo-agent"]}
    entry["providers"] = {"main": {"api_type": "openai", "base_url": "https://llm.example"}}
    dragoman.write_settings({"agent_servers": {"it": entry}})
    done = dragoman("-a", "it", "hello")
    assert done.code == 1
    assert done.err.startswith("dragoman: the agent does not support the model providers that are")


def test_sessions_that_the_agent_archived_are_listed_with_their_status(named: Dragoman) -> None:
    assert named("sessions", "list", "--known", "-a", "it").lines == ["it knows no sessions"]
    done = named("sessions", "list", "--known", "--archived", "-a", "it")
    assert [line.split() for line in done.lines] == [
        ["AGENT'S", "ID", "STATUS", "AGE", "FOLDER", "TITLE"],
        ["old", "saved,", "archived", "/x", "An", "old", "one"],
    ]
    [found] = json.loads(
        named("sessions", "list", "--known", "--archived", "-a", "it", "--json").out
    )
    assert (found["archived"], found["status"]) == (True, "saved")


def test_the_trace_of_the_environment_reaches_the_agent(named: Dragoman) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    env = {"TRACEPARENT": trace, "TRACESTATE": "vendor=1"}
    done = named("-a", "it", "-o", "simple", "hello", env=env)
    assert json.loads(done.out)[2] == {"traceparent": trace, "tracestate": "vendor=1"}
    assert json.loads(named("-a", "it", "-o", "simple", "hello").out)[2] is None
