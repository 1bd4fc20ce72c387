"""Decides about commands, shell lines, reads and writes under five hundred stored rules, and prints
what each costs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import msgspec

from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import YOUR_RULE, Rule
from dragoman.host.workspace.reach import Reach, names_of
from dragoman.host.workspace.roots import Workspace
from dragoman.store.open import open_rules

RULES = (
    *(Rule(effect="allow", argv_prefix=(f"tool{n}", "run"), cwd="src") for n in range(120)),
    *(Rule(effect="allow", operation="write", path=f"docs/{n}/**") for n in range(100)),
    *(Rule(effect="deny", operation="write", path=f"keys/{n}/**") for n in range(60)),
    *(Rule(effect="ask", path=f"private{n}/**") for n in range(50)),
    *(Rule(effect="deny", path=f"/secret/{n}/*.key") for n in range(30)),
    *(Rule(effect="ask", operation="write", path=f"**/*.kind{n}") for n in range(20)),
    *(Rule(effect="deny", operation="execute", cwd=f"prod/{n}/**") for n in range(30)),
    *(Rule(effect="ask", operation="execute", cwd=f"/srv/{n}") for n in range(20)),
    *(
        Rule(effect="allow", argv_prefix=("pytest",), scope="project", project=f"/projects/{n}")
        for n in range(49)
    ),
    *(Rule(effect="deny", argv_prefix=("git", f"verb{n}")) for n in range(18)),
    Rule(effect="allow", argv_prefix=("git", "status")),
    Rule(effect="allow", argv_prefix=("pytest",)),
    Rule(effect="allow", operation="write", path="src/**"),
)
COMMAND, LINE = "pytest -q", "cd src && pytest -q {} 2>&1 | git status --short"
IN_A_ROUND = 20
LINES = 64  # more than are remembered


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(f"{folder}/work")
        os.makedirs(f"{root}/src")
        stored = open_rules(Path(folder, "data"))
        for number, rule in enumerate(RULES):
            stored.add(msgspec.structs.replace(rule, id=f"r{number}", source=YOUR_RULE))
        policy = Policy(stored=stored)
        workspace = Workspace("", root)

        def run(line: str) -> Access:
            return terminal_access(line, agent="demo", cwd=root, roots=(root,))

        def read() -> Access:
            seen = names_of(f"{root}/src/app.py")
            assert seen is not None
            return file_access("read", seen, agent="demo", roots=(root,))

        def write() -> Access:
            seen = Reach((root, os.path.expanduser("~"))).look(f"{root}/src/app.py")
            assert seen is not None
            return file_access("write", seen, agent="demo", roots=(root,))

        def microseconds(next_access: Callable[[], Access]) -> float:
            """Of the quickest round: others may use the machine too."""
            rounds = (one_round(next_access) for _ in range(count // IN_A_ROUND))
            return min(rounds) / IN_A_ROUND * 1e6

        def one_round(next_access: Callable[[], Access]) -> float:
            start = time.process_time()
            for _ in range(IN_A_ROUND):
                assert policy.decide(next_access(), workspace).effect == "allow"
            return time.process_time() - start

        command, line = run(COMMAND), run(LINE.format("tests"))
        lines = cycle([run(LINE.format(f"tests/test_{n}.py")) for n in range(LINES)])
        figures = {
            "command_us": microseconds(lambda: command),
            "line_us": microseconds(lambda: line),
            "new_line_us": microseconds(lambda: next(lines)),
            "read_us": microseconds(read),
            "write_us": microseconds(write),
        }
        stored.close()
    print(json.dumps(figures))


main(int(sys.argv[1]))
