"""The JSONL mirror: one file per session, written by a thread of its own after each commit.

The process that has written to a session, or takes it over, brings its file up to the rows: a torn
end is cut, what is missing is appended, and a file that disagrees is set aside and written again.
So opening a store reads no mirror, and a file lags only as far as its last owner's sudden end left
it. A failure here is logged: the rows are the truth.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from dragoman.data_directory import make_private
from dragoman.errors import DragomanError
from dragoman.store.records import Batch
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.mirror_file import Fresh, MirrorFile, unlink_mirror

logger = logging.getLogger("dragoman.store")

PAUSE_SECONDS = 0.05
"""So that a flood is written in large pieces."""
AGAIN_SECONDS = 2.0
"""How long after a failure what is behind is tried again, though nothing new happens in it."""


class Mirror:
    """`directory` has the files, `database` is the path of the rows."""

    def __init__(self, directory: Path, database: str) -> None:
        self._directory = directory
        self._database = database
        self._changed = threading.Condition()
        self._todo: dict[str, Callable[[Database, str], None]] = {}
        self._fresh: dict[str, Fresh] = {}
        """What was just committed, so that it need not be read from the rows."""
        self._files: dict[str, MirrorFile] = {}
        self._behind: set[str] = set()
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def touch(self, session_id: str, batch: Batch | None = None) -> None:
        """There is more of the session in the rows than in the file, such as this batch."""
        if batch is not None:
            with self._changed:
                self._fresh.setdefault(session_id, Fresh()).add(batch)
        self._later(session_id, self._catch_up)

    def check(self, session_id: str) -> None:
        """Another process may have written to the session, or ended while it did."""
        self._later(session_id, self._examine)

    def remove(self, session_id: str) -> None:
        """The session is deleted."""
        self._later(session_id, self._remove)

    def unlink(self, session_id: str) -> None:
        """At once, from any thread."""
        unlink_mirror(self._directory, session_id)

    def close(self) -> None:
        """Waits until all files are up to date."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _later(self, session_id: str, what: Callable[[Database, str], None]) -> None:
        with self._changed:
            if what != self._catch_up or session_id not in self._todo:
                self._todo[session_id] = what
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dragoman-mirror")
                self._thread.daemon = True
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        db: Database | None = None
        while todo := self._next():
            for session_id, what in todo.items():
                try:
                    db = Database(self._database) if db is None else db
                    what(db, session_id)
                    self._behind.discard(session_id)
                except (OSError, DragomanError) as error:
                    self._note_failure(session_id, error)
        if db is not None:
            db.close()

    def _note_failure(self, session_id: str, error: Exception) -> None:
        """Said once, until it works again: a full disk fails many times a second."""
        self._files.pop(session_id, None)
        if session_id not in self._behind:
            self._behind.add(session_id)
            logger.warning("the mirror of session %s is out of date: %s", session_id, error)

    def _next(self) -> dict[str, Callable[[Database, str], None]]:
        """What there is to do; nothing at the end."""
        with self._changed:
            again = AGAIN_SECONDS if self._behind else None
            self._changed.wait_for(lambda: self._todo or self._is_closing, timeout=again)
            self._changed.wait_for(lambda: self._is_closing, timeout=PAUSE_SECONDS)
            todo, self._todo = self._todo, {}
            if not todo and not self._is_closing:
                todo = dict.fromkeys(self._behind, self._examine)
            return todo

    def _catch_up(self, db: Database, session_id: str) -> None:
        if session_id not in self._files:
            make_private(self._directory)
            self._files[session_id] = MirrorFile(self._directory, session_id)
        with self._changed:
            fresh = self._fresh.pop(session_id, None)
        self._files[session_id].catch_up(db, fresh)

    def _examine(self, db: Database, session_id: str) -> None:
        self._files.pop(session_id, None)
        self._catch_up(db, session_id)

    def _remove(self, db: Database, session_id: str) -> None:
        self._files.pop(session_id, None)
        with self._changed:
            self._fresh.pop(session_id, None)
        self.unlink(session_id)
