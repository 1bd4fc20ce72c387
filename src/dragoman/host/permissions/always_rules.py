"""Turns a decision into an answer, and an "always" answer into a rule.

Options are known by their id and kind; their names are for people, and of several ways to say yes
once they single out the narrowest. A rule made from an answer is as
narrow as what the person saw, or there is none, with the reason. Pure.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from dragoman.host.rules.access import Access, Operation
from dragoman.host.rules.globs import escape
from dragoman.host.rules.policy import PolicyDecision
from dragoman.host.rules.rule import YOUR_ANSWER, Effect, Rule, Scope, folder
from dragoman.host.rules.shell import plain_words
from dragoman.safe_text import reveal
from dragoman.session.permission_options import announces_more, is_plain_yes

Answer: TypeAlias = Literal["allow", "deny"]


class Option(msgspec.Struct, frozen=True):
    """One of the answers an agent offers."""

    id: str
    name: str
    kind: str


class NoRule(msgspec.Struct, frozen=True):
    """Why an answer cannot be remembered as a rule, as a sentence for people."""

    reason: str


MOST_REMEMBERED = 32 << 10
"""Characters of a command that a rule can name."""

_ALLOWING = ("allow_once", "allow_always")
_REFUSING = ("reject_once", "reject_always")


def is_question(options: Sequence[Option], *, names_action: bool) -> bool:
    """Whether the options differ in more than yes and no, so that only a person can choose.

    Several ways to say yes once are one yes where the request names an action: one is the plain
    one, the others change a mode as well. An unknown kind and an id used twice leave open
    what would be chosen.
    """
    kinds = Counter(option.kind for option in options)
    ids = Counter(option.id for option in options)
    unclear = any(kind not in _ALLOWING + _REFUSING for kind in kinds) or len(ids) < len(options)
    return unclear or (kinds["allow_once"] > 1 and not names_action)


def choose_option(
    options: Sequence[Option], effect: Effect, *, always: bool = False, names_action: bool = False
) -> str | None:
    """The id of the narrowest option that says this, None where no option does.

    To allow, None means that a person has to choose; to refuse, that only `cancelled` is left.
    An allow is for once, unless the person said always.
    """
    if effect == "deny":
        return _first(options, _REFUSING[::-1] if always else _REFUSING)
    if effect == "ask" or is_question(options, names_action=names_action):
        return None
    once = [option for option in options if option.kind == "allow_once"]
    if always or len(once) < 2:
        return _first(options, _ALLOWING[::-1] if always else _ALLOWING[:1])
    # A label may repeat the command, so what it does not say proves nothing: only a plain yes does.
    if plain := next((option for option in once if is_plain_yes(option.name)), None):
        return plain.id
    return None if announces_more(once[0].name) else once[0].id


def always_rule(
    access: Access,
    answer: Answer,
    decision: PolicyDecision,
    *,
    rule_id: str,
    scope: Scope,
    session: str,
    project: str,
    expires_at: float | None = None,
) -> Rule | NoRule:
    """The rule that answers the same request next time, and as little else as can be."""
    if reason := _why_no_rule(access, answer, decision):
        return NoRule(reason)
    condition = _condition(access)
    if isinstance(condition, NoRule):
        return condition
    if answer == "deny":
        condition = msgspec.structs.replace(condition, cwd=None)
    return msgspec.structs.replace(
        condition,
        effect=answer,
        operation=access.operation,
        agent=escape(access.agent) or None,
        id=rule_id,
        source=YOUR_ANSWER,
        scope=scope,
        session=session if scope in ("once", "session") else None,
        project=project if scope in ("session", "project") else None,
        expires_at=expires_at,
    )


def describe(rule: Rule) -> str:
    """What a rule does, in words for people."""
    operation = _OPERATIONS[rule.operation] if rule.operation else "everything"
    words = (_EFFECTS[rule.effect], operation, *_conditions(rule), _SCOPES[rule.scope])
    return reveal(" ".join(filter(None, words)))


def _first(options: Sequence[Option], kinds: Sequence[str]) -> str | None:
    found = (option.id for kind in kinds for option in options if option.kind == kind)
    return next(found, None)


def _why_no_rule(access: Access, answer: Answer, decision: PolicyDecision) -> str | None:
    if access.parts:
        return "the request is for several actions, and a rule can name one"
    if access.question:
        return "this is a question, to be answered each time"
    if not access.complete:
        return "not everything the request names could be read"
    if answer == "deny":
        return None
    if access.protection is not None:
        return f"{access.protection}; it is asked for each time"
    if decision.rule is not None and decision.rule.effect == "ask":
        return f"{decision.rule.label} asks each time"
    return None


def _condition(access: Access) -> Rule | NoRule:
    """The one condition that describes this access exactly; its effect is still to be set."""
    match access:
        case Access(operation="read" | "write", paths=(path,)):
            return Rule(effect="ask", path=escape(path))
        case Access(operation="read" | "write"):
            return NoRule("a rule can name one path, and the request does not name exactly one")
        case Access(operation="execute"):
            return _exact_words(access)
        case Access(operation="fetch", hosts=(host,)):
            return Rule(effect="ask", host=escape(host))
        case Access(operation="mcp", tool=str(tool)):
            return Rule(effect="ask", tool=escape(tool))
        case _:
            return NoRule("nothing in the request is precise enough for a rule")


def _exact_words(access: Access) -> Rule | NoRule:
    if access.env:
        return NoRule("the command comes with environment variables, which no rule can cover")
    if len(access.commands) != 1:
        return NoRule("a rule can name one command, and the request does not name exactly one")
    command = access.commands[0]
    if sum(map(len, command)) > MOST_REMEMBERED:
        return NoRule("the command is too long to remember")
    words = plain_words(command) if isinstance(command, str) else command
    if words is None:
        return NoRule("the command is a shell line; a rule can only name plain words")
    if access.cwd is None:
        return NoRule("the folder that the command would run in is not known")
    return Rule(effect="ask", argv=words, cwd=escape(access.cwd))


_EFFECTS: dict[Effect, str] = {"allow": "allow", "ask": "ask before", "deny": "refuse"}
_OPERATIONS: dict[Operation, str] = {
    "read": "reading",
    "write": "writing",
    "execute": "running",
    "fetch": "fetching",
    "mcp": "calling",
    "other": "other requests",
}
_SCOPES: dict[Scope, str] = {
    "once": "once",
    "session": "in this session",
    "project": "in this project",
    "user": "",
}


def _conditions(rule: Rule) -> Iterator[str]:
    if rule.path is not None:
        yield f"files {rule.path}"
    if rule.argv is not None:
        yield f"exactly {shlex.join(rule.argv)}"
    if rule.argv_prefix is not None:
        yield f"commands that begin with {shlex.join(rule.argv_prefix)}"
    if (where := folder(rule)) is not None:
        yield f"in the folder {where}"
    if rule.host is not None:
        yield f"from {rule.host}"
    if rule.tool is not None:
        yield f"the tool {rule.tool}"
    if rule.agent is not None:
        yield f"for {rule.agent}"
