"""The rules that "always" answers made, in the database. For any thread; nothing here is awaited.

Policies ask for the list at every decision, so it is kept until a change is heard of. While the
database is away the rules last known hold: whoever could change them cannot reach it either, or
will be heard when it is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from dragoman.errors import StoreAway, StoreCorrupt, StoreError
from dragoman.host.matching import Rule
from dragoman.host.rulebook import StoredRule
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import CHANNEL, SCHEMA
from dragoman.store.postgres.failures import connect_error, lost, store_error
from dragoman.store.postgres.news import RULES

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")
_Connection = psycopg.Connection[TupleRow]

_SETTINGS = f"SET search_path = {SCHEMA}; SET statement_timeout = '10s'"
_ANY = f"SELECT to_regclass('{SCHEMA}.rules') IS NOT NULL"
_LOAD = "SELECT body, created_at, used_at FROM rules ORDER BY place"
_REMOVE = "DELETE FROM rules WHERE id = %s"
_INSERT = "INSERT INTO rules (id, body, created_at) VALUES (%s, %s, %s)"
USED = "UPDATE rules SET used_at = %s WHERE id = %s"
_TELL = f"SELECT pg_notify('{CHANNEL}', '{RULES}')"

_rule = msgspec.json.Decoder(Rule)


class PostgresRules:
    """Opened when it is first asked. `is_away` says whether the store has lost the database, and
    `note` writes the use of a rule some time; without a store it is written at once."""

    def __init__(
        self,
        address: Address,
        *,
        is_away: Callable[[], bool] = lambda: False,
        note: Callable[[str, float], None] | None = None,
    ) -> None:
        self._address = address
        self._is_away = is_away
        self._note = note
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._known: tuple[StoredRule, ...] | None = None
        self._is_watched = self._is_current = False

    def heard(self, is_watched: bool) -> None:
        """They may have changed; whether the next change will be heard of too."""
        self._is_watched, self._is_current = is_watched, False

    def list(self) -> Sequence[Rule]:
        """The rules alone, in the order in which they were made."""
        return [stored.rule for stored in self.load()]

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too."""
        with self._lock:
            known = self._known
            if known is not None and (self._is_current or self._is_away()):
                return known
            # Before it is read: what is heard of meanwhile makes it old again.
            self._is_current = self._is_watched
            try:
                self._known = self._do(self._read)
            except StoreAway:
                self._is_current = False
                if known is None:
                    raise
                return known
            except StoreError:
                self._is_current = False
                raise
            return self._known

    def add(self, rule: Rule) -> None:
        """Store a rule; one with the same id is replaced."""
        if not rule.id or rule.scope == "once" or rule.anywhere:
            raise ValueError("a stored rule has an id, lasts, and is no flag")
        body, now = msgspec.json.encode(rule), time.time()

        def write(connection: _Connection) -> None:
            connection.execute(_REMOVE, (rule.id,))
            connection.execute(_INSERT, (rule.id, body, now))

        self._write(write)

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one."""
        return self._write(lambda connection: connection.execute(_REMOVE, (rule_id,)).rowcount > 0)

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something. Not worth an error: it is for people
        who wonder whether a rule is still of use."""
        now = time.time()
        if self._note is not None:
            self._note(rule_id, now)
            return
        try:
            with self._lock:
                self._do(lambda connection: connection.execute(USED, (now, rule_id)))
        except StoreError as error:
            logger.warning("the use of a rule could not be noted: %s", error)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self, connection: _Connection) -> tuple[StoredRule, ...]:
        if connection.execute(_ANY).fetchone() != (True,):
            return ()
        return tuple(self._stored(row) for row in connection.execute(_LOAD))

    def _stored(self, row: tuple[Any, ...]) -> StoredRule:
        body, created_at, used_at = row
        try:
            return StoredRule(_rule.decode(body), created_at, used_at)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(self._address.shown, f"a rule cannot be read: {error}") from error

    def _write(self, work: Callable[[_Connection], T]) -> T:
        with self._lock:
            if self._is_away():
                raise StoreAway(self._address.shown, "the database cannot be reached")
            self._is_current = False

            def told(connection: _Connection) -> T:
                with connection.transaction():
                    result = work(connection)
                    connection.execute(_TELL)
                    return result

            return self._do(told)

    def _do(self, work: Callable[[_Connection], T]) -> T:
        """Once more on a new connection when the one that was kept turns out to be dead."""
        is_kept = self._connection is not None
        try:
            return self._tried(work)
        except StoreAway:
            if not is_kept:
                raise
        return self._tried(work)

    def _tried(self, work: Callable[[_Connection], T]) -> T:
        place = self._address.shown
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connected()
        try:
            return work(connection)
        except psycopg.Error as error:
            if connection.closed:
                self._drop()
                raise lost(place, error) from error
            raise store_error(place, error) from error

    def _connected(self) -> _Connection:
        try:
            connection = psycopg.connect(self._address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise connect_error(self._address.shown, error) from None
        try:
            connection.execute(_SETTINGS)
        except psycopg.Error as error:
            connection.close()
            raise lost(self._address.shown, error) from error
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
