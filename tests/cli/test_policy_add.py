"""`dragoman policy add` and `test`: rules that people write, and tables of what they should say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Dragoman

from dragoman.cli.commands import policy
from dragoman.cli.exit_codes import exit_code, sentence, tell
from dragoman.cli.parsers import parsed
from dragoman.errors import DragomanError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and a store of its own: most of this runs in this process, as there is much."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


def called(*words: str) -> int:
    """The exit code, as the command would end with it."""
    try:
        return policy.run(parsed("policy", words))
    except SystemExit as error:
        return int(error.code or 0)
    except DragomanError as error:
        tell(sentence(error))
        return exit_code(error)


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert called("list", "--json") == 0
    return json.loads(capsys.readouterr().out)


def effect(dragoman: Dragoman, *words: str) -> str:
    return dragoman("policy", "explain", *words).lines[0].partition(":")[0]


# ── add ───────────────────────────────────────────────────────────────────────────────────────


def test_an_added_rule_says_what_it_does_and_decides(dragoman: Dragoman) -> None:
    assert effect(dragoman, "--operation", "write", "--path", "src/a.py") == "ask"
    done = dragoman("policy", "add", "--allow", "--operation", "write", "--path", "src/**")
    assert (done.code, done.err) == (0, "")
    rule_id = done.out.split()[1].rstrip(":")
    where = f"in this project ({dragoman.workspace})"
    assert done.out == f"added {rule_id}: allow writing files src/** {where}\n"
    assert effect(dragoman, "--operation", "write", "--path", "src/a.py") == "allow"
    assert effect(dragoman, "--operation", "write", "--path", "a.py") == "ask"
    assert effect(dragoman, "--cwd", "/usr", "--operation", "write", "--path", "src/a") == "ask"
    # And a session decides by it, too.
    assert dragoman("policy", "add", "--deny", "--operation", "write").code == 0
    assert dragoman("-a", "demo", "--yolo", "hello").out.count("refused") > 0
    for gone in (rule_id, rule_id):
        last = dragoman("policy", "remove", gone)
    assert (last.code, last.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--deny", "--prefix", "--", "git", "push"), "refuse running commands that begin with"),
        (("--allow", "--", "git status"), "allow running exactly git status in this project"),
        (("--ask", "--operation", "fetch", "--host", "*.x"), "ask before fetching from *.x in"),
        (("--allow", "--in", "web", "--", "npm", "test"), "npm test in the folder web in this"),
        (("--allow", "--agent", "g*", "--operation", "mcp", "--tool", "t"), "the tool t for g*"),
        (("--deny", "--scope", "user", "--operation", "other"), "refuse other requests"),
        (("--ask",), "ask before everything in this project"),
    ],
)
def test_rules_in_words(
    here: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("add", *words) == 0
    said = capsys.readouterr()
    assert (says in said.out, said.err) == (True, "")
    [rule] = listed(capsys)
    assert rule["sentence"] in said.out
    assert rule["scope"] == ("user" if "user" in words else "project")
    assert rule["rule"].get("project") == (None if "user" in words else str(here))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--allow",), "say what the rule is about: --operation, or a command after --"),
        (("--allow", "--operation", "write", "--path", "../x"), "path: expected a path without .."),
        (("--allow", "--operation", "fetch", "--path", "x"), "conditions that fit together"),
        (("--allow", "--operation", "write", "--", "ls"), "a command implies --operation execute"),
        (("--allow", "--path", "x", "--", "ls"), "conditions that fit together"),
        (("--allow", "--prefix"), "--prefix needs the first words of a command after --"),
        (("--allow", "--", "make && ./run"), "is not one plain command; write a rule for each"),
        (("--allow", "--", "ls $HOME"), "is not one plain command"),
        (("--deny", "--scope", "user", "--cwd", ".", "--", "ls"), "--cwd names a project"),
        (("--deny", "--cwd", "/no/such", "--", "ls"), "--cwd /no/such: no such directory"),
        (("--allow", "--expires", "0d", "--", "ls"), "expected a time such as 90d"),
        (("--allow", "--expires", "soon", "--", "ls"), "expected a time such as 90d"),
        (("--operation", "write"), "one of the arguments --allow --ask --deny is required"),
        (("--allow", "--deny", "--", "ls"), "not allowed with argument"),
    ],
)
def test_a_meaningless_rule_is_one_line_and_stores_nothing(
    here: Path, words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("add", *words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert complaint in said.err
    assert listed(capsys) == []


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (("--operation", "write", "--path", ".git/config"), "is protected: version control runs"),
        (("--operation", "write", "--path", ".vscode/**"), "is protected: an editor runs"),
        (("--operation", "write", "--path", "/etc/**"), "outside the workspace are always refused"),
        (("--operation", "read", "--path", "src/*"), "reads inside the workspace need no rule"),
        (("--operation", "other", "--tool", "t"), "merely claims cannot allow anything"),
        (("--", "git", "push"), "denies it"),
        (("--", "git", "status"), None),
        (("--operation", "write"), None),
        (("--operation", "write", "--path", "src/[ab]*"), None),
    ],
)
def test_a_rule_that_decides_nothing_is_stored_with_a_warning(
    here: Path,
    words: tuple[str, ...],
    warning: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert called("add", "--deny", "--prefix", "--", "git", "push") == 0
    capsys.readouterr()
    assert called("add", "--allow", *words) == 0
    said = capsys.readouterr().err
    assert (said == "") is (warning is None)
    assert (warning or "") in said
    assert said.count("\n") <= 1
    assert len(listed(capsys)) == 2


def test_the_same_rule_is_stored_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("add", "--deny", "--prefix", "--", "git", "push")
    assert called(*words) == called(*words) == 0
    assert "stored already" in capsys.readouterr().out
    assert len(listed(capsys)) == 1


def test_a_rule_ends_when_it_expires(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("add", "--allow", "--expires", "2h", "--json", "--", "ls") == 0
    added = json.loads(capsys.readouterr().out)["rule"]
    [rule] = listed(capsys)
    assert rule["id"] == added["id"]
    assert rule["expiresAt"] is not None


def test_an_added_rule_is_noted_as_used(dragoman: Dragoman) -> None:
    assert dragoman("policy", "add", "--deny", "--operation", "write").code == 0
    dragoman("-a", "demo", "hello")
    (rule,) = json.loads(dragoman("policy", "list", "--json").out)
    assert rule["usedAt"] is not None


# ── explain, with a code ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--exec", "--", "make"), 0),
        (("--", "make"), 10),
        (("--operation", "write", "--path", "/etc/x"), 11),
        (("--host", "https://a.example/x"), 10),
    ],
)
def test_a_script_can_ask_by_exit_code(here: Path, words: tuple[str, ...], code: int) -> None:
    assert called("explain", "--exit-code", *words) == code
    assert called("explain", *words) == 0


# ── test ──────────────────────────────────────────────────────────────────────────────────────

RULES = """
[[rules]]
effect = "deny"
operation = "execute"
argv_prefix = ["git", "push"]

[[rules]]
effect = "allow"
operation = "write"
path = "src/**"

[[rules]]
effect = "deny"
operation = "fetch"
host = "*.internal"
"""
CASES = """
[[cases]]
expect = "deny"
command = "cd src && git push --force"

[[cases]]
expect = "deny"
argv = ["git", "push"]

[[cases]]
expect = "allow"
operation = "write"
path = "src/app.py"

[[cases]]
expect = "deny"
host = "https://db.internal/x"

[[cases]]
expect = "ask"
tool = "search"
agent = "goose"
"""


def cases_in(folder: Path, cases: str, *words: str) -> int:
    (folder / "rules.toml").write_text(RULES)
    (folder / "cases.toml").write_text(cases)
    return called("test", "cases.toml", "--policy", "rules.toml", *words)


def test_a_table_of_cases_holds_or_names_what_differs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cases_in(here, CASES) == 0
    assert capsys.readouterr().out == "cases.toml: 5 cases, all as expected\n"
    assert cases_in(here, CASES, "--yolo") == 1
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "expected ask, got allow: mcp search (as reported by the agent)",
        "  because --yolo allows it",
        "cases.toml: 5 cases, 1 not as expected",
    ]
    assert cases_in(here, CASES, "--yolo", "--json") == 1
    fields = json.loads(capsys.readouterr().out)
    assert [(each["holds"], each["effect"]) for each in fields][3:] == [
        (True, "deny"),
        (False, "allow"),
    ]


def test_what_one_person_has_stored_does_not_count_in_a_test(here: Path) -> None:
    assert called("add", "--deny", "--operation", "write") == 0
    assert called("explain", "--exit-code", "--operation", "write", "--path", "src/app.py") == 11
    assert cases_in(here, CASES) == 0


@pytest.mark.parametrize(
    ("cases", "complaint"),
    [
        ("cases = 1", "cases.toml: cases: expected `array`, got `int`"),
        ('[[cases]]\nexpect = "maybe"', "cases[0].expect: invalid enum value 'maybe'"),
        ('[[cases]]\nexpect = "ask"\nx = 1', "cases[0]: object contains unknown field `x`"),
        ('[[cases]]\nexpect = "ask"', "cases[0]: name the request: an operation, or a command"),
        ('[[cases]]\nexpect = "ask"\npath = "x"', "cases[0]: a path needs an operation"),
        ('[[cases]]\nexpect = "ask"\noperation = "execute"', "cases[0]: name the command"),
        ("cases = [", "cases.toml: expected TOML"),
    ],
)
def test_a_wrong_table_is_one_clear_line(
    here: Path, cases: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cases_in(here, cases) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert complaint in said.err
