"""What happens in a folder is seen and undone, whoever does it, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cost import Memory
from support.folders import Watched, contents, git, lines

from dragoman.errors import DragomanError, RevertConflict
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.snapshots import Reverted
from dragoman.host.workspace.changes import Change
from dragoman.session.facts import RootSnapshot

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def watched(folder: Path, tmp_path: Path) -> Watched:
    return Watched(folder, tmp_path / "data")


# ── everything an agent can do by itself ──────────────────────────────────────────────────────


def before_it(folder: Path) -> None:
    (folder / "edited.py").write_text(lines(*range(40)))
    (folder / "deleted.txt").write_text("gone\n")
    (folder / "old name.txt").write_text(lines(*range(30)))
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "image.bin").write_bytes(bytes(range(256)))
    (folder / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    (folder / "link").symlink_to("edited.py")
    (folder / "empty").mkdir()
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_text("x\n")


def do_everything(folder: Path) -> None:
    text = (folder / "edited.py").read_text()
    (folder / "edited.py").write_text(text.replace("line 3\n", "LINE\n").replace("line 30\n", ""))
    (folder / "deleted.txt").unlink()
    (folder / "old name.txt").rename(folder / "new\tname.txt")
    (folder / "tool.sh").chmod(0o755)
    (folder / "image.bin").write_bytes(bytes(reversed(range(256))))
    (folder / "crlf.txt").write_bytes(b"one\r\ntwo\n")
    (folder / "latin.txt").write_bytes(b"th\xe9\n")
    (folder / "link").unlink()
    (folder / "link").symlink_to("tool.sh")
    (folder / "empty").rmdir()
    (folder / "void").mkdir()
    (folder / "new" / "folder").mkdir(parents=True)
    (folder / "new" / "folder" / "file.txt").write_text("new\n")
    shutil.rmtree(folder / "deep")
    (folder / "deep").write_text("a file now\n")


@pytest.mark.parametrize("is_repository", [False, True])
async def test_all_that_an_agent_does_by_itself_is_seen_and_undone(
    folder: Path, watched: Watched, is_repository: bool
) -> None:
    before_it(folder)
    if is_repository:
        git(folder, "init", "-q")
        (folder / ".gitattributes").write_text("* text=auto eol=lf\n*.txt ident\n")
    before = contents(folder, but=[".git"])
    await watched.turn("turn", do_everything)
    after = contents(folder, but=[".git"])

    found = await watched.changes()
    changed = {name for name in {*before, *after} if before.get(name, 0) != after.get(name, 0)}
    told = {path for each in found.files for path in (each.path, each.old_path) if path}
    files = {str(folder / name) for name in changed if name not in ("new", "new/folder", "deep/er")}
    assert told == files | {str(folder / "deep" / "er" / "file")}
    assert all((each.by, each.turns) == (["agent"], ["turn"]) for each in found.files)
    assert (found.complete, found.problems, found.left_out) == (True, [], [])
    kinds = {Path(each.path).name: each.status for each in found.files}
    assert kinds["new\tname.txt"] == "renamed"
    assert kinds["deleted.txt"] == kinds["empty"] == "deleted"
    assert kinds["file.txt"] == kinds["void"] == "added"
    assert next(each for each in found.files if each.path.endswith("image.bin")).binary

    await watched.revert()
    assert contents(folder, but=[".git"]) == before
    assert (await watched.changes()).files == []
    await watched.revert("restore-1")
    assert contents(folder, but=[".git"]) == after


# ── who did it ────────────────────────────────────────────────────────────────────────────────


async def test_each_hunk_has_those_who_wrote_it(folder: Path, watched: Watched) -> None:
    file = folder / "a.py"
    file.write_text(lines(*range(60)))

    def by_both(_: Path) -> None:
        before = file.read_text()
        file.write_text(ours := before.replace("line 2\n", "ours\n"))
        watched.writes["t1"] = [Change(str(file), before.encode(), ours.encode(), True, "t1")]
        file.write_text(ours.replace("line 20\n", "the agent's\n"))

    await watched.turn("t1", by_both)
    file.write_text(file.read_text().replace("line 40\n", "a person's\n"))
    await watched.turn("t2", lambda _: None, doubt="another session worked here")
    await watched.turn("t3", lambda _: file.write_text(file.read_text() + "end\n"), doubt="it did")

    [changed] = (await watched.changes()).files
    assert [hunk.by for hunk in changed.hunks] == [["host"], ["agent"], ["other"], ["unknown"]]
    assert [hunk.turns for hunk in changed.hunks] == [["t1"], ["t1"], [], ["t3"]]
    assert changed.by == ["agent", "host", "other", "unknown"]
    [of_turn] = (await watched.changes("t1")).files
    assert [hunk.by for hunk in of_turn.hunks] == [["host"], ["agent"]]
    assert (await watched.changes("t2")).files == []


async def test_an_empty_folder_has_those_who_made_or_deleted_it(
    folder: Path, watched: Watched
) -> None:
    (folder / "filled" / "deep").mkdir(parents=True)

    def first(_: Path) -> None:
        (folder / "agents").mkdir()
        (folder / "filled" / "deep" / "file").write_text("x\n")

    await watched.turn("first", first)
    shutil.rmtree(folder / "filled")
    (folder / "persons").mkdir()
    await watched.turn("second", lambda _: (folder / "file").write_text("x\n"))
    await watched.revert("second")
    found = (await watched.changes()).files
    assert {Path(each.path).name: (each.status, each.by, each.turns) for each in found} == {
        "agents": ("added", ["agent"], ["first"]),
        "persons": ("added", ["other"], []),
        "deep": ("deleted", ["other"], []),
    }


async def test_files_of_very_many_lines_are_named_and_not_compared(
    folder: Path, watched: Watched
) -> None:
    def act(_: Path) -> None:
        (folder / "long").write_text("a\n" * 100_001)
        for number in range(6):
            (folder / f"{number}").write_text("a\n" * 90_000)

    await watched.turn("t", act)
    found = (await watched.changes()).files
    compared = {each.path.rpartition("/")[2]: each.added for each in found if not each.binary}
    assert compared == {f"{number}": 90_000 for number in range(5)}
    assert {each.path.rpartition("/")[2] for each in found if each.binary} == {"5", "long"}
    assert await watched.revert("t") == Reverted(
        paths=[each.path for each in found], restore_id="restore-1"
    )
    assert contents(folder) == {}


async def test_a_turn_that_writes_very_many_lines_costs_little_memory(
    folder: Path, watched: Watched
) -> None:
    def act(_: Path) -> None:
        for number in range(6):
            (folder / f"{number}").write_text(f"{number}\n" * 80_000)

    await watched.turn("t", act)
    [step] = watched.timeline.steps
    with Memory() as memory:
        files, count = await watched.snapshots.summary(step, watched.written)
    assert (len(files), count) == (6, 6)
    assert {each.added for each in files} == {80_000}
    # Of all that is compared, only one file is in memory at a time.
    assert memory.peak < 32 << 20
    assert memory.left < 4 << 20


async def test_a_protected_file_is_marked(folder: Path, watched: Watched) -> None:
    def act(_: Path) -> None:
        (folder / ".envrc").write_text("rm -rf /\n")

    await watched.turn("t", act)
    assert [each.protected for each in (await watched.changes()).files] == [
        "it runs when you enter the directory"
    ]


# ── what is left out, and what cannot be read ─────────────────────────────────────────────────


async def test_a_folder_that_was_replaced_by_a_link_is_not_followed(
    folder: Path, watched: Watched, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("p\n")
    (folder / "a").write_text("a\n")

    def replace(_: Path) -> None:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(other)

    await watched.turn("t1", replace)
    await watched.turn("t2", lambda _: (other / "new").write_text("n\n"))
    found = await watched.changes()
    assert (found.files, len(found.problems)) == ([], 1)
    assert found.problems[0].reason == f"{folder} was replaced by a link to another folder"
    with pytest.raises(DragomanError, match=r"nothing was reverted: .* was replaced by a link"):
        await watched.revert(force=True)
    assert contents(other) == {"precious": (b"p\n", False), "new": (b"n\n", False)}


async def test_no_name_hides_a_file(folder: Path, watched: Watched) -> None:
    names = [
        *("git~1", "GIT~1", ".git.", ".git ", ".git::$INDEX_ALLOCATION", "a\\b", "a\nb"),
        *(".g\u200cit", "-n", "--", "con", ":(top)x", "[a]", "*", ".gitmodules", "~", "a:b"),
    ]

    def act(_: Path) -> None:
        for name in names:
            (folder / name).write_text("x\n")
        for name in ("git~2", ".GIT"):
            (folder / name).mkdir()
            (folder / name / "hook").write_text("x\n")

    await watched.turn("t", act)
    found = await watched.changes()
    inside = {each.path.removeprefix(f"{folder}/") for each in found.files}
    assert inside == {*names, "git~2/hook"}
    assert [each.path for each in found.left_out] == [str(folder / ".GIT" / "hook")]
    await watched.revert("t")
    assert [*contents(folder)] == [".GIT", ".GIT/hook"]


async def test_a_large_file_is_left_out_and_said_and_never_deleted(
    folder: Path, tmp_path: Path
) -> None:
    watched = Watched(folder, tmp_path / "data", SnapshotLimits(file_bytes=100))
    (folder / "large").write_bytes(b"x" * 101)
    (folder / "grows").write_bytes(b"x")

    def act(_: Path) -> None:
        (folder / "large").write_bytes(b"y")
        (folder / "grows").write_bytes(b"x" * 200)

    await watched.turn("t", act)
    found = await watched.changes()
    assert {Path(each.path).name: each.size for each in found.left_out} == {
        "large": 101,
        "grows": 200,
    }
    with pytest.raises(RevertConflict):
        await watched.revert(force=True)
    assert (folder / "large").read_bytes() == b"y"
    assert (folder / "grows").read_bytes() == b"x" * 200


async def test_a_folder_with_too_many_files_is_not_watched(folder: Path, tmp_path: Path) -> None:
    watched = Watched(folder, tmp_path / "data", SnapshotLimits(files=3))
    for number in range(4):
        (folder / f"{number}").touch()
    [root] = (await watched.take()).roots
    assert root.tree is None
    assert root.problem == f"{folder} holds more than 3 files: it is not watched"


async def test_without_git_it_says_so(
    folder: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    shutil.copy("/bin/true", folder / "git")  # never found where an agent could put it
    monkeypatch.setenv("PATH", f".:{folder / 'nothing'}")
    [root] = (await watched.take()).roots
    assert root.problem.startswith("git is not installed")


async def test_a_folder_that_is_gone_is_said(folder: Path, watched: Watched) -> None:
    os.rmdir(folder)
    [root] = (await watched.take()).roots
    assert root.problem == f"{folder} does not exist"


# ── letting go ────────────────────────────────────────────────────────────────────────────────


async def test_the_snapshots_of_a_session_go_with_it(folder: Path, watched: Watched) -> None:
    (folder / "file").write_text("theirs\n")
    root = str(folder)
    [theirs] = await watched.snapshots.take([root], "theirs")
    (folder / "file").write_text("ours\n")
    [ours] = await watched.snapshots.take([root], "ours")
    (folder / "file").write_text("later\n")
    await watched.snapshots.take([root], None)

    await watched.snapshots.forget("ours")
    shadow = watched.snapshots.shadow(root)

    async def is_kept(snapshot: RootSnapshot) -> bool:
        async with shadow.locked():
            return bool(await shadow.git.sizes([snapshot.tree or ""]))

    assert await is_kept(theirs)
    assert not await is_kept(ours)
    assert not shadow.has("ours")


# ── killed ────────────────────────────────────────────────────────────────────────────────────


def killed(program: str, *words: str) -> None:
    ran = subprocess.run([sys.executable, PROGRAMS / program, *words], check=False, timeout=120)
    assert ran.returncode == -signal.SIGKILL


@pytest.mark.parametrize("files", ["1", "4", "9"])
async def test_a_restore_that_is_killed_half_way_is_finished(
    folder: Path, watched: Watched, tmp_path: Path, files: str
) -> None:
    for number in range(10):
        (folder / f"{number}.txt").write_text("before\n")
    before = contents(folder)
    killed("killed_restore.py", str(folder), str(tmp_path / "data"), files)
    half = contents(folder)
    assert half != before
    (folder / "9.txt").write_text("a person's\n")
    [journal] = await watched.snapshots.finish_left()
    assert journal.session_id == "s"
    assert journal.left == {str(folder / "9.txt"): "it was changed just now"}
    assert contents(folder) == before | {"9.txt": (b"a person's\n", False)}
    assert await watched.snapshots.finish_left() == []


async def test_a_snapshot_that_is_killed_half_way_is_taken_again(
    folder: Path, watched: Watched, tmp_path: Path
) -> None:
    (folder / "file").write_text("x\n")
    before = contents(folder)
    killed("killed_snapshot.py", str(folder), str(tmp_path / "data"))
    assert contents(folder) == before
    [root] = (await watched.take()).roots
    assert root.tree is not None
    assert root.problem == ""


async def test_git_that_is_ended_leaves_no_lock_for_the_next(
    folder: Path, watched: Watched
) -> None:
    await watched.take()
    shadow = watched.snapshots.shadow(str(folder))
    lock = Path(shadow.git.directory) / "index.lock"
    lock.write_bytes(b"half an index")
    (folder / "file").write_text("x\n")
    [root] = (await watched.take()).roots  # in the same process
    assert (root.problem, lock.exists()) == ("", False)
