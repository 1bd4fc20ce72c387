"""Races and worktrees over HTTP: what is on record of them, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.folders import git
from support.serving import served

from dragoman.racing.race_record import Entrant, RaceRecord
from dragoman.racing.races import Races
from dragoman.worktrees.worktrees import Worktrees, WorktreeWish


async def test_races_and_worktrees_are_listed_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    (project := tmp_path / "project").mkdir()
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    worktree = await Worktrees().make(str(project), WorktreeWish(name="fix"))
    open_file(Path(worktree.path, "new"))
    race = RaceRecord(
        id="r-1",
        task="fix it",
        check="true",
        folder=str(project),
        repository=str(project),
        base="b",
        created_at=1,
        entrants=[Entrant(label="a", agent="a")],
    )
    Races().save(race)
    async with served(tmp_path, {}) as web:
        listed = await web.call("GET", "/api/races")
        assert [each["id"] for each in listed["races"]] == ["r-1"]
        shown = await web.call("GET", "/api/races/r-1")
        assert (shown["task"], shown["entrants"][0]["status"]) == ("fix it", "waiting")
        [found] = (await web.call("GET", "/api/worktrees"))["worktrees"]
        assert (found["name"], found["branch"]) == ("fix", "dragoman/fix")
        diff = await web.call("GET", f"/api/worktrees/{found['id']}/diff")
        assert "+new" in diff["patch"]
        assert await web.refused("GET", "/api/races/r-2") == (404, "unknown_race")
        nothing = "/api/worktrees/nothing/diff"
        assert await web.refused("GET", nothing) == (404, "unknown_worktree")


def open_file(path: Path) -> None:
    path.write_text("new\n")
