"""What a person can allow for longer than once, and the rules that each such answer makes.

The rules are made when the question is asked, so that what is stored is what was shown. What is
offered has been tried: with its rules, the same request would be allowed.
"""

from __future__ import annotations

import posixpath
import shlex
import time
import uuid
from collections.abc import Iterator, Sequence

from dragoman.errors import DragomanError
from dragoman.host.commands.danger import danger_of
from dragoman.host.permissions.always_rules import (
    Breadth,
    Tenure,
    always_rules,
    folder_of,
)
from dragoman.host.permissions.wording import MOST_RULES, all_in_short, just_this
from dragoman.host.rules.access import Access
from dragoman.host.rules.line_steps import Steps
from dragoman.host.rules.policy import Policy, PolicyDecision, decide, on_disk
from dragoman.host.rules.rule import Answer, NoRule, Rule, Scope
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal
from dragoman.session.facts import PermissionOffer, PermissionOption
from dragoman.session.permission_options import choose_option

_SCOPE_WORDS: dict[Scope, str] = {
    "session": "in this session",
    "project": "in this project",
    "user": "everywhere",
}
_HERE: tuple[Scope, ...] = ("session", "project")
_ANYWHERE: tuple[Scope, ...] = (*_HERE, "user")
_FILES: dict[Breadth, tuple[Scope, ...]] = {"this": _HERE, "folder": _HERE, "files": _HERE}
_BREADTHS: dict[str, dict[Breadth, tuple[Scope, ...]]] = {
    "read": _FILES,
    "write": _FILES,
    "execute": {"this": _HERE, "program": _ANYWHERE, "commands": _HERE},
    "fetch": {"this": _ANYWHERE},
    "mcp": {"this": _ANYWHERE},
}
_MOST_SHOWN = 3
_LONGEST_SHOWN = 80


class Offers:
    """The lasting answers to one request, which are made once."""

    def __init__(
        self, access: Access, decision: PolicyDecision, policy: Policy, workspace: Workspace
    ) -> None:
        self.danger = danger_of(access)
        """Why to think twice about the command."""
        self._access = access
        self._decision = decision
        self._policy = policy
        self._workspace = workspace
        self._look = on_disk(access)
        self._made: dict[tuple[Answer, Breadth, Scope, bool], tuple[Rule, ...] | NoRule] = {}
        self._offered: dict[str, tuple[PermissionOffer, tuple[Rule, ...]]] = {}

    def rules(self, answer: Answer, scope: Scope) -> tuple[Rule, ...] | NoRule:
        """Those of an answer for exactly this."""
        return self._rules(answer, "this", scope, confirmed=False)

    def offer(self, options: Sequence[PermissionOption]) -> list[PermissionOffer]:
        """All that can be offered next to these options. The agent gets a one-time yes, since the
        rules decide the next time; where it takes no such answer, there is nothing to offer."""
        once = choose_option(options, "allow", names_action=self._access.action)
        if once is not None:
            taken = {option.id for option in options}
            found = ((each, rules) for each, rules in self._found() if each.id not in taken)
            self._offered = {each.id: (each, rules) for each, rules in found}
        return [each for each, _ in self._offered.values()]

    def chosen(self, offer_id: str | None) -> tuple[PermissionOffer, tuple[Rule, ...]] | None:
        """What was offered under this id, and its rules."""
        return self._offered.get(offer_id or "")

    def remember(self, rules: tuple[Rule, ...] | NoRule) -> str | None:
        """Keep the rules; the reason if that is not possible."""
        if isinstance(rules, NoRule):
            return rules.reason
        try:
            for rule in rules:
                self._policy.remember(rule, self._workspace)
        except (OSError, DragomanError) as error:
            return f"it could not be stored: {error}"
        return None

    def _found(self) -> Iterator[tuple[PermissionOffer, tuple[Rule, ...]]]:
        confirm = self.danger is not None
        for breadth, scopes in _BREADTHS.get(self._access.operation, {}).items():
            for scope in scopes:
                rules = self._rules("allow", breadth, scope, confirmed=confirm)
                if isinstance(rules, NoRule) or len(rules) > MOST_RULES:
                    break
                if not self._allow_it(rules):
                    break
                yield self._worded(breadth, scope, rules, confirm), rules

    def _allow_it(self, rules: tuple[Rule, ...]) -> bool:
        decision = decide(
            self._access,
            rules,
            now=time.time(),
            session_id=self._workspace.session_id,
            project=self._workspace.cwd,
            look=self._look,
        )
        return decision.effect == "allow"

    def _rules(
        self, answer: Answer, breadth: Breadth, scope: Scope, *, confirmed: bool
    ) -> tuple[Rule, ...] | NoRule:
        key = (answer, breadth, scope, confirmed)
        if key not in self._made:
            self._made[key] = always_rules(
                self._access,
                answer,
                self._decision,
                Tenure(
                    scope=scope,
                    session=self._workspace.session_id,
                    project=self._workspace.cwd,
                    confirmed=confirmed,
                ),
                breadth=breadth,
                new_id=_new_id,
                steps=lambda access: Steps(access, self._look),
            )
        return self._made[key]

    def _worded(
        self, breadth: Breadth, scope: Scope, rules: tuple[Rule, ...], confirm: bool
    ) -> PermissionOffer:
        subject = self._subject(breadth, rules)
        return PermissionOffer(
            id=f"remember:{breadth}:{scope}",
            breadth=breadth,
            scope=scope,
            subject=subject,
            words=f"Allow {subject} {_SCOPE_WORDS[scope]}",
            consequence=just_this(rules) if breadth == "this" else all_in_short(rules),
            confirm=confirm,
        )

    def _subject(self, breadth: Breadth, rules: tuple[Rule, ...]) -> str:
        match self._access.operation, breadth:
            case "execute", "program":
                named = [_program_words(rule) for rule in rules if rule.argv or rule.argv_prefix]
                return _listed([*named, *_written(rules)])
            case "execute", "commands":
                return "any command"
            case "execute", _ if len(rules) > 1:
                return _listed(["each command of this line", *_written(rules)])
            case "execute", _:
                return "this command"
            case "fetch", _:
                return f"fetching from {reveal(self._access.hosts[0])}"
            case "mcp", _:
                return f"the tool {reveal(self._access.tool or '')}"
            case operation, _:
                return (
                    f"{'changes to' if operation == 'write' else 'reading'} {self._files(breadth)}"
                )

    def _files(self, breadth: Breadth) -> str:
        if breadth == "this":
            return "this file"
        if breadth == "files":
            return "any file"
        root = f"{self._access.roots[0]}/" if self._access.roots else ""
        return f"files in {reveal(folder_of(self._access).removeprefix(root))}"


def _written(rules: Sequence[Rule]) -> list[str]:
    """The files that a line writes: they may be changed in other ways too."""
    paths = (rule.path for rule in rules if rule.operation == "write" and rule.path is not None)
    return [f"changes to {reveal(posixpath.basename(path))}" for path in paths]


def _new_id() -> str:
    return uuid.uuid4().hex[:12]


def _program_words(rule: Rule) -> str:
    words = reveal(shlex.join(rule.argv or rule.argv_prefix or ()))
    shown = words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
    return f"“{shown}”" if rule.argv else f"“{shown} …”"


def _listed(words: Sequence[str]) -> str:
    words = list(dict.fromkeys(words))
    if len(words) > _MOST_SHOWN:
        words = [*words[:_MOST_SHOWN], f"{len(words) - _MOST_SHOWN} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
