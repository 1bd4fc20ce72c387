"""Snapshots follow the rules of the user's repository, and leave it as it is."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.folders import Watched, contents, git

from dragoman.host.snapshots.surroundings import surroundings

LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def watched(folder: Path, tmp_path: Path) -> Watched:
    return Watched(folder, tmp_path / "data")


def repository(folder: Path) -> None:
    """With something staged, changed, stashed, ignored, untracked."""
    git(folder, "init", "-q")
    for name in ("tracked", "staged", "changed", "stashed"):
        (folder / name).write_text("before\n")
    (folder / ".gitignore").write_text("ignored\nforced\n")
    (folder / "forced").write_text("tracked though ignored\n")
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "stashed").write_text("stashed\n")
    git(folder, "stash", "-q")
    (folder / "staged").write_text("staged\n")
    git(folder, "add", "staged")
    (folder / "changed").write_text("changed\n")
    (folder / "untracked").write_text("untracked\n")
    (folder / "ignored").write_text("ignored\n")


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=LONG)])
async def test_snapshots_leave_the_users_repository_alone(
    folder: Path, watched: Watched, count: int
) -> None:
    repository(folder)
    status, checked = git(folder, "status", "--porcelain=v2"), git(folder, "fsck", "--full")
    before = contents(folder / ".git")
    trees: set[str | None] = set()
    for number in range(count):
        (folder / "untracked").write_text(f"{number}\n")
        [root] = (await watched.take()).roots
        trees.add(root.tree)
    assert len(trees) == count
    assert contents(folder / ".git") == before
    assert git(folder, "status", "--porcelain=v2") == status
    assert git(folder, "fsck", "--full") == checked
    shadow = watched.snapshots.shadow(str(folder))
    git(Path(shadow.git.directory), "--git-dir=.", "fsck", "--full")


async def test_what_the_user_prunes_stays_in_snapshots(folder: Path, watched: Watched) -> None:
    repository(folder)
    await watched.turn("t", lambda _: (folder / "changed").write_text("agent\n"))
    git(folder, "checkout", "-q", ".")
    git(folder, "stash", "clear")
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "-q", "--prune=now")
    (folder / "changed").write_text("agent\n")
    await watched.revert()
    assert (folder / "changed").read_text() == "changed\n"


async def test_gits_rules_say_what_is_ignored(folder: Path, watched: Watched) -> None:
    repository(folder)
    (folder / ".git" / "info" / "exclude").write_text("excluded\n")

    def act(_: Path) -> None:
        for name in ("ignored", "excluded", "forced", "untracked"):
            (folder / name).write_text("agent\n")

    (folder / "build").mkdir()
    (folder / "build" / "one").touch()
    (folder / ".git" / "info" / "exclude").write_text("excluded\nbuild\n")
    await watched.turn("t", act)
    found = await watched.changes()
    assert {Path(each.path).name for each in found.files} == {"forced", "untracked"}
    # What nobody watched is said.
    assert found.ignored == [f"{folder}/{name}" for name in ("build/", "excluded", "ignored")]
    assert found.ignored_count == 3


async def test_a_part_of_a_repository_follows_the_rules_above_it(
    folder: Path, tmp_path: Path
) -> None:
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("*.log\n/build/\n")
    for name in ("sub", "build"):
        (folder / name).mkdir()
        watched = Watched(folder / name, tmp_path / "data")

        def act(inside: Path) -> None:
            for file in ("a.log", "a.py"):
                (inside / file).write_text("agent\n")
            (inside.parent / "outside").write_text("not watched\n")

        await watched.turn("t", act)
        names = {Path(each.path).name for each in (await watched.changes()).files}
        # What is ignored as a whole is a folder of its own.
        assert names == ({"a.py"} if name == "sub" else {"a.log", "a.py"})
        await watched.revert()
        assert not (folder / name / "a.py").exists()


async def test_repositories_within_are_read_like_folders(folder: Path, watched: Watched) -> None:
    git(folder, "init", "-q")
    for name in ("nested", "nested/deeper"):
        (folder / name).mkdir()
        git(folder / name, "init", "-q")
        (folder / name / "file").write_text("before\n")
    (folder / "worktree").mkdir()
    (folder / "worktree" / ".git").write_text("gitdir: /nowhere\n")
    before = contents(folder / "nested")

    def act(_: Path) -> None:
        (folder / "nested" / "file").write_text("agent\n")
        (folder / "nested" / "deeper" / "file").write_text("agent\n")
        (folder / "worktree" / "file").write_text("agent\n")

    await watched.turn("t", act)
    names = {each.path.removeprefix(f"{folder}/") for each in (await watched.changes()).files}
    assert names == {"nested/file", "nested/deeper/file", "worktree/file"}
    await watched.revert()
    assert contents(folder / "nested") == before


async def test_nothing_that_a_folder_configures_is_run(
    folder: Path, watched: Watched, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    repository(folder)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil text=auto\n")
    for name in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"):
        git(folder, "config", name, str(program))
    for name in ("core.fsmonitor", "diff.external", "diff.evil.textconv", "core.sshCommand"):
        git(folder, "config", name, str(program))
    shutil.copy(program, folder / ".git" / "hooks" / "post-index-change")
    shutil.copy(program, folder / ".git" / "hooks" / "reference-transaction")
    (folder / "crlf").write_bytes(b"a\r\nb\n")
    await watched.turn("t", lambda _: (folder / "crlf").write_bytes(b"c\r\n"))
    assert len((await watched.changes()).files) == 1
    await watched.revert()
    assert (folder / "crlf").read_bytes() == b"a\r\nb\n"
    assert not ran.exists()


async def test_our_own_folder_is_never_read(folder: Path) -> None:
    watched = Watched(folder, folder / "data")
    await watched.turn("t", lambda _: (folder / "file").write_text("x\n"))
    assert [Path(each.path).name for each in (await watched.changes()).files] == ["file"]


# ── an index that no git wrote ────────────────────────────────────────────────────────────────


def crafted_index(*names: bytes) -> bytes:
    """As git reads it: entries of empty files, in order."""
    entries = b""
    for name in sorted(names):
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0)
        entry += bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
        entry += struct.pack(">H", len(name)) + name
        entries += entry + b"\0" * (8 - len(entry) % 8)
    index = b"DIRC" + struct.pack(">II", 2, len(names)) + entries
    return index + hashlib.sha1(index).digest()


async def test_names_of_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder, outside = tmp_path / "project", tmp_path / "outside.txt"
    (folder / "link").mkdir(parents=True)
    outside.write_text("secret\n")
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("*\n")
    kept = folder / "kept.txt"
    kept.write_text("before\n")
    elsewhere = os.fsencode(outside)
    names = (elsewhere, elsewhere[1:], b"../outside.txt", b"link/../../outside.txt", b".GIT/config")
    (folder / ".git" / "index").write_bytes(crafted_index(b"kept.txt", *names))
    watched = Watched(folder, tmp_path / "data")
    [root] = (await watched.take()).roots
    assert root.problem == ""
    kept.write_text("after\n")
    outside.write_text("other\n")
    [later] = (await watched.take()).roots
    shadow = watched.snapshots.shadow(str(folder))
    async with shadow.locked():
        changes = await shadow.compare(root.tree or "", later.tree or "")
    assert [each.path for each in changes] == [b"kept.txt"]


# ── what is known without a program ───────────────────────────────────────────────────────────


@pytest.fixture
def verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What every git that is started was asked, a line for each."""
    told, program = tmp_path / "verbs", tmp_path / "bin" / "git"
    told.touch()
    program.parent.mkdir()
    words = """while [ "$1" = -c ] || [ "$1" = -C ]; do shift 2; done"""
    real = shutil.which("git")
    program.write_text(
        f"""#!/bin/sh
all=$(printf "'%s' " "$@")
{words}
echo "$1 $2" >> {told}
eval "exec {real} $all"
"""
    )
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    return told


def asked(verbs: Path) -> list[str]:
    """Since this was called last."""
    lines = verbs.read_text().splitlines()
    verbs.write_text("")
    return lines


async def test_a_known_folder_is_read_by_one_program(
    folder: Path, tmp_path: Path, verbs: Path
) -> None:
    repository(folder)
    [first] = (await Watched(folder, tmp_path / "data").take()).roots
    asked(verbs)
    later = Watched(folder, tmp_path / "data")
    await later.snapshots.read_ahead([str(folder)])
    assert asked(verbs) == []  # it is small: to read it ahead saves nothing
    [second] = (await later.take()).roots
    assert second.tree == first.tree
    assert asked(verbs) == ["ls-files -z"]
    await later.take()
    assert asked(verbs) == ["ls-files -z"]
    git(folder, "add", "-f", "ignored")
    [third] = (await later.take()).roots
    assert "ls-files -z" in asked(verbs)
    [fourth] = (await Watched(folder, tmp_path / "data").take()).roots
    assert second.tree != third.tree == fourth.tree


async def test_the_tree_that_another_process_wrote_counts_for_its_index_alone(
    folder: Path, tmp_path: Path, verbs: Path
) -> None:
    (folder / "one").write_text("1\n")
    [first] = (await Watched(folder, tmp_path / "data").take()).roots
    (folder / "two").write_text("2\n")
    [second] = (await Watched(folder, tmp_path / "data").take()).roots
    (folder / "two").unlink()
    watched = Watched(folder, tmp_path / "data")
    [third] = (await watched.take()).roots
    assert first.tree == third.tree != second.tree
    git_folder = Path(watched.snapshots.shadow(str(folder)).git.directory)
    # What is in a pack, or gone, is asked for anew.
    git(git_folder, "--git-dir=.", "repack", "-a", "-d", "-q")
    asked(verbs)
    [again] = (await Watched(folder, tmp_path / "data").take()).roots
    assert again.tree == first.tree
    assert "write-tree " in asked(verbs)


def plain(folder: Path) -> Path:
    return folder


def with_a_list(folder: Path) -> Path:
    (folder / ".git" / "info" / "exclude").write_text("excluded\n")
    return folder


def detached(folder: Path) -> Path:
    git(folder, "checkout", "-q", "--detach")
    return folder


def beneath(folder: Path) -> Path:
    (folder / "sub").mkdir()
    return folder / "sub"


def ignored_beneath(folder: Path) -> Path:
    (folder / "ignored").unlink()
    (folder / "ignored").mkdir()
    return folder / "ignored"


def tree_beside(folder: Path) -> Path:
    git(folder, "worktree", "add", "-q", "--detach", str(folder.parent / "beside"))
    (folder / ".git" / "info" / "exclude").write_text("excluded\n")
    return folder.parent / "beside"


def with_its_own_settings(folder: Path) -> Path:
    git(folder, "config", "core.excludesFile", "/elsewhere")
    return folder


def with_more_settings(folder: Path) -> Path:
    (folder / "more").write_text("[core]\n\texcludesFile = ~/elsewhere\n")
    git(folder, "config", "include.path", "../more")
    return folder


def with_a_common_folder(folder: Path) -> Path:
    shutil.copytree(folder / ".git", folder.parent / "common")
    (folder.parent / "common" / "info" / "exclude").write_text("common\n")
    (folder / ".git" / "commondir").write_text("../../common\n")
    return folder


def broken(folder: Path) -> Path:
    shutil.rmtree(folder / ".git" / "refs")
    return folder


def broken_beneath(folder: Path) -> Path:
    (folder / "sub" / ".git").mkdir(parents=True)
    return folder / "sub"


def with_unknown_words(folder: Path) -> Path:
    with (folder / ".git" / "config").open("a") as file:
        file.write("[extensions]\n\tworktreeConfig = true\n")
    git(folder, "config", "--worktree", "core.excludesFile", "/elsewhere")
    return folder


def without_one(folder: Path) -> Path:
    shutil.rmtree(folder / ".git")
    return folder


WITHOUT_GIT = (plain, with_a_list, detached, without_one)
"""Of these, nothing has to be asked."""


@pytest.mark.parametrize(
    "arrange",
    [
        *WITHOUT_GIT,
        *(beneath, ignored_beneath, tree_beside, with_its_own_settings, with_more_settings),
        *(with_a_common_folder, broken, broken_beneath, with_unknown_words),
    ],
)
async def test_what_is_read_of_a_repository_is_what_git_says(
    folder: Path, verbs: Path, arrange: Callable[[Path], Path]
) -> None:
    repository(folder)
    root = str(arrange(folder))
    asked(verbs)
    found = await surroundings(root, [])
    assert bool(asked(verbs)) == (arrange not in WITHOUT_GIT)
    # A word that may mean other settings has git asked about everything.
    (verbs.parent / "home" / ".gitconfig").write_text("# include\n")
    assert await surroundings(root, []) == found
    assert "config --type=path" in asked(verbs)


@pytest.mark.parametrize("where", [".gitconfig", ".config/git/config", "elsewhere"])
async def test_the_users_own_list_of_ignored_files_counts(
    folder: Path, verbs: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(folder)
    home = verbs.parent / "home"
    settings = home / where
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[core]\n\texcludesFile = ~/own\n")
    if where == "elsewhere":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert (await surroundings(str(folder), [])).general_excludes == str(home / "own")
