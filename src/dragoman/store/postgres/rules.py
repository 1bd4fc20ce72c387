"""The rules that "always" answers made, in SQL; and as a program has them that has no store open.

Such a program waits for the database, some seconds at most. Where a store is open they are at hand:
`kept_rules`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from dragoman.errors import StoreAway, StoreCorrupt, StoreError
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import CHANNEL, SCHEMA, cut
from dragoman.store.postgres.failures import connect_error, lost, store_error
from dragoman.store.postgres.news import RULES
from dragoman.store.sqlite.rules import must_last

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")
_Connection = psycopg.Connection[TupleRow]

ANSWER_SECONDS = 10.0
"""After that long without an answer the connection is taken for dead."""
_SETTINGS = f"SET search_path = {SCHEMA}; SET statement_timeout = '9s'"
_ANY = f"SELECT to_regclass('{SCHEMA}.rules') IS NOT NULL"
LOAD = "SELECT body, created_at, used_at FROM rules ORDER BY place"
REMOVE = "DELETE FROM rules WHERE id = %s"
INSERT = "INSERT INTO rules (id, body, created_at) VALUES (%s, %s, %s)"
USED = "UPDATE rules SET used_at = %s WHERE id = %s"
TELL_OF_RULES = f"SELECT pg_notify('{CHANNEL}', '{RULES}')"

_rule = msgspec.json.Decoder(Rule)


def stored_rule(place: str, row: tuple[Any, ...]) -> StoredRule:
    """Raises StoreCorrupt."""
    body, created_at, used_at = row
    try:
        return StoredRule(_rule.decode(body), created_at, used_at)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(place, f"a rule cannot be read: {error}") from error


class PostgresRules:
    """Connected when it is first asked, for any thread; nothing here is awaited. While the database
    is away the rules last known hold, and none can be added."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._known: tuple[StoredRule, ...] | None = None

    def list(self) -> Sequence[Rule]:
        """The rules alone, in the order in which they were made."""
        return [stored.rule for stored in self.load()]

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too."""
        with self._lock:
            try:
                self._known = self._do(self._read)
            except StoreAway:
                if self._known is None:
                    raise
            return self._known

    def add(self, rule: Rule) -> None:
        """Store a rule; one with the same id is replaced."""
        must_last(rule)
        body, now = msgspec.json.encode(rule), time.time()

        def write(connection: _Connection) -> None:
            connection.execute(REMOVE, (rule.id,))
            connection.execute(INSERT, (rule.id, body, now))

        self._write(write)

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one."""
        return self._write(lambda connection: connection.execute(REMOVE, (rule_id,)).rowcount > 0)

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something. Not worth an error: it is for people
        who wonder whether a rule is still of use."""
        try:
            with self._lock:
                self._do(lambda connection: connection.execute(USED, (time.time(), rule_id)))
        except StoreError as error:
            logger.warning("could not record the use of a rule: %s", error)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self, connection: _Connection) -> tuple[StoredRule, ...]:
        if connection.execute(_ANY).fetchone() != (True,):
            return ()
        return tuple(stored_rule(self._address.shown, row) for row in connection.execute(LOAD))

    def _write(self, work: Callable[[_Connection], T]) -> T:
        def told(connection: _Connection) -> T:
            with connection.transaction():
                result = work(connection)
                connection.execute(TELL_OF_RULES)
                return result

        with self._lock:
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
            with _bounded(connection):
                return work(connection)
        except (psycopg.Error, OSError) as error:
            failed = (lost if connection.closed else store_error)(place, error)
            if isinstance(failed, StoreAway):
                self._drop()
            raise failed from error

    def _connected(self) -> _Connection:
        try:
            connection = psycopg.connect(self._address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise connect_error(self._address.shown, error) from None
        try:
            with _bounded(connection):
                connection.execute(_SETTINGS)
        except psycopg.Error as error:
            connection.close()
            raise lost(self._address.shown, error) from error
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def _bounded(connection: _Connection) -> Generator[None]:
    """The server has bounds of its own; this one is for a server that does not answer at all."""
    timer = threading.Timer(ANSWER_SECONDS, cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
