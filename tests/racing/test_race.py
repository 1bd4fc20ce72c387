"""Races of scripted entrants: the judge picks the one that solved the task, whatever others do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest
from support.command import PROGRAMS, agents_server
from support.folders import contents, git

import dragoman
from dragoman.racing.race_record import RaceRecord
from dragoman.racing.race_verdict import encoded, verdict_of
from dragoman.racing.races import Races, read_race

CODE = "def add(a, b):\n    return a - b\n"
TESTS = """\
import sys
sys.path.insert(0, ".")
from mathematics import add
print("1..2")
for number, right in enumerate((add(1, 2) == 3, add(2, 2) == 4), 1):
    print("ok" if right else "not ok", number)
    failed = globals().get("failed", 0) + (not right)
sys.exit(bool(failed))
"""
LIARS = ("pretty", "deletes", "edits", "configures", "exits", "crashes", "spends")
LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with agents_server(tmp_path_factory.mktemp("server")) as path:
        yield path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "mathematics.py").write_text(CODE)
    (folder / "tests" / "test_code.py").write_text(TESTS)
    (folder / "check.sh").write_text(f"exec {sys.executable} -S tests/test_code.py\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "mine").write_text("not committed\n")
    return folder


def agent(server: str, name: str) -> dragoman.AgentCommand:
    """Served by the process that has them all, except for one that ends its process."""
    file = PROGRAMS / "entrants.py"
    if name == "crashes":
        words = ("-m", "dragoman.testing.serve", f"{file}:{name}")
    else:
        words = ("-I", "-S", str(PROGRAMS / "relay.py"), server, f"entrants.py:{name}")
    return dragoman.AgentCommand(sys.executable, words)


async def raced(
    project: Path, server: str, *names: str, seconds: float = 300.0, merge: bool = False
) -> dict[str, str]:
    """By the name of each entrant why it is where it is; the winner is `winner`."""
    record = await dragoman.race(
        "add must add",
        [agent(server, name) for name in names],
        "sh check.sh",
        cwd=project,
        max_seconds=seconds,
        max_cost=1.0,
        at_once=len(names),
        fence="off",
        merge=merge,
    )
    assert read_race(msgspec.json.encode(record)) == record
    return told(record, names)


def told(record: RaceRecord, names: tuple[str, ...]) -> dict[str, str]:
    verdict = record.verdict
    assert verdict is not None
    assert encoded(verdict_of(record)) == encoded(verdict)
    called = {each.label: name for each, name in zip(record.entrants, names, strict=True)}
    reasons = {called[place.label]: place.reason for place in verdict.places}
    return reasons | {"winner": called.get(verdict.winner or "", "")}


def state(folder: Path) -> tuple[object, ...]:
    refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return (
        contents(folder, but=[".git"]),
        (folder / ".git" / "index").read_bytes(),
        (folder / ".git" / "HEAD").read_bytes(),
        [each for each in refs if "refs/heads/dragoman/" not in each],
    )


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=LONG)])
async def test_what_only_looks_good_never_wins(project: Path, server: str, count: int) -> None:
    before = state(project)
    for number in range(0, count, 5):
        names = [("good", *LIARS[at:], *LIARS[:at]) for at in range(min(5, count - number))]
        for found in await asyncio.gather(*(raced(project, server, *each) for each in names)):
            assert found["winner"] == "good", found
            assert "of 2 tests failed" in found["pretty"]
            assert found["deletes"] == "deleted tests: tests/test_code.py"
            assert "exited with code 1" in found["edits"]
            assert found["configures"] == "changed how the tests are run: check.sh"
            assert found["exits"] == "the check ended before it reported its tests"
            assert found["crashes"].startswith("failed:")
            assert found["spends"].startswith("was stopped by a limit")
    assert state(project) == before


async def test_one_that_hangs_is_ended_and_does_not_win(project: Path, server: str) -> None:
    found = await raced(project, server, "hangs", seconds=5)
    assert found == {"hangs": "took too long: no end after 5 s", "winner": ""}


async def test_the_winner_is_merged_without_its_changes_to_tests(
    project: Path, server: str
) -> None:
    found = await raced(project, server, "rewrites", merge=True)
    assert found["winner"] == "rewrites"
    assert "edited tests, judged by the originals: tests/test_code.py" in found["rewrites"]
    assert "return a + b" in (project / "mathematics.py").read_text()
    assert (project / "tests" / "test_code.py").read_text() == TESTS
    assert git(project, "status", "--porcelain") == "?? mine\n"
    [race] = Races().all()
    assert race.merged == ["mathematics.py"]


async def test_the_smaller_of_two_good_diffs_wins(project: Path, server: str) -> None:
    found = await raced(project, server, "good", "small")
    assert found["winner"] == "small"


@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_task_is_solved_in_a_copy_and_nothing_is_left(
    project: Path, server: str, tmp_path: Path, is_repository: bool
) -> None:
    if not is_repository:
        (project / ".git").rename(tmp_path / "elsewhere")
    before = contents(project)
    solved = await dragoman.solve(
        "add must add", agent(server, "small"), "sh check.sh", cwd=project, fence="off"
    )
    assert (solved.passed, solved.reason) == (True, "passed")
    assert "+    return a + b" in solved.patch
    assert solved.check is not None
    assert solved.check.counts is not None
    assert solved.check.counts.total == 2
    failed = await dragoman.solve(
        "add must add", agent(server, "pretty"), "sh check.sh", cwd=project, fence="off"
    )
    assert not failed.passed
    assert "tests failed" in failed.reason
    assert contents(project, but=[".git"]) == {
        name: what for name, what in before.items() if not name.startswith(".git")
    }
    assert list((tmp_path / "home-worktrees").iterdir()) == []
