"""A person, an agent, put-backs and restores, in any order: no edit of the person is ever lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from host.stories import Story, begin
from support.folders import Watched, contents

from dragoman.errors import RevertConflict
from dragoman.session.events import FileReverted, WorkspaceSnapshot

LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


class Overtaken(Watched):
    """Someone acts between the start of the first restore and its first file."""

    def __init__(self, folder: Path, data: Path, act: Callable[[], object]) -> None:
        super().__init__(folder, data)
        self._act = act

    def record(self, event: WorkspaceSnapshot | FileReverted) -> None:
        super().record(event)
        if isinstance(event, WorkspaceSnapshot) and event.moment == "restore_start":
            act, self._act = self._act, lambda: None
            act()


@pytest.mark.parametrize(
    "count",
    [pytest.param(50, marks=pytest.mark.within(1_800)), pytest.param(1_000, marks=LONG)],
)
async def test_no_edit_of_a_person_is_ever_lost(folder: Path, tmp_path: Path, count: int) -> None:
    restores = conflicts = interruptions = redone = 0
    for seed in range(count):
        begin(folder, seed)
        story = Story(seed, Watched(folder, data := tmp_path / "data"))
        try:
            for _ in range(7):
                await story.go_on()
        except BaseException as error:
            error.add_note(f"in story {seed}")
            raise
        shutil.rmtree(data)
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


async def test_what_a_person_undoes_during_a_refused_restore_stays_undone(
    folder: Path, tmp_path: Path
) -> None:
    """The person does a part of what is asked for, just before the restore comes to it."""

    def overtake() -> None:
        (folder / "new").unlink()
        (folder / "old").write_text("before\n")
        (folder / "saved").write_text("person\n")

    for name in ("old", "saved"):
        (folder / name).write_text("before\n")
    watched = Overtaken(folder, tmp_path / "data", overtake)

    def act(_: Path) -> None:
        for name in ("new", "old", "saved"):
            (folder / name).write_text("agent\n")

    await watched.turn("t", act)
    with pytest.raises(RevertConflict) as caught:
        await watched.revert()
    assert caught.value.reasons == {str(folder / "saved"): "it was changed just now"}
    assert contents(folder) == {"old": (b"before\n", False), "saved": (b"person\n", False)}


async def test_a_folder_that_a_person_emptied_before_a_restore_is_there_when_that_is_undone(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "emptied").mkdir()
    (folder / "emptied" / "file").write_text("before\n")
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: (folder / "new").write_text("agent\n"))
    (folder / "emptied" / "file").unlink()
    before = contents(folder)
    await watched.revert("t")
    await watched.revert("restore-1")
    assert contents(folder) == before


async def test_a_folder_that_an_agent_emptied_is_not_taken_for_a_new_one(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "emptied").mkdir()
    (file := folder / "emptied" / "file").write_text("before\n")
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: file.unlink())
    done = await watched.revert("t")
    assert (done.paths, file.read_text()) == ([str(file)], "before\n")


async def test_what_a_person_undoes_during_a_restore_is_not_undone_with_it(
    folder: Path, tmp_path: Path
) -> None:
    """The person does a part of what is asked for, just before the restore comes to it."""

    def overtake() -> None:
        (folder / "new").unlink()
        (folder / "old").write_text("before\n")

    (folder / "old").write_text("before\n")
    (folder / "other").write_text("before\n")
    watched = Overtaken(folder, tmp_path / "data", overtake)

    def act(_: Path) -> None:
        for name in ("new", "old", "other"):
            (folder / name).write_text("agent\n")

    await watched.turn("t", act)
    done = await watched.revert()
    assert done.paths == [str(folder / "other")]
    undone = contents(folder)
    assert undone == {"old": (b"before\n", False), "other": (b"before\n", False)}
    again = await watched.revert("restore-1")
    assert again.paths == [str(folder / "other")]
    assert contents(folder) == undone | {"other": (b"agent\n", False)}


async def test_a_link_that_a_person_deletes_during_a_restore_of_its_folder_stays_deleted(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "d").mkdir()
    (folder / "d" / "file").write_text("before\n")
    before = contents(folder)
    watched = Overtaken(folder, tmp_path / "data", (folder / "d").unlink)

    def act(_: Path) -> None:
        shutil.rmtree(folder / "d")
        (folder / "d").symlink_to("nowhere")

    await watched.turn("t", act)
    await watched.revert()
    assert contents(folder) == before
    await watched.revert("restore-1")
    assert contents(folder) == {}


async def test_empty_folders_that_a_person_makes_and_removes_during_a_restore_are_theirs(
    folder: Path, tmp_path: Path
) -> None:
    def overtake() -> None:
        (folder / "mine").mkdir()
        (folder / "void").rmdir()

    (folder / "void").mkdir()
    watched = Overtaken(folder, tmp_path / "data", overtake)
    await watched.turn("t", lambda _: (folder / "new").write_text("agent\n"))
    await watched.revert()
    await watched.revert("restore-1")
    assert contents(folder) == {"mine": None, "new": (b"agent\n", False)}


async def test_only_folders_that_a_restore_made_or_removed_are_told_of(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "gone").mkdir()
    watched = Overtaken(folder, tmp_path / "data", (folder / "gone").mkdir)

    def act(_: Path) -> None:
        (folder / "gone").rmdir()
        (folder / "new").mkdir()

    await watched.turn("t", act)
    assert (await watched.revert()).paths == [str(folder / "new")]
    await watched.revert("restore-1")
    assert contents(folder) == {"gone": None, "new": None}
