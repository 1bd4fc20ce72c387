"""`dragoman policy add`: stores a rule that a person writes."""

from __future__ import annotations

import argparse
import time
import uuid
from typing import Any

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.host.permissions.always_rules import describe
from dragoman.host.permissions.own_rules import doubts, same_rule, words_of, written_rule
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule, RuleFields
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal

_DAY = 24 * 3600.0


def run(options: argparse.Namespace) -> int:
    project = folder("--cwd", options.cwd or ".")
    rule = _rule(options, project)
    stored = StoredRules()
    known = same_rule(stored.list(), rule)
    if known is None:
        for doubt in doubts(rule, Policy(stored=stored), Workspace("", project)):
            tell(f"warning: {doubt}")
        stored.add(rule)
    _show(known or rule, "stored already" if known else "added", as_json=options.json)
    return 0


def _rule(options: argparse.Namespace, project: str) -> Rule:
    if options.scope == "user" and options.cwd is not None:
        raise UsageError("--cwd names a project, and --scope user is for all of them")
    expires = options.expires
    return written_rule(
        {"effect": options.effect, **_conditions(options)},
        "policy add",
        rule_id=uuid.uuid4().hex[:12],
        scope=options.scope,
        project=project,
        expires_at=None if expires is None else time.time() + expires * _DAY,
    )


def _conditions(options: argparse.Namespace) -> dict[str, Any]:
    command: list[str] = options.command
    conditions: dict[str, Any] = {
        "operation": options.operation,
        "path": options.path,
        "cwd": options.folder,
        "host": options.host,
        "tool": options.tool,
        "agent": options.agent,
    }
    if not command and options.prefix:
        raise UsageError("--prefix needs the first words of a command after --")
    if not command:
        if not any(conditions.values()) and options.effect != "ask":
            raise UsageError("say what the rule is about: --operation, or a command after --")
        return conditions
    if options.operation not in (None, "execute"):
        raise UsageError("a command implies --operation execute")
    try:
        words = words_of(command)
    except ValueError as error:
        raise UsageError(str(error)) from error
    key = "argv_prefix" if options.prefix else "argv"
    return conditions | {"operation": "execute", key: words}


def _show(rule: Rule, verb: str, *, as_json: bool) -> None:
    if as_json:
        fields = {"sentence": describe(rule), "rule": RuleFields.of(rule)}
        print(indented_json(fields))
        return
    where = "" if rule.project is None else f" ({rule.project})"
    print(reveal(f"{verb} {rule.id}: {describe(rule)}{where}"))
