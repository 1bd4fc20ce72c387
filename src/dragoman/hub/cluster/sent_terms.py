"""Rules that go with a prompt to the process that runs its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.host.rules.rule import Rule, RuleFields
from dragoman.session.facts import TurnTerms
from dragoman.store.records import Owner


def sent_terms(
    sender: Owner,
    rules: Sequence[Rule],
    options: Sequence[str],
    *,
    home: str | None,
    on_ask: Literal["reject", "wait"] | None = None,
) -> TurnTerms:
    """The rules of the sender, for one turn; `options` are what was typed for them."""
    by = f"process {sender.pid}" + (f" on {sender.label}" if sender.label else "")
    named = [msgspec.structs.replace(each, source=f"{each.source} of {by}") for each in rules]
    return TurnTerms(
        by=by,
        options=list(options),
        rules=[msgspec.to_builtins(RuleFields.of(rule)) for rule in named],
        on_ask=on_ask,
        home=home,
    )
