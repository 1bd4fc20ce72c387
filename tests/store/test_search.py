"""Search over what people wrote and agents said, whatever is typed into it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from store.stores import Opens, batch, begin, on_disk

from dragoman.errors import StoreError
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store.base import Store
from dragoman.store.records import Hit, Said
from dragoman.store.search_texts import Texts
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.search import RANKED, match_query

SEED = 20_240_607


async def say(store: Store, *texts: str) -> None:
    lease = await begin(store)
    said = [Said(seq, "agent", text) for seq, text in enumerate(texts, 1)]
    await store.append(lease, batch(1, len(texts), said=said))


async def test_a_hit_says_where_and_shows_the_words(opens: Opens) -> None:
    async with opens() as store:
        await say(store, "nothing here", "The quick brown fox jumps", "more of nothing")
        assert await store.search("brown") == [
            Hit("s", 2, "agent", "The quick \x01brown\x02 fox jumps")
        ]


FINDS: dict[str, set[int]] = {
    "quick": {1},
    "QUICK": {1},
    "qui": {1},
    "qui brown": set(),
    "brown qui": {1},
    "quick lazy": set(),
    '"quick brown"': {1},
    '"brown quick"': set(),
    '"quick bro': {1},
    "cafe": {3},
    "café": {3},
    "snake_case.name": {4},
    "日本": {5},
    "пример": {6},
    "fox": {1, 2},
}


async def test_words_are_found(opens: Opens) -> None:
    async with opens() as store:
        await say(
            store,
            "The quick brown fox",
            "A lazy fox",
            "Un café noir",
            "call snake_case.name() twice",
            "日本語のテキスト",
            "Это пример текста",
        )
        for query, found in FINDS.items():
            assert {hit.seq for hit in await store.search(query)} == found, query


HOSTILE = [
    *("", " ", '"', '""', '"""', "'", "*", "**", "-", "+", "^", ":", "(", ")", "()", "{}", "\\"),
    *("AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b, 5)", "a AND", "a OR", "NOT a", "a NOT"),
    *("text:fox", "said_words:fox", "text : fox", "- text : fox", "{text} : fox", "^fox", "fox^"),
    *("fox*fox", "fox * fox", "fox**", '"fox" *', 'fox"', '"fox', "fox; DROP TABLE said", "%", "_"),
    *("\0", "fox\0", "\x01\x02", "\ud7ff", "\U0010ffff", "﷽", "fox\n\tfox", "💥", "+fox -fox"),
    *("a" * 10_000, "a " * 10_000, '"a" ' * 1000, "(" * 500, "NEAR(" * 200, "rank", "rowid"),
]


async def test_nothing_that_is_typed_is_an_error(opens: Opens) -> None:
    async with opens() as store:
        await say(store, "a fox and or not near text rank rowid")
        for query in HOSTILE:
            try:
                await store.search(query)
            except Exception as error:
                pytest.fail(f"{query[:100]!r}: {error}")
        assert len(await store.search("fox")) == 1


async def test_control_what_is_typed_would_be_an_error_if_it_were_the_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def as_typed(text: str) -> str:
        return text

    monkeypatch.setattr("dragoman.store.sqlite.search.match_query", as_typed)
    async with on_disk(tmp_path) as store:
        await say(store, "fox")
        with pytest.raises(StoreError):
            await store.search("NEAR(")


def test_a_query_holds_what_was_typed_in_quotes() -> None:
    assert match_query("NEAR(") == '"NEAR("*'
    assert match_query('say "a b" now') == '"say" "a b" "now"*'
    assert match_query('say "a b"') == '"say" "a b"'
    assert match_query("-- !!") == ""


async def test_random_queries_are_no_error(opens: Opens) -> None:
    chosen = random.Random(SEED)
    alphabet = "ab \"'*()^:+-{}\\,;AND OR NOT NEAR\n\0\x01éß日💥"
    async with opens() as store:
        await say(store, "ab aAND NOT é ß 日")
        for _ in range(500):
            query = "".join(chosen.choices(alphabet, k=chosen.randrange(1, 30)))
            try:
                await store.search(query)
            except Exception as error:
                pytest.fail(f"{query!r} (seed {SEED}): {error}")


async def test_the_best_come_first_and_no_more_than_asked_for(opens: Opens) -> None:
    async with opens() as store:
        await say(store, *("long words " * 20 + "fox" for _ in range(5)), "fox fox fox")
        found = await store.search("fox", limit=3)
        assert len(found) == 3
        assert found[0].seq == 6
        assert len(await store.search("fox")) == 6


async def test_of_many_that_have_a_word_the_newest_are_ranked(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.store.sqlite.search.RANKED", 10)
    monkeypatch.setattr("dragoman.store.postgres.search.RANKED", 10)
    monkeypatch.setattr("dragoman.store.postgres.search.NEWEST", 8)
    async with opens() as store:
        texts = ["fox", *("a fox among some other words" for _ in range(30)), "fox fox"]
        await say(store, *texts)
        found = [hit.seq for hit in await store.search("fox", limit=5)]
        assert found == [32, 31, 30, 29, 28]
        assert len(await store.search("fox", limit=100)) == 32
        best = [hit.seq for hit in await store.search("fox", limit=100)][:2]
        assert set(best) == {1, 32}


async def test_a_word_that_is_in_every_text_costs_no_more_than_the_ranked_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    looks: list[str] = []
    original = Database.rows

    def counted(db: Database, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        rows = original(db, statement, values)
        read.append(len(rows))
        looks.extend([statement] if "MATCH" in statement else [])
        return rows

    async with on_disk(tmp_path) as store:
        await say(store, *(f"fox number {number}" for number in range(3 * RANKED)))
        monkeypatch.setattr(Database, "rows", counted)
        assert len(await store.search("fox", limit=20)) == 20
        assert max(read) == RANKED
        assert len(looks) == 2  # The index is read for the places, and once for all snippets.


async def test_a_text_that_repeats_a_word_without_end_is_found_with_little_work(
    opens: Opens,
) -> None:
    async with opens() as store:
        await say(store, "some words before it " + "fox " * 240_000, "the fox " * 3)
        before = time.process_time()
        shown = {hit.seq: hit.snippet for hit in await store.search("fox")}
        assert time.process_time() - before < 2
        assert shown.keys() == {1, 2}
        assert "before it \x01fox\x02 \x01fox\x02" in shown[1]
        assert shown[1].count("\x01") == shown[1].count("\x02")
        assert len(shown[1]) < 200


async def test_text_of_any_kind_can_be_stored(opens: Opens) -> None:
    async with opens() as store:
        nasty = ["", "\0", "a\0b", '"', "\\", "\x01mark\x02", "💥", "x" * 100_000, "\u2028"]
        await say(store, *nasty, "findme")
        assert len(await store.search("findme")) == 1


# ── the texts of a session ────────────────────────────────────────────────────────────────────


def numbered(*events: e.Event) -> list[e.Event]:
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, 1)]


def told(subagent: str, text: str, message_id: str | None = None) -> e.Event:
    return e.SubagentEvent(subagent, e.AgentMessage(Text(text), message_id))


def test_the_messages_of_subagents_that_speak_at_once_stay_apart() -> None:
    texts = Texts()
    said = texts.feed(
        numbered(
            e.AgentMessage(Text("I have ")),
            told("a", "one "),
            told("b", "uno "),
            e.AgentMessage(Text("two helpers")),
            told("a", "two"),
            told("b", "due"),
            e.TurnEnded("end_turn"),
        )
    )
    assert said == [
        Said(1, "agent", "I have two helpers"),
        Said(2, "subagent", "one two"),
        Said(3, "subagent", "uno due"),
    ]
    assert texts.rest() == []


def test_a_subagent_that_says_something_else_completes_its_message() -> None:
    texts = Texts()
    said = texts.feed(numbered(told("a", "one", "1"), told("a", "two", "2")))
    assert said == [Said(1, "subagent", "one")]
    assert texts.rest() == [Said(2, "subagent", "two")]


def test_subagents_without_end_that_stop_in_the_middle_hold_a_bounded_text() -> None:
    texts = Texts()
    said: list[Said] = []
    for seq in range(1, 101):
        event = told(f"a{seq}", "x" * 100_000)
        said += texts.feed([msgspec.structs.replace(event, seq=seq)])
    held = texts.rest()
    assert [each.seq for each in said + held] == [*range(1, 101)]
    assert sum(len(each.text) for each in held) <= 1_000_000
