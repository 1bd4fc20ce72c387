"""Which session somebody means: by our id or its beginning, by its name, or by the agent's id."""

from __future__ import annotations

from dragoman.errors import UnknownSession
from dragoman.store.base import Store
from dragoman.store.records import SessionFilter, SessionRecord

_MANY = 10_000
_SHORTEST_BEGINNING = 4


async def find_session(store: Store, word: str, cwd: str | None = None) -> SessionRecord:
    """By what is most exact; a name counts in its folder, and elsewhere when it is the only one.

    Raises UnknownSession when there is none, or more than one.
    """
    if (record := await store.session(word)) is not None:
        return record
    for wanted in (
        SessionFilter(name=word, cwd=cwd),
        SessionFilter(agent_session_id=word),
        SessionFilter(name=word),
    ):
        if len(found := await store.sessions(wanted)) == 1:
            return found[0]
    found = await _by_beginning(store, word)
    if len(found) != 1:
        raise UnknownSession(word)
    return found[0]


async def _by_beginning(store: Store, word: str) -> list[SessionRecord]:
    if len(word) < _SHORTEST_BEGINNING:
        return []
    everything = await store.sessions(SessionFilter(limit=_MANY))
    return [record for record in everything if record.id.startswith(word)]
