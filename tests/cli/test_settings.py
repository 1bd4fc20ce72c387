"""`settings.json` as the command line meets it; what is wrong is one line with file and key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.command import Dragoman

from dragoman.agents.settings.settings_file import parse_settings
from dragoman.errors import ConfigError


def entry(dragoman: Dragoman, agent: str) -> dict[str, Any]:
    command, *args = dragoman.agent(agent).split()
    return {"command": command, "args": args}


def test_the_first_agent_is_the_default_and_a_name_chooses_another(dragoman: Dragoman) -> None:
    servers = {"zeta": entry(dragoman, "quiet"), "alpha": entry(dragoman, "two_messages")}
    dragoman.write_settings({"agent_servers": servers})
    assert dragoman("x").out == "nothing needed permission\n"
    assert "two words" in dragoman("-a", "alpha", "x").out


def test_where_the_settings_are_looked_for(dragoman: Dragoman) -> None:
    """The option before the variable before the user's own."""
    dragoman.write_settings("not even JSON")
    good = dragoman.home / "good.json"
    good.write_text(json.dumps({"agent_servers": {"good": entry(dragoman, "quiet")}}))
    assert dragoman("x").code == 2
    assert dragoman("x", env={"DRAGOMAN_SETTINGS": str(good)}).code == 0
    assert dragoman("x", "--settings", str(good), env={"DRAGOMAN_SETTINGS": "/none"}).code == 0


def test_a_variable_that_is_empty_names_no_settings(dragoman: Dragoman) -> None:
    done = dragoman("agents", "list", "--names", env={"DRAGOMAN_SETTINGS": ""})
    assert (done.code, done.lines[0]) == (0, "demo")


def test_an_agent_of_ours_by_the_name_of_a_known_one_wins(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"goose": entry(dragoman, "quiet")}})
    assert dragoman("-a", "goose", "x").out == "nothing needed permission\n"


def test_a_command_needs_no_settings_not_even_sound_ones(dragoman: Dragoman) -> None:
    dragoman.write_settings("{")
    assert dragoman("x", agent="quiet").code == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("{", "line 1, column 2: expected strict JSON"),
        ('{"agent_servers": {},}', "line 1, column 2"),
        ('{"agent_servers": {}} // all of them', "expected strict JSON"),
        ('{"agent_servers": NaN}', "expected strict JSON"),
        ("[" * 100_000, "expected strict JSON"),
        ([], "expected an object, not a list"),
        ({"agent_servers": []}, "agent_servers: expected an object, not a list"),
        ({"agent_servers": {"a": "x"}}, "agent_servers.a: expected an object, not a string"),
        ({"agent_servers": {"a": {}}}, "agent_servers.a: expected either a command"),
        (
            {"agent_servers": {"a": {"command": 7}}},
            "agent_servers.a.command: expected a non-empty string, not a number",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "args": "y"}}},
            "agent_servers.a.args: expected a list, not a string",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "args": ["y", None]}}},
            "agent_servers.a.args[1]: expected a string, not null",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "env": {"N": 1}}}},
            "agent_servers.a.env.N: expected a string, not a number",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "env": [{"name": "N", "value": "1"}]}}},
            "agent_servers.a.env: expected an object, not a list",
        ),
        (
            {"agent_servers": {"a": {"url": "https://x", "headers": []}}},
            "agent_servers.a.headers: expected an object, not a list",
        ),
        (
            {"agent_servers": {"a": {"command": ""}}},
            "agent_servers.a.command: expected a non-empty string",
        ),
        ('{"agent_servers": {"a": {}, "a": {}}}', "a: expected each key only once in an object"),
        (
            {"agent_servers": {"a": {"command": "x\0y"}}},
            "agent_servers.a.command: expected a string without NUL",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "env": {"N=M": "1"}}}},
            "agent_servers.a.env.N=M: expected a valid variable name",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "process": "none"}}},
            'agent_servers.a.process: expected either "shared" or "per-session"',
        ),
        (
            {"agent_server": {"mine": {"command": "goose"}}},
            "agent_server: expected a known key; did you mean agent_servers?",
        ),
        (
            {"colour": 1},
            "colour: expected one of $schema, agent_servers, enter, fence, keep_warm, limits, "
            "mcpServers, mcp_servers, notify, notify_command, on_limit, prices, push, "
            "question_timeout, retention, snapshots, system_prompt, webhook, worktrees",
        ),
        (
            {"agent_servers": {"a": {"command": "x", "arg": []}}},
            "agent_servers.a.arg: expected a known key; did you mean args?",
        ),
        ({"mcp_servers": {}}, "mcp_servers: expected a list, not an object"),
        (
            {
                "mcp_servers": [{"name": "a", "command": "x"}],
                "mcpServers": {"a": {"command": "y"}},
            },
            "mcpServers.a: expected a name that is not in mcp_servers too",
        ),
        (
            {"mcp_servers": [{"command": "x"}]},
            "mcp_servers[0].name: expected a non-empty string, not null",
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_key(settings: object, sentence: str) -> None:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, "/home/me/settings.json")
    assert str(caught.value).startswith("/home/me/settings.json: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("{", "line 1, column 2: expected strict JSON"),
        (
            {"agent_servers": {"a": {"command": 7}}},
            "agent_servers.a.command: expected a non-empty string, not a number",
        ),
        ({"mcp_servers": {}}, "mcp_servers: expected a list, not an object"),
    ],
)
def test_it_is_one_line_and_exit_code_two(
    dragoman: Dragoman, settings: object, sentence: str
) -> None:
    file = dragoman.write_settings(settings)
    done = dragoman("x")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"dragoman: {file}: {sentence}")
    assert done.err.count("\n") == 1


def test_a_file_that_was_named_must_be_there(dragoman: Dragoman) -> None:
    for words, env in (
        (("--settings", "/none.json"), {}),
        ((), {"DRAGOMAN_SETTINGS": "/none.json"}),
    ):
        done = dragoman("x", *words, env=env)
        assert done.code == 2
        assert done.err == "dragoman: /none.json: expected a settings file, but there is none\n"


def test_a_file_that_cannot_be_read(dragoman: Dragoman) -> None:
    done = dragoman("x", "--settings", str(dragoman.home))
    assert done.code == 2
    assert done.err == f"dragoman: {dragoman.home}: expected a readable file (Is a directory)\n"


def test_a_file_that_is_no_text(dragoman: Dragoman) -> None:
    dragoman.write_settings("{}").write_bytes(b"\xff\xfe")
    done = dragoman("x")
    assert done.code == 2
    assert "expected a readable file (not UTF-8 text)" in done.err
