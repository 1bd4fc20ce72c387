"""A decision looks only at the rules that may match, and is the same as if it looked at all."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import decide, explain
from dragoman.host.rules.rule import Rule
from dragoman.host.rules.rule_index import RuleIndex, Sought

WS, OTHER = "/ws", "/more"
ROOTS = (WS, OTHER)

ACCESSES: list[Access] = [
    *(
        terminal_access(line, agent="demo", cwd=cwd, roots=ROOTS)
        for line, cwd in product(
            (
                "git status",
                "cd src && git status --short | pytest -q",
                "pytest -q > src/out.log",
                "pytest < src/a.py",
                "sudo git status; echo $x",
                "cd $x; git $y > src/*.py",
                "cd src; $x",
                "/usr/bin/git -C src status",
                "ls *; xargs git; python -c 'git status'",
                "bash -lc 'git status'",
            ),
            (WS, "/ws/src"),
        )
    ),
    *(
        file_access(operation, path, agent="demo", roots=ROOTS)
        for operation, path in product(
            ("read", "write"),
            ("/ws/src/a.py", "/ws/src", "/ws/a[b].py", "/more/src/a.py", "/away/a.py", "/"),
        )
    ),
    Access(operation="write", paths=("/ws/src/a.py", "/more/b.py"), roots=ROOTS),
    Access(operation="read", paths=("/ws/x",), aliases=("/ws/src/a.py",), roots=ROOTS),
    Access(operation="fetch", hosts=("example.com",), claimed=True, roots=ROOTS),
    Access(operation="mcp", tool="search", claimed=True, roots=ROOTS),
    Access(operation="other", also=("execute",), commands=("git status",), claimed=True),
]

PATHS = (
    *(
        "src/**",
        "src/a.py",
        "**",
        "**/*.py",
        "*",
        ".",
        "./src/**",
        "src/*.py",
        "src/a.*",
        "**/a.py",
        "**/a*.py",
        "**/*.p[xy]",
        "a\\[b\\].py",
        "s?c",
    ),
    *("/ws/src/**", "/ws/**", "/**", "/", "/ws/src/a.py", "/more/src/../**", "/away/**"),
)
CONDITIONS: list[dict[str, Any]] = [
    {},
    *({"path": path} for path in PATHS),
    *({"argv": tuple(words.split())} for words in ("git status", "pytest -q", "pytest")),
    *({"argv_prefix": tuple(words.split())} for words in ("git", "git status", "pytest", "sudo")),
    {"argv_prefix": ("git",), "cwd": "src"},
    {"argv": ("git", "status"), "path": "src/**"},
    {"cwd": "src"},
    {"host": "*.com"},
    {"tool": "search"},
]
OPERATIONS = (None, "read", "write", "execute", "fetch", "mcp", "other")
SCOPES: list[dict[str, Any]] = [
    {},
    {"scope": "project", "project": WS},
    {"scope": "project", "project": "/elsewhere"},
    {"scope": "session", "session": "s", "project": WS},
]
RULES = [
    Rule(effect=effect, operation=operation, **conditions, **scope)
    for effect, operation, conditions, scope in product(
        ("allow", "ask", "deny"), OPERATIONS, CONDITIONS, SCOPES
    )
]


@pytest.mark.parametrize("access", ACCESSES)
def test_rules_decide_the_same_if_only_some_are_looked_at(access: Access) -> None:
    for rule in RULES[:: len(SCOPES)]:
        alone = RuleIndex([rule], WS)
        told = explain(access, [rule], now=0, session_id="s", project=WS).decision
        assert decide(access, alone, now=0, session_id="s", project=WS) == told, rule
    some = random.Random(7)
    for _ in range(20):
        rules = some.sample(RULES, 30)
        told = explain(access, rules, now=0, session_id="s", project=WS).decision
        assert decide(access, rules, now=0, session_id="s", project=WS) == told
        assert decide(access, RuleIndex(rules, WS), now=0, session_id="s", project=WS) == told


def test_of_hundreds_of_rules_few_are_looked_at() -> None:
    rules = [
        *(Rule(effect="allow", argv_prefix=(f"tool{n}", "run")) for n in range(200)),
        *(Rule(effect="deny", argv=("git", f"verb{n}")) for n in range(100)),
        *(Rule(effect="allow", operation="write", path=f"src/{n}/**") for n in range(200)),
        *(
            Rule(effect="allow", argv=("git", "status"), scope="project", project=f"/{n}")
            for n in range(200)
        ),
        Rule(effect="allow", argv=("git", "status")),
        Rule(effect="allow", path="src/1/**"),
    ]
    index = RuleIndex(rules, WS)
    run = Sought(
        operations={"execute"},
        commands=[("git", "status")],
        programs={"git"},
        words={"git", "status"},
        folders=["/ws"],
        hosts=False,
        tools=False,
        roots=ROOTS,
    )
    assert index.about(run) == [rules[-2]]
    write = Sought(
        operations={"write"}, paths=["/ws/src/1/a.py"], hosts=False, tools=False, roots=ROOTS
    )
    assert index.about(write) == [rules[301], rules[-1]]
    strict = [
        *(Rule(effect="deny", operation="write", path=f"src/{n}/**") for n in range(200)),
        *(Rule(effect="ask", path=f"**/*.{n}") for n in range(200)),
        *(Rule(effect="deny", cwd=f"src/{n}") for n in range(200)),
        *(Rule(effect="deny", host=f"{n}.example") for n in range(200)),
        *(Rule(effect="deny", tool=f"tool{n}") for n in range(200)),
        *(Rule(effect="allow", cwd=f"src/{n}") for n in range(200)),
        Rule(effect="ask", argv_prefix=("/usr/bin/git",)),
        Rule(effect="deny", path="**/a.py"),
        Rule(effect="deny", path="src/[1]/a.py"),
    ]
    index = RuleIndex(strict, WS)
    assert index.about(run) == [strict[-3]]
    assert index.about(write) == [strict[1], strict[-2], strict[-1]]


def test_an_index_is_of_its_rules_and_project_alone() -> None:
    rules = (Rule(effect="allow", argv=("ls",)), Rule(effect="deny", argv=("rm",)))
    index = RuleIndex(rules, WS)
    assert index.is_of(rules, WS)
    assert not index.is_of(rules, OTHER)
    assert not index.is_of(rules[:1], WS)
    assert not index.is_of((rules[1], rules[0]), WS)
