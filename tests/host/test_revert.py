from __future__ import annotations

import errno
import os
import stat
from functools import partial
from pathlib import Path

import pytest

from dragoman.errors import InternalError, RevertConflict
from dragoman.host.workspace.changes import Change, Changes
from dragoman.host.workspace.files import LocalFiles
from dragoman.host.workspace.roots import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace("session", str(root))


class Agent:
    """Writes in turns, as a session would have it."""

    def __init__(self, workspace: Workspace) -> None:
        self.files = LocalFiles()
        self.workspace = workspace

    async def write(self, path: str, content: str, turn: str = "t1") -> None:
        self.files.changes(self.workspace).turn = turn
        await self.files.write_text_file(self.workspace, f"{self.workspace.cwd}/{path}", content)

    async def revert(
        self, *, turn: str | None = None, paths: list[str] | None = None, force: bool = False
    ) -> list[str]:
        wanted = None if paths is None else [f"{self.workspace.cwd}/{path}" for path in paths]
        undone = await self.files.revert(self.workspace, turn=turn, paths=wanted, force=force)
        return self._names(undone)

    @property
    def changed(self) -> list[str]:
        return self._names(self.files.changes(self.workspace).list())

    def _names(self, changes: tuple[Change, ...]) -> list[str]:
        return [change.path.removeprefix(f"{self.workspace.cwd}/") for change in changes]


@pytest.fixture
def agent(workspace: Workspace) -> Agent:
    return Agent(workspace)


def tree(root: Path) -> dict[str, bytes | None]:
    """Every name beneath, with its content if it is a file."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


async def test_a_session_is_undone_without_a_trace(root: Path, agent: Agent) -> None:
    (root / "text").write_text("old\r\nno newline")
    (root / "binary").write_bytes(b"\xff\0")
    (root / "binary").chmod(0o751)
    before = tree(root)
    for turn in ("t1", "t2", "t3"):
        await agent.write("text", f"{turn}\n", turn)
        await agent.write("binary", f"{turn}\n", turn)
        await agent.write("new/deep/file", f"{turn}\n", turn)
        await agent.write("new/other", f"{turn}\n", turn)
    assert agent.changed == ["text", "binary", "new/deep/file", "new/other"]
    assert await agent.revert() == ["text", "binary", "new/deep/file", "new/other"]
    assert tree(root) == before
    assert stat.S_IMODE((root / "binary").stat().st_mode) == 0o751
    assert agent.changed == []
    assert await agent.revert() == []


async def test_the_last_turn_can_be_undone_alone(root: Path, agent: Agent) -> None:
    (root / "file").write_text("0")
    await agent.write("file", "1", "t1")
    await agent.write("file", "2", "t2")
    await agent.write("file", "3", "t2")
    await agent.write("new", "x", "t2")
    assert await agent.revert(turn="t2") == ["file", "new"]
    assert tree(root) == {"file": b"1"}
    assert agent.changed == ["file"]
    await agent.revert()
    assert tree(root) == {"file": b"0"}


async def test_an_earlier_turn_is_not_undone_under_a_later_one(root: Path, agent: Agent) -> None:
    await agent.write("file", "1", "t1")
    await agent.write("file", "2", "t2")
    with pytest.raises(RevertConflict) as caught:
        await agent.revert(turn="t1")
    assert caught.value.reasons == {f"{root}/file": "it has changed since"}
    assert tree(root) == {"file": b"2"}
    await agent.revert(turn="t1", force=True)
    assert tree(root) == {}
    assert agent.changed == []


async def test_one_file_can_be_undone_alone_by_any_of_its_names(root: Path, agent: Agent) -> None:
    (root / "one").write_text("0")
    (root / "link").symlink_to("one")
    await agent.write("link", "1")
    await agent.write("two", "1")
    assert await agent.revert(paths=["link", "unknown"]) == ["one"]
    assert (root / "one").read_text() == "0"
    assert (root / "link").is_symlink()
    assert agent.changed == ["two"]


async def test_a_file_changed_by_someone_else_stops_the_whole_revert(
    root: Path, agent: Agent
) -> None:
    for name in ("a", "b", "c"):
        (root / name).write_text("0")
        await agent.write(name, "agent")
    (root / "b").write_text("user")
    (root / "c").unlink()
    with pytest.raises(RevertConflict) as caught:
        await agent.revert()
    since = "it has changed since"
    assert caught.value.reasons == {f"{root}/b": since, f"{root}/c": since}
    assert caught.value.by_force
    assert str(caught.value).startswith("nothing was reverted: ")
    assert tree(root) == {"a": b"agent", "b": b"user"}
    assert agent.changed == ["a", "b", "c"]
    await agent.revert(force=True)
    assert tree(root) == {"a": b"0", "b": b"0", "c": b"0"}


async def test_a_file_changed_by_someone_else_between_two_writes_needs_force(
    root: Path, agent: Agent
) -> None:
    (root / "file").write_text("0")
    await agent.write("file", "1")
    (root / "file").write_text("user")
    await agent.write("file", "2")
    with pytest.raises(RevertConflict, match="between the agent's writes"):
        await agent.revert()
    await agent.revert(force=True)
    assert tree(root) == {"file": b"0"}


async def test_what_someone_else_has_undone_already_is_no_conflict(
    root: Path, agent: Agent
) -> None:
    (root / "old").write_text("0")
    await agent.write("old", "1")
    await agent.write("new/file", "1")
    (root / "old").write_text("0")
    (root / "new" / "file").unlink()
    (root / "new").rmdir()
    await agent.revert()
    assert tree(root) == {"old": b"0"}
    assert agent.changed == []


async def test_directories_that_someone_else_uses_stay(root: Path, agent: Agent) -> None:
    await agent.write("new/a/file", "1")
    (root / "new" / "mine").write_text("user")
    await agent.revert()
    assert tree(root) == {"new": None, "new/mine": b"user"}


async def test_directories_go_with_the_last_file_in_them(root: Path, agent: Agent) -> None:
    await agent.write("new/first", "1")
    await agent.write("new/second", "1")
    await agent.revert(paths=["new/first"])
    assert tree(root) == {"new": None, "new/second": b"1"}
    await agent.revert(paths=["new/second"])
    assert tree(root) == {}


async def test_a_file_that_became_a_link_is_not_undone_through_it(
    root: Path, agent: Agent, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("1")
    (root / "other").write_text("1")
    await agent.write("a", "1")
    await agent.write("b", "1")
    for name, goal in (("a", "../outside"), ("b", "other")):
        (root / name).unlink()
        (root / name).symlink_to(goal)
    with pytest.raises(RevertConflict) as caught:
        await agent.revert(force=True)
    assert len(caught.value.reasons) == 2
    assert (tmp_path / "outside").read_text() == (root / "other").read_text() == "1"


async def test_what_was_too_large_to_keep_cannot_be_undone(
    root: Path, workspace: Workspace
) -> None:
    agent = Agent(workspace)
    room = agent.files.changes(workspace).room
    with (root / "large").open("wb") as file:
        file.truncate(room + 1)
    await agent.write("large", "1")
    assert agent.changed == ["large"]
    with pytest.raises(RevertConflict, match="too large to keep") as caught:
        await agent.revert(force=True)
    assert not caught.value.by_force
    assert tree(root) == {"large": b"1"}


async def test_a_full_journal_still_knows_what_the_agent_wrote_itself(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dragoman.host.workspace.files.Changes", partial(Changes, max_kept_bytes=100)
    )
    agent = Agent(workspace)
    await agent.write("one", "1" * 45)
    await agent.write("two", "2" * 45)
    await agent.write("one", "3" * 45)
    await agent.revert()
    assert tree(root) == {}


async def test_a_file_someone_else_made_huge_is_not_undone_even_by_force(
    root: Path, agent: Agent
) -> None:
    await agent.write("file", "1")
    with (root / "file").open("r+b") as file:
        file.truncate(2 << 20)
    with pytest.raises(RevertConflict, match="too large to revert"):
        await agent.revert(force=True)


async def test_a_revert_that_fails_half_way_puts_back_what_it_undid(
    root: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("0")
    (root / "c").write_text("0")
    for name in ("a", "b", "c"):
        await agent.write(name, "agent")
    before = tree(root)
    plain_rename = os.rename

    def full(source: str, goal: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if goal == "c":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain_rename(source, goal, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(InternalError, match="no space left"):
            await agent.revert()
    assert tree(root) == before
    assert agent.changed == ["a", "b", "c"]
    await agent.revert()
    assert tree(root) == {"a": b"0", "c": b"0"}


async def test_a_file_changed_while_the_revert_is_under_way_is_left_alone(
    root: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("0")
        await agent.write(name, "agent")
    plain_rename = os.rename

    def interfering(source: str, goal: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        (root / "b").write_text("user")
        plain_rename(source, goal, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", interfering)
        with pytest.raises(RevertConflict):
            await agent.revert()
    assert tree(root) == {"a": b"agent", "b": b"user"}


async def test_a_directory_made_again_by_someone_else_is_theirs(root: Path, agent: Agent) -> None:
    await agent.write("new/file", "1")
    await agent.revert()
    (root / "new").mkdir()
    await agent.write("new/file", "2")
    await agent.revert()
    assert tree(root) == {"new": None}


async def test_a_write_after_a_revert_is_a_new_change(root: Path, agent: Agent) -> None:
    await agent.write("new/file", "1")
    await agent.revert()
    await agent.write("new/file", "2")
    assert agent.changed == ["new/file"]
    await agent.revert()
    assert tree(root) == {}


async def test_a_session_that_is_over_is_forgotten(agent: Agent, workspace: Workspace) -> None:
    await agent.write("file", "1")
    agent.files.forget(workspace.session_id)
    assert agent.changed == []
