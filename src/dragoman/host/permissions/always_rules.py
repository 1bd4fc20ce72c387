"""Turns a decision into an answer, and an "always" answer into a rule.

Options are known by their id and kind; their names are for people, and of several ways to say yes
once they single out the narrowest. Rules made from an answer are as narrow as what the person
chose, or there are none, with the reason. Pure.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from dragoman.host.commands.danger import danger_of
from dragoman.host.commands.plain_command import is_shell, plain_words
from dragoman.host.commands.same_program import is_found_by_path, program_of
from dragoman.host.rules.access import Access
from dragoman.host.rules.globs import escape, is_within
from dragoman.host.rules.line_steps import Steps, by_letters
from dragoman.host.rules.policy import PolicyDecision
from dragoman.host.rules.rule import YOUR_ANSWER, Answer, Effect, NoRule, Rule, Scope, folder
from dragoman.safe_text import reveal

MOST_REMEMBERED = 32 << 10
"""Characters of a command that a rule can name."""

Breadth: TypeAlias = Literal["this", "folder", "files", "program", "commands"]
"""What is remembered of a request: exactly this, or its folder, all files, its program with any
other words, any command."""


class Tenure(msgspec.Struct, frozen=True, kw_only=True):
    """For whom and for how long an answer counts."""

    scope: Scope
    session: str
    project: str
    expires_at: float | None = None
    confirmed: bool = False
    """Whether the person said it twice, as a dangerous command needs."""


def always_rules(
    access: Access,
    answer: Answer,
    decision: PolicyDecision,
    tenure: Tenure,
    *,
    breadth: Breadth = "this",
    new_id: Callable[[], str],
    steps: Callable[[Access], Steps] = lambda access: Steps(access, by_letters),
) -> tuple[Rule, ...] | NoRule:
    """The rules that answer the same request next time, and as little else as the breadth allows.
    They allow it together: one for each thing that it does."""
    try:
        conditions = _Maker(answer, decision, tenure, breadth, steps).conditions(access)
    except _Unfit as unfit:
        return NoRule(str(unfit))
    return tuple(
        msgspec.structs.replace(
            each,
            effect=answer,
            agent=escape(access.agent) or None,
            id=new_id(),
            source=YOUR_ANSWER,
            scope=tenure.scope,
            session=tenure.session if tenure.scope in ("once", "session") else None,
            project=tenure.project if tenure.scope in ("session", "project") else None,
            expires_at=tenure.expires_at,
        )
        for each in dict.fromkeys(conditions)
    )


def describe(rule: Rule) -> str:
    """What a rule does, in words for people."""
    return describe_as(rule, " ".join(filter(None, (*_deed(rule), _where(rule)))))


def describe_as(rule: Rule, subject: str) -> str:
    """The same with other words for what it is about."""
    agent = f"for {rule.agent}" if rule.agent is not None else ""
    words = (_EFFECTS[rule.effect], subject, agent, _SCOPES[rule.scope])
    return reveal(" ".join(filter(None, words)))


class _Unfit(Exception):
    """Why there is no rule, as a sentence for people."""


class _Maker(NamedTuple):
    """Makes the conditions of rules: rules without an effect, and of no particular tenure."""

    answer: Answer
    decision: PolicyDecision
    tenure: Tenure
    breadth: Breadth
    steps: Callable[[Access], Steps]

    def conditions(self, access: Access) -> list[Rule]:
        if access.parts:
            return [rule for part in access.parts for rule in self.conditions(part)]
        if reason := self._why_none(access):
            raise _Unfit(reason)
        match access:
            case Access(operation="read" | "write" as operation):
                found = [Rule(effect="ask", operation=operation, path=_place(access, self.breadth))]
            case Access(operation="execute"):
                found = self._for_command(access)
            case Access(operation="fetch", hosts=(host,)) if self.breadth == "this":
                found = [Rule(effect="ask", operation="fetch", host=escape(host))]
            case Access(operation="mcp", tool=str(tool)) if self.breadth == "this":
                found = [Rule(effect="ask", operation="mcp", tool=escape(tool))]
            case _:
                raise _Unfit("nothing in the request is precise enough for a rule")
        if self.answer == "deny":
            return [msgspec.structs.replace(rule, cwd=None) for rule in found]
        return found

    def _why_none(self, access: Access) -> str | None:
        if access.question:
            return "this is a question, to be answered each time"
        if not access.complete:
            return "not everything the request names could be read"
        if self.answer == "deny":
            return None
        if access.protection is not None:
            return f"{access.protection}; it is asked for each time"
        rule = self.decision.rule
        if rule is not None and rule.effect != "allow":
            return f"{rule.label} asks each time"
        found = danger_of(access)
        return (
            None
            if found is None or self.tenure.confirmed
            else f"{found}; it is asked for each time"
        )

    def _for_command(self, access: Access) -> list[Rule]:
        if access.env:
            raise _Unfit("the command comes with environment variables, which no rule can cover")
        if len(access.commands) != 1:
            raise _Unfit("a rule can name one command, and the request does not name exactly one")
        if sum(map(len, access.commands[0])) > MOST_REMEMBERED:
            raise _Unfit("the command is too long to remember")
        if access.cwd is None:
            raise _Unfit("the folder that the command would run in is not known")
        if self.breadth == "commands":
            return [Rule(effect="ask", operation="execute", cwd=_below(access))]
        found = self.steps(access)
        if self.answer == "allow" and (why := found.writes_protected()) is not None:
            raise _Unfit(f"{why}; it is asked for each time")
        if not found.are_all:
            return [_as_written(access, self.breadth)]
        if self.breadth == "program":
            return _programs(access, found, self.tenure.scope)
        if self.breadth != "this":
            raise _Unfit("a command has no files that a rule could name")
        if self.answer == "deny" and len(found.commands) > 1:
            raise _Unfit("the line runs several commands, and a rule to refuse it can name one")
        runs = [_named_by(layers) for layers in found.commands]
        return [*(_exactly(run) for run in runs), *_files_of(found)]


_HOME = os.path.expanduser("~")

# ── files ─────────────────────────────────────────────────────────────────────────────────────


def _place(access: Access, breadth: Breadth) -> str:
    """The glob for the paths. Outside the workspace there is a folder at most."""
    if breadth == "this":
        if len(access.paths) != 1:
            raise _Unfit("a rule can name one path, and the request does not name exactly one")
        return escape(access.paths[0])
    root = next((root for root in access.roots if _all_within(access.paths, root)), None)
    if breadth == "files" and root is not None:
        return f"{escape(root)}/**"
    folder = folder_of(access)
    if breadth == "folder" and not any(is_within(each, folder) for each in (_HOME, *access.roots)):
        return f"{escape(folder)}/**"
    raise _Unfit("the paths have no folder of their own")


def folder_of(access: Access) -> str:
    """The folder that has all its paths in it."""
    return posixpath.commonpath([posixpath.dirname(path) for path in access.paths] or ["/"])


def _all_within(paths: Sequence[str], root: str) -> bool:
    return bool(paths) and all(is_within(path, root) for path in paths)


# ── commands ──────────────────────────────────────────────────────────────────────────────────


def _below(access: Access) -> str:
    root = next((root for root in access.roots if is_within(access.cwd or "", root)), None)
    if root is None:
        raise _Unfit("the command would run outside the workspace")
    return f"{escape(root)}/**"


def _as_written(access: Access, breadth: Breadth) -> Rule:
    """What is not read any further: the words, if it has words."""
    command = access.commands[0]
    words = plain_words(command) if isinstance(command, str) else command
    if words is None or breadth != "this":
        raise _Unfit("only running the line shows what it does, so no rule can cover it")
    return _exactly(msgspec.structs.replace(access, commands=(words,)))


def _named_by(layers: Sequence[Access]) -> Access:
    """The command as it is written, except for the shell that it is handed to."""
    return next((e for e in layers if not is_shell(_words(e))), layers[-1])


def _words(access: Access) -> tuple[str, ...]:
    words = access.commands[0]
    assert not isinstance(words, str)  # a step has words
    return words


def _exactly(access: Access) -> Rule:
    if access.cwd is None:
        raise _Unfit("the folder that the command would run in is not known")
    return Rule(effect="ask", operation="execute", argv=_words(access), cwd=escape(access.cwd))


def _programs(access: Access, found: Steps, scope: Scope) -> list[Rule]:
    """A rule for the program of each command, or for all its words where it has no such name."""
    rules = [_program(access, layers[-1], scope) for layers in found.commands]
    if all(rule.argv_prefix is None for rule in rules):
        raise _Unfit("the command is not one of a program that does the same with other words")
    return [*rules, *_files_of(found)]


def _program(access: Access, command: Access, scope: Scope) -> Rule:
    named = program_of(_words(command))
    if named is None or command.cwd is None:
        return _exactly(command)
    if not is_found_by_path(named):
        return Rule(effect="ask", operation="execute", argv_prefix=named, cwd=escape(command.cwd))
    where = None if scope == "user" else _below(access)
    return Rule(effect="ask", operation="execute", argv_prefix=named, cwd=where)


def _files_of(found: Steps) -> list[Rule]:
    """The files of redirections; those that are read in the workspace need no rule."""
    needed = [each for each in found.files if each.operation == "write" or each.place != "inside"]
    if any(each.protection or not each.complete for each in needed):
        raise _Unfit("the line writes a file that is asked for each time")
    return [
        Rule(effect="ask", operation=each.operation, path=escape(each.paths[0])) for each in needed
    ]


_EFFECTS: dict[Effect, str] = {"allow": "allow", "ask": "ask before", "deny": "refuse"}
_SCOPES: dict[Scope, str] = {
    "once": "once",
    "session": "in this session",
    "project": "in this project",
    "user": "",
}


def _deed(rule: Rule) -> Iterator[str]:
    """What is done, to what, and what else the request has to name."""
    named = dict(_named(rule))
    match rule.operation or _implied(named):
        case "read" | "write" | "read or write" as operation:
            yield _DOING[operation]
            yield named.pop("files", "any file")
        case "execute":
            yield "running"
            yield named.pop("command", "any command")
        case "fetch":
            yield f"fetching from {named.pop('host', 'any host')}"
        case "mcp":
            yield "calling"
            yield named.pop("tool", "any tool")
            yield f"from {named.pop('host')}" if "host" in named else ""
        case "other":
            yield "other requests"
        case "everything":
            yield "everything"
            yield f"from {named.pop('host')}" if "host" in named else ""
    yield f"naming {' and '.join(named.values())}" if named else ""


_DOING = {"read": "reading", "write": "writing", "read or write": "reading or writing"}


def _named(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.path is not None:
        yield "files", f"files {rule.path}"
    if rule.argv is not None:
        yield "command", f"exactly {shlex.join(rule.argv)}"
    elif rule.argv_prefix is not None:
        yield "command", f"commands that begin with {shlex.join(rule.argv_prefix)}"
    elif rule.cwd is not None and rule.operation is None:
        yield "command", "any command"
    if rule.host is not None:
        yield "host", rule.host
    if rule.tool is not None:
        yield "tool", f"the tool {rule.tool}"


def _implied(
    named: dict[str, str],
) -> Literal["execute", "read or write", "mcp", "everything"]:
    """What a rule without an operation is about."""
    if "command" in named:
        return "execute"
    if "files" in named:
        return "read or write"
    return "mcp" if "tool" in named else "everything"


def _where(rule: Rule) -> str:
    where = folder(rule)
    if where is None:
        return ""
    if where == ".":
        return "in the workspace folder itself"
    if where.endswith("/**"):
        return f"in {where[:-3] or '/'} and below"
    return f"in the folder {where}"
