"""Turns, files and hunks are taken back, and nothing that others did."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Awaitable
from pathlib import Path

import pytest
from support.folders import Watched, contents, lines

from dragoman.errors import RevertConflict
from dragoman.host.snapshots.snapshots import Snapshots, undo_of
from dragoman.host.snapshots.timeline import Timeline
from dragoman.host.snapshots.undo_plan import Choice
from dragoman.session.events import WorkspaceSnapshot
from dragoman.session.facts import RootSnapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def watched(folder: Path, tmp_path: Path) -> Watched:
    return Watched(folder, tmp_path / "data")


def umask() -> int:
    os.umask(now := os.umask(0o077))
    return now


async def test_a_hunk_is_put_back_alone(folder: Path, watched: Watched) -> None:
    file = folder / "a.py"
    file.write_text(lines(*range(40)))
    text = file.read_text().replace("line 3\n", "three\n").replace("line 30\n", "thirty\n")
    await watched.turn("t", lambda _: file.write_text(text))
    [first, second] = (await watched.changes()).files[0].hunks
    file.write_text(file.read_text().replace("line 15\n", "a person's\n"))

    done = await watched.revert("t", hunks=[first.id])
    assert done.paths == [str(file)]
    wanted = text.replace("three\n", "line 3\n").replace("line 15\n", "a person's\n")
    assert file.read_text() == wanted
    await watched.revert("t", hunks=[second.id])
    assert file.read_text() == lines(*range(40)).replace("line 15\n", "a person's\n")
    with pytest.raises(RevertConflict, match="no such change now"):
        await watched.revert("t", hunks=["h-unknown"])


async def test_one_turn_is_undone_beneath_another(folder: Path, watched: Watched) -> None:
    file = folder / "a.py"
    file.write_text(lines(*range(40)))
    for turn, number in (("t1", 5), ("t2", 25)):
        text = file.read_text().replace(f"line {number}\n", f"{turn}\n")
        await watched.turn(turn, lambda _, text=text: file.write_text(text))
    await watched.revert("t1")
    assert file.read_text() == lines(*range(40)).replace("line 25\n", "t2\n")


async def test_a_conflict_is_chosen_file_by_file(folder: Path, watched: Watched) -> None:
    names = ("a.txt", "b.txt", "c.txt")
    for name in names:
        (folder / name).write_text("before\n")

    def act(_: Path) -> None:
        for name in names:
            (folder / name).write_text("agent\n")
        (folder / "new.txt").write_text("agent\n")

    await watched.turn("t", act)
    for name in (*names[:2], "new.txt"):
        (folder / name).write_text("person\n")
    now = contents(folder)
    with pytest.raises(RevertConflict) as conflict:
        await watched.revert()
    assert set(conflict.value.reasons) == {str(folder / n) for n in ("a.txt", "b.txt", "new.txt")}
    assert contents(folder) == now

    done = await watched.revert(a_txt="keep", b_txt="restore", new_txt="keep")
    assert sorted(done.kept) == [str(folder / "a.txt"), str(folder / "new.txt")]
    texts = {name: (folder / name).read_text() for name in (*names, "new.txt")}
    assert texts == {
        "a.txt": "person\n",
        "b.txt": "before\n",
        "c.txt": "before\n",
        "new.txt": "person\n",
    }


async def test_what_was_ignored_before_is_not_taken_for_new(folder: Path, watched: Watched) -> None:
    (folder / ".gitignore").write_text("secret\n")
    (folder / "secret").write_text("a person's\n")
    await watched.turn("t", lambda _: (folder / ".gitignore").write_text(""))
    assert [Path(each.path).name for each in (await watched.changes()).files] == [".gitignore"]
    await watched.revert()
    assert (folder / "secret").read_text() == "a person's\n"


async def test_nothing_is_written_through_a_link(
    folder: Path, watched: Watched, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("before\n")
    await watched.turn("t", lambda _: (folder / "sub" / "file").write_text("after\n"))
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to(outside)
    with pytest.raises(RevertConflict) as refused:
        await watched.revert(force=True)
    [(path, reason)] = refused.value.reasons.items()
    assert (path, str(folder) in reason) == (str(folder / "sub" / "file"), False)
    assert "symbolic link" in reason
    assert list(outside.iterdir()) == []


async def test_a_private_file_that_comes_back_is_private(folder: Path, watched: Watched) -> None:
    for name, mode in (("secret", 0o600), ("program", 0o700), ("open", 0o644)):
        (folder / name).write_text(f"{name}\n")
        (folder / name).chmod(mode)
    names = ("secret", "program", "open")
    await watched.turn("t", lambda _: [(folder / name).unlink() for name in names])
    await watched.revert()
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in names}
    assert modes == {"secret": 0o600, "program": 0o700, "open": 0o666 & ~umask()}


async def test_a_file_that_is_kept_stays_although_nobody_changed_it(
    folder: Path, watched: Watched
) -> None:
    await watched.turn("t", lambda _: [(folder / name).write_text("x\n") for name in ("a", "b")])
    done = await watched.revert(a="keep")
    assert (done.paths, done.kept) == ([str(folder / "b")], [str(folder / "a")])
    assert [*contents(folder)] == ["a"]


async def test_what_is_in_the_way_is_said_all_at_once_and_can_be_kept(
    folder: Path, watched: Watched
) -> None:
    for name in ("d/one", "d/two", "file", "edited"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("before\n")

    def act(_: Path) -> None:
        shutil.rmtree(folder / "d")
        (folder / "file").unlink()
        (folder / "edited").write_text("agent\n")

    await watched.turn("t", act)
    (folder / "d").write_text("a person's\n")
    (folder / "file").mkdir()
    (folder / "file" / "inside").write_text("a person's\n")
    now = contents(folder)
    for force in (False, True):  # it would take a file that was not named
        with pytest.raises(RevertConflict) as refused:
            await watched.revert(force=force)
        assert not refused.value.by_force
        assert refused.value.reasons == {
            str(folder / "d" / "one"): "a file is now where its folder was",
            str(folder / "d" / "two"): "a file is now where its folder was",
            str(folder / "file"): "a folder is now in its place",
        }
        assert contents(folder) == now
    kept: dict[str, Choice] = {str(folder / name): "keep" for name in ("d/one", "d/two", "file")}
    await watched.restore(undo_of(watched.timeline, "t", choices=kept))
    assert contents(folder) == now | {"edited": (b"before\n", False)}


async def test_two_folders_are_restored_together_or_not_at_all(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("here", "there")]
    snapshots, timeline = Snapshots(tmp_path / "data"), Timeline()
    for root in roots:
        (root / "empty").mkdir(parents=True)
        (root / "file").write_text("before\n")

    def take() -> Awaitable[list[RootSnapshot]]:
        return snapshots.take([str(each) for each in roots], "s")

    timeline.feed(WorkspaceSnapshot("turn_start", "t", await take()))
    for root in roots:
        (root / "file").write_text("agent\n")
        (root / "new").mkdir()
        (root / "new" / "file").write_text("agent\n")
        (root / "empty").rmdir()
    timeline.feed(WorkspaceSnapshot("turn_end", "t", await take()))
    now = contents(tmp_path, but=["data"])

    def overtake(event: object) -> None:
        timeline.feed(event)
        if isinstance(event, WorkspaceSnapshot) and event.moment == "restore_start":
            (roots[1] / "file").write_text("a person's\n")  # after it was planned

    with pytest.raises(RevertConflict, match="changed just now"):
        await snapshots.restore(
            undo_of(timeline, "t"),
            lambda _: (),
            restore_id="restore-1",
            session_id="s",
            record=overtake,
        )
    assert contents(tmp_path, but=["data"]) == now | {"there/file": (b"a person's\n", False)}
    assert list((tmp_path / "data").glob("*/journal/*")) == []


async def test_what_someone_does_during_a_revert_is_not_undone_with_it(
    folder: Path, watched: Watched
) -> None:
    (folder / "file").write_text("before\n")
    await watched.turn("t", lambda _: (folder / "file").write_text("agent\n"))
    really = watched.timeline.feed

    def feed(event: object) -> None:
        really(event)
        if isinstance(event, WorkspaceSnapshot) and event.moment == "restore_start":
            (folder / "theirs").write_text("a person's\n")

    watched.timeline.feed = feed
    await watched.revert()
    await watched.revert("restore-1")
    assert contents(folder) == {
        "file": (b"agent\n", False),
        "theirs": (b"a person's\n", False),
    }
    await watched.turn("next", lambda _: None)
    by = {Path(each.path).name: each.by for each in (await watched.changes()).files}
    assert by["theirs"] == ["other"]


async def test_what_a_person_saves_while_a_file_is_put_back_stays(
    folder: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (folder / name).write_text("before\n")

    def act(_: Path) -> None:
        for name in ("a", "b"):
            (folder / name).write_text("agent\n")

    await watched.turn("t", act)
    really = os.fsync

    def saving(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{folder}/"):
            (folder / "b").write_text("person\n")  # while the new content is made durable
        really(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", saving)
        with pytest.raises(RevertConflict, match="changed just now"):
            await watched.revert(paths=["b"])
    assert [(folder / name).read_text() for name in ("a", "b")] == ["agent\n", "person\n"]
    assert sorted(os.listdir(folder)) == ["a", "b"]
    await watched.turn("next", lambda _: None)
    found = await watched.changes()
    assert {Path(each.path).name: each.by for each in found.files} == {
        "a": ["agent"],
        "b": ["agent", "other"],
    }
