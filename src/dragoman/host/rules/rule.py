"""A permission rule, and whether it matches an access.

`mismatch` is the one place where rules meet accesses: decisions and their explanations both rest
on it. Knows nothing of what follows when several rules match.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from dragoman.host.commands.danger import danger_of, reaches_further
from dragoman.host.commands.plain_command import hands_a_line_to_a_shell, is_harmless, plain_words
from dragoman.host.rules.access import OPERATIONS, Access, Command, Operation
from dragoman.host.rules.globs import matches_name, matches_path

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Scope: TypeAlias = Literal["once", "session", "project", "user"]
Answer: TypeAlias = Literal["allow", "deny"]


class NoRule(msgspec.Struct, frozen=True):
    """Why an answer cannot be remembered as a rule, as a sentence for people."""

    reason: str


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule: conditions, all of which must match, and its effect and scope.

    `path` is a glob: absolute, or relative to the roots of the workspace; `cwd` is one for the
    folder in which a command runs. A rule of scope `once` applies like one of scope `session`,
    until its owner drops it after the first use. `anywhere` is for --yolo: such a rule also covers
    what is not known to be inside the workspace. It cannot be set in a file of rules.

    Raises ValueError or TypeError for a meaningless rule, since it would have no effect.
    """

    effect: Effect
    operation: Operation | None = None
    agent: str | None = None
    path: str | None = None
    argv: tuple[str, ...] | None = None
    argv_prefix: tuple[str, ...] | None = None
    cwd: str | None = None
    host: str | None = None
    tool: str | None = None
    anywhere: bool = False
    scope: Scope = "user"
    session: str | None = None
    project: str | None = None
    expires_at: float | None = None
    id: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        _check_word("effect", self.effect, get_args(Effect))
        _check_word("scope", self.scope, get_args(Scope))
        if self.operation is not None:
            _check_word("operation", self.operation, OPERATIONS)
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"a rule's {name} is a text, not {value!r}")
        for name in ("argv", "argv_prefix"):
            msgspec.structs.force_setattr(self, name, _words(name, getattr(self, name)))

    @property
    def label(self) -> str:
        """The name of this rule in a sentence."""
        return " ".join(filter(None, (self.source, self.id))) or "a rule"


class RuleFields(Rule, frozen=True, rename="camel"):
    """A rule whose keys are spelled as those of all other JSON. In a file of rules, and in the
    store, they are spelled as in `Rule`: what was stored must never be read as a rule without its
    conditions."""

    argv_prefix: tuple[str, ...] | None = None
    expires_at: float | None = None

    @staticmethod
    def of(rule: Rule) -> RuleFields:
        return RuleFields(**msgspec.structs.asdict(rule))

    def plain(self) -> Rule:
        """The rule itself."""
        return Rule(**msgspec.structs.asdict(self))


YOUR_ANSWER = "your answer"
"""The source of rules that were made from answers."""
YOUR_RULE = "your rule"
"""The source of stored rules that were written, not answered."""
_TEXTS = ("agent", "path", "cwd", "host", "tool", "session", "project", "id", "source")


def _check_word(name: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ValueError(f"a rule's {name} is {', '.join(known[:-1])} or {known[-1]}, not {word!r}")


def _words(name: str, value: Any) -> tuple[str, ...] | None:
    """As they are compared: a list would equal none."""
    if value is None:
        return None
    words = tuple(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else ()
    if not words or not all(isinstance(word, str) for word in words):
        raise TypeError(f"a rule's {name} is the words of a command, a text each, not {value!r}")
    return words


class Moment(msgspec.Struct, frozen=True):
    """When and for which session a decision is made; `project` is its first workspace root.
    `above` are projects that this is in, or other names of it: what they deny or ask counts."""

    now: float
    session_id: str
    project: str
    above: frozenset[str] = frozenset()


_SPEAKS_OF: dict[str, frozenset[Operation]] = {
    "path": frozenset(("read", "write", "other")),
    "argv": frozenset(("execute",)),
    "argv_prefix": frozenset(("execute",)),
    "cwd": frozenset(("execute",)),
    "host": frozenset(("fetch", "mcp", "other")),
    "tool": frozenset(("mcp", "other")),
}
_BUT_OTHER = frozenset(OPERATIONS) - {"other"}


def covered(rule: Rule) -> frozenset[Operation]:
    """The operations a rule can allow: what it names, as far as its conditions speak of it.

    A condition without an operation is read narrowly, so that a rule about a path never allows a
    command that happens to name one.
    """
    return _covered(
        rule.operation,
        rule.path is not None,
        rule.argv is not None,
        rule.argv_prefix is not None,
        rule.cwd is not None,
        rule.host is not None,
        rule.tool is not None,
    )


@functools.cache  # for all rules of one form, and there are few
def _covered(operation: Operation | None, *has: bool) -> frozenset[Operation]:
    conditions = [ops for ops, given in zip(_SPEAKS_OF.values(), has, strict=True) if given]
    if operation is not None:
        return frozenset((operation,)).intersection(*conditions)
    return _BUT_OTHER.intersection(*conditions) if conditions else frozenset(OPERATIONS)


def mismatch(rule: Rule, access: Access, moment: Moment) -> str | None:
    """Why the rule does not speak of this access, as the end of a sentence; None when it does."""
    why = out_of_force(rule, access.agent, moment) or _other_operation(rule, access)
    if why is None and rule.path is not None:
        why = _other_path(rule, rule.path, access)
    if why is None and (rule.argv is not None or rule.argv_prefix is not None):
        why = _other_command(rule, access)
    if why is None and (where := folder(rule)) is not None:
        why = _other_folder(rule, where, access)
    if why is None and rule.host is not None:
        why = _other_host(rule, rule.host, access)
    if why is None and rule.tool is not None:
        why = _other_tool(rule, rule.tool, access)
    if why is None and rule.effect == "allow":
        why = _too_uncertain(rule, access) or _too_dangerous(rule, access)
    return why


def out_of_force(rule: Rule, agent: str, moment: Moment) -> str | None:
    """Why the rule does not count at all for this agent in this moment."""
    if rule.expires_at is not None and moment.now >= rule.expires_at:
        return "it has expired"
    if rule.scope in ("once", "session") and rule.session != moment.session_id:
        return "it is for another session"
    # An agent's ids may come again: a rule for a session can name its project too.
    in_project = rule.scope == "project" or (rule.scope == "session" and rule.project is not None)
    is_above = rule.effect != "allow" and rule.project in moment.above
    if in_project and rule.project != moment.project and not is_above:
        return "it is for another project"
    if rule.agent is not None and not matches_name(rule.agent, agent):
        return f"it is for the agent {rule.agent}"
    return None


def _other_operation(rule: Rule, access: Access) -> str | None:
    if rule.effect == "allow":
        fits = access.operation in covered(rule)
    else:
        fits = rule.operation is None or rule.operation in access.operations
    return None if fits else f"it is not about {access.operation}"


def _other_path(rule: Rule, glob: str, access: Access) -> str | None:
    names = access.paths if rule.effect == "allow" else (*access.paths, *access.aliases)
    fits = _enough(rule, (matches_path(glob, path, access.roots) for path in names))
    return None if fits else f"the path does not match {glob}"


def _other_command(rule: Rule, access: Access) -> str | None:
    if access.env:
        return "it names a plain command, but the request sets environment variables"
    words = (_matches_words(rule, each, access.claimed) for each in access.commands)
    if _enough(rule, words):
        return None
    if any(isinstance(each, str) and plain_words(each) is None for each in access.commands):
        return "it names a plain command, but this is a shell command line"
    return "the command differs"


def _other_folder(rule: Rule, where: str, access: Access) -> str | None:
    if rule.cwd is None:
        fits = access.cwd in access.roots[:1]  # the project, links resolved
    else:
        all_names = (*access.folders, *access.cwd_aliases)
        named = access.folders[:1] if rule.effect == "allow" else all_names
        fits = any(matches_path(where, each, access.roots) for each in named)
    return None if fits else f"it is for commands in {where}"


def folder(rule: Rule) -> str | None:
    """Where its commands run, as a glob; None for anywhere in the workspace.

    An answer that was remembered without a folder allows its command at the top of its project
    alone: what a command does depends on the files around it.
    """
    if rule.cwd is None and rule.source == YOUR_ANSWER and rule.effect == "allow" and rule.argv:
        return rule.project
    return rule.cwd


def _other_host(rule: Rule, glob: str, access: Access) -> str | None:
    lower = glob.lower()
    fits = _enough(rule, (matches_name(lower, host.lower()) for host in access.hosts))
    return None if fits else f"the host does not match {glob}"


def _other_tool(rule: Rule, glob: str, access: Access) -> str | None:
    if rule.effect == "allow" and access.claimed and access.operation != "mcp":
        return "a tool name that the agent merely claims cannot allow anything"
    named = [] if access.tool is None else [access.tool]
    if rule.effect != "allow":
        named += access.names
    if any(matches_name(glob, name) for name in named):
        return None
    return f"the tool does not match {glob}"


def _too_uncertain(rule: Rule, access: Access) -> str | None:
    """An allow needs to know where; only --yolo goes without, and not beyond a fence."""
    if access.fenced and access.operation == "write":
        return None if rule.path is not None else "it does not name the file, outside the fence"
    if rule.anywhere:
        return None
    if not access.complete:
        return "not everything the request names could be read"
    if access.operation == "write" and access.place != "inside":
        return "the write is not known to be inside the workspace"
    if access.operation == "execute" and access.place_of_cwd != "inside":
        return "the working directory is not known to be inside the workspace"
    return None


def _too_dangerous(rule: Rule, access: Access) -> str | None:
    """An answer covers what was seen; a dangerous command has to be named word for word."""
    if not is_wide_answer(rule):
        return None
    found = danger_of(access)
    if found is None and rule.argv_prefix is not None:
        named = len(rule.argv_prefix)
        whys = (reaches_further(each, named) for each in access.commands)
        found = next(filter(None, whys), None)
    return None if found is None else f"your answer does not cover it: {found}"


def is_wide_answer(rule: Rule) -> bool:
    """Whether a person allowed more than one command or file without writing a rule."""
    is_wide = rule.argv is None and (rule.path is None or rule.path.endswith("/**"))
    return is_wide and is_answer(rule)


def is_answer(rule: Rule) -> bool:
    """Whether a person allowed it by an answer, and did not write it down."""
    return rule.effect == "allow" and rule.source == YOUR_ANSWER


def _enough(rule: Rule, fits: Iterable[bool]) -> bool:
    """An allow has to fit everything that is named, a deny or an ask only something."""
    results = list(fits)
    return bool(results) and (all(results) if rule.effect == "allow" else any(results))


def _matches_words(rule: Rule, command: Command, claimed: bool) -> bool:
    words = plain_words(command) if isinstance(command, str) else command
    if words is None or rule.argv not in (None, words):
        return False
    prefix = rule.argv_prefix
    if prefix is None:
        return True
    if words[: len(prefix)] != prefix:
        return False
    return rule.effect != "allow" or not _may_hide_a_line(words, claimed)


def _may_hide_a_line(words: tuple[str, ...], claimed: bool) -> bool:
    # Who claims an argv may yet join it to a line: then each word has to survive that.
    if claimed and not all(map(is_harmless, words)):
        return True
    return hands_a_line_to_a_shell(words)
