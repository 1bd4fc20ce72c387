from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.host.matching import Rule
from dragoman.host.rule_file import RuleFile, StoredRule


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


def test_there_are_no_rules_before_there_is_a_file(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "none" / "rules.json")
    assert file.load() == ()
    assert file.list() == []
    assert not (tmp_path / "none").exists()


def test_a_rule_is_there_after_a_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "rules.json", Clock()
    full = Rule(
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
    RuleFile(path, clock).add(full)
    RuleFile(path, clock).add(rule("r2"))
    assert RuleFile(path).load() == (StoredRule(full, 100), StoredRule(rule("r2"), 100))
    assert RuleFile(path).list() == [full, rule("r2")]


def test_a_rule_can_be_revoked_once(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.json")
    file.add(rule("r1"))
    file.add(rule("r2"))
    assert file.revoke("r1")
    assert not file.revoke("r1")
    assert file.list() == [rule("r2")]


def test_the_last_use_is_kept(tmp_path: Path) -> None:
    clock = Clock()
    file = RuleFile(tmp_path / "rules.json", clock)
    file.add(rule("r1"))
    file.add(rule("r2"))
    clock.now = 150
    file.used("r2")
    file.used("unknown")
    assert file.load() == (StoredRule(rule("r1"), 100), StoredRule(rule("r2"), 100, 150))


def test_a_rule_with_a_known_id_replaces_it(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.json")
    file.add(rule("r1"))
    file.add(Rule(effect="deny", id="r1"))
    assert file.list() == [Rule(effect="deny", id="r1")]


@pytest.mark.parametrize(
    "unfit",
    [
        Rule(effect="allow"),
        Rule(effect="allow", id="x", scope="once"),
        Rule(effect="allow", id="x", anywhere=True),
    ],
)
def test_what_must_not_last_is_not_stored(tmp_path: Path, unfit: Rule) -> None:
    file = RuleFile(tmp_path / "rules.json")
    with pytest.raises(ValueError, match="a stored rule has an id"):
        file.add(unfit)
    assert file.list() == []


def test_file_and_directory_are_private(tmp_path: Path) -> None:
    path = tmp_path / "home" / "rules.json"
    previous = os.umask(0)
    try:
        RuleFile(path).add(rule("r1"))
    finally:
        os.umask(previous)
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert modes == {"rules.json": 0o600, "rules.json.lock": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.json")
    file.add(rule("r1"))
    file.path.chmod(0o620)
    with pytest.raises(ConfigError, match="a file that only you can write"):
        file.load()
    file.path.chmod(0o644)
    assert file.list() == [rule("r1")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "expected stored rules ("),
        (b"{", "expected stored rules ("),
        (b"[]", "expected stored rules ("),
        (b'{"version": 1}', "expected stored rules ("),
        (
            b'{"version": 1, "rules": [{"rule": {"effect": "x"}, "created_at": 1}]}',
            "$.rules[0].rule",
        ),
        (b'{"version": 2, "rules": []}', "version: expected 1"),
        (
            b'{"version":1,"rules":[{"rule":{"effect":"allow","anywhere":true},"created_at":1}]}',
            "rules: expected no rule with anywhere",
        ),
    ],
)
def test_a_damaged_file_is_an_error_and_stays_as_it_is(
    tmp_path: Path, content: bytes, says: str
) -> None:
    file = RuleFile(tmp_path / "rules.json")
    file.path.write_bytes(content)
    for attempt in (file.load, lambda: file.add(rule("r1")), lambda: file.revoke("r1")):
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert says in str(caught.value)
        assert str(file.path) in str(caught.value)
    assert file.path.read_bytes() == content


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a readable file"):
        RuleFile(tmp_path).load()


def test_a_failed_save_leaves_the_old_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RuleFile(tmp_path / "rules.json")
    file.add(rule("r1"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        file.add(rule("r2"))
    assert file.list() == [rule("r1")]
    assert not (tmp_path / "rules.json.new").exists()


def test_a_leftover_of_a_crash_is_no_obstacle(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.json")
    (tmp_path / "rules.json.new").write_text("half")
    file.add(rule("r1"))
    assert file.list() == [rule("r1")]


def add_some(path: Path, first: int) -> None:
    for number in range(first, first + 10):
        RuleFile(path).add(rule(f"r{number}"))


def test_rules_added_from_several_sides_at_once_are_all_there(tmp_path: Path) -> None:
    # Each change takes the lock through a descriptor of its own, as another process would.
    path = tmp_path / "rules.json"
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(add_some, path, first) for first in (0, 10, 20)]:
            done.result(timeout=30)
    assert {each.id for each in RuleFile(path).list()} == {f"r{number}" for number in range(30)}
