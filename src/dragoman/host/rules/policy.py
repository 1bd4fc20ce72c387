"""The rules in force for a client, and which of them decides: allow, ask or deny.

Deny beats ask beats allow. Where no rule speaks, reads inside the workspace are allowed and all
else asks. Writes outside are refused whatever the rules say; protected files and questions ask
whatever the rules allow. A shell line is denied if a part of it is, and allowed if every part is.
Knows nothing of people, options or the wire.
"""

from __future__ import annotations

import functools
import logging
import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from dragoman.data_directory import data_directory
from dragoman.errors import ConfigError
from dragoman.host.commands.plain_command import is_quotable
from dragoman.host.rules.access import OPERATIONS, Access, Operation, Sighting
from dragoman.host.rules.line_steps import Look, Steps, by_letters
from dragoman.host.rules.project_file import in_force, remark
from dragoman.host.rules.rule import (
    YOUR_ANSWER,
    YOUR_RULE,
    Effect,
    Moment,
    Rule,
    Scope,
    covered,
    is_wide_answer,
    mismatch,
    out_of_force,
)
from dragoman.host.rules.rule_index import RuleIndex
from dragoman.host.workspace.reach import Reach, by_real_names, names_of
from dragoman.host.workspace.roots import Workspace

__all__ = [
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


class PolicyDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome, the reason as a sentence, and the deciding rule, if any."""

    effect: Effect
    reason: str
    rule: Rule | None = None
    unruled: bool = False
    """It asks only because no rule covers the access."""


class Considered(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule that was considered; `mismatch` says why it does not match."""

    rule: Rule
    mismatch: str | None = None

    @property
    def matched(self) -> bool:
        return self.mismatch is None


class Explanation(msgspec.Struct, frozen=True):
    """A decision, and every rule that was considered."""

    decision: PolicyDecision
    considered: tuple[Considered, ...]


def decide(
    access: Access,
    rules: Iterable[Rule] | RuleIndex,
    *,
    now: float,
    session_id: str,
    project: str,
    also: Callable[[Rule], Iterable[Rule]] = lambda _: (),
    look: Look = by_letters,
) -> PolicyDecision:
    """The decision on this access. The order of the rules only settles which one is named."""
    judge = _Judge(Moment(now, session_id, project), also, look, brief=True)
    index = rules if isinstance(rules, RuleIndex) else RuleIndex(rules)
    return judge.explain(access, index).decision


def explain(
    access: Access,
    rules: Iterable[Rule],
    *,
    now: float,
    session_id: str,
    project: str,
    also: Callable[[Rule], Iterable[Rule]] = lambda _: (),
    look: Look = by_letters,
) -> Explanation:
    """The decision, with each rule and whether it matched; of several claims, the strictest. What a
    rule that denies or asks says by other names is `also` said by it. `look` says what a path of a
    shell line is on the disk, None where that is unknown."""
    judge = _Judge(Moment(now, session_id, project), also, look, brief=False)
    return judge.explain(access, RuleIndex(rules))


class _Judge:
    """Decides about one request; a `brief` one leaves out rules that cannot match."""

    def __init__(
        self,
        moment: Moment,
        also: Callable[[Rule], Iterable[Rule]],
        look: Look,
        *,
        brief: bool,
    ) -> None:
        self._moment = moment
        self._also = also
        self._look = look
        self._brief = brief
        self._by_other_names: dict[int, tuple[Rule, ...]] = {}

    def explain(self, access: Access, index: RuleIndex) -> Explanation:
        if access.parts:
            told = [self.explain(part, index) for part in access.parts]
            return min(told, key=_leniency)
        whole = self._explain_one(access, index)
        if access.env and whole.decision.effect == "allow":
            return self._without_variables(access, index, whole)
        return whole

    def _without_variables(
        self, access: Access, index: RuleIndex, whole: Explanation
    ) -> Explanation:
        """A rule about a command does not match one that sets variables. What it denies or asks
        without them is not for another rule to allow: a person is asked."""
        bare = msgspec.structs.replace(access, env=False)
        decision = self._explain_one(bare, index).decision
        if decision.effect == "allow" or decision.rule is None:
            return whole
        verb = "denies" if decision.effect == "deny" else "requires asking about"
        reason = f"{decision.rule.label} {verb} this command without its environment variables"
        return Explanation(PolicyDecision("ask", reason, decision.rule), whole.considered)

    def _explain_one(self, access: Access, index: RuleIndex) -> Explanation:
        steps = Steps(access, self._look)
        rules = steps.worth_a_look(index) if self._brief else index.rules
        considered = tuple(Considered(rule, self._whole(rule, access, steps)) for rule in rules)
        decision = _decide(access, [each.rule for each in considered if each.mismatch is None])
        if decision.effect == "deny" or not steps.tell_more:
            return Explanation(decision, considered)
        return self._stepwise(Explanation(decision, considered), steps)

    def _whole(self, rule: Rule, access: Access, steps: Steps) -> str | None:
        if self._brief and steps.are_lines and (rule.argv or rule.argv_prefix):
            return _LINES
        why = self._mismatch(rule, access)
        return self._beyond(rule, access, steps) if why is None else why

    def _beyond(self, rule: Rule, access: Access, steps: Steps) -> str | None:
        """What an answer does not cover because of the files that a command would write."""
        if access.operation != "execute" or not is_wide_answer(rule):
            return None
        why = steps.beyond_an_answer(rule, access)
        return None if why is None else f"your answer does not cover it: {why}"

    def _mismatch(self, rule: Rule, access: Access) -> str | None:
        why = mismatch(rule, access, self._moment)
        if why is None or rule.effect == "allow":
            return why
        if (names := self._by_other_names.get(id(rule))) is None:
            names = self._by_other_names[id(rule)] = tuple(self._also(rule))
        return None if any(mismatch(e, access, self._moment) is None for e in names) else why

    def _stepwise(self, whole: Explanation, steps: Steps) -> Explanation:
        """A rule that denies or asks counts for any step; where nothing else speaks of the line,
        it is allowed if every step is."""
        strict = self._strict(whole, steps)
        if not strict.decision.unruled or not steps.are_all:
            return strict
        rules = [each.rule for each in strict.considered if each.rule.effect == "allow"]
        found = [self._allowing(each, rules, steps) for each in steps.commands]
        files = [self._matching(each, strict.considered) for each in steps.files]
        by_files = [_decide(each, some) for each, some in zip(steps.files, files, strict=True)]
        used = [rule for rule in (*found, *(each.rule for each in by_files)) if rule is not None]
        if None in found or any(each.effect != "allow" for each in by_files):
            return Explanation(strict.decision, _marked(strict.considered, used, _ONLY_A_PART))
        names = list(dict.fromkeys(rule.label for rule in used))
        verb = "allows" if len(names) == 1 else "allow"
        reason = f"{', '.join(names)} {verb} each part of it"
        return Explanation(
            PolicyDecision("allow", reason, used[0]), _marked(strict.considered, used, None)
        )

    def _strict(self, whole: Explanation, steps: Steps) -> Explanation:
        """With what the rules that deny or ask say about a step."""

        def found(each: Considered) -> Access | None:
            if each.rule.effect == "allow" or each.matched:
                return None
            told = (
                step
                for step in steps.concerning(each.rule)
                if self._mismatch(each.rule, step) is None
            )
            return next(told, None)

        hits = [(each.rule, step) for each in whole.considered if (step := found(each))]
        if not hits:
            return whole
        considered = _marked(whole.considered, [rule for rule, _ in hits], None)
        decision = whole.decision
        rule, step = min(hits, key=lambda hit: _STRICTEST_FIRST.index(hit[0].effect))
        if rule.effect == "deny" or decision.effect == "allow" or decision.unruled:
            verb = "denies" if rule.effect == "deny" else "requires asking about"
            reason = f"{rule.label} {verb} a part of it: {_named(step)}"
            decision = PolicyDecision(rule.effect, reason, rule)
        return Explanation(decision, considered)

    def _allowing(
        self, layers: Sequence[Access], rules: Sequence[Rule], steps: Steps
    ) -> Rule | None:
        """A rule that covers the command, as it is written or behind its wrappers."""
        for rule in rules:
            fits = (_may_cover(rule, e) and self._mismatch(rule, e) is None for e in layers)
            if any(fits) and self._beyond(rule, layers[-1], steps) is None:
                return rule
        return None

    def _matching(self, access: Access, considered: Sequence[Considered]) -> list[Rule]:
        rules = (each.rule for each in considered)
        return [rule for rule in rules if self._mismatch(rule, access) is None]


_LINES = "it names a command, and this is a line"
_ONLY_A_PART = "it allows only a part of it"


def _marked(
    considered: Sequence[Considered], rules: Sequence[Rule], why: str | None
) -> tuple[Considered, ...]:
    marked = set(map(id, rules))
    return tuple(
        Considered(each.rule, why) if id(each.rule) in marked and not each.matched else each
        for each in considered
    )


def _may_cover(rule: Rule, step: Access) -> bool:
    """The first words of a command say little about a word that holds a metacharacter."""
    prefix, words = rule.argv_prefix, step.commands[0]
    if prefix is None:
        return rule.argv in (None, words)
    return words[: len(prefix)] == prefix and all(map(is_quotable, words))


def _named(step: Access) -> str:
    words = step.commands[0] if step.operation == "execute" else ()
    return shlex.join(words) if words else f"{step.operation} {', '.join(step.paths)}"


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


def _decide(access: Access, matching: Sequence[Rule]) -> PolicyDecision:
    rules: dict[Effect, Rule] = {rule.effect: rule for rule in reversed(matching)}
    if refusal := _refusal(access, matching):
        return PolicyDecision("deny", refusal)
    if rule := rules.get("deny"):
        return PolicyDecision("deny", f"{rule.label} denies it", rule)
    if rule := rules.get("ask"):
        return PolicyDecision("ask", f"{rule.label} requires asking", rule)
    if doubt := access.protection or _question(access):
        return PolicyDecision("ask", doubt)
    if rule := rules.get("allow"):
        return PolicyDecision("allow", f"{rule.label} allows it", rule)
    if access.operation == "read" and access.place == "inside" and access.complete:
        return PolicyDecision("allow", "reads inside the workspace need no rule")
    return PolicyDecision("ask", _why_unruled(access), unruled=True)


NO_RULE = "no rule allows it"
_UNSAID = {
    "execute": "which command it would run",
    "fetch": "exactly what it would fetch",
    "read": "that it only reads files inside the workspace",
}


def _why_unruled(access: Access) -> str:
    """Where a claim says too little for a flag to cover it: what is missing, and what covers it."""
    who = access.agent or "the agent"
    if not access.claimed:
        return NO_RULE
    if not access.complete:
        return f"not everything that {who} names could be read; only --yolo allows it"
    if access.operation == "write" and access.place == "unknown":
        return f"{who} does not say which files it would change; only --yolo allows it"
    if access.operation != "other":
        return NO_RULE
    told = (what for kind, what in _UNSAID.items() if kind in access.also)
    what = "what this is" if "mcp" in access.also else next(told, "what this is")
    return f"{who} does not say {what}; --yolo or a rule for `other` allows it"


def _leniency(explanation: Explanation) -> tuple[int, bool]:
    """Of two that lead to the same, a rule says more than that none was needed."""
    decision = explanation.decision
    return _STRICTEST_FIRST.index(decision.effect), decision.rule is None


_STRICTEST_FIRST: tuple[Effect, ...] = ("deny", "ask", "allow")


def _refusal(access: Access, matching: Sequence[Rule]) -> str | None:
    """What the host never does, whatever the rules allow."""
    if "write" in access.operations and access.place == "outside":
        return "writes outside the workspace are always refused"
    if "execute" not in access.operations or access.place_of_cwd != "outside":
        return None
    if any(rule.anywhere and rule.effect == "allow" for rule in matching):
        return None
    return f"{access.cwd} is outside the workspace: commands run there only with --yolo"


def _question(access: Access) -> str | None:
    return "this is a question for a person, not a permission" if access.question else None


def _is_blanket(rule: Rule, operation: Operation) -> bool:
    conditions = (rule.path, rule.argv, rule.argv_prefix, rule.cwd, rule.host, rule.tool)
    return rule.operation in (None, operation) and not any(conditions)


def on_disk(access: Access) -> Look:
    """Only for what is written does it matter which protected names lead there. Our own data is
    nowhere, as for files that are asked of us."""
    reach: list[Reach] = []

    def look(path: str, writing: bool) -> Sighting | None:
        if writing and not reach:
            reach.append(Reach((*access.roots, os.path.expanduser("~"))))
        seen = reach[0].look(path) if writing else names_of(path)
        ours = f"{_our_data(*map(os.environ.get, _PLACED_BY))}/"
        return None if seen is not None and f"{seen.path}/".startswith(ours) else seen

    return look


_PLACED_BY = ("DRAGOMAN_HOME", "XDG_DATA_HOME", "HOME")


@functools.lru_cache(maxsize=1)  # it does not move while this process uses it
def _our_data(*_placed_by: str | None) -> str:
    return os.path.realpath(data_directory())


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
        self._lent: list[tuple[Workspace, Sequence[Rule]]] = []
        self._stored = stored
        self._index = RuleIndex(())
        self._used: dict[str, float] = {}

    @property
    def rules(self) -> tuple[Rule, ...]:
        return (*self._given, *(rule for _, rule in self._remembered), *self._kept())

    def _kept(self) -> Sequence[Rule]:
        return () if self._stored is None else self._stored.list()

    def _rules_for(self, workspace: Workspace) -> tuple[Rule, ...]:
        ours = (rule for of, rule in self._remembered if of is None or of is workspace)
        lent = (rule for of, rules in self._lent if of is workspace for rule in rules)
        return (*self._given, *lent, *ours, *in_force(self._kept(), workspace.cwd))

    def remark(self, workspace: Workspace) -> str | None:
        """What a person should know about the rules that are kept with a project."""
        return None if self._stored is None else remark(self._kept(), workspace.cwd)

    def decide(self, access: Access, workspace: Workspace) -> PolicyDecision:
        rules = self._rules_for(workspace)
        if not self._index.is_of(rules, workspace.cwd):
            self._index = RuleIndex(rules, workspace.cwd)
        decision = decide(
            access,
            self._index,
            now=time.time(),
            session_id=workspace.session_id,
            project=workspace.cwd,
            also=functools.partial(by_real_names, roots=access.roots),
            look=on_disk(access),
        )
        if decision.rule is not None and decision.rule.source in (YOUR_ANSWER, YOUR_RULE):
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
            also=functools.partial(by_real_names, roots=access.roots),
            look=on_disk(access),
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

    def lend(self, rules: Sequence[Rule], workspace: Workspace) -> None:
        """Set the rules for the next turn of a session; they replace those of the turn before."""
        others = [each for each in self._lent if each[0] is not workspace]
        self._lent = [*others, (workspace, rules)] if rules else others

    def forget(self, workspace: Workspace) -> None:
        """Drop the rules of a session that has ended."""
        self.lend((), workspace)
        self._remembered = [each for each in self._remembered if each[0] is not workspace]
