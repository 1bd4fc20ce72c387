"""Decides about commands and shell lines under five hundred rules, and prints what each costs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

from dragoman.host.rules.access import terminal_access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace

RULES = (
    *(Rule(effect="allow", argv_prefix=(f"tool{n}", "run"), cwd="src") for n in range(480)),
    *(Rule(effect="deny", argv_prefix=("git", f"verb{n}")) for n in range(18)),
    Rule(effect="allow", argv_prefix=("git", "status")),
    Rule(effect="allow", argv_prefix=("pytest",)),
)
COMMAND, LINE = "pytest -q", "cd src && pytest -q 2>&1 | git status --short"


def main(count: int) -> None:
    policy = Policy(RULES)
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(folder)
        os.mkdir(f"{root}/src")
        workspace = Workspace("", root)

        def microseconds(line: str) -> float:
            access = terminal_access(line, agent="demo", cwd=root, roots=(root,))
            start = time.process_time()
            for _ in range(count):
                assert policy.decide(access, workspace).effect == "allow"
            return (time.process_time() - start) / count * 1e6

        figures = {"command_us": microseconds(COMMAND), "line_us": microseconds(LINE)}
    print(json.dumps(figures))


main(int(sys.argv[1]))
