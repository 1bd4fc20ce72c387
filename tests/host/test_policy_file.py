from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, DragomanError
from dragoman.host.rules.policy_file import load_policy, parse_policy
from dragoman.host.rules.rule import Rule


def parse(policy: Any, file: str = "p.json") -> tuple[Rule, ...]:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    return parse_policy(text, file, home="/home/me")


def error(policy: Any, file: str = "p.json") -> str:
    with pytest.raises(ConfigError) as caught:
        parse(policy, file)
    return str(caught.value)


def rule_error(**fields: Any) -> str:
    return error({"rules": [{"effect": "deny"}, {"effect": "allow"} | fields]})


FULL = {
    "effect": "allow",
    "operation": "execute",
    "agent": "claude*",
    "argv": ["npm", "test"],
    "argv_prefix": ["npm"],
    "cwd": "~/web/**",
}


def test_every_key_is_read() -> None:
    first, second, third = parse(
        {
            "rules": [
                FULL,
                {"effect": "deny", "path": "secret/**"},
                {"effect": "ask", "operation": "mcp", "host": "*.x.org", "tool": "fs_*"},
            ]
        }
    )
    assert first == Rule(
        effect="allow",
        operation="execute",
        agent="claude*",
        argv=("npm", "test"),
        argv_prefix=("npm",),
        cwd="/home/me/web/**",
        id="rules[0]",
        source="p.json",
    )
    assert second == Rule(effect="deny", path="secret/**", id="rules[1]", source="p.json")
    assert (third.host, third.tool, third.effect) == ("*.x.org", "fs_*", "ask")


def test_toml_says_the_same_as_json() -> None:
    toml = """
        [[rules]]
        effect = "allow"
        operation = "execute"
        agent = "claude*"
        argv = ["npm", "test"]
        argv_prefix = ["npm"]
        cwd = "~/web/**"
    """
    assert parse(toml, "p") == parse({"rules": [FULL]}, "p")
    assert parse(toml, "p.toml")[0].argv == ("npm", "test")


def test_the_name_of_the_file_says_which_format_it_is() -> None:
    assert "expected strict JSON" in error("rules = []", "p.json")
    assert "expected TOML" in error('{"rules": []}', "p.toml")
    assert parse("rules = []", "p") == parse('{"rules": []}', "p") == ()
    assert "expected strict JSON" in error(" {", "p")


def test_a_home_is_put_in_place_letter_for_letter() -> None:
    rules = {"rules": [{"effect": "allow", "path": "~/x/*"}, {"effect": "allow", "path": "~"}]}
    assert [rule.path for rule in parse(rules)] == ["/home/me/x/*", "/home/me"]
    odd = parse_policy(json.dumps(rules), "p.json", home="/home/[me]*")
    assert odd[0].path == "/home/\\[me]\\*/x/*"


@pytest.mark.parametrize("path", ["src/**", "/a/*", "**", "/**", "./a", "a/**/b", "a b", "x[0-9]"])
def test_a_good_path_stays_as_it_is(path: str) -> None:
    assert parse({"rules": [{"effect": "deny", "path": path}]})[0].path == path


def test_an_error_has_its_data_and_is_one_of_ours() -> None:
    with pytest.raises(DragomanError) as caught:
        parse({"rules": [{"effect": "maybe"}]})
    assert isinstance(caught.value, ConfigError)
    assert (caught.value.file, caught.value.place) == ("p.json", "rules[0].effect")
    assert caught.value.expected == "allow, ask or deny"
    assert str(caught.value) == "p.json: rules[0].effect: expected allow, ask or deny"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"effect": None}, "rules[1].effect: expected allow, ask or deny"),
        ({"effect": "Allow"}, "rules[1].effect: expected allow, ask or deny"),
        ({"effect": ["allow"]}, "rules[1].effect: expected allow, ask or deny"),
        ({"operation": "run"}, "rules[1].operation: expected read, write, execute, fetch, mcp or"),
        ({"operation": None}, "rules[1].operation: expected read, write"),
        ({"agent": 1}, "rules[1].agent: expected a non-empty string"),
        ({"agent": ""}, "rules[1].agent: expected a non-empty string"),
        ({"host": ["x"]}, "rules[1].host: expected a non-empty string"),
        ({"tool": None}, "rules[1].tool: expected a non-empty string"),
        ({"path": ["x"]}, "rules[1].path: expected a non-empty string"),
        ({"path": "../x"}, "rules[1].path: expected a path without .."),
        ({"path": "/a/../b"}, "rules[1].path: expected a path without .."),
        ({"path": "src/"}, "rules[1].path: expected no / at the end; folder/**"),
        ({"path": "src/**.py"}, "rules[1].path: expected ** alone between slashes"),
        ({"path": "~you/x"}, "rules[1].path: expected ~/ for your own home"),
        ({"argv": "npm test"}, "rules[1].argv: expected a list of strings"),
        ({"argv": []}, "rules[1].argv: expected a list of strings"),
        ({"argv": ["a", 1]}, "rules[1].argv: expected a list of strings"),
        ({"argv_prefix": {"a": 1}}, "rules[1].argv_prefix: expected a list of strings"),
        ({"comand": "x"}, "rules[1].comand: expected only effect, operation, agent, path, argv,"),
        ({"anywhere": True}, "rules[1].anywhere: expected only effect"),
        ({"scope": "user"}, "rules[1].scope: expected only effect"),
        ({"operation": "execute", "path": "x"}, "rules[1]: expected conditions that fit together"),
        ({"argv": ["a"], "path": "x"}, "rules[1]: expected conditions that fit together"),
        ({"operation": "read", "host": "x"}, "rules[1]: expected conditions that fit together"),
    ],
)
def test_a_wrong_rule_says_where_and_what_was_expected(fields: Any, says: str) -> None:
    message = rule_error(**fields)
    assert message.startswith(f"p.json: {says}")
    assert "\n" not in message


WRONG_FILES: list[tuple[Any, str]] = [
    ([], 'p.json: expected an object with "rules"'),
    ("3", 'p.json: expected an object with "rules"'),
    ({}, "p.json: rules: expected a list of rules"),
    ({"rules": {}}, "p.json: rules: expected a list of rules"),
    ({"rules": [3]}, "p.json: rules[0]: expected an object, with at least an effect"),
    ({"rules": [{}]}, "p.json: rules[0].effect: expected allow, ask or deny"),
    ({"rules": [], "x": 1}, "p.json: x: expected only rules; unknown key"),
    ("{", "p.json: line 1, column 2: expected strict JSON (expecting property name"),
    ('{"rules": NaN}', "p.json: expected strict JSON, which has no NaN"),
    ("", "p.json: line 1, column 1: expected strict JSON"),
    ('{"rules": [],}', "p.json: line 1, column 1"),
    ('{"rules": [], "rules": []}', "p.json: rules: expected each key only once in an object"),
    ('{"rules": [{"effect": "deny", "effect": "allow"}]}', "p.json: effect: expected each key"),
    ("[" * 100_000, "p.json: expected strict JSON, nested less deeply"),
]


@pytest.mark.parametrize(("policy", "says"), WRONG_FILES)
def test_a_wrong_file_says_where_and_what_was_expected(policy: Any, says: str) -> None:
    message = error(policy)
    assert message.startswith(says)
    assert "\n" not in message


def test_wrong_toml_says_where() -> None:
    assert error("rules = [", "p.toml").startswith("p.toml: expected TOML (")
    assert "line 2" in error("\nrules = x", "p.toml")
    assert error("a = " + "[" * 10_000, "p.toml").startswith("p.toml: expected TOML (")


def test_a_file_is_loaded_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b'\xef\xbb\xbf[[rules]]\neffect = "deny"\n')
    rule = Rule(effect="deny", id="rules[0]", source=str(path))
    assert load_policy(path, home="/home/me") == (rule,)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: expected a readable file \(No such file"):
        load_policy(tmp_path / "none.json", home="/home/me")
    with pytest.raises(ConfigError, match="directory"):
        load_policy(tmp_path, home="/home/me")


def test_a_file_that_is_not_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_bytes(b'{"rules": "\xff"}')
    with pytest.raises(ConfigError, match=r"byte 11: expected text in UTF-8"):
        load_policy(path, home="/home/me")
