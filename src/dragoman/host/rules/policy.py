"""The rules in force for a client: those it was given, lent and has stored.

Where no rule speaks, reads inside the workspace are allowed and all else asks. Writes outside are
refused whatever the rules say; protected files and questions ask whatever the rules allow. Knows
nothing of people, options or the wire.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from dragoman.data_directory import data_folder
from dragoman.errors import ConfigError
from dragoman.host.commands.plain_command import is_shell
from dragoman.host.rules.access import (
    OPERATIONS,
    Access,
    Command,
    Operation,
    Sighting,
    normalise,
)
from dragoman.host.rules.decision import (
    NO_RULE,
    Circumstances,
    Considered,
    Explanation,
    PolicyDecision,
    decide,
    explain,
)
from dragoman.host.rules.globs import is_within
from dragoman.host.rules.project_file import RulesInForce, remark
from dragoman.host.rules.rule import (
    YOUR_ANSWER,
    YOUR_RULE,
    Effect,
    Moment,
    Rule,
    Scope,
    covered,
    mismatch,
    out_of_force,
)
from dragoman.host.rules.rule_index import RuleIndex
from dragoman.host.workspace.reach import Reach, names_of
from dragoman.host.workspace.real_names import RealNames
from dragoman.host.workspace.roots import Workspace

if TYPE_CHECKING:
    from dragoman.host.rules.line_steps import Look

__all__ = [
    "NO_RULE",
    "OPERATIONS",
    "Access",
    "Considered",
    "Effect",
    "Explanation",
    "Operation",
    "PolicyDecision",
    "Rule",
    "Scope",
    "could_allow",
    "decide",
    "explain",
    "flag_rules",
]


def flag_rules(
    *, write: bool = False, execute: bool = False, yolo: bool = False
) -> tuple[Rule, ...]:
    """`--write`, `--exec` and `--yolo` as rules."""
    rules: list[Rule] = []
    if write:
        rules.append(Rule(effect="allow", operation="write", source="--write"))
    if execute:
        rules.append(Rule(effect="allow", operation="execute", source="--exec"))
    if yolo:
        rules += (
            Rule(effect="allow", operation=operation, anywhere=True, source="--yolo")
            for operation in OPERATIONS
        )
    return tuple(rules)


def could_allow(
    operation: Operation,
    rules: Iterable[Rule],
    *,
    person: bool,
    agent: str,
    now: float,
    session_id: str,
    project: str,
) -> bool:
    """Whether anything of this kind could be allowed, by a rule or by a person who is there."""
    moment = Moment(now, session_id, project)
    live = [rule for rule in rules if out_of_force(rule, agent, moment) is None]
    closed = {rule.effect for rule in live if _is_blanket(rule, operation)}
    if "deny" in closed or person:
        return "deny" not in closed
    allowing = (rule for rule in live if rule.effect == "allow" and operation in covered(rule))
    return "ask" not in closed and any(allowing)


def _is_blanket(rule: Rule, operation: Operation) -> bool:
    conditions = (rule.path, rule.argv, rule.argv_prefix, rule.cwd, rule.host, rule.tool)
    return rule.operation in (None, operation) and not any(conditions)


def on_disk(access: Access, ours: str | None = None) -> Look:
    """Only for what is written does it matter which protected names lead there. Our own data, in
    the folder `ours`, is nowhere, as for files that are asked of us. Each path is looked at once,
    and no more of them than takes little time."""
    reach: list[Reach] = []
    known: dict[tuple[str, bool], Sighting | None] = {}
    ours = _our_data() if ours is None else ours

    def seen(path: str, writing: bool) -> Sighting | None:
        if len(known) >= MOST_LOOKS:
            return Sighting(normalise(path), hazard=_TOO_MANY) if writing else None
        if writing and not reach:
            reach.append(Reach((*access.roots, os.path.expanduser("~"))))
        found = reach[0].look(path) if writing else names_of(path)
        return None if found is not None and f"{found.path}/".startswith(ours) else found

    def look(path: str, writing: bool) -> Sighting | None:
        if (path, writing) not in known:
            known[path, writing] = seen(path, writing)
        return known[path, writing]

    return look


MOST_LOOKS = 1024
"""At the disk, for the files that one request names in its commands; deleting one takes several."""
_TOO_MANY = "it would write more files than can be looked at"


def _our_data() -> str:
    """The folder that no agent gets at, with a slash at its end."""
    return f"{os.path.realpath(data_folder())}/"


def _projects_above(folder: str, rules: Iterable[Rule]) -> set[str]:
    """The projects of rules that this folder is in, or is by another name."""
    strict = {rule.project for rule in rules if rule.effect != "allow" and rule.project is not None}
    here = os.path.realpath(folder)
    return {each for each in strict - {folder} if is_within(here, os.path.realpath(each))}


def _is_line(command: Command) -> bool:
    return not isinstance(command, str) and is_shell(command)


def _denies_words(rule: Rule) -> bool:
    return rule.effect == "deny" and (rule.argv is not None or rule.argv_prefix is not None)


logger = logging.getLogger("dragoman.host")
_BETWEEN_USES = 60.0


class StoredRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule, when it was made, and when it last decided something.

    In a store that several machines share, `home` is the machine on which the rule was created.
    `here` is false for an allow rule that was created on another or an unknown machine; such a
    rule is ignored.
    """

    rule: Rule
    created_at: float
    used_at: float | None = None
    home: str | None = None
    here: bool = True


class CountingRules:
    """The rules that count here, of all that are stored: made once for as many decisions as there
    are until something else is stored."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[StoredRule], tuple[Rule, ...]] = ((), ())

    def of(self, stored: Sequence[StoredRule]) -> tuple[Rule, ...]:
        known, rules = self._last
        if stored is not known:
            rules = tuple(each.rule for each in stored if each.here)
            self._last = stored, rules
        return rules


class RuleStore(Protocol):
    """Where "always" answers are stored. If `list` returns the same tuple as before while nothing
    has changed, decisions do not have to look through all of it again."""

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
        self._lent: list[tuple[Workspace, Sequence[Rule]]] = []
        self._stored = stored
        self._in_force = RulesInForce()
        self._sources: tuple[tuple[Rule, ...], ...] = ()
        self._joined: tuple[Rule, ...] = ()
        """The rules of the last decision: those of all its sources."""
        self._index = RuleIndex(())
        self._forbidden = RuleIndex(())
        self._names = RealNames((), ())
        self._used: dict[str, float] = {}
        self._ours: str | None = None
        """Where our data is, which does not move while it is used."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        return (*self._given, *(rule for _, rule in self._remembered), *self._kept())

    def _kept(self) -> Sequence[Rule]:
        return () if self._stored is None else self._stored.list()

    def _rules_for(self, workspace: Workspace) -> tuple[Rule, ...]:
        if self._stored is None and not (self._remembered or self._lent):
            return self._given
        ours = tuple(rule for of, rule in self._remembered if of is None or of is workspace)
        lent = tuple(rule for of, rules in self._lent if of is workspace for rule in rules)
        kept = self._in_force.of(self._kept(), workspace.cwd)
        sources = (self._given, lent, ours, kept)
        if sources != self._sources:
            self._joined = (*self._given, *lent, *ours, *kept)
        self._sources = sources  # also if they are equal: the next time, they are the same
        return self._joined

    def remark(self, workspace: Workspace) -> str | None:
        """What a person should know about the rules that are kept with a project."""
        return None if self._stored is None else remark(self._kept(), workspace.cwd)

    def decide(self, access: Access, workspace: Workspace) -> PolicyDecision:
        index = self._indexed(access, workspace)
        decision = decide(access, index, **self._circumstances(access, workspace))
        if decision.rule is not None and decision.rule.source in (YOUR_ANSWER, YOUR_RULE):
            self._note_use(decision.rule.id)
        return decision

    def forbids(self, access: Access, workspace: Workspace) -> PolicyDecision | None:
        """The decision of a rule that denies it by the words of a command; None if there is no such
        rule. It does not look at the disk."""
        rules = tuple(rule for rule in self._rules_for(workspace) if _denies_words(rule))
        if not rules:
            return None
        project = workspace.cwd
        if not self._forbidden.is_of(rules, project):
            self._forbidden = RuleIndex(rules, project, _projects_above(project, rules))
        if any(map(_is_line, access.commands)):
            return self._denied(access, workspace)
        now, session_id = time.time(), workspace.session_id
        decision = decide(access, self._forbidden, now=now, session_id=session_id, project=project)
        return decision if decision.effect == "deny" and decision.rule is not None else None

    def _denied(self, access: Access, workspace: Workspace) -> PolicyDecision | None:
        """By what the words say as they are: what a shell makes of its line, it starts itself."""
        index = self._forbidden
        moment = Moment(time.time(), workspace.session_id, workspace.cwd, index.above)
        rule = next((e for e in index.rules if mismatch(e, access, moment) is None), None)
        return None if rule is None else PolicyDecision("deny", f"{rule.label} denies it", rule)

    def _indexed(self, access: Access, workspace: Workspace) -> RuleIndex:
        """The rules for this session, and with them their other names."""
        rules = self._rules_for(workspace)
        if not self._index.is_of(rules, workspace.cwd):
            self._index = RuleIndex(rules, workspace.cwd, _projects_above(workspace.cwd, rules))
            self._names = RealNames(self._index.placed, access.roots)
        elif not self._names.are_of(access.roots):
            self._names = RealNames(self._index.placed, access.roots)
        return self._index

    def _note_use(self, rule_id: str) -> None:
        """Not each time: it is for people who wonder whether a rule is still of use."""
        now = time.monotonic()
        # In this order: to find out what a store can do takes longer.
        if now < self._used.get(rule_id, 0.0) or not isinstance(self._stored, UsedRules):
            return
        self._used[rule_id] = now + _BETWEEN_USES
        try:
            self._stored.used(rule_id)
        except (OSError, ConfigError) as error:
            logger.warning("could not record the use of a rule: %s", error)

    def explain(self, access: Access, workspace: Workspace) -> Explanation:
        """The decision, and every rule that was considered."""
        index = self._indexed(access, workspace)
        return explain(access, index, **self._circumstances(access, workspace))

    def _circumstances(self, access: Access, workspace: Workspace) -> Circumstances:
        self._ours = self._ours or _our_data()
        return {
            "now": time.time(),
            "session_id": workspace.session_id,
            "project": workspace.cwd,
            "names": self._names,
            "look": on_disk(access, self._ours),
        }

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

    def lend(self, rules: Sequence[Rule], workspace: Workspace) -> None:
        """Set the rules for the next turn of a session; they replace those of the turn before."""
        others = [each for each in self._lent if each[0] is not workspace]
        self._lent = [*others, (workspace, rules)] if rules else others

    def forget_given(self) -> None:
        """Drop the rules that it was made with, and those it remembers for this process: what is
        stored, and what is lent to a turn, stays."""
        self._given = ()
        self._remembered = []

    def forget(self, workspace: Workspace) -> None:
        """Drop the rules of a session that has ended."""
        self.lend((), workspace)
        self._remembered = [each for each in self._remembered if each[0] is not workspace]
