"""`dragoman policy`: the stored rules, files of rules, and what they would decide."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.command import Done, Dragoman
from support.postgres import empty_database

from dragoman.cli.commands import policy
from dragoman.cli.parsers import parser_for
from dragoman.host.rules.rule import Rule
from dragoman.store.open import open_rules
from dragoman.store.postgres.database import Address
from dragoman.store.postgres.rules import PostgresRules
from dragoman.testing import Recorder


def store(dragoman: Dragoman, *rules: Rule, used: str = "") -> None:
    stored = open_rules(dragoman.state)
    for rule in rules:
        stored.add(rule)
    stored.used(used)
    stored.close()


def rule(rule_id: str, **fields: object) -> Rule:
    made = {"effect": "allow", "id": rule_id, "source": "your answer"}
    return msgspec.convert(made | fields, Rule)


# ── list and revoke ───────────────────────────────────────────────────────────────────────────


def test_without_rules_the_list_says_where_they_come_from(dragoman: Dragoman) -> None:
    done = dragoman("policy", "list")
    said = 'no stored rules; "always" answers and `policy add` create them\n'
    assert (done.code, done.out) == (0, said)
    assert dragoman("policy", "list", "--json").out == "[]\n"


def test_rules_are_listed_in_a_sentence_with_scope_and_last_use(dragoman: Dragoman) -> None:
    store(
        dragoman,
        rule("aa11", operation="execute", argv=("git", "status"), agent="goose"),
        rule("bb22", operation="write", path="/x/**", scope="project", project="/x"),
        rule("cc33", effect="deny", operation="fetch", host="evil", expires_at=time.time() + 60),
        used="aa11",
    )
    lines = dragoman("policy", "list").lines
    assert lines[0] == "aa11  allow running exactly git status for goose"
    assert ", last used " in lines[1]
    assert lines[2] == "bb22  allow writing files /x/** in this project (/x)"
    assert lines[3].endswith(", never used")
    assert lines[4] == "cc33  refuse fetching from evil"
    assert ", until " in lines[5]


def test_the_list_as_json(dragoman: Dragoman) -> None:
    store(dragoman, rule("aa11", operation="execute", argv=("ls",), scope="project", project="/x"))
    (listed,) = json.loads(dragoman("policy", "list", "--json").out)
    assert listed["id"] == "aa11"
    assert listed["scope"] == "project"
    assert listed["sentence"] == "allow running exactly ls in the folder /x in this project"
    assert listed["usedAt"] is None
    assert listed["expiresAt"] is None
    assert listed["createdAt"].endswith("+00:00")
    assert listed["rule"]["argv"] == ["ls"]


def test_the_list_says_which_rules_count_on_another_host_only(dragoman: Dragoman) -> None:
    address = empty_database()
    assert dragoman("sessions", "list", env={"DRAGOMAN_STORE": address}).code == 0
    rules = PostgresRules(Address(address), "far")
    rules.add(rule("aa11", operation="write", path="/x/**", scope="project", project="/x"))
    rules.add(rule("bb22", effect="deny", operation="write"))
    rules.close()
    words = ("policy", "list", "--store", address)
    assert dragoman(*words).lines[::2] == [
        "aa11  allow writing files /x/** in this project (/x); applies only on the host far",
        "bb22  refuse writing any file",
    ]
    listed = json.loads(dragoman(*words, "--json").out)
    assert [(each["here"], each["host"]) for each in listed] == [(False, "far"), (True, None)]


def test_a_revoked_rule_is_gone(dragoman: Dragoman) -> None:
    store(dragoman, rule("aa11", operation="read"), rule("bb22", operation="read"))
    done = dragoman("policy", "revoke", "aa11")
    assert (done.code, done.out) == (0, "revoked aa11\n")
    assert [each["id"] for each in json.loads(dragoman("policy", "list", "--json").out)] == ["bb22"]
    again = dragoman("policy", "revoke", "aa11")
    assert again.code == 2
    assert "no stored rule 'aa11'" in again.err


def test_a_rule_that_decided_is_listed_as_used(dragoman: Dragoman) -> None:
    store(
        dragoman,
        rule("aa11", operation="write", scope="project", project=str(dragoman.workspace)),
    )
    assert dragoman("-a", "demo", "hello").code in (0, 5)
    (listed,) = json.loads(dragoman("policy", "list", "--json").out)
    assert listed["usedAt"] is not None


# ── check ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("p.toml", '[[rules]]\neffect = "ask"\npath = "src/**"\n', 0, "p.toml: 1 rule, all valid"),
        ("p.json", '{"rules": []}', 0, "0 rules, all valid"),
        ("p.json", '{"rules": [{"effect": "maybe"}]}', 2, "p.json: rules[0].effect: expected"),
        ("p.json", "{", 2, "p.json: line 1, column 2: expected strict JSON"),
    ],
)
def test_checking_a_file_is_one_clear_line(
    dragoman: Dragoman, tmp_path: Path, name: str, text: str, code: int, words: str
) -> None:
    (tmp_path / name).write_text(text)
    done = dragoman("policy", "check", str(tmp_path / name))
    assert done.code == code
    said = done.err if code else done.out
    assert words in said
    assert said.count("\n") == 1


def test_checking_a_file_that_is_not_there(dragoman: Dragoman) -> None:
    done = dragoman("policy", "check", "/no/such/file.json")
    assert done.code == 2
    assert "expected a readable file (No such file or directory)" in done.err


# ── explain ───────────────────────────────────────────────────────────────────────────────────

RULES = {
    "rules": [
        {"effect": "deny", "operation": "execute", "argv_prefix": ["git", "push"]},
        {"effect": "allow", "operation": "write", "path": "src/**"},
    ]
}


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(RULES))
    return str(path)


def explain(dragoman: Dragoman, *words: str) -> Done:
    done = dragoman("policy", "explain", *words)
    assert done.code == 0, done.err
    return done


def test_a_decision_is_explained_rule_by_rule(dragoman: Dragoman, rules: str) -> None:
    done = explain(dragoman, "--policy", rules, "--", "git", "push", "--force")
    assert done.lines == [
        "deny: execute git push --force",
        f"  because {rules} rules[0] denies it",
        f"  - {rules} rules[0]: refuse running commands that begin with git push: matches",
        f"  - {rules} rules[1]: allow writing files src/**: no match: it is not about execute",
    ]


@pytest.mark.parametrize(
    ("words", "first", "reason"),
    [
        (("--operation", "read", "--path", "a"), "allow: read", "need no rule"),
        (("--operation", "read", "--path", "/etc/passwd"), "ask: read /etc/passwd", "no rule"),
        (("--operation", "write", "--path", "a"), "ask: write", "no rule allows it"),
        (("--operation", "write", "--path", "a", "--write"), "allow: write", "--write allows it"),
        (("--operation", "write", "--path", "/etc/x", "--yolo"), "deny: write", "always refused"),
        (
            ("--operation", "write", "--path", ".git/hooks/x", "--yolo"),
            "ask: write",
            "is protected: version control runs the commands in it",
        ),
        (("--exec", "--", "make"), "allow: execute make", "--exec allows it"),
        (("--exec", "--", "make && ./run"), "allow: execute make && ./run", "--exec allows it"),
        (("--operation", "fetch", "--host", "x.com"), "ask: fetch x.com (as reported", "no rule"),
        (("--operation", "mcp", "--tool", "t", "--yolo"), "allow: mcp t", "--yolo allows it"),
    ],
)
def test_what_would_be_decided(
    words: tuple[str, ...],
    first: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, as there are many; that the command does the same is seen above."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert policy.run(parser_for("policy").parse_args(["explain", *words])) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith(first)
    assert reason in lines[1]


def test_stored_rules_count_in_their_project_only(dragoman: Dragoman) -> None:
    here = str(dragoman.workspace)
    store(
        dragoman,
        rule("aa11", operation="execute", argv=("ls",), scope="project", project=here),
    )
    assert explain(dragoman, "--", "ls").lines[0] == "allow: execute ls"
    elsewhere = explain(dragoman, "--cwd", "/usr", "--", "ls")
    assert elsewhere.lines[0] == "ask: execute ls"
    assert "no match: it is for another project" in elsewhere.out


def test_an_explanation_as_json(dragoman: Dragoman, rules: str) -> None:
    words = ("--operation", "write", "--path", "src/x.py", "--policy", rules, "--json")
    explained = json.loads(explain(dragoman, *words).out)
    assert explained["effect"] == "allow"
    assert explained["paths"] == [str(dragoman.workspace / "src/x.py")]
    assert [each["matches"] for each in explained["rules"]] == [False, True]


def test_a_question_needs_to_be_a_whole_one(dragoman: Dragoman) -> None:
    for words, complaint in (
        ((), "name the request: --operation"),
        (("--operation", "execute"), "put the command after --"),
        (("--operation", "write"), "--operation write needs one --path"),
        (("--operation", "read", "--", "ls"), "a command implies --operation execute"),
        (("--recording", "/no/such"), "/no/such cannot be read"),
    ):
        done = dragoman("policy", "explain", *words)
        assert done.code == 2
        assert complaint in done.err


# ── a recording ───────────────────────────────────────────────────────────────────────────────

SESSION: list[tuple[str, dict[str, Any]]] = [
    ("sent", {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
    ("received", {"id": 1, "result": {"protocolVersion": 1}}),
    ("sent", {"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}),
    ("received", {"id": 2, "result": {"sessionId": "s"}}),
    (
        "received",
        {
            "method": "session/update",
            "params": {
                "sessionId": "s",
                "update": {
                    "sessionUpdate": "tool_call",
                    "toolCallId": "c",
                    "title": "look",
                    "rawInput": {"command": "git push"},
                },
            },
        },
    ),
    (
        "received",
        {
            "id": 0,
            "method": "session/request_permission",
            "params": {
                "sessionId": "s",
                "toolCall": {"toolCallId": "c"},
                "options": [
                    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"},
                ],
            },
        },
    ),
    ("sent", {"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "y"}}}),
    (
        "received",
        {
            "id": 1,
            "method": "fs/write_text_file",
            "params": {"sessionId": "s", "path": "/w/src/a.py", "content": "x"},
        },
    ),
    ("sent", {"id": 1, "result": {}}),
    (
        "received",
        {
            "id": 2,
            "method": "terminal/create",
            "params": {"sessionId": "s", "command": "make", "args": ["all"]},
        },
    ),
]


def record(path: Path) -> str:
    with Recorder(path) as recorder:
        for direction, message in SESSION:
            frame = json.dumps({"jsonrpc": "2.0"} | message).encode()
            recorder("sent" if direction == "sent" else "received", frame)
    return str(path)


def test_a_recording_is_decided_by_the_rules_of_today(
    dragoman: Dragoman, rules: str, tmp_path: Path
) -> None:
    recording = record(tmp_path / "session.jsonl")
    words = ("--recording", recording, "--policy", rules, "--json")
    explained = json.loads(explain(dragoman, *words).out)
    assert [(each["operation"], each["effect"], each["claimed"]) for each in explained] == [
        ("execute", "deny", True),
        ("write", "allow", False),
        ("execute", "ask", False),
    ]
    assert explained[1]["paths"] == ["/w/src/a.py"]
    said = explain(dragoman, "--recording", recording, "--policy", rules).out
    assert "deny: execute git push (as reported by the agent)\n  because" in said
    assert "ask: execute make all" in said


def test_nothing_of_a_recording_is_executed(dragoman: Dragoman, tmp_path: Path) -> None:
    recording = record(tmp_path / "session.jsonl")
    explain(dragoman, "--recording", recording, "--yolo", "--cwd", str(tmp_path))
    assert not Path("/w").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["session.jsonl"]
