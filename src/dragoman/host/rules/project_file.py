"""Rules that are kept with a project, in `.dragoman/policy.toml`.

They count once a person has trusted the content of the file: then they are stored, each with the
digest of that content in its id. As soon as the file has another content, or is gone, its stored
rules no longer allow anything; what they deny or ask stays until the new content is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from dragoman.errors import ConfigError
from dragoman.host.rules.policy_file import parse_policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.regular_file import read_regular

NAME = ".dragoman/policy.toml"
MOST_BYTES = 64 << 10
_MOST_RULES = 500
_MOST_DOTS = 64
"""In a line: TOML takes a dot for a step down in a table, and many take much time to follow."""
_TRUST = "look at it, then run `dragoman policy trust`"

Standing: TypeAlias = Literal["none", "untrusted", "changed", "gone", "broken", "trusted"]


class ProjectFile(msgspec.Struct, frozen=True):
    """The file of a project as it is now."""

    path: str
    project: str
    content: bytes

    @property
    def digest(self) -> str:
        """Of its path and content: the same file elsewhere is another one. Long enough that nobody
        finds two files that have the same."""
        from hashlib import sha256  # few projects have such a file

        return sha256(os.fsencode(self.path) + b"\0" + self.content).hexdigest()[:40]

    def rules(self) -> tuple[Rule, ...]:
        """As they are stored once they are trusted. Raises ConfigError."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError(self.path, f"byte {error.start}", "text in UTF-8") from error
        for number, line in enumerate(text.split("\n"), 1):
            if line.count(".") > _MOST_DOTS:
                raise ConfigError(self.path, f"line {number}", f"at most {_MOST_DOTS} dots")
        found = parse_policy(text, self.path, home=os.path.expanduser("~"))
        if len(found) > _MOST_RULES:
            raise ConfigError(self.path, "rules", f"at most {_MOST_RULES} rules")
        return tuple(
            msgspec.structs.replace(
                rule, id=f"{self.digest}-{at}", scope="project", project=self.project
            )
            for at, rule in enumerate(found)
        )


def read_project_file(project: str) -> ProjectFile | None:
    """None if there is none. Raises ConfigError for what is not a regular file in the project."""
    path = os.path.join(project, NAME)
    if os.path.realpath(path) != os.path.join(os.path.realpath(project), NAME):
        raise ConfigError(path, "", "a file in the project, not a link")
    try:
        return ProjectFile(path, project, read_regular(path, MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(path, "", f"a readable file ({error.strerror})") from error


def is_of_file(rule: Rule) -> bool:
    """Whether a stored rule comes from the file of a project."""
    return rule.source.endswith(NAME)


def of_project(rules: Iterable[Rule], project: str) -> list[Rule]:
    """The stored rules that come from this project's file."""
    path = os.path.join(project, NAME)
    return [rule for rule in rules if rule.source == path and rule.project == project]


class RulesInForce:
    """The stored rules without those that this project's file allowed when it was another. Each
    decision asks for them, so all rules are looked through only when they, or the file, are others
    than the last time."""

    def __init__(self) -> None:
        self._rules: tuple[Rule, ...] = ()
        self._are_of_files = False
        self._digest: str | None = None
        self._holding: tuple[Rule, ...] = ()

    def of(self, stored: Sequence[Rule], project: str) -> tuple[Rule, ...]:
        rules = tuple(stored)  # the same one, if it is a tuple already
        if rules is not self._rules:
            self._rules, self._are_of_files = rules, any(map(is_of_file, rules))
            self._digest, self._holding = None, _holding(rules, None)
        if not self._are_of_files:
            return rules
        digest = _digest(project)
        if digest != self._digest:
            self._digest, self._holding = digest, _holding(rules, digest)
        return self._holding


def _holding(rules: Iterable[Rule], digest: str | None) -> tuple[Rule, ...]:
    """Those that count if this is the digest of the project's file."""

    def holds(rule: Rule) -> bool:
        is_trusted = digest is not None and rule.id.startswith(f"{digest}-")
        return rule.effect != "allow" or not is_of_file(rule) or is_trusted

    return tuple(rule for rule in rules if holds(rule))


def _digest(project: str) -> str | None:
    try:
        file = read_project_file(project)
    except ConfigError:
        return None
    return None if file is None else file.digest


class ComparedRule(NamedTuple):
    """Whether it is `written` in the file as it is now, and was `trusted`."""

    rule: Rule
    written: bool
    trusted: bool


class ProjectRules(msgspec.Struct, frozen=True):
    """What a project's file says now, next to what was trusted of it."""

    path: str
    written: Sequence[Rule] = ()
    trusted: Sequence[Rule] = ()
    digest: str | None = None
    """Of the content that `written` was read from; None without one that can be read."""
    problem: ConfigError | None = None

    @property
    def standing(self) -> Standing:
        if self.problem is not None:
            return "broken"
        if self.digest is None:
            return "gone" if self.trusted else "none"
        if any(rule.id.startswith(f"{self.digest}-") for rule in self.trusted):
            return "trusted"
        if not self.trusted:
            return "untrusted" if self.written else "trusted"
        return "changed"

    @property
    def is_settled(self) -> bool:
        """Whether exactly what is written is trusted."""
        same = {rule.id for rule in self.written} == {rule.id for rule in self.trusted}
        return same and self.problem is None

    def compared(self) -> Iterator[ComparedRule]:
        """Those of the file in its order, then those that are no longer in it."""
        now, before = set(map(_content, self.written)), set(map(_content, self.trusted))
        for rule in self.written:
            yield ComparedRule(rule, written=True, trusted=_content(rule) in before)
        for rule in self.trusted:
            if _content(rule) not in now:
                yield ComparedRule(rule, written=False, trusted=True)


def _content(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, id="")


def project_rules(stored: Iterable[Rule], project: str) -> ProjectRules:
    path, trusted = os.path.join(project, NAME), of_project(stored, project)
    try:
        file = read_project_file(project)
        if file is None:
            return ProjectRules(path, trusted=trusted)
        return ProjectRules(path, file.rules(), trusted, file.digest)
    except ConfigError as error:
        return ProjectRules(path, trusted=trusted, problem=error)


class Trusting(Protocol):
    """Where trusted rules are kept."""

    def add(self, rule: Rule) -> None: ...

    def revoke(self, rule_id: str) -> bool: ...


def trust(rules: Trusting, found: ProjectRules) -> None:
    """Have what is written count, in place of what was trusted before."""
    known, now = {rule.id for rule in found.trusted}, {rule.id for rule in found.written}
    # What allows comes last, so that nothing is allowed meanwhile that the file denies.
    for rule in sorted(found.written, key=_allows):
        if rule.id not in known:
            rules.add(rule)
    for rule in found.trusted:
        if rule.id not in now:
            rules.revoke(rule.id)


def stop_trusting(rules: Trusting, found: ProjectRules) -> None:
    for rule in sorted(found.trusted, key=_allows, reverse=True):
        rules.revoke(rule.id)


def _allows(rule: Rule) -> bool:
    return rule.effect == "allow"


def remark(rules: Iterable[Rule], project: str) -> str | None:
    """What a person should know about the file of a project, in a sentence; None if it is trusted
    as it is, or there is no rule in it. What is not trusted is not parsed."""
    path, trusted = os.path.join(project, NAME), of_project(rules, project)
    try:
        file = read_project_file(project)
    except ConfigError as error:
        return f"no rule of this file applies: {error}"
    if file is None:
        still_applies = not all(map(_allows, trusted))
        return f"{path} is gone; what it denied or asked still applies" if still_applies else None
    if any(rule.id.startswith(f"{file.digest}-") for rule in trusted):
        return None
    if trusted:
        changed = "has changed since you trusted it, and allows nothing until then"
        return f"{path} {changed}: {_TRUST}"
    # A rule has an effect.
    has_rules = b"effect" in file.content
    return f"{path} is not trusted, so its rules do not apply: {_TRUST}" if has_rules else None
