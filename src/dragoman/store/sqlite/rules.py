"""The stored permission rules in SQLite. Synchronous, and safe to call from any thread.

Policies ask for the list at every decision, so it is kept until some process has written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from dragoman.errors import StoreError
from dragoman.host.rules.policy import CountingRules, StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.sqlite.database import Database, damaged
from dragoman.store.sqlite.tables import migrate

logger = logging.getLogger("dragoman.store")

ADD_RULE = "INSERT OR REPLACE INTO rules (id, body, created_at, used_at) VALUES (?, ?, ?, ?)"
_LOAD = "SELECT body, created_at, used_at FROM rules ORDER BY place"

PATIENCE_SECONDS = 2.0
"""How long to wait for another process that is writing: the decision blocks meanwhile."""

_rule = msgspec.json.Decoder(Rule)


def must_last(rule: Rule) -> None:
    """Raises ValueError for one that is not to be stored."""
    if not rule.id or rule.scope == "once" or rule.anywhere:
        raise ValueError("a stored rule must have an id, be permanent, and not be a flag")


class SqliteRules:
    """The stored rules, opened on first use; with None as `path`, they are kept in memory."""

    def __init__(self, path: str | None, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._db: Database | None = None
        self._seen: int | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._known: tuple[StoredRule, ...] = ()
        self._counting = CountingRules()
        self._uses: dict[str, float] = {}
        """When rules were used, as far as it could not be noted yet."""

    def list(self) -> Sequence[Rule]:
        """The rules alone, in the order in which they were made."""
        return self._counting.of(self.load())

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too."""
        with self._lock:
            db = self._opened()
            version = db.data_version()
            if version != self._seen:
                self._read(db.rows(_LOAD), db)
                self._seen = version
            return self._known

    def _read(self, rows: list[tuple[Any, ...]], db: Database) -> None:
        """Most of what is written to the store is not a rule."""
        if rows != self._rows:
            self._known = tuple(_stored(db, row) for row in rows)
            self._rows = rows

    def add(self, rule: Rule, home: str | None = None) -> None:
        """Store a rule; one with the same id is replaced. The store is of one machine, which is
        the `home` of all its rules."""
        must_last(rule)
        self._write(ADD_RULE, (rule.id, msgspec.json.encode(rule), self._clock(), None))

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one."""
        return self._write("DELETE FROM rules WHERE id = ?", (rule_id,)) > 0

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something. Not worth an error: it is for people
        who wonder whether a rule is still of use."""
        self._uses[rule_id] = self._clock()
        # Nobody waits for another process for that: what cannot be noted now is noted later.
        with suppress(StoreError):
            self._note_uses(patience=0.0)

    def _note_uses(self, patience: float) -> None:
        for rule_id, moment in list(self._uses.items()):
            note = "UPDATE rules SET used_at = ? WHERE id = ?"
            self._write(note, (moment, rule_id), patience=patience)
            self._uses.pop(rule_id, None)

    def close(self) -> None:
        try:
            self._note_uses(PATIENCE_SECONDS)
        except StoreError as error:
            logger.warning("could not record the use of a rule: %s", error)
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _write(
        self, statement: str, values: tuple[Any, ...], *, patience: float = PATIENCE_SECONDS
    ) -> int:
        with self._lock:
            db = self._opened()
            self._seen = None
            db.wait_for_others(patience)
            db.run(statement, values)
            return db.changes

    def _opened(self) -> Database:
        if self._db is None:
            self._db, self._seen = Database(self._path), None
            if self._path is None:
                migrate(self._db)
        return self._db


def _stored(db: Database, row: tuple[Any, ...]) -> StoredRule:
    body, created_at, used_at = row
    try:
        rule = _rule.decode(body)
    except msgspec.DecodeError as error:
        raise damaged(db.place, f"a rule cannot be read: {error}") from error
    return StoredRule(rule, created_at, used_at)
