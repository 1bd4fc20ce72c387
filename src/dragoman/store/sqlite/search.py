"""Full-text search: turns whatever a person typed into a valid query.

A word may be in every text. So only the newest texts that have it are ranked, and the cost of a
search does not grow with the store.
"""

from __future__ import annotations

from typing import Any

from dragoman.store.records import Hit
from dragoman.store.search_texts import pieces, snippet
from dragoman.store.sqlite.database import Database, integers

RANKED = 300
"""Of the texts that have the words, the newest: so many are compared with each other."""
_SNIPPET_WORDS = 16
_MANY_HITS = 1_000
"""In one text. SQLite's `snippet` compares each with each; of such a text only …"""
_LOOKED_THROUGH = 10_000
"""… so many characters are looked through for one."""

# In the order of its own ids the index is read no further than that. `rank` would read all of it,
# to know how rare each word is. The size of a text is known without reading it.
_FIND = """
SELECT found.hits, octet_length(t.text), t.id, s.id, t.seq, t.kind
FROM (
    SELECT rowid AS id, hits(said_words) AS hits
    FROM said_words WHERE said_words MATCH ? AND EXISTS (
        SELECT 1 FROM said t JOIN sessions s ON s.key = t.session
        WHERE t.id = said_words.rowid AND NOT s.deleted AND t.seq <= s.last_seq
    ) ORDER BY rowid DESC LIMIT ?
) AS found JOIN said t ON t.id = found.id JOIN sessions s ON s.key = t.session
ORDER BY t.id DESC
"""
# One look at the index for all of them: that for the beginning of a word reads each word with it.
_SNIPPETS = f"""
SELECT rowid, snippet(said_words, 0, char(1), char(2), '…', {_SNIPPET_WORDS})
FROM said_words WHERE said_words MATCH ? AND rowid BETWEEN ? AND ? AND +rowid IN carray(?)
"""
_BEGINNING = "SELECT substr(text, 1, ?) FROM said WHERE id = ?"
_MERGE = "INSERT INTO said_words (said_words, rank) VALUES ('merge', ?)"
_MERGE_PAGES = 64


def match_query(text: str) -> str:
    """In the language of FTS5: all the words, quoted ones in that order, the last one as the
    beginning of a word; "" when there is nothing to look for."""
    kept, is_open = pieces(text)
    return " ".join(f'"{piece}"' for piece in kept) + ("*" if is_open else "")


def forget_words(db: Database, *, restart: bool) -> bool:
    """Rewrite some of the index without the words of what was deleted, which stay in it until then;
    whether there is more to do. SQLite can do that by itself with each deletion, at a hundred times
    the cost."""
    before = db.all_changes
    db.run(_MERGE, (-_MERGE_PAGES if restart else _MERGE_PAGES,))
    return db.all_changes - before >= 2


def search(db: Database, text: str, limit: int) -> list[Hit]:
    """The best of the newest; of equals the newest."""
    query = match_query(text)
    if not query:
        return []
    rows = db.rows(_FIND, (query, max(RANKED, limit)))
    mean = sum(size for _, size, *_ in rows) / len(rows) if rows else 0.0

    def worth(row: tuple[Any, ...]) -> float:
        """As in BM25, except for how rare the words are: all of these have all of them."""
        hits, size, *_ = row
        return hits / (hits + 1.2 * (0.25 + 0.75 * size / (mean or 1.0)))

    best = sorted(rows, key=worth, reverse=True)[:limit]
    shown = _shown(db, query, text, {at: hits for hits, _, at, *_ in best})
    return [Hit(session, seq, kind, shown[at]) for _, _, at, session, seq, kind in best]


def _shown(db: Database, query: str, typed: str, best: dict[int, int]) -> dict[int, str]:
    """Some words of each text, with those that were found marked."""
    few = [at for at, hits in best.items() if hits <= _MANY_HITS]
    shown = dict.fromkeys(best, "")
    if few:
        shown.update(db.rows(_SNIPPETS, (query, min(few), max(few), integers(few))))
    for at in best.keys() - few:
        row = db.row(_BEGINNING, (_LOOKED_THROUGH, at))
        shown[at] = snippet(row[0], typed) if row else ""
    return shown
