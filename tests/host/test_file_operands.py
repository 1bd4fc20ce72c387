"""What a command writes by its words; an answer for its program covers no file that always asks."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

import pytest

from dragoman.host.commands.file_operands import files_written_by, makes_links
from dragoman.host.permissions.always_rules import Breadth, NoRule, Tenure, always_rules
from dragoman.host.permissions.offers import Offers
from dragoman.host.rules.access import Access, terminal_access
from dragoman.host.rules.line_steps import Steps
from dragoman.host.rules.policy import Policy, PolicyDecision, on_disk
from dragoman.host.rules.rule import YOUR_ANSWER, Rule
from dragoman.host.workspace.roots import Workspace
from dragoman.session.facts import PermissionOption

WRITTEN: list[tuple[str, str | None]] = [
    ("cp a b", "b b/a"),
    ("cp -f -- a/x b/", "b/ b/x"),
    ("/bin/cp a b dir", "dir dir/a dir/b"),
    ("cp -r a b", None),
    ("cp -a a b", None),
    ("cp --archive a b", None),
    ("cp -t b a", None),
    ("cp --backup a b", None),
    ("mv a b", "a b b/a"),
    ("mv -fn x/ .git", "x/ .git .git/x"),
    ("mv -S .pth a b", None),
    ("ln -s ../x y", "y y/x"),
    ("ln -s ../x", "x"),
    ("install -m 755 a bin/b", "bin/b bin/b/a"),
    ("install -d .husky", None),
    ("touch a b", "a b"),
    ("touch -d yesterday a", "a"),
    ("touch -r a b", None),
    ("mkdir -p a/b", "a/b"),
    ("mkdir -m 700 a", "a"),
    ("rm -f a b", "a b"),
    ("rm -- -f", "-f"),
    ("truncate -s 0 a", "a"),
    ("tee -a a b", "a b"),
    ("tee --output-error=warn a", None),
    ("git mv a b", "a b b/a"),
    ("git rm a", "a"),
    ("git apply x.patch", None),
    ("git am x.patch", None),
    ("git clone x", None),
    ("git init --template=x", None),
    ("git worktree add ../x", None),
    ("git worktree list", ""),
    ("git status", ""),
    ("sed s/a/b/ x", ""),
    ("sed -i s/a/b/ x", None),
    ("sed -Ei.bak s/a/b/ x", None),
    ("sed --in-place=.bak s/a/b/ x", None),
    ("perl -pi -e s/a/b/ x", None),
    ("gawk -i inplace 1 x", None),
    ("tar -xf a.tgz", None),
    ("tar xzf a.tgz", None),
    ("tar -tf a.tgz", ""),
    ("tar tf a.tgz", ""),
    ("tar -cf a.tgz b", None),
    ("tar -tf a -x", None),
    ("tar -tf a --index-file=.envrc", None),
    ("unzip a.zip", None),
    ("unzip -l a.zip", ""),
    ("rsync -a x y", None),
    ("patch -p1", None),
    ("gzip a", None),
    ("split a", None),
    ("wget http://x/y", None),
    ("gcc -o a b.c", "a"),
    ("gcc -oa b.c", "a"),
    ("sort -o a b", "a"),
    ("tool --output a", "a"),
    ("tool --out-dir=a", "a"),
    ("tool -out a", "a"),
    ("pytest -q tests", ""),
    ("ls -l", ""),
]


@pytest.mark.parametrize(("line", "written"), WRITTEN)
def test_the_words_of_a_command_say_what_it_writes(line: str, written: str | None) -> None:
    assert files_written_by(tuple(shlex.split(line))) == (
        None if written is None else tuple(written.split())
    )


def test_commands_that_make_links_are_known() -> None:
    makers = ("ln -s a b", "mv a b", "git checkout x", "git pull", "tar xf a", "cp -a a b")
    others = ("cp a b", "git status", "mkdir a", "pytest", "rm a", "touch a")
    assert all(makes_links(tuple(line.split())) for line in makers)
    assert not any(makes_links(tuple(line.split())) for line in others)


# ── what an answer covers ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = tmp_path / "ws"
    (made / ".git" / "hooks").mkdir(parents=True)
    (made / "sub").mkdir()
    (made / "harmless").symlink_to(".git/hooks")
    return made


def asked(ws: Path, line: str) -> Access:
    return terminal_access(line, agent="demo", cwd=str(ws), roots=(str(ws),))


def answer(ws: Path, line: str, breadth: Breadth) -> tuple[Rule, ...] | NoRule:
    ids = itertools.count()
    return always_rules(
        asked(ws, line),
        "allow",
        PolicyDecision("ask", "no rule allows it", unruled=True),
        Tenure(scope="project", session="s", project=str(ws)),
        breadth=breadth,
        new_id=lambda: f"r{next(ids)}",
        steps=lambda access: Steps(access, on_disk(access)),
    )


def effect(ws: Path, line: str, *rules: Rule) -> str:
    policy, workspace = Policy(rules), Workspace("s", str(ws))
    told = policy.explain(asked(ws, line), workspace).decision
    assert policy.decide(asked(ws, line), workspace) == told
    return told.effect


# A command to answer; those that its answer covers, and those that it does not.
ANSWERED: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    (
        "cp a b",
        ("cp c d", "cp c sub/", "cd sub && cp a b", "timeout 5 cp a b", "mkdir x && cp a x/b"),
        (
            *(
                "cp a .git/hooks/pre-commit",
                "cp a .envrc",
                "cp .envrc sub/",
                "cp pre-commit .husky",
            ),
            *("cp a harmless/pre-commit", "cd harmless && cp ../../a pre-commit"),
            *("cp a ../out", "cp a /etc/x", "cp a '~/x'/../../../y", "cp -r a sub"),
            "cp --parents hooks/pre-commit .git",
            *("timeout 5 cp a .envrc", "bash -lc 'cp a .envrc'", "mkdir x && cp a .envrc"),
            *("ln -s .git x && cp a x/hooks/pre-commit", "git checkout x && cp a x/b"),
        ),
    ),
    ("mv a b", ("mv c sub/d",), ("mv a .envrc", "mv .envrc a", "mv .git x", "mv a harmless")),
    ("ln -s a b", ("ln -s c d",), ("ln -s a .envrc", "ln -sf a .git/hooks/pre-commit")),
    ("touch a", ("touch b sub/c",), ("touch .envrc", "touch -r a b", "touch ../x")),
    ("rm a", ("rm -f b",), ("rm .envrc", "rm .git/hooks/pre-commit", "rm harmless/x")),
    ("install -m 755 a b", ("install c d",), ("install a .git/hooks/pre-commit",)),
    ("mkdir a", ("mkdir -p b/c",), ("mkdir .husky", "mkdir -p x/.vscode")),
    ("git mv a b", ("git mv c d",), ("git mv a .envrc", "git mv .github/workflows/x y")),
    ("gcc -o a a.c", ("gcc -o b b.c", "gcc c.c"), ("gcc -o .git/hooks/pre-commit a.c",)),
    ("tar -tf a.tgz", ("tar -tf b.tgz",), ("tar -xf a.tgz", "tar -cf .envrc a")),
]


@pytest.mark.parametrize(("line", "covers", "leaves"), ANSWERED)
def test_an_answer_for_a_program_covers_no_file_that_always_asks(
    ws: Path, line: str, covers: tuple[str, ...], leaves: tuple[str, ...]
) -> None:
    rules = answer(ws, line, "program")
    assert not isinstance(rules, NoRule)
    others = ("timeout", "mkdir", "git", "ln")
    more = [Rule(effect="allow", argv_prefix=(name,), source="rules.json") for name in others]
    for each in (line, *covers):
        assert effect(ws, each, *rules, *(more if "&&" in each else ())) == "allow", each
    for each in leaves:
        assert effect(ws, each, *rules, *(more if "&&" in each else ())) != "allow", each


@pytest.mark.parametrize(
    "line", ["tar -xf a.tgz", "git apply a.patch", "rsync -a a b", "unzip a.zip", "cp -r a b"]
)
def test_the_same_program_is_not_offered_where_it_writes_what_its_words_do_not_say(
    ws: Path, line: str
) -> None:
    unruled = PolicyDecision("ask", "no rule allows it", unruled=True)
    offers = Offers(asked(ws, line), unruled, Policy(), Workspace("s", str(ws)))
    found = offers.offer([PermissionOption("y", "Yes", "allow_once")])
    assert {each.breadth for each in found} == {"this", "commands"}


def test_an_answer_for_any_command_does_not_cover_such_a_file_either(ws: Path) -> None:
    rules = answer(ws, "make", "commands")
    assert not isinstance(rules, NoRule)
    for line in (
        "cp a b",
        "ls > out",
        "tar -xf a.tgz",
        "make | tee log",
        "cd sub && cp a b",
        "echo $x",
    ):
        assert effect(ws, line, *rules) == "allow", line
    for line in (
        "cp a .envrc",
        "timeout 5 cp a .envrc",
        "make | tee .envrc",
        "cd sub && cp a ../harmless/x",
        "make && mv a .git/hooks/pre-commit",
        "cp a .envrc; echo $x",
        "ls > .envrc",
        "echo x >> .git/hooks/pre-commit",
        "make > ../out",
        "make > /etc/x",
        "bash -lc 'ls > .envrc'",
    ):
        assert effect(ws, line, *rules) == "ask", line
    withvars = terminal_access(
        "cp", ("a", ".envrc"), agent="demo", cwd=str(ws), roots=(str(ws),), env=True
    )
    assert Policy(rules).decide(withvars, Workspace("s", str(ws))).effect == "ask"


def test_a_rule_that_someone_wrote_covers_what_it_says(ws: Path) -> None:
    written = Rule(effect="allow", operation="execute", argv_prefix=("cp",), source="rules.json")
    assert effect(ws, "cp a .envrc", written) == "allow"
    exactly = Rule(effect="allow", argv=("cp", "a", ".envrc"), cwd=".", source="rules.json")
    assert effect(ws, "cp a .envrc", exactly) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("cp a .envrc", "bash -lc 'cp a .envrc'", "ls && cp a .envrc", "tee .envrc"),
        *("cp --weird a .envrc", "cp -Z a .envrc", "cp --target-directory=.git/hooks a"),
        *("rsync a .envrc", "sed -i s/a/b/ .envrc", "perl -pi -e 1 .envrc", "wget -O.envrc x"),
        *("cp -t .git/hooks a", "mv --weird .envrc x", "rm --weird .envrc", "install -t .husky a"),
    ],
)
def test_no_answer_covers_a_command_that_writes_a_protected_file(ws: Path, line: str) -> None:
    anything = Rule(effect="allow", operation="execute", cwd="**", source=YOUR_ANSWER)
    assert effect(ws, line, anything) == "ask"
    words = tuple(shlex.split(line))
    exactly = Rule(effect="allow", argv=words, cwd=".", source=YOUR_ANSWER)
    assert effect(ws, line, exactly) == "ask"
    access = terminal_access(line, agent="demo", cwd=str(ws), roots=(str(ws),))
    policy, workspace = Policy(), Workspace("s", str(ws))
    offers = Offers(access, policy.decide(access, workspace), policy, workspace)
    assert isinstance(offers.rules("allow", "project"), NoRule)
    assert offers.offer([PermissionOption("y", "Allow", "allow_once")]) == []
    assert effect(ws, "cp --weird a b", anything) == "allow"


def test_the_refusal_says_why(ws: Path) -> None:
    rules = answer(ws, "cp a b", "program")
    assert not isinstance(rules, NoRule)
    told = Policy(rules).explain(asked(ws, "cp a .envrc"), Workspace("s", str(ws)))
    assert [each.mismatch for each in told.considered] == [
        f"your answer does not cover it: {ws}/.envrc is protected: it runs when you enter"
        " the directory"
    ]
