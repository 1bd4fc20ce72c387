"""Which session somebody means: by our id or its beginning, by its name, or by the agent's id."""

from __future__ import annotations

from dragoman.errors import AmbiguousSession, UnknownSession
from dragoman.store.base import Store
from dragoman.store.records import SessionFilter, SessionRecord

_MANY = 10_000
_SHORTEST_BEGINNING = 4


async def find_session(store: Store, word: str, cwd: str | None = None) -> SessionRecord:
    """By what is most exact; a name counts in its folder, and elsewhere when it is the only one.

    Of several records of the agent's session the one used last is meant. Raises UnknownSession
    when there is none, AmbiguousSession when there is more than one.
    """
    if (record := await store.session(word)) is not None:
        return record
    if cwd is not None and (found := await store.sessions(SessionFilter(name=word, cwd=cwd))):
        return found[0]
    if found := await store.sessions(SessionFilter(agent_session_id=word)):
        return found[0]
    named = await store.sessions(SessionFilter(name=word))
    return _only(word, named or await _by_beginning(store, word))


def _only(word: str, found: list[SessionRecord]) -> SessionRecord:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownSession(word)
    ids = ", ".join([*(record.id for record in found[:3]), *("…" for _ in found[3:4])])
    raise AmbiguousSession(word, f"{word} matches {len(found)} sessions: {ids}")


async def _by_beginning(store: Store, word: str) -> list[SessionRecord]:
    everything = await store.sessions(SessionFilter(limit=_MANY))
    found = [record for record in everything if record.id.startswith(word)]
    if found and len(word) < _SHORTEST_BEGINNING:
        begin = "a session begins" if len(found) == 1 else f"{len(found)} sessions begin"
        raise AmbiguousSession(word, f"{word} is ambiguous: {begin} with it")
    return found
