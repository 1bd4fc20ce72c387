"""The stored permission rules, opened when they are first needed.

Most runs decide nothing by them, and where nothing was ever stored nothing is made. Where a store
is open they are its own: those of a database are at hand there, and no decision waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.data_directory import data_directory, store_address
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.base import Rules
from dragoman.store.open import is_there, open_rules, open_rules_at


class StoredRules:
    """As the policy wants them. Every method raises StoreError when they cannot be read."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or data_directory()
        self._address = store_address() if directory is None else None
        self._opened: Rules | None = None

    def use(self, opened: Rules) -> None:
        """Those of a store that was opened meanwhile, from now on."""
        self._opened = opened

    def list(self) -> Sequence[Rule]:
        rules = self._if_any()
        return () if rules is None else rules.list()

    def load(self) -> tuple[StoredRule, ...]:
        """With when they were made and last used."""
        rules = self._if_any()
        return () if rules is None else tuple(rules.load())

    def add(self, rule: Rule) -> None:
        self._rules().add(rule)

    def used(self, rule_id: str) -> None:
        self._rules().used(rule_id)

    def revoke(self, rule_id: str) -> bool:
        """Whether there was one."""
        rules = self._if_any()
        return rules is not None and rules.revoke(rule_id)

    def _if_any(self) -> Rules | None:
        if self._opened is None and self._address is None and not is_there(self._directory):
            return None
        return self._rules()

    def _rules(self) -> Rules:
        if self._opened is None:
            address = self._address
            self._opened = (
                open_rules(self._directory) if address is None else open_rules_at(address)
            )
        return self._opened
