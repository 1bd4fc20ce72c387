"""Worktrees: made, compared, merged and removed, and the user's checkout stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.folders import contents, git

from dragoman.errors import MergeConflict, WorktreeError
from dragoman.worktrees.merge_back import MergeBack, MergeResult, MergeWay
from dragoman.worktrees.users_repository import checkout_of
from dragoman.worktrees.worktrees import Worktree, Worktrees, WorktreeWish

LINES = [f"line {number}\n" for number in range(20)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With something staged, changed, stashed, ignored, untracked."""
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name in ("code", "staged", "changed", "stashed", "sub/deep"):
        (folder / name).write_text("".join(LINES))
    (folder / ".gitignore").write_text("ignored\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "stashed").write_text("stashed\n")
    git(folder, "stash", "-q")
    (folder / "staged").write_text("staged\n")
    git(folder, "add", "staged")
    (folder / "changed").write_text("changed\n")
    (folder / "untracked").write_text("untracked\n")
    (folder / "ignored").write_text("ignored\n")
    return folder


@pytest.fixture
def worktrees(tmp_path: Path) -> Worktrees:
    return Worktrees(tmp_path / "records", tmp_path / "trees")


def state(folder: Path) -> tuple[object, ...]:
    """What of a checkout nobody may change: files, index, HEAD, other branches, stash."""
    refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return (
        files(folder),
        (folder / ".git" / "index").read_bytes(),
        (folder / ".git" / "HEAD").read_bytes(),
        (folder / ".git" / "config").read_bytes(),
        [each for each in refs if "refs/heads/dragoman/" not in each],
        git(folder, "stash", "list"),
    )


def files(folder: Path | str) -> dict[str, object]:
    """All but git's own."""
    found = contents(Path(folder), but=(".git",))
    found.pop(".git", None)
    return found


def put(folder: Path | str, name: str, text: str) -> None:
    Path(folder, name).write_text(text)


def read(folder: Path | str, name: str) -> str:
    return Path(folder, name).read_text()


def edit(folder: Path | str, name: str, line: int, text: str) -> None:
    path = Path(folder, name)
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = f"{text}\n"
    path.write_text("".join(lines))


async def merged(
    worktree: Worktree, way: MergeWay = "commit", message: str = "the work"
) -> MergeResult:
    return await MergeBack(worktree).merge(way, message)


# ── making ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_worktree_has_what_was_committed_and_a_branch_of_its_own(
    project: Path, worktrees: Worktrees
) -> None:
    before = state(project)
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    there = files(worktree.path)
    assert there["code"] == ("".join(LINES).encode(), False)
    assert not {"untracked", "ignored"} & there.keys()
    assert Path(worktree.path).name == "project"
    assert git(Path(worktree.path), "status", "--porcelain", "--branch") == "## dragoman/fix\n"
    assert f"{worktree.path} " in git(project, "worktree", "list")
    git(project, "fsck", "--strict")
    assert state(project) == before


async def test_a_worktree_has_the_uncommitted_changes_if_those_are_wished(
    project: Path, worktrees: Worktrees
) -> None:
    before = state(project)
    worktree = await worktrees.make(str(project), WorktreeWish(uncommitted=True))
    mine = files(project)
    mine.pop("ignored")
    assert files(worktree.path) == mine
    assert await worktree.is_unchanged()
    assert await worktree.diff() == ""
    assert state(project) == before


async def test_a_folder_inside_the_checkout_has_its_counterpart(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project / "sub"))
    assert worktree.inside(str(project / "sub")) == str(Path(worktree.path, "sub"))
    assert worktree.inside(str(project)) == worktree.path


async def test_programs_that_the_repository_configures_are_not_run(
    project: Path, worktrees: Worktrees, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = f"touch {ran}; cat"
    for key in ("smudge", "clean", "process"):
        git(project, "config", f"filter.evil.{key}", program)
    git(project, "config", "filter.evil.required", "true")
    git(project, "config", "merge.evil.driver", f"touch {ran}; exit 1")
    git(project, "config", "diff.evil.textconv", program)
    git(project, "config", "diff.external", program)
    git(project, "config", "core.fsmonitor", program)
    git(project, "config", "core.hooksPath", str(tmp_path / "hooks"))
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        place = tmp_path / "hooks" / hook
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch {ran}\n")
        place.chmod(0o755)
    (project / ".git" / "info" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")
    worktree = await worktrees.make(str(project), WorktreeWish(uncommitted=True))
    edit(worktree.path, "code", 1, "theirs")
    edit(project, "code", 15, "mine")
    assert "+theirs" in await worktree.diff()
    await merged(worktree, "patch")
    assert (project / "code").read_text().count("mine\n") == 1
    assert (project / "code").read_text().count("theirs\n") == 1
    assert not ran.exists()


async def test_a_program_that_cannot_be_switched_off_is_refused(
    project: Path, worktrees: Worktrees
) -> None:
    config = project / ".git" / "config"
    config.write_text(config.read_text() + '[filter "a=b"]\n\tsmudge = touch /ran\n')
    with pytest.raises(WorktreeError, match="under a name with '='"):
        await worktrees.make(str(project))
    assert worktrees.all() == []


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "..", "a..b", ".a", "a.lock", "x" * 61])
async def test_a_name_that_no_branch_can_have_is_refused(
    project: Path, worktrees: Worktrees, name: str
) -> None:
    if name:
        with pytest.raises(WorktreeError, match="cannot be the name of a worktree"):
            await worktrees.make(str(project), WorktreeWish(name=name))
    assert worktrees.all() == []


async def test_a_branch_of_the_users_with_that_name_is_left_alone(
    project: Path, worktrees: Worktrees
) -> None:
    git(project, "branch", "dragoman/fix")
    with pytest.raises(WorktreeError, match="there is a branch dragoman/fix already"):
        await worktrees.make(str(project), WorktreeWish(name="fix"))
    assert "dragoman/fix" in git(project, "branch", "--list", "dragoman/*")
    assert worktrees.all() == []


@pytest.mark.parametrize("is_repository", [False, True])
async def test_without_a_commit_there_is_no_worktree(
    tmp_path: Path, worktrees: Worktrees, is_repository: bool
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    if is_repository:
        git(folder, "init", "-q")
    with pytest.raises(WorktreeError, match="no commit yet" if is_repository else "git init"):
        await worktrees.make(str(folder))


async def test_the_same_name_is_the_same_worktree(project: Path, worktrees: Worktrees) -> None:
    first = await worktrees.make_or_open(str(project), WorktreeWish(name="fix"))
    edit(first.path, "code", 0, "theirs")
    first.release()
    again = await worktrees.make_or_open(str(project), WorktreeWish(name="fix"))
    assert again.record.id == first.record.id
    assert "+theirs" in await again.diff()
    with pytest.raises(WorktreeError, match="there is a worktree fix already"):
        await worktrees.make(str(project), WorktreeWish(name="fix"))


async def test_the_setup_runs_once_and_its_output_is_kept(
    project: Path, worktrees: Worktrees
) -> None:
    wish = WorktreeWish(name="fix", setup="echo hello >>ignored; echo ready; echo loud >&2")
    worktree = await worktrees.make_or_open(str(project), wish)
    assert read(worktree.path, "ignored") == "hello\n"
    assert worktree.folder.setup_log.read_text() == "ready\nloud\n"
    worktree.release()
    again = await worktrees.make_or_open(str(project), wish)
    assert read(again.path, "ignored") == "hello\n"
    assert again.record.setup_code == 0
    assert await again.is_unchanged()


async def test_a_setup_that_fails_says_so_and_is_tried_again(
    project: Path, worktrees: Worktrees
) -> None:
    with pytest.raises(WorktreeError, match=r"exited with code 3\); all of its output is in"):
        await worktrees.make(str(project), WorktreeWish(name="fix", setup="echo oh no; exit 3"))
    worktree = await worktrees.make_or_open(str(project), WorktreeWish(name="fix", setup="true"))
    assert worktree.record.setup_code == 0


async def test_a_folder_in_no_repository_gets_one_of_ours(
    tmp_path: Path, worktrees: Worktrees
) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "code").write_text("1\n")
    worktree = await worktrees.make_plain(str(folder))
    put(worktree.path, "code", "2\n")
    assert "-1\n+2\n" in await worktree.diff()
    assert contents(folder) == {"code": (b"1\n", False)}
    worktree.release()
    await worktrees.remove(worktree.record, force=True)
    assert worktrees.all() == []


# ── merging ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_merge_replays_the_commits_and_moves_the_branch(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project))
    edit(worktree.path, "code", 1, "theirs")
    git(Path(worktree.path), "commit", "-qam", "their commit")
    edit(worktree.path, "sub/deep", 3, "not committed")
    put(worktree.path, "new", "new\n")
    edit(project, "stashed", 0, "meanwhile")
    git(project, "commit", "-qm", "meanwhile", "stashed")
    before = files(project)
    done = await merged(worktree)
    assert done.paths == ["code", "new", "sub/deep"]
    assert git(project, "log", "--format=%s").splitlines() == [
        "the work",
        "their commit",
        "meanwhile",
        "first",
    ]
    assert git(project, "branch", "--show-current") == "main\n"
    assert git(project, "status", "--porcelain") == " M changed\nM  staged\n?? untracked\n"
    after = files(project)
    assert {name for name in after if after[name] != before.get(name)} == {*done.paths}
    git(project, "fsck", "--strict")


async def test_a_patch_changes_files_and_nothing_else(project: Path, worktrees: Worktrees) -> None:
    worktree = await worktrees.make(str(project), WorktreeWish(uncommitted=True))
    edit(worktree.path, "code", 1, "theirs")
    put(worktree.path, "changed", "changed\nand more\n")
    os.unlink(f"{worktree.path}/stashed")
    edit(project, "code", 18, "mine")
    before = state(project)
    done = await merged(worktree, "patch")
    assert done.paths == ["changed", "code", "stashed"]
    assert "theirs\n" in (project / "code").read_text()
    assert "mine\n" in (project / "code").read_text()
    assert (project / "changed").read_text() == "changed\nand more\n"
    assert not (project / "stashed").exists()
    assert state(project)[1:] == before[1:]


@pytest.mark.parametrize("way", ["commit", "patch"])
async def test_a_conflict_changes_nothing_and_says_what_to_do(
    project: Path, worktrees: Worktrees, way: MergeWay
) -> None:
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    edit(worktree.path, "code", 1, "theirs")
    edit(worktree.path, "sub/deep", 1, "theirs")
    edit(project, "code", 1, "mine")
    git(project, "commit", "-qm", "mine", "code")
    before = state(project)
    with pytest.raises(MergeConflict) as refused:
        await merged(worktree, way)
    assert refused.value.reasons == {"code": "both sides changed the same lines"}
    assert f"resolve it in {worktree.path}" in str(refused.value)
    assert state(project) == before


async def test_uncommitted_changes_are_not_overwritten(project: Path, worktrees: Worktrees) -> None:
    worktree = await worktrees.make(str(project))
    edit(worktree.path, "changed", 1, "theirs")
    edit(worktree.path, "staged", 1, "theirs")
    put(worktree.path, "untracked", "theirs\n")
    before = state(project)
    with pytest.raises(MergeConflict) as refused:
        await merged(worktree)
    assert refused.value.reasons.keys() == {"changed", "staged", "untracked"}
    assert "commit or stash these changes first" in str(refused.value)
    assert state(project) == before


async def test_an_ignored_file_in_the_way_stops_a_merge(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project))
    put(worktree.path, ".gitignore", "")
    put(worktree.path, "ignored", "theirs\n")
    before = state(project)
    with pytest.raises(MergeConflict, match="ignored: git ignores what is in its place now"):
        await merged(worktree)
    assert state(project) == before


async def test_nothing_is_merged_while_another_git_is_at_work(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project))
    edit(worktree.path, "code", 1, "theirs")
    lock = project / ".git" / "index.lock"
    lock.write_text("of another")
    before = state(project)
    with pytest.raises(WorktreeError, match="another git is at work"):
        await merged(worktree)
    assert lock.read_text() == "of another"
    lock.unlink()
    assert state(project) == before
    await merged(worktree)
    assert git(project, "log", "-1", "--format=%s") == "the work\n"


# ── removing ────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_done_in_a_worktree_is_not_removed_unasked(
    project: Path, worktrees: Worktrees
) -> None:
    before = state(project)
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    edit(worktree.path, "code", 1, "theirs")
    with pytest.raises(WorktreeError, match="is in use"):
        await worktrees.remove(worktree.record, force=True)
    worktree.release()
    with pytest.raises(WorktreeError, match="has changes that exist nowhere else"):
        await worktrees.remove(worktree.record)
    assert await worktrees.prune() == []
    await worktrees.remove(worktree.record, force=True)
    assert leftovers(project, worktrees) == []
    assert state(project) == before


async def test_a_commit_in_a_worktree_counts_as_a_change(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project))
    git(Path(worktree.path), "commit", "-q", "--allow-empty", "-m", "empty")
    assert not await worktree.is_unchanged()


async def test_an_unchanged_worktree_goes_after_its_session(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project))
    assert await worktrees.remove_if_unchanged(worktree)
    named = await worktrees.make(str(project), WorktreeWish(name="fix"))
    assert not await worktrees.remove_if_unchanged(named)
    assert await worktrees.prune() == []  # it is still in use
    named.release()
    assert [each.name for each in await worktrees.prune(dry=True)] == ["fix"]
    assert [each.name for each in await worktrees.prune()] == ["fix"]
    assert leftovers(project, worktrees) == []


async def test_a_branch_without_files_can_still_be_compared_and_merged(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    edit(worktree.path, "code", 1, "theirs")
    diff = await worktree.diff()
    await worktree.to_branch("kept")
    assert not worktree.has_files
    assert await worktree.diff() == diff
    assert git(project, "log", "-1", "--format=%s", "dragoman/fix") == "kept\n"
    await merged(worktree)
    assert "theirs\n" in (project / "code").read_text()


async def test_what_was_not_used_for_so_long_is_pruned(project: Path, worktrees: Worktrees) -> None:
    worktree = await worktrees.make(str(project))
    edit(worktree.path, "code", 1, "theirs")
    worktree.release()
    worktree.record.used_at -= 31 * 86_400
    worktree.folder.write(worktree.record)
    assert await worktrees.prune(days=32) == []
    assert len(await worktrees.prune(days=30)) == 1
    assert leftovers(project, worktrees) == []


async def test_what_was_made_unreadable_is_removed_too(project: Path, worktrees: Worktrees) -> None:
    worktree = await worktrees.make(str(project))
    os.makedirs(f"{worktree.path}/shut/inner")
    put(worktree.path, "shut/inner/file", "")
    os.chmod(f"{worktree.path}/shut", 0)
    worktree.release()
    await worktrees.remove(worktree.record, force=True)
    assert leftovers(project, worktrees) == []


async def test_a_branch_that_the_user_has_checked_out_stays(
    project: Path, worktrees: Worktrees
) -> None:
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    edit(worktree.path, "code", 1, "theirs")
    await worktree.to_branch("kept")
    worktree.release()
    git(project, "stash", "-q", "-u")
    git(project, "checkout", "-q", "dragoman/fix")
    await worktrees.remove(worktree.record, force=True)
    assert git(project, "branch", "--show-current") == "dragoman/fix\n"
    assert git(project, "log", "-1", "--format=%s") == "kept\n"


async def test_a_worktree_is_found_by_name_id_and_path(project: Path, worktrees: Worktrees) -> None:
    worktree = await worktrees.make(str(project), WorktreeWish(name="fix"))
    common = (await checkout_of(str(project))).common
    for word in ("fix", worktree.record.id, f"{worktree.path}/sub"):
        assert worktrees.find(word, common).id == worktree.record.id
    with pytest.raises(WorktreeError, match="there is no worktree fxi"):
        worktrees.find("fxi", common)


def leftovers(project: Path, worktrees: Worktrees) -> list[str]:
    """Everything of ours that is still there."""
    found = [str(each) for each in worktrees.records.iterdir() if not each.name.endswith(".git")]
    found += [str(each) for each in worktrees.trees.iterdir()]
    found += [str(each) for each in (project / ".git").rglob("*") if "dragoman-" in each.name]
    found += [str(each) for each in (project / ".git").rglob("*.lock")]
    return found + git(project, "for-each-ref", "refs/heads/dragoman").splitlines()


def test_nobody_else_can_look_into_the_records(tmp_path: Path) -> None:
    worktrees = Worktrees(tmp_path / "records", tmp_path / "trees")
    assert worktrees.all() == []
    assert not os.path.exists(worktrees.records)
