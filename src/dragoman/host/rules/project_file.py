"""Rules that are kept with a project, in `.dragoman/policy.toml`.

They count once a person has trusted the content of the file: then they are stored, each with the
digest of that content in its id. As soon as the file has another content, or is gone, its stored
rules no longer allow anything; what they deny or ask stays until the new content is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from dragoman.errors import ConfigError
from dragoman.host.rules.policy_file import parse_policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.regular_file import read_regular

NAME = ".dragoman/policy.toml"
MOST_BYTES = 256 << 10
_TRUST = "look at it, then run `dragoman policy trust`"


class ProjectFile(msgspec.Struct, frozen=True):
    """The file of a project as it is now."""

    path: str
    project: str
    content: bytes

    @property
    def digest(self) -> str:
        """Of its path and content: the same file elsewhere is another one."""
        from hashlib import sha256  # few projects have such a file

        return sha256(self.path.encode() + b"\0" + self.content).hexdigest()[:24]

    def rules(self) -> tuple[Rule, ...]:
        """As they are stored once they are trusted. Raises ConfigError."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError(self.path, f"byte {error.start}", "text in UTF-8") from error
        found = parse_policy(text, self.path, home=os.path.expanduser("~"))
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


def in_force(rules: Sequence[Rule], project: str) -> Sequence[Rule]:
    """The stored rules without those that this project's file allowed when it was another."""
    # Each decision asks this of all rules, and they have few sources.
    if not any(source.endswith(NAME) for source in {rule.source for rule in rules}):
        return rules
    digest = _digest(project)

    def holds(rule: Rule) -> bool:
        is_trusted = digest is not None and rule.id.startswith(f"{digest}-")
        return rule.effect != "allow" or not is_of_file(rule) or is_trusted

    return [rule for rule in rules if holds(rule)]


def _digest(project: str) -> str | None:
    try:
        file = read_project_file(project)
    except ConfigError:
        return None
    return None if file is None else file.digest


def remark(rules: Iterable[Rule], project: str) -> str | None:
    """What a person should know about the file of a project, in a sentence; None if it is trusted
    as it is, or there is nothing in it."""
    known = of_project(rules, project)
    path = os.path.join(project, NAME)
    try:
        file = read_project_file(project)
        if file is None:
            strict = any(rule.effect != "allow" for rule in known)
            return f"{path} is gone; what it denied or asked still applies" if strict else None
        if any(rule.id.startswith(f"{file.digest}-") for rule in known) or not file.rules():
            return None
    except ConfigError as error:
        return f"no rule of this file applies: {error}"
    if not known:
        return f"{path} is not trusted, so its rules do not apply: {_TRUST}"
    return f"{path} has changed since you trusted it, and allows nothing until then: {_TRUST}"
