"""Full-text search: turns whatever a person typed into a valid query.

A word may be in every text. So only the newest texts that have it are ranked, and the cost of a
search does not grow with the store.
"""

from __future__ import annotations

import re
from typing import Any

from dragoman.store.records import Hit
from dragoman.store.sqlite.database import Database

RANKED = 300
"""Of the texts that have the words, the newest: so many are compared with each other."""
_SNIPPET_WORDS = 16

# In the order of its own ids the index is read no further than that. `rank` would read all of it,
# to know how rare each word is.
_FIND = f"""
SELECT s.id, t.seq, t.kind, found.shown, found.passage, length(t.text)
FROM (
    SELECT rowid AS id, snippet(said_words, 0, char(1), char(2), '…', {_SNIPPET_WORDS}) AS shown,
        snippet(said_words, 0, char(1), '', '', 64) AS passage
    FROM said_words WHERE said_words MATCH ? AND EXISTS (
        SELECT 1 FROM said t JOIN sessions s ON s.key = t.session
        WHERE t.id = said_words.rowid AND NOT s.deleted AND t.seq <= s.last_seq
    ) ORDER BY rowid DESC LIMIT ?
) AS found JOIN said t ON t.id = found.id JOIN sessions s ON s.key = t.session
ORDER BY t.id DESC
"""
_MERGE = "INSERT INTO said_words (said_words, rank) VALUES ('merge', ?)"
_MERGE_PAGES = 64
_MAX_WORDS = 32
_piece = re.compile(r'"([^"]*)"|([^\s"]+)')


def pieces(text: str) -> tuple[list[str], bool]:
    """What was typed between blanks or in quotes; whether the last may be the beginning of a
    word. What holds no letter or digit is left out: no index has it."""
    found = list(_piece.finditer(text.replace("\0", " ")))[:_MAX_WORDS]
    typed = [(each[1] if each[1] is not None else each[2]) for each in found]
    kept = [piece for piece in typed if any(map(str.isalnum, piece))]
    is_open = bool(kept) and kept[-1] == typed[-1] and not text.rstrip(" ").endswith('"')
    return kept, is_open


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
    mean = sum(length for *_, length in rows) / len(rows) if rows else 0.0

    def worth(row: tuple[Any, ...]) -> float:
        """As in BM25, except for how rare the words are: all of these have all of them."""
        *_, passage, length = row
        hits = passage.count("\x01")
        return hits / (hits + 1.2 * (0.25 + 0.75 * length / (mean or 1.0)))

    return [Hit(*row[:4]) for row in sorted(rows, key=worth, reverse=True)[:limit]]
