"""Folders that git treats in its own way are seen and undone too, or one line says why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.folders import Watched, contents, git

from dragoman.errors import DragomanError, RevertConflict
from dragoman.host.snapshots import git_program, shadow
from dragoman.host.snapshots.git_program import Git, GitFailed
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.snapshots import Snapshots, undo_of
from dragoman.session.events import FileReverted, WorkspaceSnapshot

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def committed(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")


async def seen_and_undone(watched: Watched, *edited: Path) -> None:
    """An agent writes these files; exactly that is seen, and undone byte for byte."""
    everything = watched.folder.parent
    before = contents(everything, but=["data"])

    def act(_: Path) -> None:
        for file in edited:
            file.write_bytes(b"agent\r\n\0" + file.name.encode())

    await watched.turn("t", act)
    found = await watched.changes()
    assert {each.path for each in found.files} == {str(file) for file in edited}
    assert (found.problems, found.left_out) == ([], [])
    await watched.revert()
    assert contents(everything, but=["data"]) == before


async def test_a_submodule_is_read_like_a_folder(folder: Path, tmp_path: Path) -> None:
    committed(tmp_path / "library", code="theirs\n")
    committed(folder, top="ours\n")
    add = ("submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    git(folder, "-c", "protocol.file.allow=always", *add)
    watched = Watched(folder, tmp_path / "data")
    await seen_and_undone(watched, folder / "top", folder / "lib" / "code", folder / "lib" / "new")


async def test_a_worktree_is_a_folder_whose_git_is_a_file(folder: Path, tmp_path: Path) -> None:
    committed(tmp_path / "main", code="ours\n")
    git(tmp_path / "main", "worktree", "add", "-q", "--force", str(folder))
    (tmp_path / "main" / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / "main" / ".git" / "info" / "exclude").write_text("excluded\n")
    assert (folder / ".git").is_file()
    (folder / "excluded").write_text("ignored here too\n")
    await seen_and_undone(Watched(folder, tmp_path / "data"), folder / "code", folder / "new")


async def test_a_sparse_checkout_lacks_nothing(folder: Path, tmp_path: Path) -> None:
    committed(folder, code="ours\n")
    for name in ("here", "absent"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    git(folder, "sparse-checkout", "set", "here")
    assert not (folder / "absent").exists()
    watched = Watched(folder, tmp_path / "data")
    await seen_and_undone(watched, folder / "code", folder / "here" / "file")
    assert git(folder, "status", "--porcelain") == ""


async def test_line_endings_and_filters_change_nothing(folder: Path, tmp_path: Path) -> None:
    committed(folder, code="ours\n")
    git(folder, "config", "core.autocrlf", "true")
    git(folder, "config", "filter.lfs.clean", "false")
    git(folder, "config", "filter.lfs.smudge", "false")
    git(folder, "config", "filter.lfs.required", "true")
    (folder / ".gitattributes").write_text("*.bin filter=lfs diff=lfs -text\n*.txt text eol=crlf\n")
    (folder / "large.bin").write_bytes(POINTER)
    (folder / "mixed.txt").write_bytes(b"one\r\ntwo\nthree\r")
    watched = Watched(folder, tmp_path / "data")
    await seen_and_undone(watched, folder / "large.bin", folder / "mixed.txt", folder / "code")


@pytest.mark.parametrize(
    "name", [b"caf\xe9", b"\xff\xfe/in", b"\xed\xa0\x80", b"deep/" * 300 + b"in", b"-rf", b"a\n*"]
)
async def test_no_name_of_a_file_is_in_the_way_of_a_revert(
    folder: Path, tmp_path: Path, name: bytes
) -> None:
    (folder / "code").write_text("ours\n")
    known, gone = folder / "code", Path(os.fsdecode(name))
    watched = Watched(folder, tmp_path / "data")
    before = contents(folder)

    def act(_: Path) -> None:
        known.write_text("changed\n")
        (folder / gone).parent.mkdir(parents=True, exist_ok=True)
        (folder / gone).write_text("new\n")

    await watched.turn("t", act)
    await watched.revert()
    assert contents(folder) == before


async def test_a_link_in_the_place_of_a_folder_is_seen_and_undone(
    folder: Path, tmp_path: Path
) -> None:
    """What was in the folder is still there under its old name, through the link."""
    (folder / "old" / "in").mkdir(parents=True)
    (folder / "old" / "in" / "file").write_text("x\n")
    before = contents(folder)
    watched = Watched(folder, tmp_path / "data")

    def act(_: Path) -> None:
        (folder / "old").rename(folder / "new")
        (folder / "old").symlink_to("new")

    await watched.turn("t", act)
    found = await watched.changes()
    told = {(each.path.removeprefix(f"{folder}/"), each.status) for each in found.files}
    assert (told, found.problems) == ({("new/in/file", "renamed"), ("old", "added")}, [])
    after = contents(folder)
    reverted = await watched.revert()
    assert contents(folder) == before
    await watched.revert(reverted.restore_id or "")
    assert contents(folder) == after


async def test_names_that_are_not_text_are_undone(folder: Path, tmp_path: Path) -> None:
    top = os.fsencode(folder)
    os.mkdir(top + b"/\xff")
    (folder / "file").write_text("x\n")
    before = contents(folder)
    watched = Watched(folder, tmp_path / "data")

    def act(_: Path) -> None:
        os.rmdir(top + b"/\xff")
        os.makedirs(top + b"/n\xe9w")
        for name in (b"/caf\xe9", b"/caf\xe8", b"/n\xe9w/file"):
            with open(top + name, "w") as file:
                file.write("agent\n")

    await watched.turn("t", act)
    found = await watched.changes()
    names = sorted(each.path.removeprefix(f"{folder}/") for each in found.files)
    assert names == ["caf�", "caf�", "n�w/file"]
    assert [each.path for each in found.left_out] == [f"{folder}/�"]
    named = [os.fsdecode(top + b"/caf\xe9")]  # as the command line has it
    assert undo_of(watched.timeline, None, paths=named).paths == [f"{folder}/caf�"]
    await watched.revert(paths=["caf�"])
    assert sorted(os.listdir(top)) == [b"file", b"n\xe9w"]
    await watched.revert()
    assert contents(folder) == {"file": before["file"]}


async def test_folders_in_folders_without_end_are_seen_and_undone(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "file").write_text("x\n")
    watched = Watched(folder, tmp_path / "data")
    deep = folder.joinpath(*["d"] * 1_200)

    def act(_: Path) -> None:
        printed("mkdir", "-p", str(deep), "/".join([str(folder), *["e"] * 1_500]))
        (deep / "file").write_text("agent\n")
        (folder / "file").write_text("agent\n")

    await watched.turn("t", act)
    found = await watched.changes()
    assert found.problems == []
    assert {str(folder / "file"), str(deep / "file")} < {each.path for each in found.files}
    await watched.revert(paths=["file"])
    assert (folder / "file").read_text() == "x\n"
    printed("rm", "-r", str(folder))  # the tests' own way to clean up is not for this


async def test_empty_folders_in_ignored_ones_are_ignored(folder: Path, tmp_path: Path) -> None:
    (folder / ".gitignore").write_text("modules/\n/hollow/\n")
    before = contents(folder)
    watched = Watched(folder, tmp_path / "data")

    def act(_: Path) -> None:
        for name in ("app/modules/cache", "app/modules/used", "hollow", "lib/new"):
            (folder / name).mkdir(parents=True)
        (folder / "app/modules/used/file").write_text("x\n")

    await watched.turn("t", act)
    found = await watched.changes()
    assert [each.path for each in found.files] == [str(folder / "lib/new")]
    await watched.revert()
    kept = ("app", "app/modules", "app/modules/cache", "app/modules/used", "hollow")
    file = {"app/modules/used/file": (b"x\n", False)}
    assert contents(folder) == {**before, **dict.fromkeys(kept), **file}


UNREADABLE = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.folders import Watched

async def main(folder, data):
    watched = Watched(folder, data)
    await watched.turn("t", lambda _: (folder / "open").chmod(0))
    for each in (await watched.changes()).left_out:
        print(each.path, each.reason)

asyncio.run(main(Path(sys.argv[2]), Path(sys.argv[3])))
"""


def test_what_nobody_may_look_into_is_said(folder: Path, tmp_path: Path) -> None:
    for name in ("open", "closed"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x\n")
    (folder / "closed").chmod(0)
    # Root reads everything, unless it gives that up.
    drop = "-dac_override,-dac_read_search"
    give_up = ("setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("only root, and nothing to give its rights up with")
    words = [sys.executable, "-c", UNREADABLE, str(Path(__file__).parents[1])]
    as_user = (*give_up, *words) if os.geteuid() == 0 else words
    try:
        told = printed(*as_user, str(folder), str(tmp_path / "data"))
    finally:
        for name in ("open", "closed"):
            (folder / name).chmod(0o755)
    reason = "it cannot be read"
    assert sorted(told) == [f"{folder}/closed {reason}", f"{folder}/open/file {reason}"]


async def test_a_folder_that_cannot_be_read_after_a_revert_does_not_deny_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("x\n")
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: (folder / "file").write_text("agent\n"))
    really = watched.snapshots.shadow(str(folder)).git

    class Failing(Git):
        async def __call__(self, *words: str | bytes, **options: Any) -> bytes:
            if words[0] == "ls-files" and (folder / "file").read_text() == "x\n":
                raise GitFailed("git ls-files failed: no memory")
            return await really(*words, **options)

    failing = Failing(really.directory, really.work_tree)
    monkeypatch.setattr(watched.snapshots.shadow(str(folder)), "git", failing)
    reverted = await watched.revert()
    assert reverted.paths == [str(folder / "file")]
    last = watched.events[-1]
    assert isinstance(last, WorkspaceSnapshot)
    assert (last.moment, last.roots[0].problem) == (
        "restore_end",
        "git ls-files failed: no memory",
    )


async def test_a_bare_repository_is_a_folder_like_any(folder: Path, tmp_path: Path) -> None:
    git(folder, "init", "-q", "--bare")
    await seen_and_undone(Watched(folder, tmp_path / "data"), folder / "description")


async def test_a_folder_that_cannot_be_written_is_read(folder: Path, tmp_path: Path) -> None:
    (folder / "file").write_text("x\n")
    (folder / "secret").write_text("y\n")
    os.chmod(folder, 0o555)
    watched = Watched(folder, tmp_path / "data")
    try:
        [root] = (await watched.take()).roots
    finally:
        os.chmod(folder, 0o755)
    assert (root.problem, root.tree is not None) == ("", True)


async def test_without_room_for_snapshots_one_line_says_so(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be\n")
    snapshots = Snapshots(tmp_path / "data")
    [root] = await snapshots.take([str(folder)], "s")
    assert root.tree is None
    assert "\n" not in root.problem
    assert str(tmp_path / "data") in root.problem


def printed(*words: str, cwd: Path | None = None) -> list[str]:
    """The lines of a program, which may end with 1, as `diff` does."""
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout.splitlines()


AGENT = """
mv "old name" "new name"; rm gone; chmod +x tool; printf 'a\\0b' > image.bin
mkdir -p deep/er; echo new > deep/er/file; sed -i s/3/three/ edited; ln -s edited link
"""


async def test_what_a_program_does_is_what_diff_says(folder: Path, tmp_path: Path) -> None:
    """Another process, by its own system calls, compared with a copy from before."""
    for name in ("old name", "gone", "tool", "edited"):
        (folder / name).write_text("".join(f"{name} {number}\n" for number in range(9)))
    (folder / "image.bin").write_bytes(os.urandom(300))
    copy = tmp_path / "copy"
    printed("cp", "-a", str(folder), str(copy))
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: printed("sh", "-ec", AGENT, cwd=folder))

    compare = ("diff", "-rq", "--no-dereference", str(copy), str(folder))
    differing = printed(*compare)
    found = (await watched.changes()).files
    told = {Path(path).name for each in found for path in (each.path, each.old_path) if path}
    assert told == {"old name", "new name", "gone", "tool", "image.bin", "file", "edited", "link"}
    # It does not look at modes, and names a new folder instead of what is in it.
    names = ("old name", "new name", "gone", "image.bin", "deep", "edited", "link")
    assert len(differing) == len(names)
    assert [name for name in names if name not in "\n".join(differing)] == []
    await watched.revert()
    assert printed(*compare) == []
    assert contents(folder) == contents(copy)


@pytest.mark.parametrize("name", [".gitignore", "folder/.gitignore", ".gitattributes"])
async def test_a_pipe_where_git_expects_a_file_holds_nobody_up(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_program, "_LOOK_SECONDS", 0.05)
    committed(folder, code="ours\n")
    (folder / name).parent.mkdir(exist_ok=True)
    os.mkfifo(folder / name)
    taken = await Watched(folder, tmp_path / "data").take()
    assert [each.problem for each in taken.roots] == [
        "git waits for a file of the folder that is a pipe, or does not answer"
    ]


async def test_a_pipe_in_the_users_repository_does_not_stop_the_loop(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_program, "_LOOK_SECONDS", 0.05)
    committed(folder, code="ours\n")
    pipe = folder / ".git" / "info" / "exclude"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    done = threading.Event()
    with ThreadPoolExecutor() as threads:
        released = threads.submit(_release_reader, pipe, done)
        try:
            taken = await Watched(folder, tmp_path / "data").take()
        finally:
            done.set()
        assert not released.result(), "it waited for someone to write to the pipe"
    assert [each.problem for each in taken.roots] == [""]


def _release_reader(pipe: Path, done: threading.Event) -> bool:
    """Let a reader that waits for a writer go on; whether there was one after half a minute."""
    if done.wait(30):
        return False
    os.close(os.open(pipe, os.O_WRONLY))
    return True


async def test_what_git_prints_at_once_is_bounded_too(tmp_path: Path) -> None:
    git = Git(str(tmp_path), str(tmp_path))
    assert b"version" in await git("--version")
    with pytest.raises(GitFailed, match="too much"):
        await git("--version", most=3)


async def test_a_listing_is_not_taken_apart_if_it_has_too_many_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made of the names that git has printed."""
    monkeypatch.setattr(shadow, "listed", None)
    for number in range(31):
        (folder / str(number)).touch()
    watched = Watched(folder, tmp_path / "data", SnapshotLimits(files=10))
    [root] = (await watched.take()).roots
    assert "holds more than 10 files" in root.problem


@pytest.mark.parametrize("place", ["project", "other", "linked"])
async def test_a_program_that_an_agent_may_have_put_into_its_folder_is_never_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """It would run outside of the agent's fence. A virtual environment is often on the PATH."""
    committed(folder, code="ours\n")
    (tmp_path / "linked").symlink_to(folder)
    planted = tmp_path / place / "bin" / "git"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}{os.pathsep}{os.environ['PATH']}")
    snapshots = Snapshots(tmp_path / "data")
    taken = await snapshots.take([str(folder), str(tmp_path / "other")], None)
    assert [each.problem for each in taken if each.root == str(folder)] == [""]
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("PATH", str(planted.parent))
    [problem] = [each.problem for each in await snapshots.take([str(folder)], None)]
    assert f"{planted} is in a workspace" in problem
    assert not (tmp_path / "ran").exists()


# ── what is put in the place of the folder, or of a file ──────────────────────────────────────────


def swap_for_a_link(folder: Path, other: Path) -> None:
    if not folder.is_symlink():
        folder.rename(folder.with_name("moved"))
        folder.symlink_to(other)


async def test_a_revert_does_not_follow_a_link_that_takes_the_place_of_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    """Put there when the folder was read, and nothing was done yet."""
    (folder / "file").write_text("ours\n")
    shutil.copytree(folder, other := tmp_path / "other")

    class Swapping(Watched):
        def record(self, event: WorkspaceSnapshot | FileReverted) -> None:
            super().record(event)
            if isinstance(event, WorkspaceSnapshot) and event.moment == "restore_start":
                swap_for_a_link(folder, other)

    watched = Swapping(folder, tmp_path / "data")
    await watched.turn("t", lambda _: (folder / "file").write_text("agent\n"))
    (other / "file").write_text("agent\n")
    with pytest.raises(RevertConflict) as caught:
        await watched.revert(force=True)
    assert list(caught.value.reasons) == [str(folder / "file")]
    assert (other / "file").read_text() == "agent\n"


async def test_a_folder_that_is_replaced_while_it_is_read_has_no_snapshot(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("not of the session\n")
    watched = Watched(folder, tmp_path / "data")
    await watched.take()
    really = watched.snapshots.shadow(str(folder)).git

    class Swapping(Git):
        async def __call__(self, *words: str | bytes, **options: Any) -> bytes:
            if words[0] == "ls-files":
                swap_for_a_link(folder, tmp_path / "other")
            return await really(*words, **options)

    swapping = Swapping(really.directory, really.work_tree)
    monkeypatch.setattr(watched.snapshots.shadow(str(folder)), "git", swapping)
    [root] = (await watched.take()).roots
    assert (root.tree, root.problem) == (None, f"{folder} was replaced by a link to another folder")


def fill(file: Path) -> None:
    file.write_bytes(bytes(1001))


@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (os.mkfifo, "something that is not a file is now in its place"),
        (fill, "what is now in its place is too large to keep"),
    ],
    ids=["pipe", "large file"],
)
async def test_what_can_never_be_replaced_is_named_and_no_choice_is_offered(
    folder: Path, tmp_path: Path, put: Callable[[Path], object], reason: str
) -> None:
    file = folder / "file"
    file.write_text("ours\n")
    watched = Watched(folder, tmp_path / "data", SnapshotLimits(file_bytes=1000))
    await watched.turn("t", lambda _: file.unlink())
    put(file)
    for force in (False, True):
        with pytest.raises(RevertConflict) as caught:
            await watched.revert(force=force)
        assert not caught.value.by_force
        assert list(caught.value.reasons.values()) == [reason]


async def test_without_room_for_its_journal_a_revert_says_so_and_does_nothing(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "file").write_text("ours\n")
    watched = Watched(folder, tmp_path / "data")
    await watched.turn("t", lambda _: (folder / "file").write_text("agent\n"))
    directory = watched.snapshots.shadow(str(folder)).directory
    (directory / "journal").write_text("a file where the folder should be\n")
    with pytest.raises(DragomanError, match=r"nothing was reverted: .* cannot be written: "):
        await watched.revert()
    assert (folder / "file").read_text() == "agent\n"
    (directory / "journal").unlink()
    await watched.revert()
    assert (folder / "file").read_text() == "ours\n"
