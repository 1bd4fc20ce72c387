"""What an answer for longer than once covers next time, and what it does not: pair by pair.

A row names a request, what the person chose to remember of it, and requests that follow. All of
them come from the agent `demo` in the project /ws, unless they say otherwise.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec
import pytest

from dragoman.host.permissions.always_rules import (
    Breadth,
    NoRule,
    Tenure,
    always_rules,
)
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import PolicyDecision, Rule, Scope, decide

ROOTS = ("/ws",)
UNRULED = PolicyDecision("ask", "no rule allows it", unruled=True)


class Row(NamedTuple):
    asked: str
    breadth: Breadth
    covers: tuple[str, ...]
    leaves: tuple[str, ...]
    confirmed: bool = False


ROWS = (
    # ── the same program, and no more of it than was seen ─────────────────────────────────────
    Row(
        "$ curl -s https://example.com/a",
        "program",
        covers=("$ curl -s https://example.com/b", "$ curl -fsSL https://example.com"),
        leaves=(
            *("$ curl -so x u", "$ curl -fsSLo x u", "$ curl -sO u", "$ curl --outp x u"),
            *("$ curl -sK x", "$ curl -sc jar u", "$ curl --rem u", "$ curl -D x u"),
        ),
    ),
    Row(
        "$ sort -u a",
        "program",
        covers=("$ sort -nr b",),
        leaves=("$ sort -uo b a", "$ sort -o b a", "$ sort --ou=b a", "$ sort --compress-p=sh a"),
    ),
    Row(
        "$ git grep foo",
        "program",
        covers=("$ git grep -n bar", "$ git grep --count x"),
        leaves=("$ git grep --op=sh x", "$ git grep -nOsh x", "$ git grep --open-files-in-pager x"),
    ),
    Row(
        "$ make test",
        "program",
        covers=("$ make test", "$ make test -j4", "$ make test --silent"),
        leaves=(
            *("$ make test SHELL=/tmp/x", "$ make test deploy", "$ make test -f other.mk"),
            *("$ make test -C ../x", "$ make test --eval=x", "$ make deploy", "$ make test -sf x"),
        ),
    ),
    Row(
        "$ man ls",
        "program",
        covers=("$ man git", "$ man -k x"),
        leaves=("$ man -Psh ls", "$ man -P sh ls", "$ man --pager=sh ls", "$ man -H/tmp/x ls"),
    ),
    Row(
        "$ svn diff",
        "program",
        covers=("$ svn diff a", "$ svn diff --diff"),
        leaves=("$ svn diff --diff-cmd sh", "$ svn diff --diff3-cmd=sh"),
    ),
    Row(
        "$ gcc -c a.c",
        "program",
        covers=("$ gcc -Wall b.c", "$ gcc -g -o b b.c"),
        leaves=("$ gcc -wrapper sh a.c", "$ gcc -fplugin=x a.c", "$ gcc -B. a.c", "$ gcc @x"),
    ),
    Row(
        "$ npm test",
        "program",
        covers=("$ npm test", "$ npm test -- --host x"),
        leaves=("$ npm test --script-shell=sh", "$ npm test --scr=sh"),
    ),
    Row(
        "$ go vet x",
        "program",
        covers=("$ go vet y",),
        leaves=("$ go vet -vettool=sh", "$ go vet --vettool sh"),
    ),
    Row(
        "$ docker-compose up",
        "program",
        covers=("$ docker-compose up -d",),
        leaves=("$ docker-compose run x", "$ docker-compose exec x sh", "$ docker-compose down"),
    ),
    Row(
        "$ dune build",
        "program",
        covers=("$ dune build x",),
        leaves=("$ dune exec x", "$ dune"),
    ),
    Row(
        "$ uniq a",
        "program",
        covers=("$ uniq -c a", "$ uniq a b"),
        leaves=("$ uniq a .envrc", "$ uniq -c a .git/config", "$ uniq a /tmp/x"),
    ),
    Row(
        "$ python -m pip list",
        "program",
        covers=("$ python -m pip list --json",),
        leaves=("$ python -m pip install x", "$ python -m pip", "$ python -m venv x"),
    ),
    Row(
        "$ docker image ls",
        "program",
        covers=("$ docker image ls -a",),
        leaves=("$ docker image rm x", "$ docker image", "$ docker volume ls"),
    ),
    Row(
        "$ gh release list",
        "program",
        covers=("$ gh release list --limit 3",),
        leaves=("$ gh release delete x", "$ gh release create x", "$ gh workflow run x"),
    ),
    Row(
        "$ aws ec2 describe-instances",
        "program",
        covers=("$ aws ec2 describe-instances --region x",),
        leaves=("$ aws ec2 run-instances", "$ aws s3 ls", "$ aws ec2 terminate-instances"),
    ),
    Row(
        "$ npm pkg get name",
        "program",
        covers=("$ npm pkg get version",),
        leaves=("$ npm pkg set scripts.test=x", "$ npm pkg delete name"),
    ),
    Row(
        "$ rustup toolchain list",
        "program",
        covers=("$ rustup toolchain list -v",),
        leaves=("$ rustup toolchain install x", "$ rustup run stable sh"),
    ),
    # ── this command ──────────────────────────────────────────────────────────────────────────
    Row(
        "$ pytest -q",
        "this",
        covers=(
            "$ pytest -q",
            "$ 'pytest' \"-q\"",
            "$ bash -lc 'pytest -q'",
            "$ timeout 60 pytest -q",
        ),
        leaves=(
            *("$ pytest", "$ pytest -q tests/x.py", "$ pytest -q; ls", "$ pytest -q && rm a"),
            *("$ pytest -q | tee x", "$ pytest -q > out.txt", "$ pytest -q &", "$ pytest $X"),
            *("sub$ pytest -q", "$ cd sub && pytest -q", "other: $ pytest -q", "$ X=1 pytest -q"),
        ),
    ),
    Row(
        "$ cd src && ls",
        "this",
        covers=("$ cd src && ls", "src$ ls", "$ cd ./src && ls"),
        leaves=(
            "$ ls",
            "$ cd src && ls -la",
            "$ cd lib && ls",
            "$ cd src; ls",
            "$ cd src && ls && rm a",
        ),
    ),
    Row(
        "$ git status --short && echo done",
        "this",
        covers=(
            *("$ git status --short && echo done", "$ git status --short", "$ echo done"),
            *("$ echo done; git status --short", "$ git status --short | echo done"),
        ),
        leaves=(
            *("$ git status", "$ git status --short && echo other", "$ git push && echo done"),
            *("$ git status --short && echo done > x", "$ git status --short && echo $done"),
        ),
    ),
    Row(
        "$ ls -la && wc -l README.md",
        "this",
        covers=("$ ls -la && wc -l README.md", "$ wc -l README.md && ls -la", "$ ls -la"),
        leaves=("$ wc -l a", "$ ls", "$ ls -la && wc -l README.md && cat a", "$ ls -la *"),
    ),
    Row(
        "$ echo hi > out.txt",
        "this",
        covers=("$ echo hi > out.txt", "$ echo hi >> out.txt", "$ echo hi", "write out.txt"),
        leaves=("$ echo hi > other.txt", "$ echo hi > sub/out.txt", "write other.txt"),
    ),
    Row(
        "$ bash -lc 'git status && ls'",
        "this",
        covers=("$ bash -lc 'git status && ls'", "$ git status && ls", "$ ls", "$ sh -c 'ls'"),
        leaves=("$ bash -lc 'git status && ls && rm a'", "$ bash -lc 'ls -la'", "$ bash x.sh"),
    ),
    Row(
        "$ timeout 60 make test",
        "this",
        covers=("$ timeout 60 make test",),
        leaves=(
            "$ timeout 60 make",
            "$ timeout 60 make deploy",
            "$ make test",
            "$ timeout 90 make test",
        ),
    ),
    Row(
        "argv: bash|-lc|npm test && npm run lint",
        "this",
        covers=(
            "argv: bash|-lc|npm test && npm run lint",
            "$ npm test && npm run lint",
            "argv: npm|test",
        ),
        leaves=("argv: bash|-lc|npm test && npm run x", "argv: npm|test|x", "$ npm run"),
    ),
    Row(
        "argv: python|-c|print(1); print(2)",
        "this",
        covers=("argv: python|-c|print(1); print(2)",),
        leaves=("argv: python|-c|print(1)", "argv: python|-c|import os", "$ python -c 1"),
    ),
    Row(
        "$ rm -rf build",
        "this",
        covers=("$ rm -rf build",),
        leaves=("$ rm -rf .", "$ rm -rf build src", "$ rm -r build", "sub$ rm -rf build"),
        confirmed=True,
    ),
    # ── the same program ──────────────────────────────────────────────────────────────────────
    Row(
        "$ pytest -q",
        "program",
        covers=(
            *(
                "$ pytest -q tests/x.py",
                "$ pytest",
                "$ pytest -x -k 'a or b'",
                "$ cd sub && pytest",
            ),
            *("sub$ pytest -q", "$ timeout 60 pytest -q", "$ bash -lc 'pytest -q'"),
            *("$ pytest -q && pytest -x", "$ NO_COLOR=1 pytest -q"),
        ),
        leaves=(
            *("$ pytest2", "$ python -m pytest", "$ ./pytest", "$ pytest -q; ls", "$ pytest | sh"),
            *("$ pytest $(ls)", "$ pytest -q > out.txt", "$ pytest &", "other: $ pytest -q"),
            *("/tmp$ pytest -q", "$ X=1 pytest", "$ pytest 'a; b'", "write pytest"),
        ),
    ),
    Row(
        "$ git status --short && echo done",
        "program",
        covers=(
            *(
                "$ git status",
                "$ git status --short src",
                "$ echo other",
                "$ git status && echo x y",
            ),
            "$ cd src && git status",
        ),
        leaves=(
            *("$ git status --output=x", "$ git status --exec-path=x"),
            *("$ git", "$ git push", "$ git -C / status", "$ git -c a=b status", "$ git stash"),
            *("$ git status && git push", "$ git status && ls", "$ echo x > a", "$ echo $HOME"),
        ),
    ),
    Row(
        "$ npm run test",
        "program",
        covers=("$ npm run test", "$ npm run test -- --watch", "$ npm run test x"),
        leaves=(
            "$ npm run",
            "$ npm run deploy",
            "$ npm test",
            "$ npm install",
            "$ npm run test && ls",
        ),
    ),
    Row(
        "$ git push origin main",
        "program",
        covers=("$ git push origin main", "$ git push", "$ git push -u origin x"),
        leaves=(
            *("$ git push --force", "$ git push -f origin main", "$ git push origin +main"),
            *("$ git push --delete origin x", "$ git push origin :x", "$ git pull"),
        ),
    ),
    Row(
        "$ python -m pytest -q",
        "program",
        covers=("$ python -m pytest", "$ python -m pytest tests/x.py"),
        leaves=(
            "$ python -m pip install x",
            "$ python -c 1",
            "$ python x.py",
            "sub$ python -m pytest",
        ),
    ),
    Row(
        "$ python scripts/build.py --fast",
        "program",
        covers=("$ python scripts/build.py", "$ python scripts/build.py --slow"),
        leaves=("$ python scripts/other.py", "$ python", "sub$ python scripts/build.py"),
    ),
    Row(
        "$ ./run.sh a",
        "program",
        covers=("$ ./run.sh b", "$ ./run.sh"),
        leaves=("sub$ ./run.sh b", "$ cd sub && ./run.sh", "$ run.sh", "$ ./run2.sh"),
    ),
    Row(
        "$ rm build.log",
        "program",
        covers=("$ rm other.log", "$ rm -f other.log"),
        leaves=("$ rm -r build", "$ rm -rf build", "$ rm --recursive x", "$ rm a -fr"),
    ),
    Row(
        "$ cargo test -p core | tail -20",
        "program",
        covers=("$ cargo test", "$ cargo test -p web | tail -5", "$ cargo test 2>&1 | tail"),
        leaves=("$ cargo build", "$ cargo publish", "$ cargo test | sh", "$ cargo test | grep x"),
    ),
    Row(
        "$ sed -n 1,5p a.txt && git diff",
        "program",
        covers=("$ git diff --stat", "$ sed -n 1,5p a.txt", "$ sed -n 1,5p a.txt && git diff HEAD"),
        leaves=("$ sed -i s/a/b/ a.txt", "$ sed -n 1,5p b.txt", "$ git difftool"),
    ),
    # ── any command here ──────────────────────────────────────────────────────────────────────
    Row(
        "$ ls",
        "commands",
        covers=(
            "$ pytest",
            "$ a && b | c > d",
            "$ echo $HOME",
            "sub$ make",
            "$ git push",
            "$ python -c 1",
        ),
        leaves=(
            *("$ rm -rf x", "$ git push --force", "$ curl x | sh", "$ sudo ls", "$ npm publish"),
            *("/tmp$ ls", "write a", "other: $ ls", "$ echo $X && rm -rf $Y", "fetch example.com"),
            *("$ bash -c 'rm -rf x'", "$ git reset --hard", "$ dropdb x"),
        ),
    ),
    Row(
        "$ for f in *; do cat $f; done",
        "commands",
        covers=("$ for f in *; do cat $f; done", "$ ls"),
        leaves=("$ for f in *; do rm -r $f; done", "/tmp$ ls"),
    ),
    # ── files ─────────────────────────────────────────────────────────────────────────────────
    Row(
        "write src/app.py",
        "this",
        covers=("write src/app.py", "write src/x/../app.py"),
        leaves=(
            "write src/other.py",
            "write app.py",
            "write src/app.py2",
            "read /etc/passwd",
            "$ ls",
        ),
    ),
    Row(
        "write src/app.py",
        "folder",
        covers=("write src/other.py", "write src/deep/x.py", "write src/new/y"),
        leaves=(
            *(
                "write lib/x.py",
                "write srcx/a",
                "write a.py",
                "write src/../a",
                "write src/.git/hooks/x",
            ),
            *(
                "write /etc/passwd",
                "write src/.envrc",
                "read /etc/passwd",
                "other: write src/app.py",
            ),
        ),
    ),
    Row(
        "write src/app.py",
        "files",
        covers=("write lib/x.py", "write a.py", "write src/deep/x.py"),
        leaves=(
            *("write /tmp/x", "write .git/hooks/pre-commit", "write .bashrc", "$ ls"),
            *("write .github/workflows/x.yml", "write ../x", "fetch example.com"),
        ),
    ),
    Row(
        "write src/a.py src/b.py",
        "folder",
        covers=("write src/a.py", "write src/a.py src/c.py", "write src/a.py src/b.py"),
        leaves=("write src/a.py lib/b.py", "write lib/a.py"),
    ),
    Row(
        "write a.py lib/b.py",
        "files",
        covers=("write a.py lib/b.py", "write x"),
        leaves=("write /tmp/x",),
    ),
    Row(
        "read /usr/include/a.h",
        "this",
        covers=("read /usr/include/a.h",),
        leaves=("read /usr/include/b.h",),
    ),
    Row(
        "read /usr/include/a.h",
        "folder",
        covers=("read /usr/include/sys/b.h", "read /usr/include/b.h"),
        leaves=(
            "read /usr/lib/b",
            "read /etc/passwd",
            "write /usr/include/a.h",
            "read /usr/include2/a",
        ),
    ),
    # ── hosts and tools ───────────────────────────────────────────────────────────────────────
    Row(
        "fetch docs.example.com",
        "this",
        covers=("fetch docs.example.com", "fetch DOCS.example.com"),
        leaves=("fetch example.com", "fetch docs.example.com.evil.org", "$ curl docs.example.com"),
    ),
    Row(
        "mcp fs/list",
        "this",
        covers=("mcp fs/list",),
        leaves=("mcp fs/write", "mcp fs/list2", "$ ls"),
    ),
)


def request(text: str) -> Access:
    agent, _, rest = text.rpartition(": ") if text.startswith("other: ") else ("demo", "", text)
    if rest.startswith("argv: "):
        first, *others = rest.removeprefix("argv: ").split("|")
        return terminal_access(first, others, agent=agent, cwd="/ws", roots=ROOTS)
    word, _, names = rest.partition(" ")
    if word.endswith("$"):
        folder = f"/ws/{word[:-1]}" if not word.startswith("/") else word[:-1]
        return terminal_access(names, agent=agent, cwd=folder, roots=ROOTS)
    if word == "fetch":
        return Access(operation="fetch", agent=agent, hosts=(names,), roots=ROOTS)
    if word == "mcp":
        return Access(operation="mcp", agent=agent, tool=names, roots=ROOTS)
    paths = [name if name.startswith("/") else f"/ws/{name}" for name in names.split()]
    one = file_access("write" if word == "write" else "read", paths[0], agent=agent, roots=ROOTS)
    return msgspec.structs.replace(one, paths=tuple(paths))


def rules(row: Row, scope: Scope = "project") -> tuple[Rule, ...]:
    terms = Tenure(scope=scope, session="s", project="/ws", confirmed=row.confirmed)
    made = always_rules(
        request(row.asked), "allow", UNRULED, terms, breadth=row.breadth, new_id=lambda: "r"
    )
    assert not isinstance(made, NoRule), made
    return made


def effect(made: tuple[Rule, ...], text: str, *, project: str = "/ws") -> str:
    return decide(request(text), made, now=0, session_id="s", project=project).effect


NAMES = [f"{row.asked} - {row.breadth}" for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_rule_covers_the_request_it_was_made_from_and_what_is_like_it(row: Row) -> None:
    made = rules(row)
    asked = [text for text in (row.asked, *row.covers) if effect(made, text) != "allow"]
    assert asked == []


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_rule_does_not_cover_what_is_unlike_it(row: Row) -> None:
    made = rules(row)
    allowed = [text for text in row.leaves if effect(made, text) == "allow"]
    assert allowed == []


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_rule_for_a_project_or_a_session_counts_nowhere_else(row: Row) -> None:
    assert effect(rules(row), row.asked, project="/other") != "allow"
    of_session = rules(row, "session")
    told = decide(request(row.asked), of_session, now=0, session_id="another", project="/ws")
    assert told.effect != "allow"


def test_there_are_enough_pairs() -> None:
    assert sum(len(row.covers) + len(row.leaves) for row in ROWS) >= 200


NOT_REMEMBERED = (
    *(
        (f"$ {line}", "program", "not one of a program")
        for line in (
            *("uv run python3 a.py", "npx node a.js", "bundle exec ruby a.rb", "tsx -e 1"),
            *("deno run main.ts", "pnpm dlx x", "pipx run x", "npm init x", "conda run ls"),
            *("docker compose run web ls", "taskset 1 ls", "nix run x", "yarn node x"),
        )
    ),
    ("$ rm -rf build", "this", "rm deletes folders"),
    ("$ git push --force", "program", "git push rewrites"),
    ("$ echo $HOME", "this", "only running the line"),
    ("$ echo $HOME", "program", "only running the line"),
    ("$ python -c 1", "program", "not one of a program"),
    ("$ sed -i s/a/b/ x", "program", "not one of a program"),
    ("$ xargs ls", "program", "not one of a program"),
    ("$ git -c alias.x=y x", "program", "not one of a program"),
    ("$ ls > .git/hooks/x", "this", "asked for each time"),
    ("/tmp$ ls", "commands", "outside the workspace"),
    ("$ ls", "folder", "no files"),
    ("write a.py", "folder", "no folder of their own"),
    ("write a.py src/b.py", "this", "one path"),
    ("write .git/config", "this", "protected"),
    ("write src/a.py", "program", "no folder"),
    ("read /etc/passwd /usr/x", "folder", "no folder"),
    ("fetch example.com", "folder", "precise enough"),
)


@pytest.mark.parametrize(("asked", "breadth", "reason"), NOT_REMEMBERED)
def test_what_no_rule_of_this_breadth_describes_is_not_remembered(
    asked: str, breadth: Breadth, reason: str
) -> None:
    terms = Tenure(scope="project", session="s", project="/ws")
    made = always_rules(request(asked), "allow", UNRULED, terms, breadth=breadth, new_id=str)
    assert isinstance(made, NoRule)
    assert reason in made.reason


def test_a_program_that_is_allowed_everywhere_runs_in_any_workspace_but_not_outside() -> None:
    made = rules(Row("$ pytest -q", "program", (), ()), "user")
    assert effect(made, "$ pytest -x", project="/other") == "allow"
    assert effect(made, "/tmp$ pytest -x") != "allow"


HOME = os.path.expanduser("~")


def test_the_folder_of_a_file_is_not_offered_if_the_home_is_in_it() -> None:
    tenure = Tenure(scope="project", session="s", project="/ws")
    asked = file_access("read", f"{HOME}/.gitconfig", agent="demo", roots=ROOTS)
    made = always_rules(asked, "allow", UNRULED, tenure, breadth="folder", new_id=str)
    assert isinstance(made, NoRule)


def test_a_folder_of_an_answer_does_not_cover_credentials() -> None:
    made = rules(Row("read /srv/a/b.txt", "folder", (), ()))
    assert effect(made, "read /srv/a/c.txt") == "allow"
    assert effect(made, "read /srv/a/.ssh/id_rsa") == "ask"


def test_credentials_are_remembered_only_word_for_word_and_if_it_is_said_twice() -> None:
    asked = file_access("read", "/srv/.ssh/id_rsa", agent="demo", roots=ROOTS)
    once = Tenure(scope="project", session="s", project="/ws")
    assert isinstance(always_rules(asked, "allow", UNRULED, once, new_id=str), NoRule)
    twice = msgspec.structs.replace(once, confirmed=True)
    made = always_rules(asked, "allow", UNRULED, twice, new_id=str)
    assert not isinstance(made, NoRule)
    assert effect(made, "read /srv/.ssh/id_rsa") == "allow"


def test_a_script_behind_a_runner_counts_in_its_folder_only() -> None:
    made = rules(Row("$ uv run x.py", "program", (), ()))
    assert effect(made, "$ uv run x.py --fast") == "allow"
    assert effect(made, "sub$ uv run x.py") == "ask"
