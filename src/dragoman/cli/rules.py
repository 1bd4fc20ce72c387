"""The stored permission rules, opened when they are first needed.

Most runs decide nothing by them, and where nothing was ever stored nothing is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.host.home import data_directory
from dragoman.host.matching import Rule
from dragoman.host.rulebook import StoredRule
from dragoman.store.open import is_there, open_rules
from dragoman.store.rules import SqliteRules


class StoredRules:
    """As the policy wants them. Every method raises StoreError when they cannot be read."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or data_directory()
        self._opened: SqliteRules | None = None

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

    def _if_any(self) -> SqliteRules | None:
        if self._opened is None and not is_there(self._directory):
            return None
        return self._rules()

    def _rules(self) -> SqliteRules:
        if self._opened is None:
            self._opened = open_rules(self._directory)
        return self._opened
