"""Full-text search: what a person typed becomes a query that cannot be wrong."""

from __future__ import annotations

import re

from dragoman.store.database import Database
from dragoman.store.records import Hit

_FIND = """
SELECT s.id, t.seq, t.kind, snippet(said_words, 0, char(1), char(2), '…', 16)
FROM said_words JOIN said t ON t.id = said_words.rowid JOIN sessions s ON s.key = t.session
WHERE said_words MATCH ? AND NOT s.deleted ORDER BY rank, t.id DESC LIMIT ?
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


def forget_words(db: Database, *, anew: bool) -> bool:
    """Rewrite some of the index without the words of what was deleted, which stay in it until then;
    whether there is more to do. SQLite can do that by itself with each deletion, at a hundred times
    the cost."""
    before = db.all_changes
    db.run(_MERGE, (-_MERGE_PAGES if anew else _MERGE_PAGES,))
    return db.all_changes - before >= 2


def search(db: Database, text: str, limit: int) -> list[Hit]:
    query = match_query(text)
    return [Hit(*row) for row in db.rows(_FIND, (query, limit))] if query else []
