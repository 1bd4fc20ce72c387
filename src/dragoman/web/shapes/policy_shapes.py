"""Types for permission rules over HTTP: listed, added, tried and trusted."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

from dragoman.host.rules.access import MOST_OF_COMMAND, Operation
from dragoman.host.rules.project_file import Standing
from dragoman.host.rules.rule import Effect, RuleFields
from dragoman.web.shapes.server_shapes import Shape

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Line: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_OF_COMMAND)]


class RuleShape(Shape):
    """A stored rule. One that allows, given on another host, is not `here`: it counts on `host`
    alone, or where that is null nowhere, since its host is not known."""

    id: str
    rule: RuleFields
    created_at: datetime
    used_at: datetime | None
    here: bool
    host: str | None


class RuleList(Shape, omit_defaults=True):
    """The stored rules, and in `given` those that the server was started with, which apply until it
    stops; their `source` is a flag or a file of rules."""

    policies: list[RuleShape]
    given: tuple[RuleFields, ...] = ()


class NewRule(Shape, forbid_unknown_fields=True):
    """A rule to store, by the keys of a file of rules. `command` has the words of a command, or is
    one plain command as a string; with `prefix` any other words may follow. A rule with a
    `project`, a folder, applies only there. `expires_at` is in seconds since 1970."""

    effect: Effect
    operation: Operation | None = None
    agent: Name | None = None
    path: Name | None = None
    command: Line | list[Line] | None = None
    prefix: bool = False
    cwd: Name | None = None
    host: Name | None = None
    tool: Name | None = None
    project: Name | None = None
    expires_at: float | None = None


class AddedRule(Shape):
    """The rule as it is stored, in words, and in `warnings` why it may decide nothing. One that
    says the same is not stored twice: `existed`."""

    policy: RuleShape
    sentence: str
    warnings: list[str]
    existed: bool


class TrialBody(Shape, forbid_unknown_fields=True):
    """A request to try the rules on, in the workspace `cwd`. `command` is a line for a shell, or
    the words of a command; `host` may be an address."""

    operation: Operation | None = None
    agent: str = ""
    path: Name | None = None
    command: Line | list[Line] | None = None
    host: Name | None = None
    tool: Name | None = None
    cwd: Name | None = None


class TriedRule(Shape):
    """A rule that was considered; `mismatch` says why it does not match."""

    rule: RuleFields
    sentence: str
    matches: bool
    mismatch: str | None


class Verdict(Shape):
    """What would be decided about `subject`, the reason, the deciding rule if there is one, and
    every rule that was considered."""

    effect: Effect
    reason: str
    subject: str
    rule: RuleFields | None
    rules: list[TriedRule]


class FolderQuery(Shape):
    """The absolute path of a folder, in a query."""

    folder: Name


class TrustBody(Shape, forbid_unknown_fields=True):
    """Which content of a project's file is trusted: that of the `digest` that came with its
    rules."""

    folder: Name
    digest: Name


class ProjectRule(Shape):
    """A rule in words; whether it is `written` in the file, and was `trusted`."""

    effect: Effect
    sentence: str
    written: bool
    trusted: bool


class ProjectRuleList(Shape):
    """The rules kept with a project, in the file at `path`, and what was trusted of them.

    Only while the file is `trusted` do its rules allow anything. One that is `untrusted` does not
    count at all. One that has `changed`, is `gone` or is `broken` still denies and asks what was
    trusted of it. `problem` says what is wrong with a broken one."""

    folder: str
    path: str
    standing: Standing
    digest: str | None
    problem: str | None
    rules: list[ProjectRule]
