"""The demo agent's sessions on disk: one small file each, for their owner alone.

The first line is what there is to know about a session, each further line an update of its
conversation. The oldest sessions, and the oldest turns of a long one, are let go.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import suppress

import msgspec

from dragoman.testing.scripted_agent import AgentSession

MAX_SESSIONS = 100
MAX_HISTORY_BYTES = 256 * 1024

_is_id = re.compile(r"[A-Za-z0-9-]{1,64}").fullmatch
_TURN = b'"user_message_chunk"'


class StoredSessions(MutableMapping[str, AgentSession]):
    """Sessions by id, newest first; each look is a fresh one, so that processes can share them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @classmethod
    def at_home(cls) -> MutableMapping[str, AgentSession]:
        """Where Dragoman keeps things; in memory alone where it may not."""
        folder = os.path.join(_home(), "demo-agent")
        try:
            os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError:
            return {}
        return cls(folder)

    def __getitem__(self, session_id: str) -> AgentSession:
        try:
            with open(self._path(session_id), "rb") as file:
                header, *updates = file.read().rstrip(b"\n").split(b"\n")
            session = msgspec.json.decode(header, type=AgentSession)
        except (OSError, msgspec.DecodeError):
            raise KeyError(session_id) from None
        session.history = [msgspec.Raw(update) for update in updates]
        return session

    def __setitem__(self, session_id: str, session: AgentSession) -> None:
        session.history = _bounded(session.history)
        about = msgspec.structs.replace(session, history=[], request=None)
        lines = [msgspec.json.encode(about), *map(bytes, session.history)]
        try:
            self._write(self._path(session_id), b"\n".join(lines) + b"\n")
        except OSError as error:
            # The conversation goes on; only the next process will know nothing of it.
            sys.stderr.write(f"the session could not be kept: {error}\n")
        for oldest in list(self)[MAX_SESSIONS:]:
            self.pop(oldest, None)

    def __delitem__(self, session_id: str) -> None:
        try:
            os.unlink(self._path(session_id))
        except OSError:
            raise KeyError(session_id) from None

    def __iter__(self) -> Iterator[str]:
        with os.scandir(self._folder) as entries:
            found = [(_changed(e), e.name[:-6]) for e in entries if e.name.endswith(".jsonl")]
        return iter([session_id for _, session_id in sorted(found, reverse=True)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, session_id: str) -> str:
        """Ids come from clients: an id that is not ours must not become a file name."""
        if not _is_id(session_id):
            raise KeyError(session_id)
        return os.path.join(self._folder, f"{session_id}.jsonl")

    def _write(self, path: str, data: bytes) -> None:
        unfinished = f"{path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)


def _changed(entry: os.DirEntry[str]) -> int:
    with suppress(OSError):  # another process may have let it go
        return entry.stat().st_mtime_ns
    return 0


def _home() -> str:
    if home := os.environ.get("DRAGOMAN_HOME"):
        return os.path.abspath(home)
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return os.path.join(os.path.abspath(os.path.expanduser(data)), "dragoman")


def _bounded(history: list[msgspec.Raw]) -> list[msgspec.Raw]:
    """Without the oldest turns, if they are too much."""
    size = sum(len(update) for update in history)
    start = 0
    while size > MAX_HISTORY_BYTES and start < len(history):
        size -= len(history[start])
        start += 1
        while start < len(history) and _TURN not in bytes(history[start]):
            size -= len(history[start])
            start += 1
    return history[start:]
