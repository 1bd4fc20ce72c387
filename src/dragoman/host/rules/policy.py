"""The rules in force for a client: given, from flags, and remembered from "always" answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import msgspec

from dragoman.errors import ConfigError
from dragoman.host.rules.access import Access, Operation
from dragoman.host.rules.decision import (
    Decision,
    Explanation,
    could_allow,
    decide,
    explain,
    flag_rules,
)
from dragoman.host.rules.rule import YOUR_ANSWER, Rule
from dragoman.host.workspace.reach import by_real_names
from dragoman.host.workspace.roots import Workspace

logger = logging.getLogger("dragoman.host")
_BETWEEN_USES = 60.0


class StoredRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule, when it was made, and when it last decided something."""

    rule: Rule
    created_at: float
    used_at: float | None = None


class RuleStore(Protocol):
    """Where "always" answers are stored."""

    def list(self) -> Sequence[Rule]: ...

    def add(self, rule: Rule) -> None: ...


@runtime_checkable
class UsedRules(Protocol):
    """A store that also keeps when a rule last decided something."""

    def used(self, rule_id: str) -> None: ...


class Policy:
    """What an agent may do without asking, and what it may not do at all.

    `write` allows writes inside the workspace, `execute` commands whose working directory is inside
    it, `yolo` both and everything else that can be allowed. Deny beats ask beats allow.

    Raises TypeError if one of `rules` is not a Rule.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        write: bool = False,
        execute: bool = False,
        yolo: bool = False,
        stored: RuleStore | None = None,
    ) -> None:
        for rule in rules:
            if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"expected a Rule, got {rule!r}")
        self._given = (*rules, *flag_rules(write=write, execute=execute, yolo=yolo))
        self._remembered: list[tuple[Workspace | None, Rule]] = []
        """With the session that a rule is for: not its id, since an agent may give one twice."""
        self._stored = stored
        self._used: dict[str, float] = {}

    @property
    def rules(self) -> tuple[Rule, ...]:
        return (*self._given, *(rule for _, rule in self._remembered), *self._kept())

    def _kept(self) -> Sequence[Rule]:
        return () if self._stored is None else self._stored.list()

    def _rules_for(self, workspace: Workspace) -> tuple[Rule, ...]:
        ours = (rule for of, rule in self._remembered if of is None or of is workspace)
        return (*self._given, *ours, *self._kept())

    def decide(self, access: Access, workspace: Workspace) -> Decision:
        decision = decide(
            access,
            self._rules_for(workspace),
            now=time.time(),
            session_id=workspace.session_id,
            project=workspace.cwd,
            also=partial(by_real_names, roots=access.roots),
        )
        if decision.rule is not None and decision.rule.source == YOUR_ANSWER:
            self._note_use(decision.rule.id)
        return decision

    def _note_use(self, rule_id: str) -> None:
        """Not each time: it is for people who wonder whether a rule is still of use."""
        now = time.monotonic()
        if not isinstance(self._stored, UsedRules) or now < self._used.get(rule_id, 0.0):
            return
        self._used[rule_id] = now + _BETWEEN_USES
        try:
            self._stored.used(rule_id)
        except (OSError, ConfigError) as error:
            logger.warning("could not record the use of a rule: %s", error)

    def explain(self, access: Access, workspace: Workspace) -> Explanation:
        """The decision, and every rule that was considered."""
        return explain(
            access,
            self._rules_for(workspace),
            now=time.time(),
            session_id=workspace.session_id,
            project=workspace.cwd,
            also=partial(by_real_names, roots=access.roots),
        )

    def could_allow(self, operation: Operation, *, agent: str, person: bool) -> bool:
        """Whether any access of this kind could be allowed in any project."""
        rules = self.rules
        projects = {rule.project or "" for rule in rules} | {""}
        return any(
            could_allow(
                operation,
                rules,
                person=person,
                agent=agent,
                now=time.time(),
                session_id="",
                project=project,
            )
            for project in projects
        )

    def remember(self, rule: Rule, workspace: Workspace | None = None) -> None:
        """Keep a rule for this process, and store it if there is a store. A rule for a session
        counts in this `workspace` alone, until that is forgotten."""
        if rule.scope in ("once", "session"):
            self._remembered.append((workspace, rule))
        elif self._stored is None:
            self._remembered.append((None, rule))
        else:
            self._stored.add(rule)

    def forget(self, workspace: Workspace) -> None:
        """Drop the rules of a session that has ended."""
        self._remembered = [each for each in self._remembered if each[0] is not workspace]
