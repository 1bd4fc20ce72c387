from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from support.claiming import claim
from support.normalising import Normalised

from dragoman.cli.render.event_text import item_text
from dragoman.host.claims.other_fields import other_fields
from dragoman.host.claims.raw_input import whole_file
from dragoman.host.rules.access import Access, Sighting, normalise
from dragoman.host.rules.policy import decide, flag_rules
from dragoman.host.rules.rule import Effect, Rule
from dragoman.session.content import Diff

# ── which operation ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["read", "search", "edit", "delete", "move", "think", "x", None])
@pytest.mark.parametrize(
    "raw",
    [
        {"command": "rm x"},
        {"cmd": "rm x"},
        {"Command": "rm x"},
        {"COMMAND-LINE": "rm x"},
        {"shell_command": "rm x"},
        {"bashCommand": "rm x"},
        {"argv": ["rm", "x"]},
        {"script": "rm x"},
        {"shell": "rm x"},
        {"bash": "rm x"},
        {"run": "rm x"},
        {"exec": "rm x"},
        {"args": ["rm", "x"]},
        {"args": "rm x"},
        {"cmds": ["rm x"]},
        {"scripts": {"test": {"command": "rm x"}}},
        {"tool": {"input": {"command": "rm x"}}},
        {"steps": [{"a": 1}, [{"cmd": "rm x"}]]},
        {"command": [["rm", "x"]]},
        {"command": [{"program": "rm", "args": ["x"]}]},
        {"command": {"anything": "rm x"}},
        {"input": '{"command": "rm x"}'},
        {"arguments": '[{"cmd": "rm x"}]'},
        '{"command": "rm x"}',
        [{"command": "rm x"}],
    ],
)
def test_a_command_anywhere_makes_it_execute(kind: str | None, raw: Any) -> None:
    assert claim(kind, raw).operation == "execute"
    assert claim(kind, raw).commands


@pytest.mark.parametrize(
    "raw", [{"command": ""}, {"command": " "}, {"command": None}, {"run": False}, {"args": []}]
)
def test_no_command_is_no_command(raw: Any) -> None:
    assert claim("read", raw | {"path": "a"}).operation == "read"


@pytest.mark.parametrize("kind", ["edit", "delete", "move"])
def test_a_kind_that_changes_files_makes_it_write(kind: str) -> None:
    access = claim(kind, {"file_path": "a"})
    assert (access.operation, access.paths) == ("write", ("/ws/a",))
    assert claim(kind).operation == "write"


@pytest.mark.parametrize("kind", ["read", "search", "fetch", "other", None])
def test_a_diff_makes_it_write(kind: str | None) -> None:
    access = claim(kind, {"path": "b"}, diff_paths=("/ws/a",))
    assert (access.operation, access.paths) == ("write", ("/ws/a", "/ws/b"))


@pytest.mark.parametrize("kind", ["read", "search"])
def test_a_read_of_only_inside_paths_is_read(kind: str) -> None:
    access = claim(kind, {"path": "a", "limit": 3}, locations=("/more/b",))
    assert access == Access(
        operation="read",
        agent="demo",
        paths=("/more/b", "/ws/a"),
        cwd="/ws",
        roots=("/ws", "/more"),
        claimed=True,
        action=True,
    )


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"query": "x"},
        {"path": "/etc/passwd"},
        {"path": "a", "other": "/etc/passwd"},
        {"path": "a", "x": ["b", "../../c"]},
        {"path": "a", "x": "c/../../.."},
        {"path": "a", "x": "~"},
        {"path": "a", "from": "/etc/passwd"},
        {"path": "~/x"},
        {"path": "a", "url": "http://x.org/"},
        {"path": "a", "x": "file:///etc/passwd"},
        {"dir": "/etc", "path": "a"},
        {"/etc/passwd": 1, "path": "a"},
        {"path": "a\nb"},
        {"path": "a" * 5_000},
        {"uri": "ssh://host/x"},
        {"uri": "file://[bad/x"},
        {"uri": "file:relative"},
    ],
)
def test_any_other_read_is_other_but_a_deny_of_reads_still_counts(raw: Any) -> None:
    access = claim("read", raw)
    assert access.operation == "other"
    assert "read" in access.also


def test_a_read_that_names_a_tool_or_an_address_is_not_only_a_read() -> None:
    assert claim("read", {"path": "a", "tool": "github.delete_repo"}).operation == "other"
    assert claim("read", {"path": "a", "url": "https://example.com"}).operation == "other"


@pytest.mark.parametrize("kind", ["think", "fetch", "other", "READ", "", None, "execute"])
def test_any_other_kind_is_other(kind: str | None) -> None:
    assert claim(kind, {"path": "a"}).operation == "other"


def test_a_claim_is_also_what_else_it_says() -> None:
    assert claim("edit", {"command": "ls"}).also == ("write",)
    assert claim("read", {"command": "ls"}).also == ("read",)
    assert claim("execute").also == ("execute",)
    assert claim("fetch").also == ("fetch",)
    assert claim("edit", {"url": "https://x.org"}).also == ("fetch",)
    everything = ("execute", "write", "read", "fetch", "mcp")
    assert claim("other", {"x": [0] * 30_000}).also == everything


@pytest.mark.parametrize("kind", ["other", None, "", "something new"])
def test_what_does_not_say_what_it_is_may_be_a_tool_of_an_mcp_server(kind: str | None) -> None:
    assert claim(kind, {"title": "a book"}).also == ("mcp",)


@pytest.mark.parametrize("kind", ["read", "edit", "execute", "fetch", "think"])
def test_a_tool_that_is_named_makes_any_claim_one_of_a_tool(kind: str) -> None:
    assert "mcp" not in claim(kind, {"path": "a"}).also
    access = claim(kind, {"path": "a", "server": "forge", "toolName": "create_issue"})
    assert (access.tool, access.also[-1]) == ("create_issue", "mcp")


def test_two_names_for_the_tool_are_in_doubt() -> None:
    assert claim("other", {"tool": "a", "x": {"mcp_tool": "a"}}).complete
    assert not claim("other", {"tool": "a", "x": {"mcp_tool": "b"}}).complete


def test_leaving_a_mode_is_a_question() -> None:
    assert claim("switch_mode").question
    assert not claim("edit").question


def test_titles_and_names_are_not_looked_at() -> None:
    quiet = claim("other", {"a": 1})
    loud = claim("other", {"title": "rm -rf x", "name": "bash", "description": "run rm"})
    assert loud == quiet


# ── what it names ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "commands"),
    [
        ({"command": "npm test"}, ("npm test",)),
        ({"command": ["npm", "test"]}, (("npm", "test"),)),
        ({"command": "npm", "args": ["test"]}, (("npm", "test"),)),
        ({"command": "npm", "args": "test --x"}, (("npm", "test --x"), "npm test --x")),
        ({"command": "echo", "args": ["a b"]}, (("echo", "a b"),)),
        ({"command": ["npm test"]}, (("npm test",), "npm test")),
        ({"command": ["npm run"], "args": ["x"]}, (("npm run", "x"), "npm run x")),
        ({"command": "npm test", "args": ["x"]}, ("npm test x",)),
        ({"command": ["npm"], "args": ["test"]}, (("npm", "test"),)),
        ({"command": "npm", "args": []}, ("npm",)),
        ({"command": "npm", "arguments": {"x": 1}}, (("npm", "({'x': 1})"),)),
        ({"command": "npm", "args": ["a", 1]}, (("npm", "a", "(1)"),)),
        ({"args": ["npm", "test"]}, (("npm", "test"),)),
        ({"commands": ["a b", "c"]}, ("a b", "c")),
        ({"command": ["a", ["b", "c"]]}, ("a", ("b", "c"))),
        ({"command": {"x": 1}}, ("({'x': 1})",)),
        ({"command": "a", "cmd": "a"}, ("a",)),
        (
            {"command": ["bash", "-lc", "a"], "parsed_cmd": [{"cmd": "a"}]},
            (("bash", "-lc", "a"), "a"),
        ),
        ({"command": '["a"]'}, ('["a"]',)),
        ({"command": "{not json"}, ("{not json",)),
    ],
)
def test_commands_are_read_in_every_shape(raw: Any, commands: Any) -> None:
    assert claim("execute", raw).commands == commands


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ({"path": "a"}, ("/ws/a",)),
        ({"file_path": "/x/../a"}, ("/a",)),
        ({"filePath": "a"}, ("/ws/a",)),
        ({"abs_path": "/a"}, ("/a",)),
        ({"filename": "a"}, ("/ws/a",)),
        ({"paths": ["a", "b", "a"]}, ("/ws/a", "/ws/b")),
        ({"old_path": "a", "new_path": "b"}, ("/ws/a", "/ws/b")),
        ({"uri": "file:///a%20b"}, ("/a b",)),
        ({"uri": "file://localhost/a"}, ("/a",)),
        ({"target_file": "~/a"}, ("/home/me/a",)),
        ({"nested": [{"deeper": {"notebook_path": "a"}}]}, ("/ws/a",)),
        ({"changes": {"/etc/x": {"add": 1}, "src/b": {}}}, ("/etc/x", "/ws/src/b")),
        ({"directory": "a"}, ("/ws/a",)),
        ({"destination": "/etc/x"}, ("/etc/x",)),
        ({"to": "a word"}, ()),
        ({"path": "a", "old_string": "/etc/passwd"}, ("/ws/a",)),
        ({"path": ""}, ("/ws",)),
        ({"path": 3}, ()),
    ],
)
def test_paths_are_read_in_every_shape(raw: Any, paths: tuple[str, ...]) -> None:
    assert claim("edit", raw).paths == paths


def test_the_ends_of_a_move_are_paths_whatever_they_look_like() -> None:
    assert claim("move", {"from": "a", "to": "b"}).paths == ("/ws/a", "/ws/b")


EXPANDED = ["~root/x", "$HOME/x", "${HOME}/x", "{/etc,/root}/x", "src/{a,../../b}/x"]


@pytest.mark.parametrize(
    "path",
    [*EXPANDED, "$(pwd)/x", "`pwd`/x", "a/$TMPDIR/x", "~root"],
)
def test_a_path_that_others_expand_is_in_doubt(path: str) -> None:
    for kind in ("read", "search", "edit"):
        access = claim(kind, {"path": path, "content": "x"})
        assert not access.complete
        assert access.operation != "read"


@pytest.mark.parametrize("path", EXPANDED)
def test_a_glob_that_others_expand_is_in_doubt(path: str) -> None:
    assert claim("search", {"path": "src", "glob": path}).operation == "other"


@pytest.mark.parametrize("path", ["~", "~/x", "routes/$id.tsx", "src/{a,b.ts", "a~", "$x"])
def test_a_path_that_nobody_expands_to_another_place_is_none(path: str) -> None:
    assert claim("edit", {"path": path, "content": "x"}).complete


@pytest.mark.parametrize("pattern", ["$HOME", "`x`", "~x", "${A}", "a{1,}", "$(x)"])
def test_what_is_searched_for_is_no_path(pattern: str) -> None:
    assert claim("search", {"path": "src", "pattern": pattern}).operation == "read"


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("edit", {"path": "a"}),
        ("delete", {"path": "a"}),
        ("fetch", {"url": "https://example.org"}),
        ("move", {"path": "a", "to": "b"}),
    ],
)
def test_a_command_does_not_have_the_rest_of_a_claim_allowed(kind: str, more: Any) -> None:
    access = claim(kind, {"command": "npm test", **more})

    def effect(*rules: Rule) -> str:
        return decide(access, rules, now=0, session_id="s", project="/ws").effect

    command = Rule(effect="allow", operation="execute", argv=("npm", "test"))
    rest = Rule(effect="allow", operation="fetch" if kind == "fetch" else "write")
    assert access.operation == "execute"
    assert effect(command) == effect(rest) == "ask"
    assert effect(command, rest) == "allow"
    assert effect(command, rest, Rule(effect="deny", operation=rest.operation)) == "deny"
    alone = claim("execute", {"command": "npm test"})
    assert decide(alone, [command], now=0, session_id="s", project="/ws").effect == "allow"


def test_links_are_resolved_by_who_can() -> None:
    def look(path: str) -> Sighting:
        return Sighting(normalise(path.replace("/ws/link", "/etc").replace("/alias", "/ws")))

    assert claim("read", {"path": "link/passwd"}).operation == "read"
    access = claim("read", {"path": "link/passwd"}, look=look)
    assert (access.operation, access.paths) == ("other", ("/etc/passwd",))
    aliased = claim("execute", {"cmd": "ls"}, look=look, cwd="/alias")
    assert aliased.place_of_cwd == "inside"


def test_a_working_directory_is_the_claimed_one_and_the_worst_of_several() -> None:
    assert claim("execute", {"command": "a"}).cwd == "/ws"
    assert claim("execute", {"command": "a", "cwd": "sub"}).cwd == "/ws/sub"
    assert (
        claim("execute", {"command": "a", "workdir": "/ws/b", "x": {"cwd": "/etc"}}).cwd == "/etc"
    )
    assert claim("execute", {"command": "a", "folder": "/etc"}).cwd == "/etc"
    assert claim("read", {"folder": "/etc"}).cwd == "/ws"


def test_hosts_are_read_from_addresses() -> None:
    access = claim("fetch", {"url": "https://me@Docs.Example.com.:8080/x", "more": ["wss://b.org"]})
    assert access.hosts == ("docs.example.com", "b.org")
    assert access.complete


@pytest.mark.parametrize("url", ["https://good.org\\@evil.org/", "https://", "http://[bad"])
def test_an_address_that_can_be_read_two_ways_is_in_doubt(url: str) -> None:
    access = claim("fetch", {"url": url, "command": "ls"})
    assert not access.complete
    assert access.operation == "execute"


COMMAND = Rule(effect="allow", operation="execute", argv=("npm", "test"))
WRITES = Rule(effect="allow", operation="write")
ADDRESS = Rule(effect="allow", operation="fetch", host="a.org")
TOOL = Rule(effect="allow", operation="mcp", tool="deploy")


@pytest.mark.parametrize(
    ("kind", "raw", "one", "other"),
    [
        ("other", {"command": "npm test", "tool": "deploy"}, COMMAND, TOOL),
        ("execute", {"command": "npm test", "url": "https://a.org/x"}, COMMAND, ADDRESS),
        ("execute", {"command": "npm test", "url1": "https://a.org/x"}, COMMAND, ADDRESS),
        ("execute", {"command": "npm test", "target": "https://a.org/x"}, COMMAND, ADDRESS),
        ("execute", {"command": "npm test", "x": {"y": ["https://a.org"]}}, COMMAND, ADDRESS),
        ("edit", {"path": "src/a.py", "url": "https://a.org/x"}, WRITES, ADDRESS),
        ("edit", {"path": "src/a.py", "more": {"base_url": "https://a.org"}}, WRITES, ADDRESS),
        ("edit", {"path": "src/a.py", "tool": "deploy"}, WRITES, TOOL),
    ],
)
def test_an_address_or_a_tool_next_to_something_else_is_to_be_allowed_for_itself(
    kind: str, raw: Any, one: Rule, other: Rule
) -> None:
    access = claim(kind, raw)
    for rules, effect in (([one], "ask"), ([other], "ask"), ([one, other], "allow")):
        found = decide(access, rules, now=0.0, session_id="s", project="/ws")
        assert found.effect == effect, rules


def test_an_address_in_what_is_written_is_not_a_fetch() -> None:
    access = claim(
        "edit", {"path": "a", "old_string": "https://a.org", "new_string": "https://b.c"}
    )
    assert decide(access, [WRITES], now=0.0, session_id="s", project="/ws").effect == "allow"


def test_an_address_among_the_words_of_a_command_is_allowed_with_them() -> None:
    access = claim("execute", {"command": "npm", "args": ["test", "https://a.org"]})
    rule = Rule(effect="allow", operation="execute", argv=("npm", "test", "https://a.org"))
    assert decide(access, [rule], now=0.0, session_id="s", project="/ws").effect == "allow"


def test_an_environment_is_noticed() -> None:
    assert claim("execute", {"command": "a", "env": {"A": "1"}}).env
    assert claim("execute", {"command": "a", "environment": [{"name": "A"}]}).env
    assert not claim("execute", {"command": "a", "env": {}}).env
    for env in ({"A": "1", "B": "2"}, [{"name": "A"}, {"name": "B"}], ["A=1", "B=2"]):
        assert claim("execute", {"command": "a", "env": env}).variables == ("A", "B")
    assert claim("execute", {"command": "a", "env": 7}).variables == ("(7)",)


def test_a_walk_too_deep_or_too_long_is_in_doubt() -> None:
    deep: Any = {"command": "rm"}
    for _ in range(40):
        deep = {"x": deep}
    assert not claim("read", deep).complete
    assert not claim("read", {"x": [0] * 30_000, "path": "a"}).complete
    assert not claim("execute", {"command": ["a", *([[]] * 30_000)]}).complete
    assert claim("read", {"x": [0] * 10_000, "path": "a"}).operation == "read"


def test_a_claim_of_any_size_is_read_in_little_time() -> None:
    words = ["x"] * 100_000
    keys: dict[str, Any] = {f"cmd{number}": "a" for number in range(100_000)}
    large: list[Any] = [
        {"command": "a", "args": words},
        {"command": words},
        {"commands": words[:1_000]},
        keys | {"args": words},
        {"command": [["a"]] * 100_000},
        {"paths": [str(number) for number in range(1_000)]},
        {"x": [[{}] * 1_000] * 1_000},
    ]
    start = time.process_time()
    for raw in large:
        access = claim("edit", raw)
        assert not access.complete
        assert len(access.commands) <= 64
        assert len(access.paths) <= 256
    assert time.process_time() - start < 5


def test_json_nested_beyond_reason_is_text() -> None:
    assert claim("read", "[" * 100_000).operation == "other"


def test_any_json_can_be_read() -> None:
    for raw in (None, True, 0, 1.5, "", "x", [], {}, [None], {"": None}, {"command": [None, 1]}):
        assert claim("edit", raw).operation == "write"


def test_a_key_that_nobody_knows_is_not_normalised_and_leaves_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    normalised = Normalised(monkeypatch)
    raw = {"path": "a", "a" + "\u0301\u0316" * 100_000: "rm -rf x"}
    assert not claim("read", raw).complete
    assert whole_file(raw) is None
    assert normalised.longest_run <= 256
    assert claim("execute", {"\uff43ommand": "ls"}).commands == ("ls",)
    assert not claim("read", {"path": "a", "command" + "x" * 300: "rm"}).complete


# ── the agent's own editor ────────────────────────────────────────────────────────────────────


# ── where something is written to ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["edit", "other", "fetch", "move", "delete", None])
@pytest.mark.parametrize("key", ["dest", "output_dir", "outputDir", "into", "destination", "out"])
def test_a_place_to_write_to_counts_for_rules_that_deny_or_ask(kind: str | None, key: str) -> None:
    deny = Rule(effect="deny", operation="write", path="docs/**")
    asks = Rule(effect="ask", path="docs/**")
    raw = {"path": "src/a", "url": "https://example.com/x", key: "docs/x"}
    for rule in (deny, asks):
        rules = (rule, *flag_rules(yolo=True))
        decision = decide(claim(kind, raw), rules, now=0, session_id="s", project="/ws")
        assert decision.effect == rule.effect
    elsewhere = claim(kind, raw | {key: "lib/x"})
    assert decide(elsewhere, rules, now=0, session_id="s", project="/ws").effect == "allow"
    protected = claim("edit", {"path": "src/a", key: ".envrc"})
    assert protected.protection is not None


def test_words_that_are_one_text_are_denied_as_a_line() -> None:
    deny = Rule(effect="deny", argv_prefix=("git", "push"))
    for raw in (
        {"command": ["git push"]},
        {"command": "git", "args": "push origin"},
        {"argv": ["git push", "origin"]},
        {"command": ["git push origin"], "cwd": "/ws"},
    ):
        rules = (deny, *flag_rules(yolo=True))
        assert decide(
            claim("execute", raw), rules, now=0, session_id="s", project="/ws"
        ).effect == ("deny")


@pytest.mark.parametrize(
    ("raw", "commands"),
    [
        ({"command": "ls -l", "sudo": True}, ("sudo ls -l",)),
        ({"command": "ls -l", "sudo": False, "user": ""}, ("ls -l",)),
        ({"command": "ls && id", "runAsRoot": "yes"}, ("sudo sh -c 'ls && id'",)),
        ({"argv": ["ls", "a b"], "privileged": 1}, (("sudo", "ls", "a b"),)),
        ({"command": "ls", "args": ["-l"], "user": "bob"}, (("sudo", "-u", "bob", "ls", "-l"),)),
        ({"commands": ["a", "b"], "run_as": "x y"}, ("sudo -u 'x y' a", "sudo -u 'x y' b")),
        ({"steps": [{"cmd": "ls"}], "sudo": True}, ("sudo ls",)),
        ({"path": "a", "user": "bob"}, ()),
    ],
)
def test_a_command_that_another_user_runs_is_one_of_sudo(raw: Any, commands: Any) -> None:
    assert claim("execute", raw).commands == commands


def effect(access: Access, rules: Sequence[Rule]) -> Effect:
    return decide(access, rules, now=0, session_id="s", project="/ws").effect


def test_no_rule_about_a_command_allows_one_for_another_user() -> None:
    rules = [Rule(effect="allow", operation="execute", argv=("ls",)), *flag_rules(write=True)]
    assert effect(claim("execute", {"command": "ls"}), rules) == "allow"
    assert effect(claim("execute", {"command": "ls", "sudo": True}), rules) == "ask"
    denies = [
        Rule(effect="deny", operation="execute", argv=("git", "push")),
        *flag_rules(execute=True),
    ]
    pushed = claim("execute", {"command": "ls && git push", "user": "root"})
    assert effect(pushed, denies) == "deny"


@pytest.mark.parametrize("kind", ["execute", "read", "other"])
def test_code_next_to_a_command_or_a_read_is_covered_by_no_rule(kind: str) -> None:
    rules = flag_rules(write=True, execute=True)
    named = {"path": "/ws/a"} if kind == "read" else {"command": "ls"}
    assert effect(claim(kind, named), rules) == "allow"
    assert effect(claim(kind, {**named, "code": "import os"}), rules) == "ask"


# ── what a question shows of it ───────────────────────────────────────────────────────────────


DIFF = Diff("/ws/a", "old", "new")


@pytest.mark.parametrize(
    ("raw", "shown", "told"),
    [
        (
            {"command": "ls", "code": "import os\nos.remove('a')"},
            (),
            "code: \nimport os\nos.remove('a')",
        ),
        (
            {"command": "ls", "sandbox": "off", "net": True, "n": 3},
            (),
            "sandbox: off\nnet: true\nn: 3",
        ),
        (
            {
                "command": "ls",
                "timeout": 5,
                "description": "Lists",
                "cwd": "/ws",
                "env": {"A": "1"},
            },
            (),
            "A: 1",
        ),
        ({"command": "ls", "sudo": True}, (), "sudo: true"),
        ({"path": "a", "content": "new"}, (DIFF,), ""),
        ({"path": "a", "content": "new", "mode": "0777"}, (DIFF,), "mode: 0777"),
        ({"path": "a", "content": "new"}, (), "content: new"),
        ({"path": "$HOME/.ssh/id"}, (), "path: $HOME/.ssh/id"),
        ({"tool": "close", "arguments": {"issue": 7}}, (), "tool: close\nissue: 7"),
        ({"url": "https://example.org/x"}, (), "url: https://example.org/x"),
        ({"action": "Do it"}, (), ""),
        ({}, (), ""),
        (["ls", {"Do": "it"}], (), "ls\nDo: it"),
    ],
)
def test_a_question_shows_what_else_the_input_says(
    raw: Any, shown: tuple[Diff, ...], told: str
) -> None:
    found = other_fields([raw], claim("other", raw), ["Do it", ""], shown)
    assert "".join(item_text(item) for item in found) == told


def test_of_an_endless_input_a_question_shows_some_and_says_so() -> None:
    for raw in ({f"k{n}": n + 1 for n in range(9_999)}, {"a": "x" * 999_999}, {"a": [0] * 9_999}):
        [item] = other_fields([raw], claim("other", raw), [], ())
        assert len(item_text(item)) < 70_000
        assert item_text(item).endswith("too much to be shown")


# ── what says no more than it does ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("execute", {"command": "ls", "description": "List the files", "is_background": True}),
        ("execute", {"command": "ls", "login": True, "tty": False, "yield_time_ms": 1000}),
        ("execute", {"command": "ls", "requires_approval": False, "mode": "sync"}),
        ("execute", {"command": "ls", "path": "src", "source": "agent"}),
        ("edit", {"target_file": "a", "instructions": "Add a line.", "code_edit": "one line"}),
        ("edit", {"path": "a", "old_str_1": "a b", "new_str_1": "c d", "mode": "replace"}),
        ("edit", {"path": "a", "instruction_reminder": "Break edits down", "str_1": "a b"}),
        ("edit", {"notebook_path": "a", "new_source": "import os", "edit_mode": "insert"}),
        ("edit", {"path": "a", "content": "x", "cwd": "/ws"}),
        ("read", {"path": "a", "offset": 3, "limit": 9, "encoding": "utf-8", "mode": "lines"}),
        ("search", {"path": "src", "pattern": "a b", "include": "*.py", "sort": "name"}),
        ("search", {"path": "src", "query": "where is it", "output_mode": "content"}),
        ("fetch", {"url": "https://a.org/x", "prompt": "What is there?", "format": "text/html"}),
    ],
)
def test_what_agents_say_of_their_calls_leaves_no_doubt(kind: str, raw: Any) -> None:
    assert claim(kind, raw).complete
