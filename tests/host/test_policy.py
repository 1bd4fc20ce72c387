"""What a policy decides, for whom and until when, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.host.claims.claim_reader import read_claim
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import (
    Operation,
    Policy,
    PolicyDecision,
    could_allow,
    decide,
    explain,
    flag_rules,
)
from dragoman.host.rules.rule import Effect, Rule

WS = "/ws"


def read(*paths: str) -> Access:
    return Access(operation="read", agent="demo", paths=paths, roots=(WS,))


def write(*paths: str) -> Access:
    return Access(operation="write", agent="demo", paths=paths, roots=(WS,))


def run(*argv: str, cwd: str = WS, env: bool = False) -> Access:
    return terminal_access(argv[0], argv[1:], agent="demo", cwd=cwd, roots=(WS,), env=env)


def line(text: str) -> Access:
    return terminal_access(text, agent="demo", cwd=WS, roots=(WS,))


def claim(kind: str | None, raw: Any = None, **more: Any) -> Access:
    return read_claim(kind, raw, agent="demo", cwd=WS, roots=(WS,), home="/home/me", **more)


def decided(access: Access, *rules: Rule, now: float = 0, session: str = "s") -> PolicyDecision:
    return decide(access, rules, now=now, session_id=session, project=WS)


def effect(access: Access, *rules: Rule) -> Effect:
    return decided(access, *rules).effect


YOLO = flag_rules(yolo=True)
POLICIES: dict[str, tuple[Rule, ...]] = {
    "none": (),
    "write": flag_rules(write=True),
    "exec": flag_rules(execute=True),
    "w+x": flag_rules(write=True, execute=True),
    "yolo": YOLO,
    "a.read": (Rule(effect="allow", operation="read"),),
    "a.src": (Rule(effect="allow", path="src/**"),),
    "a.npm": (Rule(effect="allow", argv=("npm", "test")),),
    "a.git": (Rule(effect="allow", argv_prefix=("git",)),),
    "a.exe": (Rule(effect="allow", operation="execute"),),
    "a.oth": (Rule(effect="allow", operation="other"),),
    "a.all": (Rule(effect="allow"),),
    "y-sec": (*YOLO, Rule(effect="deny", path="secret/**")),
    "y-rm": (*YOLO, Rule(effect="deny", argv_prefix=("rm",))),
    "y-exe": (*YOLO, Rule(effect="deny", operation="execute")),
    "y?wri": (*YOLO, Rule(effect="ask", operation="write")),
    "y?agent": (*YOLO, Rule(effect="ask", agent="de*")),
    "a.host": (Rule(effect="allow", operation="fetch", host="*.example.com"),),
    "a.tool": (Rule(effect="allow", operation="mcp", tool="fs_*"),),
    "y-all": (*YOLO, Rule(effect="deny")),
}
ACCESSES: dict[str, Access] = {
    "read source": read("/ws/src/a.py"),
    "read secret": read("/ws/secret/key"),
    "read outside": read("/etc/passwd"),
    "read protected": read("/ws/.git/config"),
    "write source": write("/ws/src/a.py"),
    "write secret": write("/ws/secret/key"),
    "write outside": write("/etc/x"),
    "write hook": write("/ws/.git/hooks/pre-commit"),
    "write envrc in source": write("/ws/src/.envrc"),
    "write inside and outside": write("/ws/src/a.py", "/etc/x"),
    "write source and secret": write("/ws/src/a.py", "/ws/secret/key"),
    "run npm test": run("npm", "test"),
    "line npm test": line("npm test"),
    "line npm test; rm": line("npm test; rm x"),
    "run git status": run("git", "status"),
    "line git status": line("git status"),
    "line git status | sh": line("git status | sh"),
    "run npm test with env": run("npm", "test", env=True),
    "run git status with env": run("git", "status", env=True),
    "run rm": run("rm", "-rf", "x"),
    "line rm && true": line("rm -rf x && true"),
    "run bash -c git; rm": run("bash", "-c", "git; rm x"),
    "run npm test outside": run("npm", "test", cwd="/tmp"),
    "fetch docs": Access(operation="fetch", agent="demo", hosts=("Docs.Example.com",)),
    "fetch elsewhere": Access(operation="fetch", agent="demo", hosts=("example.com.evil",)),
    "mcp fs_read": Access(operation="mcp", agent="demo", tool="fs_read"),
    "mcp shell": Access(operation="mcp", agent="demo", tool="shell"),
    "other": Access(operation="other", agent="demo"),
    "claim read source": claim("read", {"file_path": "/ws/src/a.py"}),
    "claim read secret": claim("read", {"path": "secret/key"}),
    "claim read outside": claim("read", {"path": "/etc/passwd"}),
    "claim read with command": claim("read", {"path": "src/a.py", "command": "rm -rf src"}),
    "claim search nowhere": claim("search", {"query": "TODO"}),
    "claim edit source": claim("edit", {"file_path": "src/a.py"}),
    "claim edit nowhere": claim("edit", {"text": "new"}),
    "claim edit outside": claim("edit", None, diff_paths=("/etc/x",)),
    "claim edit hook": claim("edit", None, diff_paths=("/ws/.git/hooks/pre-commit",)),
    "claim delete secret": claim("delete", {"path": "secret/key"}),
    "claim edit with command": claim("edit", {"cmd": "npm test"}, diff_paths=("/ws/src/a.py",)),
    "claim run npm test": claim("execute", {"command": ["npm", "test"]}),
    "claim run two commands": claim("execute", {"command": "npm test", "cmd": "rm x"}),
    "claim run outside": claim("execute", {"command": "npm test", "cwd": "/tmp"}),
    "claim run nothing": claim("execute", {"note": "trust me"}),
    "claim fetch docs": claim("fetch", {"url": "https://docs.example.com/page"}),
    "claim leave plan mode": claim("switch_mode", {"plan": "do it"}),
    "claim too large": claim("edit", {"x": [0] * 30_000}, diff_paths=("/ws/src/a.py",)),
}
EFFECTS: dict[str, Effect] = {"a": "allow", "?": "ask", "D": "deny"}


def table() -> Iterator[tuple[str, str, Effect]]:
    text = (Path(__file__).parent / "decision_table.txt").read_text(encoding="utf-8")
    for row in text.split("\n"):
        if row and not row.startswith("#"):
            name, cells = row[:26].strip(), row[26:].split()
            for policy, cell in zip(POLICIES, cells, strict=True):
                yield name, policy, EFFECTS[cell]


def test_the_table_speaks_of_every_access_and_is_long_enough() -> None:
    rows = list(table())
    assert {name for name, _, _ in rows} == set(ACCESSES)
    assert len(rows) == len(ACCESSES) * len(POLICIES) >= 400


def test_every_decision_is_as_the_table_says() -> None:
    wrong = [
        f"{name} under {policy}: {got.effect}, not {expected} ({got.reason})"
        for name, policy, expected in table()
        if (got := decided(ACCESSES[name], *POLICIES[policy])).effect != expected
    ]
    assert wrong == []


# ── what a decision says of itself ────────────────────────────────────────────────────────────


def test_a_decision_names_the_rule_that_made_it() -> None:
    deny = Rule(effect="deny", operation="write", id="rules[0]", source="p.toml")
    decision = decided(write("/ws/a"), *YOLO, deny)
    assert decision == PolicyDecision("deny", "p.toml rules[0] denies it", deny)
    assert decided(write("/ws/a"), *flag_rules(write=True)).reason == "--write allows it"
    assert decided(run("ls"), Rule(effect="ask")).reason == "a rule requires asking"


def test_a_decision_without_a_rule_says_why() -> None:
    reasons = {
        decided(read("/ws/a")).reason,
        decided(write("/ws/a")).reason,
        decided(write("/a")).reason,
        decided(run("ls", cwd="/a")).reason,
        decided(write("/ws/.git/config"), *YOLO).reason,
        decided(claim("switch_mode"), *YOLO).reason,
    }
    assert reasons == {
        "reads inside the workspace need no rule",
        "no rule allows it",
        "writes outside the workspace are always refused",
        "/a is outside the workspace: commands run there only with --yolo",
        "/ws/.git/config is protected: version control runs the commands in it",
        "this is a question for a person, not a permission",
    }


def test_a_decision_and_its_access_survive_json() -> None:
    for access in ACCESSES.values():
        decision = decided(access, *POLICIES["y-rm"])
        for value in (access, decision):
            assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_explain_shows_every_rule_and_why_it_does_not_speak() -> None:
    rules = {
        "it has expired": Rule(effect="allow", expires_at=5),
        "it is for another session": Rule(effect="allow", scope="session", session="t"),
        "it is for another project": Rule(effect="allow", scope="project", project="/x"),
        "it is for the agent claude*": Rule(effect="allow", agent="claude*"),
        "it is not about execute": Rule(effect="allow", operation="read"),
        "the path does not match /x": Rule(effect="deny", path="/x"),
        "the command differs": Rule(effect="allow", argv=("ls", "-l")),
        "the host does not match x": Rule(effect="deny", host="x"),
        "the tool does not match x": Rule(effect="deny", tool="x"),
        None: Rule(effect="allow", operation="execute"),
    }
    found = explain(run("ls"), rules.values(), now=5, session_id="s", project=WS)
    assert {each.mismatch: each.rule for each in found.considered} == rules
    assert found.decision.rule == rules[None]
    assert [each.matched for each in found.considered].count(True) == 1


def test_explain_says_what_an_allow_would_need_to_know() -> None:
    allow = Rule(effect="allow")
    argv = Rule(effect="allow", argv=("ls",))

    def why(access: Access, rule: Rule) -> str | None:
        found = explain(access, (rule,), now=0, session_id="s", project=WS)
        return found.considered[0].mismatch

    assert why(write(), allow) == "the write is not known to be inside the workspace"
    outside = "the working directory is not known to be inside the workspace"
    assert why(run("ls", cwd="/tmp"), allow) == outside
    assert why(Access(operation="execute"), allow) == outside
    unread = msgspec.structs.replace(read("/ws/a"), complete=False)
    assert why(unread, allow) == "not everything the request names could be read"
    assert why(line("ls;"), argv) == ("it names a plain command, but this is a shell command line")
    assert why(run("ls", env=True), argv) == (
        "it names a plain command, but the request sets environment variables"
    )


# ── for whom, until when ──────────────────────────────────────────────────────────────────────


def test_a_rule_counts_until_it_expires() -> None:
    rule = Rule(effect="allow", operation="write", expires_at=100)
    assert decided(write("/ws/a"), rule, now=99.9).effect == "allow"
    assert decided(write("/ws/a"), rule, now=100).effect == "ask"


@pytest.mark.parametrize("scope", ["once", "session"])
def test_a_rule_of_a_session_counts_only_there(scope: Any) -> None:
    rule = Rule(effect="allow", operation="write", scope=scope, session="s")
    assert decided(write("/ws/a"), rule, session="s").effect == "allow"
    assert decided(write("/ws/a"), rule, session="t").effect == "ask"
    assert effect(write("/ws/a"), Rule(effect="allow", scope=scope)) == "ask"


def test_a_rule_of_a_project_counts_only_there() -> None:
    here = Rule(effect="allow", operation="write", scope="project", project=WS)
    there = Rule(effect="allow", operation="write", scope="project", project="/other")
    assert effect(write("/ws/a"), here) == "allow"
    assert effect(write("/ws/a"), there) == "ask"


def test_a_rule_for_an_agent_counts_for_that_agent() -> None:
    deny = Rule(effect="deny", agent="dem?")
    assert effect(read("/ws/a"), deny) == "deny"
    assert effect(msgspec.structs.replace(read("/ws/a"), agent="demon-2"), deny) == "allow"


def test_a_host_is_the_same_in_any_case() -> None:
    access = Access(operation="fetch", hosts=("docs.EXAMPLE.com",))
    assert effect(access, Rule(effect="allow", host="*.Example.COM")) == "allow"


def test_only_an_allow_can_lift_the_refusal_of_a_working_directory() -> None:
    assert effect(run("ls", cwd="/tmp"), Rule(effect="ask", anywhere=True)) == "deny"
    assert effect(run("ls", cwd="/tmp"), *YOLO, Rule(effect="ask")) == "ask"


def test_a_denied_prefix_is_denied_whatever_follows() -> None:
    for words in (["git", "$x"], ["git", "a; b"], ["bash", "-c", "a; b"]):
        deny = Rule(effect="deny", argv_prefix=(words[0],))
        assert effect(claim("execute", {"command": words}), *YOLO, deny) == "deny"
        assert effect(run(*words), *YOLO, deny) == "deny"


def test_a_deny_of_tools_counts_for_a_claim_that_may_be_one() -> None:
    tool = claim("other", {"server": "forge", "tool": "create_issue"})
    unnamed = claim("other", {"title": "a book"})
    deny_all = Rule(effect="deny", operation="mcp")
    deny_one = Rule(effect="deny", tool="create_*")
    assert effect(tool, *YOLO, deny_all) == effect(tool, *YOLO, deny_one) == "deny"
    assert effect(unnamed, *YOLO, deny_all) == "deny"
    assert effect(unnamed, *YOLO, deny_one) == "allow"
    assert effect(claim("read", {"path": "a"}), *YOLO, deny_all) == "allow"


@pytest.mark.parametrize("kind", ["other", "edit", "read", "execute", "fetch"])
def test_a_deny_of_a_tool_counts_whatever_the_claim_calls_it_beside(kind: str) -> None:
    deny, allow = Rule(effect="deny", tool="create_*"), Rule(effect="allow", tool="create_*")
    for named in (
        claim(kind, {"path": "a"}, name="create_issue"),
        claim(kind, {"tool": "search", "x": {"mcp_tool": "create_issue"}}),
    ):
        assert effect(named, *YOLO, deny) == "deny"
        assert effect(named, allow) == effect(named)


@pytest.mark.parametrize("operation", [None, "mcp", "other"])
def test_the_name_of_a_tool_in_a_claim_allows_nothing(operation: Operation | None) -> None:
    rule = Rule(effect="allow", operation=operation, tool="*")
    assert effect(claim("other", {"tool": "search"}), rule) == "ask"


def test_several_paths_need_one_allow_that_covers_them_all() -> None:
    src, doc = (Rule(effect="allow", path=f"{name}/**") for name in ("src", "doc"))
    both = write("/ws/src/a", "/ws/doc/b")
    assert effect(both, src, doc) == "ask"
    assert effect(both, Rule(effect="allow", path="**")) == "allow"


def test_a_rule_about_a_path_never_allows_a_command_that_names_one() -> None:
    rule = Rule(effect="allow", path="/ws/**")
    assert effect(claim("execute", {"command": "rm -rf /", "path": "/ws/a"}), rule) == "ask"
    assert effect(claim("think", {"path": "/ws/a"}), rule) == "ask"
    other = Rule(effect="allow", operation="other", path="/ws/**")
    assert effect(claim("think", {"path": "/ws/a"}), other) == "allow"


def test_the_default_lets_nothing_unread_pass_as_a_read() -> None:
    assert effect(read()) == "ask"
    assert effect(msgspec.structs.replace(read("/ws/a"), complete=False)) == "ask"


def test_a_workspace_of_several_roots_is_inside_in_each() -> None:
    access = file_access("write", "/b/x", agent="demo", roots=("/a/", "/b"))
    assert effect(access, *flag_rules(write=True)) == "allow"
    assert effect(access, Rule(effect="allow", path="x")) == "allow"


def test_the_root_of_the_disk_can_be_a_workspace() -> None:
    access = file_access("write", "/srv/x", agent="demo", roots=("/",))
    assert effect(access, Rule(effect="allow", path="srv/*")) == "allow"


# ── what could be allowed at all ──────────────────────────────────────────────────────────────


def could_write(*rules: Rule, person: bool = False) -> bool:
    return could_allow(
        "write", rules, person=person, agent="demo", now=0, session_id="s", project=WS
    )


def test_a_write_could_be_allowed_by_a_flag_a_rule_or_a_person() -> None:
    assert could_write(*flag_rules(write=True))
    assert could_write(Rule(effect="allow", path="docs/**"))
    assert could_write(person=True)
    assert could_write(*YOLO, Rule(effect="deny", path="secret/**"))


def test_a_write_could_not_be_allowed_without_any_or_against_a_deny() -> None:
    deny = Rule(effect="deny", operation="write")
    assert not could_write()
    assert not could_write(*flag_rules(execute=True))
    assert not could_write(*YOLO, deny)
    assert not could_write(deny, person=True)
    assert not could_write(*YOLO, Rule(effect="ask"))
    assert could_write(*YOLO, Rule(effect="ask"), person=True)
    assert not could_write(Rule(effect="allow", agent="other"))


# ── rules made in Python ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["argv", "argv_prefix"])
def test_words_may_be_a_list(name: str) -> None:
    denied = made(effect="deny", **{name: ["git", "push"]})
    assert denied == made(effect="deny", **{name: ("git", "push")})
    assert effect(run("git", "push"), *flag_rules(execute=True), denied) == "deny"


def made(**fields: Any) -> Rule:
    """As it is made where nothing checks types."""
    return Rule(**fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"effect": "Deny"}, "a rule's effect is allow, ask or deny, not 'Deny'"),
        ({"operation": "exec"}, "a rule's operation is read, .* or other, not 'exec'"),
        ({"scope": "always"}, "a rule's scope is once, session, project or user, not 'always'"),
        ({"argv": "git push"}, "a rule's argv is the words of a command, a text each"),
        ({"argv": []}, "a rule's argv is the words of a command, a text each"),
        ({"argv_prefix": ["git", 1]}, "a rule's argv_prefix is the words of a command"),
        ({"path": Path("/etc")}, "a rule's path is a text"),
        ({"host": 1}, "a rule's host is a text, not 1"),
    ],
)
def test_what_is_no_rule_is_said_at_once(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        made(**{"effect": "deny", **fields})


def test_a_policy_is_made_of_rules() -> None:
    wrong: Any = [{"effect": "deny"}]
    with pytest.raises(TypeError, match="expected a Rule, got "):
        Policy(wrong)
