"""Which of several rules decides about an access: allow, ask or deny.

Deny beats ask beats allow. A shell line is denied if a part of it is, and allowed if every part is.
What a rule may deny, if only running the line shows whether, is asked. Knows nothing of where rules
are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, Protocol, TypedDict, Unpack

import msgspec

from dragoman.host.commands.plain_command import are_quotable
from dragoman.host.rules.access import Access, normalise
from dragoman.host.rules.globs import is_within, literal_beginning
from dragoman.host.rules.rule import Effect, Moment, Rule, is_answer, is_wide_answer, mismatch
from dragoman.host.rules.rule_index import Numbered, RuleIndex

# What reads shell lines is imported with the first decision.
if TYPE_CHECKING:
    from dragoman.host.rules.line_steps import Look, StepHit, Steps


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


class OtherNames(Protocol):
    """What a rule that denies or asks says by other names: where its path, or its folder, really
    is."""

    def also(self, rule: Rule) -> Iterable[Rule]: ...

    def places(self) -> Mapping[str, list[Numbered]]:
        """The rules that have such names, by how these begin."""
        ...


class _NoOthers:
    def also(self, rule: Rule) -> Iterable[Rule]:
        return ()

    def places(self) -> Mapping[str, list[Numbered]]:
        return {}


AS_WRITTEN = _NoOthers()


class Circumstances(TypedDict):
    """When and for which session a decision is made, and what is known of other names. `look` says
    what a path of a shell line is on the disk, None where that is unknown."""

    now: float
    session_id: str
    project: str
    names: NotRequired[OtherNames]
    look: NotRequired[Look]


def decide(
    access: Access, rules: Iterable[Rule] | RuleIndex, **at: Unpack[Circumstances]
) -> PolicyDecision:
    """The decision on this access. The order of the rules only settles which one is named."""
    return _explained(access, rules, at, brief=True).decision


def explain(
    access: Access, rules: Iterable[Rule] | RuleIndex, **at: Unpack[Circumstances]
) -> Explanation:
    """The decision, with each rule and whether it matched; of several claims, the strictest."""
    return _explained(access, rules, at, brief=False)


def _explained(
    access: Access, rules: Iterable[Rule] | RuleIndex, at: Circumstances, *, brief: bool
) -> Explanation:
    from dragoman.host.rules.line_steps import by_letters

    index = rules if isinstance(rules, RuleIndex) else RuleIndex(rules)
    moment = Moment(at["now"], at["session_id"], at["project"], index.above)
    names, look = at.get("names", AS_WRITTEN), at.get("look", by_letters)
    return _Judge(moment, names, look, brief=brief).explain(access, index)


class _Judge:
    """Decides about one request; a `brief` one leaves out rules that cannot match."""

    def __init__(self, moment: Moment, names: OtherNames, look: Look, *, brief: bool) -> None:
        self._moment = moment
        self._names = names
        self._look = look
        self._brief = brief
        self._places = names.places()

    def explain(self, access: Access, index: RuleIndex) -> Explanation:
        if access.parts:
            told = [self.explain(part, index) for part in access.parts]
            return min(told, key=_leniency)
        whole = self._explain_whole(access, index)
        if not access.said:
            return whole
        told = [whole, *(self._explain_whole(each, index) for each in access.said)]
        return min(told, key=_leniency)

    def _explain_whole(self, access: Access, index: RuleIndex) -> Explanation:
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
        if decision.effect == "allow" or (decision.rule is None and decision.unruled):
            return whole
        reason = decision.reason
        if decision.rule is not None:
            verb = "denies" if decision.effect == "deny" else "requires asking about"
            reason = f"{decision.rule.label} {verb} this command without its environment variables"
        return Explanation(PolicyDecision("ask", reason, decision.rule), whole.considered)

    def _explain_one(self, access: Access, index: RuleIndex) -> Explanation:
        from dragoman.host.rules.line_steps import Steps

        steps = Steps(access, self._look)
        rules = steps.worth_a_look(index, self._places) if self._brief else index.rules
        considered = tuple(Considered(rule, self._whole(rule, access, steps)) for rule in rules)
        decision = _decide(access, [each.rule for each in considered if each.mismatch is None])
        whole = Explanation(decision, considered)
        if decision.effect == "deny":
            return whole
        if access.claimed and decision.effect == "allow":
            whole = self._unsaid(whole, access, index.rules)
        strict = self._strict(whole, steps)
        if strict.decision.unruled and steps.tell_more and steps.are_all:
            strict = self._stepwise(strict, steps)
        return self._protected(strict, steps)

    def _unsaid(self, told: Explanation, access: Access, rules: Iterable[Rule]) -> Explanation:
        """What a claim does not say may be what a rule denies or asks about: then a person is
        asked, whatever else allows it."""
        perhaps = [
            rule
            for rule in rules
            if rule.effect != "allow"
            and (_may_speak_of_the_unsaid(rule, access) or _is_about_less(rule, access))
            and mismatch(_without_conditions(rule), access, self._moment) is None
        ]
        if not perhaps:
            return told
        rule = perhaps[0]
        verb = _PERHAPS[0 if rule.effect == "deny" else 1]
        reason = f"{rule.label} {verb} it: {access.agent or 'the agent'} does not say enough"
        considered = _marked(told.considered, perhaps, _PERHAPS_UNSAID)
        return Explanation(PolicyDecision("ask", reason, rule), considered)

    def _protected(self, told: Explanation, steps: Steps) -> Explanation:
        """A file that always asks does so where a line writes it: by a redirection, or by a command
        whose words say so, unless a rule names that command."""
        if told.decision.effect != "allow":
            return told
        files = (each for each in steps.files_at_most if each.operation == "write")
        why = next(filter(None, (each.protection for each in files)), None)
        if why is None and not _names_the_command(told, steps):
            why = steps.writes_protected()
        if why is None:
            return told
        return Explanation(PolicyDecision("ask", why), told.considered)

    def _whole(self, rule: Rule, access: Access, steps: Steps) -> str | None:
        if self._brief and steps.are_lines and (rule.argv or rule.argv_prefix):
            return _LINES
        why = self._mismatch(rule, access)
        return self._beyond(rule, access, steps) if why is None else why

    def _beyond(self, rule: Rule, access: Access, steps: Steps) -> str | None:
        """What an answer does not cover because of the files that a command would write."""
        if access.operation != "execute" or not is_answer(rule):
            return None
        is_wide = is_wide_answer(rule)
        why = steps.beyond_an_answer(rule, access) if is_wide else steps.writes_protected()
        return None if why is None else f"your answer does not cover it: {why}"

    def _mismatch(self, rule: Rule, access: Access) -> str | None:
        why = mismatch(rule, access, self._moment)
        if why is None or rule.effect == "allow":
            return why
        others = self._names.also(rule)
        return None if any(mismatch(e, access, self._moment) is None for e in others) else why

    def _strict(self, whole: Explanation, steps: Steps) -> Explanation:
        """With what the rules that deny or ask say about a step."""
        found = [
            (each.rule, hit)
            for each in whole.considered
            if each.rule.effect != "allow" and not each.matched and (hit := self._hit(each, steps))
        ]
        if not found:
            return whole
        sure = [(rule, hit) for rule, hit in found if hit.sure]
        perhaps = [rule for rule, hit in found if not hit.sure]
        considered = _marked(whole.considered, [rule for rule, _ in sure], None)
        considered = _marked(considered, perhaps, _PERHAPS_A_PART)
        return Explanation(_strictest(whole.decision, found), considered)

    def _hit(self, each: Considered, steps: Steps) -> StepHit | None:
        """A step that the rule speaks of; one that it surely does, if there is one."""
        hits = [hit for hit in steps.hits(each.rule) if self._mismatch(hit.rule, hit.step) is None]
        return next((hit for hit in hits if hit.sure), hits[0] if hits else None)

    def _stepwise(self, strict: Explanation, steps: Steps) -> Explanation:
        """Where nothing else speaks of the line, it is allowed if every step is."""
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

    def _allowing(
        self, layers: Sequence[Access], rules: Sequence[Rule], steps: Steps
    ) -> Rule | None:
        """A rule that covers the command, as it is written or behind its wrappers."""
        for rule in rules:
            for each in layers:
                if _may_cover(rule, each) and self._mismatch(rule, each) is None:
                    if self._beyond(rule, layers[-1], steps) is None:
                        return rule
                    break
        return None

    def _matching(self, access: Access, considered: Sequence[Considered]) -> list[Rule]:
        rules = (each.rule for each in considered)
        return [rule for rule in rules if self._mismatch(rule, access) is None]


def _names_the_command(told: Explanation, steps: Steps) -> bool:
    """Whether what allows it was written with the words of the command: of each, if there are
    several."""
    allowing = (e.rule for e in told.considered if e.matched and e.rule.effect == "allow")
    named = [bool(rule.argv or rule.argv_prefix) for rule in allowing]
    return all(named) if steps.tell_more else any(named)


_LINES = "it names a command, and this is a line"
_ONLY_A_PART = "it allows only a part of it"
_PERHAPS_UNSAID = "the agent does not say whether it matches"
_PERHAPS_A_PART = "only running it shows whether it matches a part of it"


def _may_speak_of_the_unsaid(rule: Rule, access: Access) -> bool:
    """Whether the rule is about a command, a path or anything else that the claim should name, and
    does not: all of it, if something of the claim could not be read."""
    if not access.complete:
        return True
    operations = access.operations
    names_words = rule.argv is not None or rule.argv_prefix is not None
    if names_words and "execute" in operations:
        return not access.commands
    return rule.path is not None and "write" in operations and not access.paths


def _is_about_less(rule: Rule, access: Access) -> bool:
    """Whether it is about files in a folder that the claim names as a whole."""
    if rule.path is None or "write" not in access.operations:
        return False
    glob = os.path.expanduser(rule.path)
    beginning, _ = literal_beginning(glob)
    folders = ("",) if glob.startswith("/") else access.roots
    wanted = (normalise(f"{folder}/{beginning}") for folder in folders)
    return any(is_within(each, path) for each in wanted for path in access.paths)


_CONDITIONS = ("path", "argv", "argv_prefix", "cwd", "host", "tool")


def _without_conditions(rule: Rule) -> Rule:
    """About anything of its operation."""
    operation = rule.operation
    if operation is None and (rule.argv is not None or rule.argv_prefix is not None):
        operation = "execute"
    return msgspec.structs.replace(rule, operation=operation, **dict.fromkeys(_CONDITIONS))


def _strictest(decision: PolicyDecision, found: Sequence[tuple[Rule, StepHit]]) -> PolicyDecision:
    """A part that is surely denied denies all of it. One that is only perhaps is a question."""
    rule, hit = min(found, key=_order)
    if not (decision.effect == "allow" or decision.unruled or _order((rule, hit)) == 0):
        return decision
    denies, asks = ("denies", "requires asking about") if hit.sure else _PERHAPS
    verb = denies if rule.effect == "deny" else asks
    effect = rule.effect if hit.sure else "ask"
    return PolicyDecision(effect, f"{rule.label} {verb} a part of it: {hit.words}", rule)


_PERHAPS = ("perhaps denies", "perhaps requires asking about")


def _order(found: tuple[Rule, StepHit]) -> int:
    rule, hit = found
    return (0 if rule.effect == "deny" else 1) if hit.sure else 2


def _marked(
    considered: Sequence[Considered], rules: Sequence[Rule], why: str | None
) -> tuple[Considered, ...]:
    marked = set(map(id, rules))
    # With every line: a list takes half the time of a generator.
    told = [
        Considered(each.rule, why)
        if each.mismatch is not None and id(each.rule) in marked
        else each
        for each in considered
    ]
    return tuple(told)


def _may_cover(rule: Rule, step: Access) -> bool:
    """The first words of a command say little about a word that holds a metacharacter."""
    prefix, words = rule.argv_prefix, step.commands[0]
    if prefix is None:
        return rule.argv in (None, words)
    return not isinstance(words, str) and words[: len(prefix)] == prefix and are_quotable(words)


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
    if access.contradiction is not None:
        words = access.contradiction
        return f"{who} names another action with its words, {words}; only --yolo allows it"
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
    if access.fenced:
        return None  # the fence holds: a person may open one file of what is outside
    if "write" in access.operations and access.place == "outside":
        return "writes outside the workspace are always refused"
    if "execute" not in access.operations or access.place_of_cwd != "outside":
        return None
    if any(rule.anywhere and rule.effect == "allow" for rule in matching):
        return None
    return f"{access.cwd} is outside the workspace: commands run there only with --yolo"


def _question(access: Access) -> str | None:
    return "this is a question for a person, not a permission" if access.question else None
