"""The rules that come with a prompt from another process: whether they may hold here.

All processes of one store belong to one person, so their rules are as good as ours; but what is
allowed on one machine is not allowed on another, which has other files. Rules that deny or ask hold
everywhere, as stored ones do.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from dragoman.errors import CommandRefused
from dragoman.host.permissions.consent import rules_of
from dragoman.host.rules.access import Operation
from dragoman.host.rules.rule import Rule, covered
from dragoman.session.facts import TurnTerms

MOST_BYTES = 256 << 10
"""Of rules, as JSON: they are stored with the prompt, and again with its turn."""

_METHODS: dict[Operation, str] = {"write": "fs/write_text_file", "execute": "terminal/create"}


def check_terms(
    terms: TurnTerms, session_id: str, *, home: str | None, offered: Collection[str]
) -> None:
    """Raises CommandRefused for terms that cannot hold on this `home`, whose agent was `offered`
    these methods."""

    def refused(code: str, sentence: str) -> CommandRefused:
        return CommandRefused(session_id, code, sentence)

    try:
        rules = rules_of(terms)
    except (ValueError, TypeError) as error:
        raise refused("invalid", f"a rule cannot be read: {error}") from error
    allowing = [rule for rule in rules if rule.effect == "allow"]
    words = " ".join(terms.options)
    if len(msgspec.json.encode(terms.rules)) > MOST_BYTES:
        sentence = f"rules for one turn may have at most {MOST_BYTES >> 10} KiB; store some of them"
        raise refused("too_large", sentence)
    if allowing and terms.home != home:
        sentence = f"the session runs on another machine, where {words} cannot allow anything"
        raise refused("elsewhere", f"{sentence}: run it there, or answer its questions")
    for operation, method in _METHODS.items():
        if method not in offered and _is_meant(allowing, operation):
            sentence = f"the process that runs the session does not offer {method} to its agent"
            raise refused("not_offered", f"{sentence}, so {words} allows nothing")


def _is_meant(allowing: list[Rule], operation: Operation) -> bool:
    """Whether a rule is for this alone; --yolo is for much else, too."""
    return any(covered(rule) == frozenset((operation,)) and not rule.anywhere for rule in allowing)


def kept_terms(terms: TurnTerms, home: str | None) -> tuple[TurnTerms, list[str]]:
    """What holds of the terms of a prompt that waited for another owner, and in a sentence what
    does not."""
    if terms.home == home and _are_readable(terms):
        return terms, []
    strict = [fields for fields in terms.rules if fields.get("effect") != "allow"]
    if len(strict) == len(terms.rules) and _are_readable(terms):
        return terms, []
    lost = f"the prompt was queued with {' '.join(terms.options)}, which allows nothing here"
    kept = msgspec.structs.replace(terms, rules=strict, options=[])
    return kept if _are_readable(kept) else TurnTerms(by=terms.by, on_ask="reject"), [lost]


def _are_readable(terms: TurnTerms) -> bool:
    try:
        rules_of(terms)
    except (ValueError, TypeError):
        return False
    return True
