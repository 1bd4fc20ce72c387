"""What the judge reads: tests and their configuration, counts, and the verdict of a record."""

from __future__ import annotations

import pytest

from dragoman.racing.check_counts import from_junit, from_tap
from dragoman.racing.judged_files import is_test, judged_files
from dragoman.racing.race import entrants_of
from dragoman.racing.race_record import (
    CheckCounts,
    CheckRun,
    Entrant,
    JudgedFiles,
    RaceRecord,
    RaceReview,
    ReviewRound,
)
from dragoman.racing.race_verdict import encoded, verdict_of
from dragoman.racing.reviewer import named_in


@pytest.mark.parametrize(
    "path",
    [
        *("tests/helpers.py", "pkg/test_x.py", "x_test.go", "src/a.test.tsx", "src/b_spec.rb"),
        *("src/__tests__/c.js", "FooTest.java", "t/01.t", "spec/models/user.rb", "a.spec.mjs"),
    ],
)
def test_a_test_is_known_by_its_name_or_folder(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", ["src/contest.py", "latest.py", "testing.md", "attest/x.go"])
def test_other_files_are_no_tests(path: str) -> None:
    assert not is_test(path)


@pytest.mark.parametrize(
    ("path", "before", "after", "kind"),
    [
        ("tests/test_a.py", b"1", b"2", "edited"),
        ("tests/test_a.py", b"1", None, "deleted"),
        ("tests/test_a.py", None, b"2", "added"),
        ("conftest.py", None, b"", "configuration"),
        ("tests/conftest.py", b"1", b"2", "configuration"),
        ("pytest.ini", None, b"[pytest]\n", "configuration"),
        ("sitecustomize.py", None, b"import os\n", "configuration"),
        ("Makefile", b"test:\n", b"test:\n\ttrue\n", "configuration"),
        ("scripts/check.sh", b"1", b"2", "configuration"),
        ("scripts/check.sh", None, b"2", ""),
        ("answer.txt", b"1", b"2", ""),
        ("pyproject.toml", b"", b"[tool.pytest.ini_options]\naddopts = '-k x'\n", "configuration"),
        ("pyproject.toml", b"[project]\n", b"[project]\nname = 'x'\n", ""),
        ("pyproject.toml", b"[project]\n", b"not toml", "configuration"),
        ("package.json", b"{}", b'{"scripts": {"test": "true"}}', "configuration"),
        ("package.json", b"{}", b'{"dependencies": {"a": "1"}}', ""),
        ("setup.cfg", b"", b"[tool:pytest]\naddopts = -x\n", "configuration"),
        ("setup.cfg", b"", b"[metadata]\nname = x\n", ""),
        ("src/app.py", b"1", b"2", ""),
    ],
)
def test_what_an_entrant_did_to_the_tests_is_told_apart(
    path: str, before: bytes | None, after: bytes | None, kind: str
) -> None:
    found = judged_files({path: (before, after)}, "sh ./scripts/check.sh && grep -q 42 answer.txt")
    expected = JudgedFiles(**{kind: [path]}) if kind else JudgedFiles()
    assert found == expected


def test_junit_is_counted_by_cases() -> None:
    document = b"""<?xml version="1.0"?><testsuites tests="99"><testsuite>
      <testcase name="a"/><testcase name="b"><failure/></testcase>
      <testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>
    </testsuite></testsuites>"""
    counts = from_junit(document)
    assert counts is not None
    assert counts == CheckCounts(total=4, failed=2, skipped=1)
    assert counts.passed == 1


@pytest.mark.parametrize(
    "document",
    [
        *(b"", b"<html/>", b"<testsuite>", b"not xml"),
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite/>',
    ],
)
def test_what_is_no_junit_counts_as_none(document: bytes) -> None:
    assert from_junit(document) is None


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1..2\nok 1\nok 2\n", CheckCounts(total=2, failed=0)),
        ("ok 1 - a\nnot ok 2 - b\n1..2\n", CheckCounts(total=2, failed=1)),
        ("1..3\nok 1\n", CheckCounts(total=3, failed=2)),
        ("1..2\nok 1 # SKIP later\nnot ok 2 # TODO\n", CheckCounts(total=2, failed=0, skipped=2)),
        ("    1..9\n    ok 1\nall fine\n", None),
    ],
)
def test_tap_is_counted_by_its_plan(text: str, counts: CheckCounts | None) -> None:
    assert from_tap(text) == counts


# ── the verdict ─────────────────────────────────────────────────────────────────────────────────


def run(passed: int, failed: int = 0, code: int = 0) -> CheckRun:
    return CheckRun(code=code, seconds=1, counts=CheckCounts(total=passed + failed, failed=failed))


def entrant(label: str, **fields: object) -> Entrant:
    made = Entrant(label=label, agent=label, outcome="completed", files=1, added=10, check=run(3))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def record(*entrants: Entrant, review: RaceReview | None = None) -> RaceRecord:
    return RaceRecord(
        id="r-1",
        task="t",
        check="c",
        folder="/f",
        repository="/f",
        base="b",
        created_at=0,
        entrants=list(entrants),
        baseline=run(0, 3, code=1),
        review=review,
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"outcome": "timeout", "detail": "no end"}, "took too long: no end"),
        ({"outcome": "failed"}, "failed"),
        ({"outcome": None}, "did not end"),
        ({"judged": JudgedFiles(deleted=["tests/a"])}, "deleted tests: tests/a"),
        ({"judged": JudgedFiles(configuration=["c"])}, "changed how the tests are run: c"),
        ({"files": 0}, "changed nothing"),
        ({"check": None}, "was not judged"),
        ({"check": run(3, code=1)}, "the check exited with code 1; 0 of 3 tests failed"),
        ({"check": run(2)}, "only 2 of 3 tests ran"),
        ({"check": CheckRun(code=0, seconds=1)}, "the check ended before it reported its tests"),
        ({"check": run(2, 1)}, "1 of 3 tests failed"),
    ],
)
def test_what_cannot_win(fields: dict[str, object], reason: str) -> None:
    verdict = verdict_of(record(entrant("a", **fields)))
    assert verdict.winner is None
    assert verdict.places[0].reason == reason


@pytest.mark.parametrize(
    ("better", "because"),
    [
        ({"check": run(4)}, "more passed tests than b"),
        ({"added": 9}, "a smaller diff than b"),
        ({"cost": {"USD": 0.5}}, "a lower cost than b"),
        ({"seconds": 1.0}, "a shorter time than b"),
        ({}, "the first of equals"),
    ],
)
def test_ties_are_broken_in_order(better: dict[str, object], because: str) -> None:
    other = entrant("b", cost={"USD": 1.0}, seconds=2.0, judged=JudgedFiles())
    first = entrant("a", **{"cost": {"USD": 1.0}, "seconds": 2.0} | better)
    verdict = verdict_of(record(other, first))
    assert (verdict.winner, verdict.because) == ("a", because)
    assert encoded(verdict) == encoded(verdict_of(record(first, other)))


def test_one_that_edited_tests_comes_after_those_that_did_not() -> None:
    tidy = entrant("tidy", added=900)
    verdict = verdict_of(record(entrant("a", judged=JudgedFiles(edited=["tests/a"])), tidy))
    assert (verdict.winner, verdict.because) == ("tidy", "it left the tests alone")


@pytest.mark.parametrize(
    ("named", "winner"), [(("b", "b"), "b"), (("b", "a"), "a"), (("b", None), "a"), (("b",), "a")]
)
def test_a_reviewer_counts_if_it_names_the_same_one_twice(
    named: tuple[str | None, ...], winner: str
) -> None:
    rounds = [ReviewRound(shown={"A": "a", "B": "b"}, answer="", best=each) for each in named]
    race = record(
        entrant("a", added=1), entrant("b"), review=RaceReview(agent="judge", rounds=rounds)
    )
    assert verdict_of(race).winner == winner


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ('I compared them.\n{"best": "B", "reason": "short"}', "two"),
        ('{"best": "C"}', None),
        ('{"best": "A"} {"best": "B"}', None),
        ('{"best": ["A"]}', None),
        ("B", None),
    ],
)
def test_an_answer_of_the_reviewer_is_validated(answer: str, label: str | None) -> None:
    assert named_in(answer, {"A": "one", "B": "two"}) == label


def test_an_agent_may_enter_several_times() -> None:
    labels = [each.label for each in entrants_of(["claude", "gemini:2"])]
    assert labels == ["claude", "gemini-1", "gemini-2"]
