"""Rules that a person writes, instead of answering a question: checked, compared and tried.

A rule that is stored but decides nothing is worse than none: its author relies on it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.host.commands.plain_command import plain_words
from dragoman.host.permissions.trial import Explained, Trial
from dragoman.host.rules.access import OPERATIONS, Operation
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.policy_file import parse_rule
from dragoman.host.rules.rule import YOUR_RULE, Rule, Scope, covered
from dragoman.host.workspace.roots import Workspace
from dragoman.lazy_pattern import lazy_pattern


def written_rule(
    fields: dict[str, Any],
    source: str,
    *,
    rule_id: str,
    scope: Scope,
    project: str,
    expires_at: float | None = None,
) -> Rule:
    """The rule of these keys, which are those of a file of rules; None is a key left out.

    Raises ConfigError for a rule that means nothing, with the `source` as its place.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    rule = parse_rule(given, source, home=os.path.expanduser("~"))
    return msgspec.structs.replace(
        rule,
        id=rule_id,
        source=YOUR_RULE,
        scope=scope,
        project=project if scope == "project" else None,
        expires_at=expires_at,
    )


def words_of(command: list[str]) -> list[str]:
    """The words of a command for a rule; a single one is a line, which has to be one plain command.
    Raises ValueError."""
    if len(command) != 1:
        return command
    words = plain_words(command[0])
    if words is None:
        raise ValueError(
            f"{command[0]!r} is not one plain command; write a rule for each command in it"
        )
    return list(words)


def same_rule(rules: Iterable[Rule], rule: Rule) -> Rule | None:
    """A rule among these that says the same."""
    return next((each for each in rules if _meaning(each) == _meaning(rule)), None)


def _meaning(rule: Rule) -> Rule:
    # Not without its source: an answer covers no dangerous command, and a file may change.
    return msgspec.structs.replace(rule, id="")


def doubts(rule: Rule, rules: Policy, workspace: Workspace) -> list[str]:
    """What speaks against the rule, a sentence each: it is tried on something that it names, with
    and without the other `rules`."""
    trial = _trial(rule)
    if trial is None:
        return []
    with_it = Policy((*rules.rules, rule))
    return list(_doubts(rule, trial.explain(rules, workspace), trial.explain(with_it, workspace)))


def _doubts(rule: Rule, before: Explained, after: Explained) -> Iterator[str]:
    decision = after.explanation.decision
    if before.explanation.decision.effect == rule.effect and not _is_unruled(before):
        reason = before.explanation.decision.reason
        yield f"it changes nothing for {before.subject}: {reason}"
    elif decision.rule is None or decision.rule.id != rule.id:
        told = (each.mismatch for each in after.explanation.considered if each.rule.id == rule.id)
        mismatch = next(told, None) if decision.unruled else None
        yield f"it has no effect on {after.subject}: {mismatch or decision.reason}"


def _is_unruled(explained: Explained) -> bool:
    return explained.explanation.decision.unruled


def _trial(rule: Rule) -> Trial | None:
    """Something that the rule names, None where that cannot be made up."""
    given = {name: getattr(rule, name) for name in ("agent", "path", "host", "tool")}
    named = {name: _sample(glob) for name, glob in given.items() if glob is not None}
    if None in named.values() or rule.cwd is not None:
        return None
    text = {name: sample or "" for name, sample in named.items()}
    agent, operation = text.pop("agent", ""), rule.operation or _likely(covered(rule))
    match operation:
        case "execute":
            words = list(rule.argv or rule.argv_prefix or ("a-command",))
            # Alone, a word would be read as a line.
            return Trial(command=words if words[1:] else [shlex.join(words)], agent=agent)
        case "read" | "write":
            text.setdefault("path", "a-file")
        case "fetch":
            text.setdefault("host", "example.com")
        case _:
            pass
    return Trial(
        operation=operation,
        paths=[text["path"]] if "path" in text else [],
        hosts=[text["host"]] if "host" in text else [],
        tool=text.get("tool"),
        agent=agent,
    )


def _likely(operations: frozenset[Operation]) -> Operation:
    """Of several, the one that is asked about most often."""
    return "write" if "write" in operations else next(e for e in OPERATIONS if e in operations)


_STARS = lazy_pattern(r"\\(.)|\*\*|\*|\?")


def _sample(glob: str) -> str | None:
    """A text that the glob matches; None for one with a class of characters."""
    if re.search(r"(?<!\\)\[", glob):
        return None
    return _STARS.sub(lambda found: found[1] or "x", glob)
