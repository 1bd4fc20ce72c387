"""Rules in the database: for every thread and process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store.stores import Opens, batch, begin, on_disk

from dragoman.host.rules.policy import Policy, StoredRule, UsedRules
from dragoman.host.rules.rule import Rule
from dragoman.store.base import Rules
from dragoman.store.open import open_rules
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.rules import SqliteRules


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


FULL = Rule(
    effect="deny",
    operation="write",
    agent="demo",
    path="/ws/\\*",
    scope="project",
    project="/ws",
    expires_at=200.5,
    id="r1",
    source="your answer",
)


async def test_rules_are_listed_in_the_order_they_were_made(opens: Opens) -> None:
    async with opens() as store:
        assert list(store.rules.list()) == []
        store.rules.add(FULL)
        store.rules.add(rule("r2"))
        assert list(store.rules.list()) == [FULL, rule("r2")]
        store.rules.add(Rule(effect="ask", id="r1"))
        assert list(store.rules.list()) == [rule("r2"), Rule(effect="ask", id="r1")]


async def test_a_rule_can_be_revoked_once(opens: Opens) -> None:
    async with opens() as store:
        store.rules.add(rule("r1"))
        assert store.rules.revoke("r1")
        assert not store.rules.revoke("r1")
        assert list(store.rules.list()) == []


async def test_a_policy_takes_them_and_notes_their_use(opens: Opens) -> None:
    async with opens() as store:
        rules: Rules = store.rules
        assert isinstance(rules, UsedRules)
        policy = Policy(stored=rules)
        policy.remember(rule("r1"))
        assert policy.rules[-1] == rule("r1")


def test_times_are_kept(tmp_path: Path) -> None:
    open_rules(tmp_path).close()
    now = [100.0]
    rules = SqliteRules(str(tmp_path / "dragoman.db"), clock=lambda: now[0])
    rules.add(rule("r1"))
    rules.add(rule("r2"))
    now[0] = 150.0
    rules.used("r2")
    rules.used("unknown")
    assert rules.load() == (StoredRule(rule("r1"), 100.0), StoredRule(rule("r2"), 100.0, 150.0))
    rules.close()
    assert open_rules(tmp_path).load()[0].created_at == 100.0


def test_a_use_that_cannot_be_noted_at_once_is_noted_later(tmp_path: Path) -> None:
    open_rules(tmp_path).close()
    path = str(tmp_path / "dragoman.db")
    rules = SqliteRules(path, clock=lambda: 100.0)
    rules.add(rule("r1"))
    writing = Database(path)
    writing.run("BEGIN IMMEDIATE")
    rules.used("r1")  # while another process writes
    assert rules.load()[0].used_at is None
    writing.run("ROLLBACK")
    writing.close()
    rules.close()
    assert open_rules(tmp_path).load()[0].used_at == 100.0


@pytest.mark.parametrize(
    "unfit",
    [
        Rule(effect="allow"),
        Rule(effect="allow", id="x", scope="once"),
        Rule(effect="allow", id="x", anywhere=True),
    ],
)
def test_what_must_not_last_is_not_stored(tmp_path: Path, unfit: Rule) -> None:
    rules = open_rules(tmp_path)
    with pytest.raises(ValueError, match="a stored rule must have an id"):
        rules.add(unfit)
    assert list(rules.list()) == []
    rules.close()


async def test_what_another_process_adds_is_there_at_the_next_decision(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        store.rules.add(rule("r1"))
        assert list(store.rules.list()) == [rule("r1")]
        code = (
            "import sys; from pathlib import Path; from dragoman.store.open import open_rules\n"
            "from dragoman.host.rules.rule import Rule\n"
            "rules = open_rules(Path(sys.argv[1])); rules.revoke('r1')\n"
            "rules.add(Rule(effect='deny', id='r2')); rules.close()"
        )
        command = [sys.executable, "-c", code, str(tmp_path)]
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
        assert list(store.rules.list()) == [Rule(effect="deny", id="r2")]


async def test_the_list_is_read_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_disk(tmp_path) as store:
        store.rules.add(rule("r1"))
        store.rules.list()
        read: list[str] = []
        original = Database.rows

        def counted(db: Database, statement: str, values: tuple[object, ...] = ()) -> object:
            read.append(statement)
            return original(db, statement, values)

        monkeypatch.setattr(Database, "rows", counted)
        for _ in range(10):
            store.rules.list()
        assert sum("FROM rules" in statement for statement in read) == 0
        lease = await begin(store)
        await store.append(lease, batch(1))
        assert list(store.rules.list()) == [rule("r1")]
        assert sum("FROM rules" in statement for statement in read) == 1


async def test_the_list_is_the_same_while_no_rule_changes(opens: Opens) -> None:
    async with opens() as store:
        store.rules.add(rule("r1"))
        known = store.rules.list()
        lease = await begin(store)
        await store.append(lease, batch(1))
        assert store.rules.list() is known
        store.rules.add(rule("r2"))
        assert list(store.rules.list()) == [rule("r1"), rule("r2")]


async def test_rules_can_be_used_from_any_thread_at_once(opens: Opens) -> None:
    async with opens() as store:

        def add(first: int) -> None:
            for number in range(first, first + 10):
                store.rules.add(rule(f"r{number}"))
                store.rules.list()

        with ThreadPoolExecutor(3) as pool:
            await asyncio.gather(
                *(asyncio.get_running_loop().run_in_executor(pool, add, n) for n in (0, 10, 20))
            )
        assert {each.id for each in store.rules.list()} == {f"r{n}" for n in range(30)}
