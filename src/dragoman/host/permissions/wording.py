"""The wording of permissions: events of requests and decisions, and the refusal.

Also what a change would overwrite. Nothing is decided here, and nobody is asked.
"""

from __future__ import annotations

import functools
import logging
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from dragoman.errors import InternalError, InvalidParams, RemoteError
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import PolicyDecision
from dragoman.host.rules.rule import Answer, NoRule, Rule, RuleFields, Scope
from dragoman.session import events as e
from dragoman.session import facts
from dragoman.session.content import Diff, ToolContent
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import choose_option, in_words, is_for_session

OUR_OPTIONS = (
    PermissionOption("allow", "Allow once", "allow_once"),
    PermissionOption("allow_always", "Always allow", "allow_always"),
    PermissionOption("reject", "Reject", "reject_once"),
    PermissionOption("reject_always", "Always reject", "reject_always"),
)
"""What we offer when it is ourselves who ask."""

MOST_WORDS = 2000
MOST_NAMES = 256
MOST_RULES = 8
_SAYS_NO_MORE = ("refused", "answered")
"""Reasons of a refusal that are a person's no and nothing else."""
_FOR_ALWAYS: dict[str, Answer] = {"allow_always": "allow", "reject_always": "deny"}
_logger = logging.getLogger("dragoman.host")


def requested(request: PermissionRequest) -> e.PermissionRequested:
    return request.as_kind(e.PermissionRequested, meta=request.meta)


def decided(access: Access, decision: PolicyDecision) -> e.AccessDecided:
    return e.AccessDecided(
        access.operation,
        decision_words(decision),
        paths=list(access.paths),
        argv=shown_argv(access),
    )


def blame(provider: str, error: BaseException) -> str:
    """Which provider failed, and with what."""
    words = str(error).strip()
    return f"the {provider} provider failed: {type(error).__name__}{words and f': {words}'}"


def answered(
    request: PermissionRequest, option_id: str | None, decision: facts.Decision
) -> e.AccessDecided:
    """What the agent asked, and was answered without anyone having been asked."""
    return e.AccessDecided(
        request.operation,
        decision,
        paths=request.paths,
        argv=request.argv,
        title=request.title,
        tool_call_id=request.tool_call_id,
        option_id=option_id,
        subagent=request.subagent,
    )


def decision_words(decision: PolicyDecision) -> facts.Decision:
    rule = None if decision.rule is None else msgspec.to_builtins(RuleFields.of(decision.rule))
    return facts.Decision(decision.effect, decision.reason, rule, by="rule")


def effect_of(kinds: set[str]) -> str:
    """What an option comes to: the same id used for a yes and a no is neither."""
    if not kinds:
        return "cancelled"
    if kinds <= {"allow_once", "allow_always"}:
        return "allow"
    return "deny" if kinds <= {"reject_once", "reject_always"} else "answered"


def with_consequences(
    options: Sequence[PermissionOption],
    always: Callable[[Answer, Scope], tuple[Rule, ...] | NoRule],
    *,
    claimed: bool,
    names_action: bool,
) -> list[PermissionOption]:
    """The options, each one for always with what it leads to; `always` makes the rule of an answer.

    What is `claimed` is answered to the agent, which may keep an answer for always by itself.
    """
    once = choose_option(options, "allow", names_action=names_action)

    @functools.cache
    def outcome(answer: Answer, scope: Scope) -> tuple[str, bool]:
        rules = always(answer, scope)
        # Without a rule the agent is only told `always` when there is no other way to say it.
        may_be_kept = claimed and (
            not isinstance(rules, NoRule) or answer == "deny" or once is None
        )
        words = _consequence(rules, may_be_kept=may_be_kept)
        return words, isinstance(rules, NoRule) and not may_be_kept

    def told(option: PermissionOption, answer: Answer) -> PermissionOption:
        words, once_only = outcome(answer, scope_of([option]))
        return msgspec.structs.replace(option, consequence=words, counts_once=once_only)

    return [
        told(option, _FOR_ALWAYS[option.kind]) if option.kind in _FOR_ALWAYS else option
        for option in _in_words(options)
    ]


def scope_of(options: Sequence[PermissionOption]) -> Scope:
    """Where the rule of an answer counts that has these names: in the project, unless one of them
    says that it is for the session."""
    return "session" if any(map(is_for_session, options)) else "project"


def _in_words(options: Sequence[PermissionOption]) -> Iterator[PermissionOption]:
    """Each with what it does in our words, for those who read nothing but the JSON."""
    for option, ours in zip(options, in_words(options), strict=True):
        warning = ours.remark if ours.warns else None
        yield msgspec.structs.replace(option, words=ours.words, warning=warning)


def _consequence(rules: tuple[Rule, ...] | NoRule, *, may_be_kept: bool) -> str:
    if not isinstance(rules, NoRule):
        more = "; the agent may also remember it" if may_be_kept else ""
        return f"from now on: {just_this(rules)}{more}"
    unless = ", unless the agent itself keeps it" if may_be_kept else ""
    return f"counts once only{unless}: {rules.reason}"


def just_this(rules: Sequence[Rule]) -> str:
    """What rules do that cover what the question shows and nothing else, without repeating it."""
    from dragoman.host.permissions.always_rules import describe_as  # only questions need it

    first = rules[0]
    if len(rules) > 1:
        files = [rule.path.rpartition("/")[2] for rule in rules if rule.path is not None]
        commands = ["each of these commands by itself"] if any(rule.argv for rule in rules) else []
        subject = " and ".join([*commands, *(f"any change to {name}" for name in files)])
    elif first.argv is not None:
        subject = f"exactly this command{' in this folder' if first.cwd else ''}"
    elif first.path is not None:
        subject = f"{'writing' if first.operation == 'write' else 'reading'} this file"
    else:
        subject = "this"
    return describe_as(first, subject)


def all_in_short(rules: Sequence[Rule]) -> str:
    """What rules do that are made together."""
    more = len(rules) - MOST_RULES
    also = [f"{more} more"] if more > 0 else []
    return "; ".join((*map(in_short, rules[:MOST_RULES]), *also))


def in_short(rule: Rule) -> str:
    """What a rule does; the middle of a long command is left out, as the question shows it."""
    from dragoman.host.permissions.always_rules import describe

    words = describe(rule)
    if len(words) <= MOST_WORDS:
        return words
    half = MOST_WORDS // 2
    return f"{words[:half]} … ({len(words) - 2 * half} characters more) … {words[-half:]}"


def shown_argv(access: Access) -> list[str] | None:
    """The words of the command; of several, a line each, so that none goes unseen."""
    if not access.commands:
        return None
    lines = [c if isinstance(c, str) else shlex.join(c) for c in access.commands]
    first = access.commands[0]
    if len(lines) > 1 or isinstance(first, str):
        return ["\n".join(lines)]
    return list(first)


def shown_names(names: Sequence[str]) -> list[str]:
    """The names of variables, in bounds: an agent chooses how many there are and how long."""
    shown = [name if len(name) <= 200 else f"{name[:200]}…" for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return [*shown, *([f"… and {more} more"] if more else [])]


def refusal(access: Access, reason: str) -> RemoteError:
    """The error reply that says so; the log has no words of a command, which may be secret."""
    _logger.debug("%s refused: %r (%s)", access.operation, ", ".join(access.paths), reason)
    subject = ", ".join(access.paths) or " ".join(shown_argv(access) or ())
    if access.operation in ("read", "write") and access.place == "outside":
        why = f"{subject}: outside the workspace ({reason})"
        return InvalidParams(why, {"path": subject, "reason": "outside the workspace"})
    if access.operation == "execute" and access.place_of_cwd == "outside":
        why = f"{access.cwd}: outside the workspace ({reason})"
        return InvalidParams(why, {"path": access.cwd, "reason": "outside the workspace"})
    why = "" if reason in _SAYS_NO_MORE else f" ({reason})"
    return InternalError(f"{subject}: refused{why}", {"reason": reason})


# ── what a change would overwrite ───────────────────────────────────────────────────────────────

# What a change would overwrite without showing it: an agent may call an existing file new.
#
# A question shows the existing text, or says that it cannot be shown. Knows nothing of rules and
# answers.


Look: TypeAlias = Callable[[str], Awaitable[tuple[str | None, str]]]
"""The text of a file, None for one that is not there, and why one that is cannot be shown."""

# An agent names as many files as it likes, and each is read, shown and recorded.
MOST_FILES = 32
MOST_CHARACTERS = 1 << 20


async def with_losses(
    content: Sequence[ToolContent], inside: Callable[[str], str | None], look: Look
) -> tuple[ToolContent, ...]:
    """The content, each file that is called new with what is there already.

    `inside` gives the real path of a file that may be looked at.
    """
    losses = _Losses(inside, look)
    return tuple([await losses.shown(item) if _is_called_new(item) else item for item in content])


def _is_called_new(item: ToolContent) -> bool:
    if not isinstance(item, Diff):
        return False
    return item.old_text is None if item.operation is None else item.operation == "add"


class _Losses:
    def __init__(self, inside: Callable[[str], str | None], look: Look) -> None:
        self._inside = inside
        self._look = look
        self._files = MOST_FILES
        self._characters = MOST_CHARACTERS

    async def shown(self, item: ToolContent) -> ToolContent:
        assert isinstance(item, Diff)
        self._files -= 1
        if self._files < 0:
            return _replacing(item, "whatever is there: there are too many files to check")
        path = self._inside(item.path)
        if path is None:
            return _replacing(item, "whatever is there: this place was not checked")
        text, reason = await self._look(path)
        if text is None:
            return item if not reason else _replacing(item, f"what cannot be shown ({reason})")
        return self._with_text(item, text)

    def _with_text(self, item: Diff, text: str) -> Diff:
        if item.operation is not None:
            return _replacing(item, f"{_lines(text)} that are not shown") if text else item
        self._characters -= len(text)
        if self._characters < 0:
            return _replacing(item, f"{_lines(text)}, too many to be shown here")
        return msgspec.structs.replace(item, old_text=text)


def _replacing(item: Diff, what: str) -> Diff:
    return msgspec.structs.replace(item, replaces=what)


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return "1 line" if count == 1 else f"{count} lines"
