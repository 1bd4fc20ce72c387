"""What is on record of a worktree, and the folder that has the record.

The folder is locked for as long as someone makes, uses or changes the worktree, so that what a
killed process left differs from what is in use.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import WorktreeError

WorktreeState: TypeAlias = Literal["making", "ready", "branch", "removing"]
"""`branch` is one whose files were removed, while its branch has what was in it."""


MergeWay: TypeAlias = Literal["commit", "patch"]
"""`commit`: its commits are replayed on what is checked out, and the branch is moved to them.
`patch`: the files of the checkout are changed, and nothing is committed."""


class MergeResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a merge did: how, which files it changed, and where the branch is now."""

    way: MergeWay
    paths: list[str]
    commit: str | None = None


class WorktreeRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A worktree: where it is, of which repository, and from which commit it was made."""

    id: str
    name: str
    repository: str
    """The top folder of the user's checkout."""
    git_dir: str
    """Of that checkout."""
    common: str
    """What all checkouts of the repository share."""
    own: str
    """Git's folder for this worktree, in `common`."""
    path: str
    branch: str
    base: str
    """The commit it was made from; it has the uncommitted changes too, if those were wished."""
    head: str
    """What the user had checked out then."""
    created_at: float
    used_at: float
    state: WorktreeState = "making"
    is_named: bool = False
    """By a person, who may want it although it is unchanged."""
    title: str = ""
    """What was to be done in it."""
    setup: str = ""
    """The command that prepared it, and how it ended."""
    setup_code: int | None = None
    race: str | None = None
    """The race it belongs to; it may go once that is over."""
    plain: bool = False
    """Of a folder that is not in a repository: `common` is one of ours."""

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"


class RecordFolder:
    """Has the record of one worktree, and the output of its setup."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    @contextmanager
    def scratch_index(self) -> Generator[str]:
        """A name for an index of ours, which is gone after use."""
        path = str(self.path / f"index-{os.urandom(4).hex()}")
        try:
            yield path
        finally:
            for each in (path, f"{path}.lock"):
                with suppress(FileNotFoundError):
                    os.unlink(each)

    @property
    def setup_log(self) -> Path:
        return self.path / "setup.log"

    def read(self) -> WorktreeRecord | None:
        """None if it was never written, or is not ours to read."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.path / _NAME).read_bytes(), type=WorktreeRecord)
        return None

    def write(self, record: WorktreeRecord) -> None:
        """Whole or not at all."""
        new = self.path / f"{_NAME}.new"
        with open(new, "wb", opener=private_file) as file:
            file.write(msgspec.json.format(msgspec.json.encode(record), indent=2))
        new.replace(self.path / _NAME)

    # ── who uses it ───────────────────────────────────────────────────────────────────────────

    def take(self, *, alone: bool = True) -> bool:
        """Lock it, alone or with other users; whether that was possible. Who has it with others
        and cannot have it alone keeps it."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        before, self._lock = self._lock, descriptor
        if before >= 0:
            os.close(before)
        if self._try(fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            return True
        if before < 0 or not self._try(fcntl.LOCK_SH):
            self.release()
        return False

    def _try(self, kind: int) -> bool:
        with suppress(OSError):
            fcntl.flock(self._lock, kind | fcntl.LOCK_NB)
            # Another may have removed it just before, and a third one made it again.
            return os.path.samestat(os.fstat(self._lock), os.stat(self.path))
        return False

    def share(self) -> None:
        """From alone to with others."""
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def release(self) -> None:
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    @contextmanager
    def alone(self, name: str) -> Generator[None]:
        """Nobody else uses it for as long as this lasts. Raises WorktreeError."""
        if not self.take():
            raise WorktreeError(f"the worktree {name} is in use; wait until its session has ended")
        try:
            yield
        finally:
            self.release()


_NAME = "worktree.json"
