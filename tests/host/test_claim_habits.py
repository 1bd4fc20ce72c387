"""Patches, editors and several claims at once: how agents write down what they claim."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from support.claiming import claim

from dragoman.host.claims.claim_reader import together
from dragoman.host.permissions.grants import Grants
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import decide
from dragoman.host.rules.rule import Effect, Rule

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
