"""Tries the rules: what they would decide about a request that a person describes, and why.

Asks the same code as a live session does. Paths are looked at; nothing is read, written or run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.host.permissions.always_rules import describe
from dragoman.host.rules.access import Access, Operation, Sighting, file_access, terminal_access
from dragoman.host.rules.policy import Considered, Explanation, Policy
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `command` has the words of a command; a single one is a line for a shell. A
    host may be given as an address."""

    operation: Operation | None = None
    command: Sequence[str] = ()
    paths: Sequence[str] = ()
    hosts: Sequence[str] = ()
    tool: str | None = None
    agent: str = ""

    def explain(self, policy: Policy, workspace: Workspace) -> Explained:
        """Raises ValueError for a request that says too little, or too much."""
        access = self.access(workspace)
        return Explained(access, policy.explain(access, workspace))

    def access(self, workspace: Workspace) -> Access:
        """What it would ask for in this workspace. Raises ValueError."""
        roots = real_roots(workspace)
        if self.command:
            return self._execution(workspace, roots)
        match operation := self._operation():
            case "execute":
                raise ValueError("name the command")
            case "read" | "write":
                return self._file(operation, workspace, roots)
            case _:
                return self._claim(operation, workspace, roots)

    def _operation(self) -> Operation:
        if self.operation is not None:
            return self.operation
        if self.paths:
            raise ValueError("a path needs an operation: read or write")
        if self.hosts:
            return "fetch"
        if self.tool:
            return "mcp"
        raise ValueError("name the request: an operation, or a command")

    def _execution(self, workspace: Workspace, roots: list[str]) -> Access:
        if self.operation not in (None, "execute") or self.paths or self.hosts or self.tool:
            raise ValueError("a command is of the operation execute, without path, host or tool")
        command, *args = self.command
        where = seen(workspace.cwd, roots)
        return terminal_access(command, args, agent=self.agent, cwd=where, roots=roots)

    def _file(
        self, operation: Literal["read", "write"], workspace: Workspace, roots: list[str]
    ) -> Access:
        if len(self.paths) != 1 or self.hosts or self.tool:
            raise ValueError(f"the operation {operation} needs one path, and nothing else")
        place = seen(os.path.join(workspace.cwd, self.paths[0]), roots)
        return file_access(operation, place, agent=self.agent, roots=roots)

    def _claim(self, operation: Operation, workspace: Workspace, roots: list[str]) -> Access:
        places = [seen(os.path.join(workspace.cwd, path), roots) for path in self.paths]
        return Access(
            operation=operation,
            agent=self.agent,
            paths=tuple(place.path for place in places),
            aliases=tuple(alias for place in places for alias in place.aliases),
            hosts=tuple(map(_host, self.hosts)),
            tool=self.tool,
            roots=tuple(roots),
            cwd=roots[0],
            claimed=True,
        )


class Explained(msgspec.Struct, frozen=True):
    """What was asked, and what the rules say to it."""

    access: Access
    explanation: Explanation

    def text(self) -> str:
        """For a terminal: the decision, its reason, and each rule."""
        decision = self.explanation.decision
        lines = (
            f"{decision.effect}: {self.subject}",
            f"  because {decision.reason}",
            *(f"  {_rule_line(each)}" for each in self.explanation.considered),
        )
        return "\n".join(map(reveal, lines))

    @property
    def subject(self) -> str:
        """The request in a few words."""
        access = self.access
        commands = [each if isinstance(each, str) else shlex.join(each) for each in access.commands]
        named = [*commands, *access.paths, *access.hosts, access.tool or ""]
        claimed = " (as reported by the agent)" if access.claimed else ""
        return f"{access.operation} {', '.join(filter(None, named))}".rstrip() + claimed

    def fields(self) -> dict[str, Any]:
        """The same as JSON."""
        decision = self.explanation.decision
        return {
            "effect": decision.effect,
            "reason": decision.reason,
            "operation": self.access.operation,
            "claimed": self.access.claimed,
            "paths": self.access.paths,
            "commands": self.access.commands,
            "rules": [_rule_fields(each) for each in self.explanation.considered],
        }


def real_roots(workspace: Workspace) -> list[str]:
    """The workspace's roots, links resolved."""
    return [os.path.realpath(root) for root in workspace.roots]


def seen(path: str, roots: Sequence[str]) -> Sighting:
    """What the path is on the disk, or would be."""
    found = Reach((*roots, os.path.expanduser("~"))).look(path)
    return Sighting(os.path.realpath(path)) if found is None else found


def _host(text: str) -> str:
    return (urlsplit(text).hostname or text) if "://" in text else text


def _rule_line(each: Considered) -> str:
    why = "matches" if each.mismatch is None else f"no match: {each.mismatch}"
    return f"- {each.rule.label}: {describe(each.rule)}: {why}"


def _rule_fields(each: Considered) -> dict[str, Any]:
    return {
        "rule": each.rule.label,
        "sentence": describe(each.rule),
        "matches": each.matched,
        "mismatch": each.mismatch,
    }
