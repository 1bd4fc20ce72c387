"""`--worktree` and `dragoman worktrees`: a run apart from the checkout, and the way back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import Done, Dragoman, refused
from support.folders import contents, git


@pytest.fixture
def project(dragoman: Dragoman) -> Path:
    folder = dragoman.workspace
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("hello\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "mine").write_text("not committed\n")
    return folder


def run(dragoman: Dragoman, *words: str) -> Done:
    done = dragoman("-a", "demo", "--yolo", "-o", "simple", *words)
    assert done.code == 0, done
    return done


def names(dragoman: Dragoman) -> list[str]:
    return [each["name"] for each in json.loads(dragoman("worktrees", "list", "--json").out)]


def test_a_run_works_apart_and_is_merged(dragoman: Dragoman, project: Path) -> None:
    before = contents(project, but=[".git"])
    done = run(dragoman, "--worktree=fix", "write it")
    assert "worktree fix: 1 file changed (+1 -0)" in done.err
    assert contents(project, but=[".git"]) == before
    listed = dragoman("worktrees", "list").out
    assert "1 file +1 -0" in listed
    assert "write it" in listed
    assert "+You asked: write it" in dragoman("worktrees", "diff", "fix").out
    place = Path(dragoman("worktrees", "path", "fix").out.strip())
    assert (place / "README.md").read_text() == "hello\n"
    run(dragoman, "--worktree=fix", "again")
    assert "+You asked: again" in dragoman("worktrees", "diff", str(place)).out
    refused(dragoman("worktrees", "remove", "fix"), "has changes", "--force", code=1)
    assert "merged 1 file" in dragoman("worktrees", "merge", "fix", "-m", "the demo").out
    assert git(project, "log", "--format=%s") == "the demo\nfirst\n"
    assert git(project, "status", "--porcelain") == "?? mine\n"
    assert names(dragoman) == []


def test_uncommitted_changes_come_along_and_go_back_as_a_patch(
    dragoman: Dragoman, project: Path
) -> None:
    run(dragoman, "--worktree=fix", "--uncommitted", "hi")
    assert (Path(dragoman("worktrees", "path", "fix").out.strip()) / "mine").exists()
    done = json.loads(dragoman("worktrees", "merge", "fix", "--json").out)
    assert done == {
        "merged": True,
        "way": "patch",
        "paths": ["dragoman-demo.txt"],
        "commit": None,
    }
    assert git(project, "status", "--porcelain") == "?? dragoman-demo.txt\n?? mine\n"


def test_a_conflict_is_told_and_nothing_is_changed(dragoman: Dragoman, project: Path) -> None:
    run(dragoman, "--worktree=fix", "hi")
    (project / "dragoman-demo.txt").write_text("mine\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "mine")
    before = contents(project)
    done = dragoman("worktrees", "merge", "fix", "--json")
    assert done.code == 1
    reasons = {"dragoman-demo.txt": "both sides changed the same lines"}
    assert json.loads(done.out) == {"merged": False, "conflicts": reasons}
    assert "nothing was changed; resolve it in" in done.err
    assert contents(project, but=[".git"]) == {
        name: what for name, what in before.items() if not name.startswith(".git")
    }
    assert names(dragoman) == ["fix"]


def test_one_in_which_nothing_was_changed_is_removed(dragoman: Dragoman, project: Path) -> None:
    done = dragoman("-a", "demo", "-o", "simple", "--worktree", "hi")  # every write is refused
    assert "nothing was changed in the worktree w-" in done.err
    assert names(dragoman) == []
    assert git(project, "for-each-ref", "refs/heads/dragoman") == ""


def test_the_setup_of_the_settings_prepares_it(dragoman: Dragoman, project: Path) -> None:
    setup = {"projects": {str(project): "echo prepared; pwd"}}
    dragoman.write_settings({"worktrees": setup})
    run(dragoman, "--worktree=fix", "hi")
    place = dragoman("worktrees", "path", "fix").out
    assert dragoman("worktrees", "setup", "fix").out == f"prepared\n{place}"
    dragoman.write_settings({"worktrees": {"setup": "echo no network; exit 3"}})
    done = dragoman("-a", "demo", "--worktree=next", "hi")
    assert (done.code, done.out) == (1, "")
    assert "exited with code 3" in done.err
    assert "no network" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--worktree=a/b", "hi"), "cannot be the name of a worktree"),
        (("--worktree", "fix", "hi there"), "--worktree=fix"),
        (("--worktree", "--continue", "hi"), "exclude each other"),
        (("worktrees", "diff", "nothing"), "there is no worktree nothing"),
        (("worktrees", "prune", "--older-than", "soon"), "not a time such as 30d"),
    ],
)
def test_what_makes_no_sense_is_refused(
    dragoman: Dragoman, project: Path, words: tuple[str, ...], said: str
) -> None:
    done = dragoman(*words)
    assert done.code in (1, 2)
    assert said in done.err
    assert done.err.count("\n") == 1
    assert names(dragoman) == []


def test_outside_of_a_repository_it_is_said_what_to_do(dragoman: Dragoman) -> None:
    refused(dragoman("--worktree", "hi"), "is not in a git repository", "git init", code=1)
