"""Rules over HTTP: written by a person, and tried on a request."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.serving import served

from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule


async def test_an_added_rule_is_listed_and_decides(tmp_path: Path) -> None:
    wanted = {"operation": "write", "path": "src/a.py"}
    async with served(tmp_path) as web:
        asked = await web.call("POST", "/api/policies/explain", wanted)
        assert (asked["effect"], asked["rule"], asked["rules"]) == ("ask", None, [])
        body = {"effect": "allow", "operation": "write", "path": "src/**", "project": str(tmp_path)}
        added = await web.call("POST", "/api/policies", body)
        assert added["sentence"] == "allow writing files src/** in this project"
        assert (added["warnings"], added["existed"]) == ([], False)
        listed = (await web.call("GET", "/api/policies"))["policies"]
        assert listed == [added["policy"]]
        assert listed[0]["rule"]["source"] == "your rule"
        told = await web.call("POST", "/api/policies/explain", wanted)
        assert (told["effect"], told["rule"]["id"]) == ("allow", added["policy"]["id"])
        assert told["subject"] == f"write {tmp_path}/src/a.py"
        assert [(each["matches"], each["mismatch"]) for each in told["rules"]] == [(True, None)]
        elsewhere = await web.call("POST", "/api/policies/explain", wanted | {"cwd": "/usr"})
        assert elsewhere["effect"] == "ask"
        assert elsewhere["rules"][0]["mismatch"] == "it is for another project"
        again = await web.call("POST", "/api/policies", body)
        assert (again["existed"], again["policy"]) == (True, added["policy"])


async def test_the_flags_of_the_server_count_when_its_rules_are_tried(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        web.server.launcher.policy = Policy(
            (Rule(effect="deny", argv_prefix=("git", "push"), source="rules.toml", id="rules[0]"),),
            execute=True,
        )
        line = "cd src && git push"
        told = await web.call("POST", "/api/policies/explain", {"command": line})
        assert told["effect"] == "deny"
        assert told["rule"]["source"] == "rules.toml"
        assert told["reason"] == "rules.toml rules[0] denies a part of it: git push"
        words = {"command": ["git", "status"], "operation": "execute"}
        assert (await web.call("POST", "/api/policies/explain", words))["effect"] == "allow"


async def test_a_command_is_typed_as_one_plain_line(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        body = {"effect": "deny", "command": "git push", "prefix": True}
        added = await web.call("POST", "/api/policies", body)
        assert added["policy"]["rule"]["argvPrefix"] == ["git", "push"]
        assert added["policy"]["rule"].get("project") is None
        more = {"effect": "allow", "command": "git push", "expiresAt": time.time() + 60}
        warned = await web.call("POST", "/api/policies", more)
        [warning] = warned["warnings"]
        assert warning.endswith(f"your rule {added['policy']['id']} denies it")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"effect": "allow"}, "the rule: expected what it is about"),
        ({"effect": "allow", "path": "../x"}, "path: expected a path without .."),
        ({"effect": "allow", "operation": "fetch", "path": "x"}, "conditions that fit together"),
        ({"effect": "allow", "command": "a && b"}, "is not one plain command"),
        ({"effect": "allow", "command": ["a", ""]}, "Expected `str` of length >= 1"),
        ({"effect": "allow", "command": "ls", "operation": "read"}, "conditions that fit together"),
        ({"effect": "allow", "command": "ls", "project": "here"}, "expected the absolute path"),
        ({"effect": "allow", "command": "ls", "expiresAt": 1}, "expiresAt: expected a time to"),
        ({"effect": "allow", "argv": ["ls"]}, "unknown field"),
        ({"effect": "maybe"}, "Invalid enum value 'maybe'"),
    ],
)
async def test_a_meaningless_rule_is_refused_in_one_line(
    tmp_path: Path, body: dict[str, Any], words: str
) -> None:
    async with served(tmp_path) as web:
        reply = await web.http.post("/api/policies", json=body)
        assert reply.status_code == 400
        assert words in reply.json()["error"]["message"]
        assert await web.call("GET", "/api/policies") == {"policies": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"path": "x"},
        {"operation": "write"},
        {"operation": "read", "path": "a\0b"},
        {"operation": "write", "command": "ls"},
        {"command": ["x" * 100_000, "y" * 100_000]},
        {"command": "ls", "cwd": "relative"},
    ],
)
async def test_a_request_that_says_too_little_is_refused(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    async with served(tmp_path) as web:
        assert await web.refused("POST", "/api/policies/explain", body) == (400, "invalid")
