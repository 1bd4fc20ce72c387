"""`dragoman policy trust`: has the rules in a project's own file count, as they are now."""

from __future__ import annotations

import argparse
import sys

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.host.permissions.always_rules import describe
from dragoman.host.rules.project_file import NAME, of_project, read_project_file
from dragoman.host.rules.rule import Rule
from dragoman.safe_text import reveal


def run(options: argparse.Namespace) -> int:
    """Only a person at a terminal trusts a file: no option answers in their place."""
    project = folder("--cwd", options.cwd or ".")
    file = read_project_file(project)
    stored = StoredRules()
    known = of_project(stored.list(), project)
    if file is None and not known:
        raise UsageError(f"{project} has no {NAME}")
    rules = () if file is None else file.rules()
    if file is not None and [rule.id for rule in known] == [rule.id for rule in rules]:
        print(f"{file.path} is trusted as it is")
        return Exit.DONE
    _show(rules, known)
    if not sys.stdin.isatty():
        raise UsageError("trusting a file needs a person at a terminal")
    if input("Apply these rules in this project? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing changed")
        return Exit.CANCELLED
    new = {rule.id for rule in rules}
    for rule in rules:
        stored.add(rule)
    for rule in known:
        if rule.id not in new:
            stored.revoke(rule.id)
    print(f"trusted {len(rules)} rule{'' if len(rules) == 1 else 's'}, until the file changes")
    return Exit.DONE


def _show(rules: tuple[Rule, ...], known: list[Rule]) -> None:
    before, now = [describe(rule) for rule in known], [describe(rule) for rule in rules]
    for sentence in now:
        print(reveal(f"{'  ' if sentence in before else '+ '}{sentence}"))
    for sentence in before:
        if sentence not in now:
            print(reveal(f"- {sentence}"))
