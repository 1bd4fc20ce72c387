"""Snapshots go with their session and with time, and do not fill the disk with small files."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from support.folders import Watched, contents, git
from support.hubs import TestLauncher, stored

from dragoman.agents.settings.settings_file import parse_settings
from dragoman.errors import ConfigError
from dragoman.host.snapshots.shadow import ref_name
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.assembly import new_hub
from dragoman.testing import ScriptedAgent

DAY = 86400.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def begun(snapshots: Snapshots, session_id: str, root: Path, *, days_ago: float) -> None:
    """A turn that ended then."""
    snapshots.begin_turn(session_id, [str(root)]).end()
    then = time.time() - days_ago * DAY
    os.utime(snapshots.directory / "turns" / ref_name(session_id), (then, then))


def test_the_limits_are_settings() -> None:
    def snapshots(value: object) -> SnapshotLimits:
        return parse_settings(json.dumps({"snapshots": value}), "file").snapshots

    assert parse_settings("{}", "file").snapshots == snapshots({}) == SnapshotLimits()
    given = snapshots({"days": None, "file_mib": 0.5, "files": 1e300})
    assert given == SnapshotLimits(days=None, file_bytes=1 << 19, files=10**9)
    assert snapshots({"enabled": False}) == SnapshotLimits(enabled=False)
    for wrong, key in (
        ({"enabled": 0}, "snapshots.enabled"),
        ({"day": 3}, "snapshots.day"),
        ({"days": 0}, "snapshots.days"),
        ({"file_mib": "10"}, "snapshots.file_mib"),
        ({"files": None}, "snapshots.files"),
        (30, "snapshots"),
    ):
        with pytest.raises(ConfigError) as caught:
            snapshots(wrong)
        assert f"{key}: expected" in str(caught.value)


async def test_with_the_last_session_of_a_folder_all_of_it_goes(
    folder: Path, tmp_path: Path
) -> None:
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: (folder / "secret").write_text("secret\n"))
    shadow = watched.snapshots.shadow(str(folder))
    watched.snapshots.begin_turn("s", [str(folder)]).end()
    await watched.snapshots.forget("s")
    assert not shadow.directory.exists()
    assert list((tmp_path / "data" / "turns").iterdir()) == []
    # The next session starts with an empty repository.
    (folder / "secret").write_text("another\n")
    [root] = (await watched.take()).roots
    assert (root.problem, shadow.has("s")) == ("", True)


async def test_snapshots_are_deleted_when_they_are_too_old(folder: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "data", limits=SnapshotLimits(days=30))
    shadow = snapshots.shadow(str(folder))
    for number, (name, age) in enumerate((("old", 31), ("young", 29), ("running", 99))):
        (folder / "file").write_text(f"{number}\n")
        await snapshots.take([str(folder)], name)
        begun(snapshots, name, folder, days_ago=age)
    at_work = snapshots.begin_turn("running", [str(folder)])
    os.utime(snapshots.directory / "turns" / ref_name("running"), (0, 0))
    assert await snapshots.prune(time.time()) == 1
    assert shadow.sessions() == {ref_name("young"), ref_name("running")}
    assert {each.name for each in (tmp_path / "data" / "turns").iterdir()} == shadow.sessions()
    at_work.end()
    kept = Snapshots(tmp_path / "data", limits=SnapshotLimits(days=None))
    assert await kept.prune(time.time() + 1000 * DAY) == 0


async def test_a_folder_that_was_only_looked_at_goes_too(folder: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "data", limits=SnapshotLimits(days=30))
    shadow = snapshots.shadow(str(folder))
    (folder / "file").write_text("x\n")
    await snapshots.take([str(folder)], None)
    await snapshots.prune(time.time() + 29 * DAY)
    assert shadow.directory.exists()
    await snapshots.prune(time.time() + 31 * DAY)
    assert not shadow.directory.exists()


async def test_a_session_of_unknown_age_is_kept(folder: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "data", limits=SnapshotLimits(days=30))
    await snapshots.take([str(folder)], "s")
    assert await snapshots.prune(time.time() + 31 * DAY) == 0
    assert snapshots.shadow(str(folder)).has("s")
    assert await snapshots.prune(time.time() + 31 * DAY) == 1


async def test_upkeep_is_done_once_a_day(folder: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "data", limits=SnapshotLimits(days=30))
    await snapshots.take([str(folder)], "old")
    begun(snapshots, "old", folder, days_ago=31)
    stamp = tmp_path / "data" / "maintained"
    stamp.touch()
    await snapshots.maintain()
    assert snapshots.shadow(str(folder)).has("old")
    os.utime(stamp, (0, 0))
    await snapshots.maintain()
    assert not snapshots.shadow(str(folder)).has("old")
    assert time.time() - stamp.stat().st_mtime < DAY


async def test_many_small_files_become_one_and_nobody_waits(folder: Path, tmp_path: Path) -> None:
    watched = Watched(folder, tmp_path / "data", SnapshotLimits(loose=10))
    shadow = watched.snapshots.shadow(str(folder))
    (folder / "file").write_text("before\n")
    before = contents(folder)
    for number in range(8):
        text = f"{number}\n" * 10
        await watched.turn(f"t{number}", lambda _, text=text: (folder / "file").write_text(text))
    assert shadow.loose_objects() > 10
    async with shadow.locked():  # a turn that reads the folder
        await watched.snapshots.pack([str(folder)])
    assert shadow.loose_objects() == 0
    [changed] = (await watched.changes()).files
    assert changed.turns == ["t0", "t7"]
    await watched.revert()
    assert contents(folder) == before
    git(Path(shadow.git.directory), "--git-dir=.", "fsck", "--full")


async def test_what_we_write_ourselves_is_what_git_writes(folder: Path, tmp_path: Path) -> None:
    watched = Watched(folder, tmp_path / "data")
    (folder / "file").write_bytes(b"one\0two\n")
    await watched.take()
    shadow = watched.snapshots.shadow(str(folder))
    for content in (b"", b"one\0two\n", os.urandom(5000)):
        blob = await shadow.git.keep_content(content)
        wanted = await shadow.git("hash-object", "--stdin", data=[content])
        assert blob == wanted.decode().strip()
        assert await shadow.git.contents([blob]) == {blob: content}
        assert await shadow.git("cat-file", "blob", blob) == content
    git(Path(shadow.git.directory), "--git-dir=.", "fsck", "--full")


async def test_a_name_cannot_pass_for_two_trees(folder: Path, tmp_path: Path) -> None:
    """Git names trees in a line of their own, before what differs between them."""
    watched = Watched(folder, tmp_path / "data")
    odd = f"a\n{'0' * 40} {'1' * 40}\n:b"
    await watched.turn("t1", lambda _: (folder / odd).write_text("x\n"))
    await watched.turn("t2", lambda _: (folder / odd).write_text("y\n"))
    [file] = (await watched.changes()).files
    assert file.path == str(folder / odd)
    assert file.turns == ["t1", "t2"]


# ── another session at work ───────────────────────────────────────────────────────────────────


def test_a_turn_knows_of_others_in_its_folder(folder: Path, tmp_path: Path) -> None:
    snapshots, inner = Watched(folder, tmp_path / "data").snapshots, folder / "inner"
    first = snapshots.begin_turn("first", [str(folder)])
    assert not snapshots.begin_turn("elsewhere", [str(folder.parent / "other")]).end()
    assert snapshots.begin_turn("second", [str(inner)]).end()
    assert first.end()  # the second began and ended meanwhile
    assert not snapshots.begin_turn("third", [str(folder)]).end()


async def test_a_hub_may_take_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    async with stored(tmp_path) as store:
        for enabled in (False, True):
            async with new_hub(
                store,
                TestLauncher({"it": ScriptedAgent()}),
                snapshots=SnapshotLimits(enabled=enabled),
            ) as hub:
                live = await hub.create("it", str(tmp_path))
                assert (live.session.tracker is not None) == enabled
