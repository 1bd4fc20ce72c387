"""Full-text search: PostgreSQL finds and ranks, the snippets are cut here.

Only the newest texts that have the words are ranked: a common word is in most of what there is,
and ranking reads every text. They are looked for among the newest texts first, which is enough for
a common word; one that is rare there is found by the index in all the others.

The same words as in the SQLite store: runs of letters and digits, without case and accents. They
are made here and not by PostgreSQL, whose parser knows addresses and files but not code.
"""

from __future__ import annotations

from typing import Any

from dragoman.store.postgres.database import Database
from dragoman.store.records import Hit
from dragoman.store.search_texts import pieces, snippet, words
from dragoman.store.sqlite.search import RANKED

# Rank is divided by length (2): a short text about it is better than a long one that names it.
_RANK = "SELECT t.session, t.seq, t.kind, ts_rank(t.words, %s::tsquery, 2)"
# PostgreSQL takes a word that is typed to its beginning for one in every fifty texts. It would read
# the whole index for a common one, and all texts for a rare one: both statements leave it one way.
_AMONG_NEWEST = f"""
{_RANK}
FROM (
    SELECT session, seq, kind, words FROM said
    WHERE session <> ALL(%s::bigint[]) AND (session, seq) >= (%s, %s)
    ORDER BY session DESC, seq DESC OFFSET 0
) AS t WHERE t.words @@ %s::tsquery ORDER BY t.session DESC, t.seq DESC LIMIT %s
"""
_BY_INDEX = f"""
{_RANK}
FROM (
    SELECT session, seq, kind, words FROM said
    WHERE words @@ %s::tsquery AND session <> ALL(%s::bigint[]) AND (session, seq) < (%s, %s)
    ORDER BY session + 0 DESC, seq DESC LIMIT %s
) AS t ORDER BY t.session DESC, t.seq DESC
"""
# Their texts are the newest, and would take the places of those that can be found.
_NOT_WHOLE = "SELECT coalesce(array_agg(key), '{}') FROM sessions WHERE last_seq = 0"
_PLACE = "SELECT session, seq FROM said ORDER BY session DESC, seq DESC OFFSET %s LIMIT 1"
_TEXTS = """
SELECT s.id, t.seq, t.kind, left(t.text, %s)
FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) WITH ORDINALITY
    AS best (session, seq, kind, place)
JOIN said t USING (session, seq, kind) JOIN sessions s ON s.key = t.session
WHERE NOT s.deleted AND t.seq <= s.last_seq ORDER BY best.place
"""
NEWEST = 20_000
"""Texts that are looked through first."""
_BEGIN = (0, 0)
_LOOKED_THROUGH = 100_000
"""Characters of a text in which a snippet is looked for."""


async def search(db: Database, text: str, limit: int) -> list[Hit]:
    wanted = query(text)
    if not wanted:
        return []
    newest = await _newest(db, wanted, max(RANKED, limit))
    best = sorted(newest, key=lambda row: row[3], reverse=True)[:limit]
    columns = [list(column) for column in zip(*best, strict=True)][:3] or [[], [], []]
    rows = await db.rows(_TEXTS, (_LOOKED_THROUGH, *columns))
    return [Hit(each, seq, kind, snippet(found, text)) for each, seq, kind, found in rows]


async def _newest(db: Database, wanted: str, most: int) -> list[tuple[int, int, str, float]]:
    """Where the words stand and how well they fit there, newest first."""
    place: Any = await db.row(_PLACE, (NEWEST,)) or _BEGIN
    [hidden] = await db.rows(_NOT_WHOLE)
    found = await db.rows(_AMONG_NEWEST, (wanted, *hidden, *place, wanted, most))
    if len(found) < most and place != _BEGIN:
        rest = most - len(found)
        found += await db.rows(_BY_INDEX, (wanted, wanted, *hidden, *place, rest))
    return found


_MAX_POSITION = 16_383
"""The last place in a text that PostgreSQL tells from others."""
_MAX_BYTES = 600_000
"""Of different words in one text; PostgreSQL takes a megabyte with all it adds to them."""


def storable(value: Any) -> Any:
    """PostgreSQL has no text with a NUL in it."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def vector(text: str) -> str:
    """What PostgreSQL takes as a tsvector."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, (word, _, _) in enumerate(words(text), 1):
        known = places.get(word)
        if known is None:
            size += len(word.encode()) + 8
            if size > _MAX_BYTES:
                break
            known = places[word] = []
        if len(known) < 255:
            known.append(min(place, _MAX_POSITION))
    return " ".join(f"'{word}':{','.join(map(str, found))}" for word, found in places.items())


def query(text: str) -> str:
    """What PostgreSQL takes as a tsquery: all the words, those of one piece in that order, the last
    one as the beginning of a word; "" when there is nothing to look for."""
    phrases: list[str] = []
    found, is_open = pieces(text)
    for number, piece in enumerate(found, 1):
        parts = [f"'{word}'" for word, _, _ in words(piece)]
        if parts and is_open and number == len(found):
            parts[-1] += ":*"
        if parts:
            phrases.append(f"({' <-> '.join(parts)})")
    return " & ".join(phrases)
