"""`dragoman policy test`: whether files of rules decide a table of cases as expected."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.agent_setup import given_rules
from dragoman.host.permissions.trial import Explained, Trial
from dragoman.host.rules.access import Operation
from dragoman.host.rules.policy import Effect, Policy
from dragoman.host.rules.policy_file import read_document
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal


class PolicyCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request, and what should be decided. `command` is a line for a shell, `argv` the words of a
    command; a `host` may be an address."""

    expect: Effect
    operation: Operation | None = None
    command: str | None = None
    argv: list[str] | None = None
    path: str | None = None
    host: str | None = None
    tool: str | None = None
    agent: str = ""

    def explain(self, policy: Policy, workspace: Workspace) -> Explained:
        """Raises ValueError."""
        if self.command is not None and self.argv is not None:
            raise ValueError("name a command or an argv, not both")
        return Trial(
            operation=self.operation,
            command=self.argv or ([] if self.command is None else [self.command]),
            paths=[] if self.path is None else [self.path],
            hosts=[] if self.host is None else [self.host],
            tool=self.tool,
            agent=self.agent,
        ).explain(policy, workspace)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cases: list[PolicyCase]


class CheckedCase(msgspec.Struct, frozen=True):
    """What was expected of a case, and what was decided."""

    expected: Effect
    explained: Explained

    @property
    def holds(self) -> bool:
        return self.explained.explanation.decision.effect == self.expected

    def fields(self) -> dict[str, Any]:
        return {"expect": self.expected, "holds": self.holds, **self.explained.fields()}

    def text(self) -> str:
        decision = self.explained.explanation.decision
        what = f"expected {self.expected}, got {decision.effect}: {self.explained.subject}"
        return f"{reveal(what)}\n  because {reveal(decision.reason)}"


def run(options: argparse.Namespace) -> int:
    checked = _checked(options)
    differing = [each for each in checked if not each.holds]
    if options.json:
        shown = [each.fields() for each in checked]
        print(indented_json(shown))
    else:
        for each in differing:
            print(each.text())
        count = f"{len(checked)} case{'' if len(checked) == 1 else 's'}"
        result = f"{len(differing)} not as expected" if differing else "all as expected"
        print(f"{options.file}: {count}, {result}")
    return Exit.FAILED if differing else Exit.DONE


def _checked(options: argparse.Namespace) -> list[CheckedCase]:
    file: str = options.file
    try:
        table = msgspec.convert(read_document(Path(file)), _Table)
    except msgspec.ValidationError as error:
        raise UsageError(f"{file}: {_told(error)}") from error
    policy = Policy(given_rules(options))
    more = tuple(map(os.path.abspath, options.add_dir))
    workspace = Workspace("", os.path.abspath(options.cwd or "."), more)
    return [_checked_case(case, at, file, policy, workspace) for at, case in enumerate(table.cases)]


def _checked_case(
    case: PolicyCase, at: int, file: str, policy: Policy, workspace: Workspace
) -> CheckedCase:
    try:
        return CheckedCase(case.expect, case.explain(policy, workspace))
    except ValueError as error:
        raise UsageError(f"{file}: cases[{at}]: {error}") from error


def _told(error: msgspec.ValidationError) -> str:
    """What is wrong, after where: `cases[2].expect: invalid enum value 'maybe'`."""
    what, _, where = str(error).partition(" - at `$")
    place = where.rstrip("`").lstrip(".")
    words = f"{what[:1].lower()}{what[1:]}"
    return f"{place}: {words}" if place else words
