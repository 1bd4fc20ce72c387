from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from support.normalising import Normalised

from dragoman.cli.render.event_text import item_text
from dragoman.host.claims.claim_reader import read_claim, together
from dragoman.host.claims.other_fields import other_fields
from dragoman.host.claims.raw_input import whole_file
from dragoman.host.permissions.grants import Grants
from dragoman.host.rules.access import Access, Sighting, normalise
from dragoman.host.rules.policy import decide, flag_rules
from dragoman.host.rules.rule import Effect, Rule
from dragoman.session.content import Diff


def claim(kind: str | None, raw: Any = None, **more: Any) -> Access:
    settings: dict[str, Any] = {"cwd": "/ws", "roots": ("/ws", "/more")}
    return read_claim(kind, raw, agent="demo", home="/home/me", **(settings | more))


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
    "raw", [{"command": ""}, {"command": " "}, {"command": None}, {"run": True}, {"args": []}]
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


@pytest.mark.parametrize("path", ["~", "~/x", "routes/$id.tsx", "src/{a,b}/*.ts", "a~", "$x"])
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


# ── known habits ──────────────────────────────────────────────────────────────────────────────

PATCH = """*** Begin Patch
*** Add File: a.txt
+AAA
*** Update File: /more/b
*** Move to: c
@@
-x
+y
*** Delete File: d
*** End of File
*** End Patch
"""


def test_an_edit_that_is_nothing_but_a_patch_names_the_files_of_the_patch() -> None:
    access = claim("edit", {"input": PATCH})
    assert (access.operation, access.complete) == ("write", True)
    assert access.paths == ("/ws/a.txt", "/more/b", "/ws/c", "/ws/d")
    assert claim("other", {"input": PATCH}).operation == "other"


ELSEWHERE = "*** Begin Patch\n*** Update File: /etc/passwd\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("raw", "more"),
    [
        ({"input": ELSEWHERE}, {"locations": ["/ws/a.txt"]}),
        ({"input": ELSEWHERE}, {"diff_paths": ["/ws/a.txt"]}),
        ({"path": "a.txt", "patch": ELSEWHERE}, {}),
        ({"path": "a.txt", "content": ELSEWHERE}, {}),
        ({"path": "a.txt", "lines": ELSEWHERE.splitlines()}, {}),
        ({"path": "a.txt", "input": ELSEWHERE.replace("*** Begin Patch\n", "")}, {}),
        ({"path": "a.txt", "input": "*** Move to: ../etc/passwd"}, {}),
        ({"path": "a.txt", "input": f"bash -lc 'apply_patch <<EOF\n{ELSEWHERE}\nEOF'"}, {}),
        ({"path": "a.txt", "input": f'{{"steps": ["{ELSEWHERE}"]}}'.replace("\n", "\\n")}, {}),
        ({"path": "a.txt", "patch": "--- a/x\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b"}, {}),
        ({"path": "a.txt", "diff": "--- /etc/passwd\t2026\n+++ /dev/null\n@@ -1 +0,0 @@"}, {}),
        ({"path": "a.txt", "diff": "--- a/../etc/passwd\n+++ b/../etc/passwd\n@@"}, {}),
    ],
)
def test_what_is_told_beside_a_patch_does_not_hide_its_files(raw: Any, more: Any) -> None:
    access = claim("edit", raw, **more)
    assert (access.operation, access.place) == ("write", "outside")
    assert {"/ws/a.txt", "/etc/passwd"} <= {*access.paths}


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x85", "\u2028"])
def test_a_patch_whose_lines_may_end_elsewhere_is_in_doubt(end: str) -> None:
    text = f"*** Begin Patch\n*** Add File: a.txt\n+x{end}*** Add File: /etc/x\n*** End Patch"
    assert not claim("edit", {"path": "a.txt", "input": text}).complete
    assert claim("edit", {"path": "a", "input": PATCH.replace("\n", "\r\n")}).complete


def test_a_unified_diff_of_the_named_file_names_no_other() -> None:
    for name in ("/ws/a.txt", "a.txt"):
        access = claim("edit", {"path": "a.txt", "diff": f"--- {name}\n+++ {name}\n@@ -1 +1 @@"})
        assert (access.paths, access.complete) == (("/ws/a.txt",), True)
    assert claim("edit", {"path": "a", "diff": "--- a/a\n+++ b/a\n@@"}).paths == ("/ws/a",)
    assert not claim("edit", {"path": "a", "diff": '--- "a/\\303"\n+++ "b/\\303"\n@@'}).complete


def test_a_line_that_begins_like_a_diff_costs_no_more_than_its_length() -> None:
    begun = time.process_time()
    for text in ("--- " + "x" * 400_000, "--- x\t" * 60_000, "*** " * 100_000):
        assert claim("edit", {"path": "a", "diff": text}).paths == ("/ws/a",)
    assert time.process_time() - begun < 5  # of the processor; 400,000 squared would take minutes


UNIFIED = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"


@pytest.mark.parametrize("kind", ["read", "search"])
def test_a_patch_in_what_is_said_to_be_read_is_in_doubt(kind: str) -> None:
    access = claim(kind, {"path": "a", "patch": PATCH})
    assert (access.operation, access.complete) == ("other", False)
    assert "write" in access.operations


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("move", {"path": "a", "new_name": "../etc/x"}),
        ("move", {"path": "a", "whither": "/etc/x"}),
        ("delete", {"path": "a", "and": ["/etc/x"]}),
        ("edit", {"path": "a", "diff": "diff --git a/a b/x\nrename from a\nrename to ../etc/x"}),
        ("edit", {"path": "a", "changes": {"../etc/x": {"type": "add"}}}),
        ("edit", {"path": "a", "edits": '[{"path": "../etc/x"}]'}),
        ("edit", {"path": "a", "newName": "../etc/x"}),
        ("edit", {"path": "a", "diff": "diff --git a/../etc/x b/../etc/x\nGIT binary patch\n"}),
        ("edit", {"path": "a", "diff": "diff --git a/../etc/x b/../etc/x\nnew mode 100755\n"}),
        ("edit", {"path": "a", "diff": "diff --git ../etc/x ../etc/x\ndeleted file mode 100644"}),
        ("edit", {"path": "a", "diff": "+++ b/../etc/x\n@@ -0,0 +1 @@\n+x"}),
        ("edit", {"path": "a", "diff": "--- ../etc/x\nwhatever\n@@ -0,0 +1 @@\n+x"}),
        ("edit", {"path": "a", "diff": "+++ ../etc/x 2026-01-01\n@@ -0,0 +1 @@\n+x"}),
        ("edit", {"path": "a", "diff": "Index: ../etc/x\n===\n@@ -0,0 +1 @@\n+x"}),
        ("edit", {"path": "a", "diff": "Index: ../etc/x\n0a1\n> x"}),
        ("edit", {"path": "a", "diff": f"*** ../etc/x\t2026\n--- a\t2026\n{'*' * 15}\n*** 0 ****"}),
        ("edit", {"path": "a", "diff": "  --- ../etc/x\n  @@ -0,0 +1 @@\n  +x"}),
        (
            "edit",
            {"path": "a", "diff": f"{UNIFIED}--- /dev/null\n+++ b/../etc/x\n@@ -0,0 +1 @@\n+x"},
        ),
        ("edit", {"path": "a", "diff": f"{UNIFIED}+++ b/../etc/x\n@@ -0,0 +1 @@\n+x"}),
        ("edit", {"path": "a", "diff": "--- a\n+++ a\n@@ -1,9 +1,9 @@\n-x\n+++ b/../etc/x\n"}),
        ("edit", {"path": "a", "diff": "--- a\n+++ a\n@@ -1,9 +1,9 @@\n+++ b/../etc/x\nend\n"}),
    ],
)
def test_a_second_file_is_seen_whatever_it_is_called(kind: str, raw: Any) -> None:
    access = claim(kind, raw)
    assert {"/ws/a", "/etc/x"} <= {*access.paths}


def test_the_keys_of_changes_are_files_and_the_ends_of_a_move_may_be_bare_names() -> None:
    bare = claim("edit", {"path": "a", "changes": {".bashrc": {"type": "add"}}})
    assert "/ws/.bashrc" in bare.paths
    assert claim("move", {"path": "a", "new_name": ".bashrc"}).protection is not None


def test_the_lines_of_a_hunk_and_the_fields_of_a_change_are_no_files() -> None:
    told: list[Any] = [
        {"diff": "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- a comment\n same\n+++ an operator\n"},
        {"diff": f"*** a\n--- a\n{'*' * 15}\n*** 1,2 ****\n--- 1,3 ----\n+ x"},
        {"content": "--- a title\n\n+++ more\n5 apples\n*** a note\nIndex: 1\n"},
        {"edits": [{"oldText": "x", "newText": "y", "occurrence": 1, "range": {"start": {}}}]},
        {"edits": {"old_string": "x", "new_string": "y", "replace_all": True}},
        {"oldText": "x", "newText": "newName", "rename": False},
    ]
    for raw in told:
        access = claim("edit", {"path": "a", **raw})
        assert (access.paths, access.complete) == (("/ws/a",), True)


def test_a_file_without_a_dot_in_its_name_is_one_too() -> None:
    told: list[Any] = [{"Jenkinsfile": {"new": "x"}}, {"Jenkinsfile": "x"}, [{"Jenkinsfile": {}}]]
    for changes in told:
        assert claim("edit", {"path": "a", "changes": changes}).protection is not None
    assert claim("edit", {"path": "a", "newName": ".envrc"}).protection is not None


def test_a_git_header_whose_two_names_cannot_be_told_apart_is_in_doubt() -> None:
    for names in ("a/one name b/another name", 'a/x "b/\\056envrc"', "a"):
        assert not claim("edit", {"path": "a", "diff": f"diff --git {names}\n"}).complete
    access = claim("edit", {"path": "a", "diff": "diff --git a/my file b/my file\nold mode 1\n"})
    assert "/ws/my file" in access.paths
    assert access.complete


def test_a_hunk_of_absurd_length_is_read_like_any_other() -> None:
    for count in ("9" * 5_000, "999999999"):
        text = f"--- a\n+++ a\n@@ -1,{count} +1,{count} @@\n-x\n--- /etc/x\n+++ /etc/x\n"
        assert "/etc/x" in claim("edit", {"path": "a", "diff": text}).paths


@pytest.mark.parametrize("line", ["*** Rename File: x", "***Add File: /etc/x", "*** Add File:"])
def test_no_rule_allows_a_patch_with_a_header_that_is_not_understood(line: str) -> None:
    assert not claim("edit", {"input": f"{PATCH}{line}\n"}).complete


VERBS = ("view", "create")


def test_the_verbs_of_an_editor_are_no_commands_to_it() -> None:
    made = claim("edit", {"command": "create", "path": "a"}, verbs=VERBS)
    assert (made.operation, made.paths, made.commands) == ("write", ("/ws/a",), ())
    assert claim("read", {"command": "view", "path": "a"}, verbs=VERBS).operation == "read"


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("execute", {"command": "create", "path": "a"}),
        ("other", {"command": "create", "path": "a"}),
        ("edit", {"command": "create x", "path": "a"}),
        ("edit", {"command": "create", "args": ["x"], "path": "a"}),
        ("edit", {"command": ["create"], "path": "a"}),
        ("edit", {"run": "create", "path": "a"}),
        ("edit", {"command": "create", "cmd": "create", "path": "a"}),
        ("read", {"command": "create", "path": "a"}),
        ("search", {"command": "create", "path": "a"}),
        ("read", {"command": "VIEW", "path": "a"}),
        ("read", {"command": ["view"], "path": "a"}),
        ("read", {"command": "view", "steps": [{"command": "create"}], "path": "a"}),
    ],
)
def test_anything_else_under_that_key_is_a_command(kind: str, raw: Any) -> None:
    assert claim(kind, raw, verbs=VERBS).operation == "execute"


def test_several_claims_are_shown_as_one_and_kept_apart() -> None:
    claims = [claim("edit", {"path": "a"}), claim("delete", {"path": "b"})]
    access = together(claims)
    assert (access.operation, access.paths) == ("write", ("/ws/a", "/ws/b"))
    assert access.parts == tuple(claims)
    assert together(claims[:1]) is claims[0]


@pytest.mark.parametrize(
    "others",
    [
        [claim("execute", {"command": "make"})],
        [claim("read", {"path": "b"})],
        [claim("edit", {"path": "b"}), claim("fetch", {"url": "https://example.org"})],
    ],
)
def test_several_claims_that_are_not_alike_are_shown_as_all_of_them(others: list[Access]) -> None:
    first = claim("edit", {"path": "a"})
    access = together([first, *others])
    assert access.operation == "other"
    assert {"write", *(each.operation for each in others)} <= {*access.operations}


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
@pytest.mark.parametrize("at", range(3))
def test_the_strictest_decision_on_one_of_several_claims_counts(effect: Effect, at: int) -> None:
    claims = [claim("execute", {"command": "make", "cwd": each}) for each in "abc"]
    rules = [
        Rule(effect="allow", operation="execute"),
        Rule(effect=effect, operation="execute", cwd="abc"[at]),
    ]
    decision = decide(together(claims), iter(rules), now=0, session_id="s", project="/ws")
    assert decision.effect == effect


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "npm test", "cwd": "/ws/a", "workdir": "/ws/evil"},
        {"command": "npm test", "cwd": "/ws/evil", "working_directory": "/ws/a"},
        {"command": "npm test", "cwd": "/ws/a", "directory": "evil"},
        [{"command": "npm test", "cwd": "/ws/a"}, {"cwd": "/ws/evil"}],
    ],
)
def test_a_command_in_one_of_several_folders_is_in_doubt_and_each_can_refuse_it(raw: Any) -> None:
    access = claim("execute", raw)
    assert (*access.folders,) in (("/ws/a", "/ws/evil"), ("/ws/evil", "/ws/a"))
    allowing = Rule(effect="allow", operation="execute", argv=("npm", "test"), cwd=access.cwd)
    rules = [allowing, Rule(effect="allow", operation="execute")]

    def effect(*more: Rule) -> Effect:
        moment: dict[str, Any] = {"now": 0, "session_id": "s", "project": "/ws"}
        return decide(access, [*rules, *more], **moment).effect

    assert effect() == "ask"
    assert effect(Rule(effect="deny", cwd="evil")) == "deny"
    assert effect(Rule(effect="deny", cwd="a")) == "deny"
    assert not Grants().take_command(access)
    grants = Grants()
    grants.add(access, [])
    assert not grants.take_command(msgspec.structs.replace(access, cwds=()))


# ── the agent's own editor ────────────────────────────────────────────────────────────────────

BY_A_TOOL = {"tool": "write_file", "arguments": {"path": "/ws/a.txt", "content": "A"}}


def effect_of(access: Access, *rules: Rule) -> Effect:
    return decide(access, rules, now=0, session_id="s", project="/ws").effect


def test_an_editor_of_the_agents_own_is_not_a_further_tool() -> None:
    allow = Rule(effect="allow", operation="write", path="a.txt")
    deny = Rule(effect="deny", tool="write_file")
    known = claim("edit", BY_A_TOOL, editors=("write_file",))
    assert effect_of(known, allow) == "allow"
    assert effect_of(known, allow, deny) == "deny"
    assert effect_of(claim("edit", BY_A_TOOL), allow) == "ask"
    assert effect_of(claim("other", BY_A_TOOL, editors=("write_file",)), allow) == "ask"
    two = BY_A_TOOL | {"mcp_tool": "drop_tables"}
    assert effect_of(claim("edit", two, editors=("write_file",)), allow) == "ask"


@pytest.mark.parametrize(
    "said", ["$HOME", "/ws/\n/x", "/ws/\0", "/ws/" + "d" * 5000, "/ws" + "/d" * 300]
)
def test_a_folder_that_cannot_be_read_is_kept_as_it_was_said_and_grants_nothing(said: str) -> None:
    access = claim("execute", {"command": "touch x", "cwd": said})
    assert access.unread_cwd == said
    assert not access.complete
    grants = Grants()
    grants.add(access, [])
    assert not grants.take_command(claim("execute", {"command": "touch x"}))
    several = together([access, claim("execute", {"command": "touch x"})])
    assert several.unread_cwd == said


@pytest.mark.parametrize("key", ["stdin", "input", "standard_input", "heredoc"])
def test_what_a_command_reads_may_be_run_too(key: str) -> None:
    assert claim("execute", {"command": "sh", key: "rm -rf /"}).commands == ("sh", "rm -rf /")
    assert claim("execute", {"command": "sh", key: ""}).commands == ("sh",)


def test_an_input_without_a_command_is_none() -> None:
    assert claim("other", {"input": "rm -rf /"}).commands == ()
    nested = {"command": "sh", "input": '{"command": "rm x"}'}
    assert claim("execute", nested).commands == ("sh", "rm x")


def test_chdir_names_the_folder_of_a_command() -> None:
    assert claim("execute", {"command": "touch x", "chdir": "/etc"}).cwd == "/etc"


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
