"""Full-text search: PostgreSQL finds and ranks, the snippets are cut here."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.store.postgres.database import Database
from dragoman.store.postgres.words import query, words
from dragoman.store.records import Hit
from dragoman.store.search import pieces

# Rank is divided by length (2): a short text about it is better than a long one that names it.
_FIND = """
SELECT s.id, t.seq, t.kind, left(t.text, %s)
FROM said t JOIN sessions s ON s.key = t.session
WHERE t.words @@ %s::tsquery AND NOT s.deleted
ORDER BY ts_rank(t.words, %s::tsquery, 2) DESC, s.key DESC, t.seq DESC LIMIT %s
"""
_LOOKED_THROUGH = 100_000
"""Characters of a text in which a snippet is looked for."""
_SNIPPET_WORDS = 16
_WORDS_BEFORE = 5


async def search(db: Database, text: str, limit: int) -> list[Hit]:
    wanted = query(text)
    if not wanted:
        return []
    rows = await db.rows(_FIND, (_LOOKED_THROUGH, wanted, wanted, limit))
    return [Hit(each, seq, kind, snippet(found, text)) for each, seq, kind, found in rows]


def snippet(text: str, typed: str) -> str:
    """Some words around the first that was found, with all that were found marked."""
    parts = list(words(text))
    found = sorted(_found([part[0] for part in parts], typed))
    first = max(found[0][0] - _WORDS_BEFORE, 0) if found else 0
    if first + _SNIPPET_WORDS > len(parts):
        first = max(len(parts) - _SNIPPET_WORDS, 0)
    last = min(first + _SNIPPET_WORDS, len(parts)) - 1
    if last < 0:
        return text[:100]
    begin = 0 if first == 0 else parts[first][1]
    end = len(text) if last == len(parts) - 1 else parts[last][2]
    marks = [(parts[a][1], parts[b][2]) for a, b in found if a >= first and b <= last]
    marked = _marked(text, begin, end, marks)
    return f"{'…' if first else ''}{marked}{'' if end == len(text) else '…'}"


def _found(plain: list[str], typed: str) -> Iterator[tuple[int, int]]:
    """Where each piece of what was typed stands: its first word and its last."""
    kept, is_open = pieces(typed)
    for number, piece in enumerate(kept, 1):
        phrase = [part[0] for part in words(piece)]
        is_prefix = is_open and number == len(kept)
        for start in range(len(plain) - len(phrase) + 1) if phrase else ():
            if _stands(plain[start : start + len(phrase)], phrase, is_prefix):
                yield start, start + len(phrase) - 1


def _stands(there: list[str], phrase: list[str], is_prefix: bool) -> bool:
    if there[:-1] != phrase[:-1]:
        return False
    return there[-1].startswith(phrase[-1]) if is_prefix else there[-1] == phrase[-1]


def _marked(text: str, begin: int, end: int, marks: list[tuple[int, int]]) -> str:
    shown, at = "", begin
    for start, stop in marks:
        if start >= at:
            shown += f"{text[at:start]}\x01{text[start:stop]}\x02"
            at = stop
    return shown + text[at:end]
