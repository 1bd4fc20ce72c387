"""A person, an agent, put-backs and restores, in any order: no edit of the person is ever lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from host.stories import Story, begin
from support.folders import Watched, contents

LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "count",
    [pytest.param(50, marks=pytest.mark.within(1_800)), pytest.param(1_000, marks=LONG)],
)
async def test_no_edit_of_a_person_is_ever_lost(folder: Path, tmp_path: Path, count: int) -> None:
    restores = conflicts = interruptions = redone = 0
    for seed in range(count):
        begin(folder, seed)
        story = Story(seed, Watched(folder, tmp_path / "data"))
        try:
            for _ in range(7):
                await story.go_on()
        except BaseException as error:
            error.add_note(f"in story {seed}")
            raise
        restores += story.restores
        conflicts += story.conflicts
        interruptions += story.interruptions
        redone += story.redone
    # It all happened.
    assert min(restores, conflicts, interruptions, redone) > count / 10


async def test_without_a_person_all_is_as_before(folder: Path, tmp_path: Path) -> None:
    begin(folder, 0)
    watched = Watched(folder, tmp_path / "data")
    story = Story(0, watched)
    before = contents(folder)
    for turn in range(6):
        await watched.turn(f"turn-{turn}", lambda _: [story.agent.act() for _ in range(3)])
    await watched.revert()
    assert contents(folder) == before
