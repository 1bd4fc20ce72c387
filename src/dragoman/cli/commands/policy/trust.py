"""`dragoman policy trust`: has the rules in a project's own file count, as they are now."""

from __future__ import annotations

import argparse
import sys

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.host.permissions.always_rules import describe
from dragoman.host.rules.project_file import NAME, ProjectRules, project_rules, trust
from dragoman.safe_text import reveal


def run(options: argparse.Namespace) -> int:
    """Only a person at a terminal trusts a file: no option answers in their place."""
    project = folder("--cwd", options.cwd or ".")
    stored = StoredRules()
    found = project_rules(stored.list(), project)
    if found.problem is not None:
        raise found.problem
    if found.standing == "none":
        raise UsageError(f"{project} has no {NAME}")
    if found.is_settled:
        print(f"{found.path} is trusted as it is")
        return Exit.DONE
    _show(found)
    if not sys.stdin.isatty():
        raise UsageError("trusting a file needs a person at a terminal")
    if input("Apply these rules in this project? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing changed")
        return Exit.CANCELLED
    trust(stored, found)
    count = len(found.written)
    print(f"trusted {count} rule{'' if count == 1 else 's'}, until the file changes")
    return Exit.DONE


def _show(found: ProjectRules) -> None:
    for rule, written, trusted in found.compared():
        mark = "- " if not written else "  " if trusted else "+ "
        print(reveal(f"{mark}{describe(rule)}"))
