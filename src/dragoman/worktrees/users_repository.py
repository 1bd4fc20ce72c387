"""The user's repository, as worktrees are made in it: git runs on it, and nothing it configures.

Its hooks, filters, merge drivers and monitors are switched off for each call; nothing is fetched.
The user's index, stash, `HEAD` and branches are written only by a merge (`merge_back.py`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from dragoman.errors import WorktreeError
from dragoman.host.snapshots.git_output import Blob, TreeChange, tree_changes, tree_entries
from dragoman.host.snapshots.git_program import Git, GitFailed, ask_users_git

_PROGRAMS = r"^(filter\..*\.(smudge|clean|process|required)|merge\..*\.driver)$"
_PLAIN_MERGE = "git merge-file %A %O %B"
"""In place of a merge driver: what git does without one."""
_NOBODY = ("Dragoman", "dragoman@localhost")


class Merged(msgspec.Struct, frozen=True):
    """What two changed trees make together; `conflicts` has a reason for each path that they do
    not agree on, and then there is no tree."""

    tree: str = ""
    conflicts: dict[str, str] = {}


class Checkout:
    """A folder with files of a repository: the user's own checkout, or a worktree of ours.

    `git_dir` is where its `HEAD` and index are, `common` what it shares with other checkouts.
    """

    def __init__(self, top: str, git_dir: str, common: str) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common = common
        self.git = Git(git_dir, top)
        self._settings: dict[str, str] | None = None
        self._author: tuple[str, str] | None = None

    def beside(self, top: str, git_dir: str) -> Checkout:
        """Another checkout of the same repository."""
        other = Checkout(top, git_dir, self.common)
        other._settings, other._author = self._settings, self._author
        other.git.settings = dict(self.git.settings)
        return other

    async def run(
        self,
        *arguments: str | bytes,
        data: Iterable[bytes] = (),
        index: str | None = None,
        ends_with: tuple[int, ...] = (0,),
        settings: Mapping[str, str] | None = None,
    ) -> bytes:
        """What git prints. Raises WorktreeError."""
        try:
            await self._make_ready()
            return await self.git(
                *arguments, data=data, index=index, ends_with=ends_with, settings=settings
            )
        except GitFailed as error:
            raise WorktreeError(f"{self.top}: {error}") from error

    async def line(self, *arguments: str | bytes, index: str | None = None) -> str:
        """The one line that git prints. Raises WorktreeError."""
        return (await self.run(*arguments, index=index)).decode("utf-8", "replace").strip()

    async def _make_ready(self) -> None:
        """Switch off the programs that the repository's settings name. Raises GitFailed."""
        if self._settings is None:
            self._settings = {**await self._without_programs(), **await self._excludes()}
            self.git.settings.update(self._settings)

    async def _without_programs(self) -> dict[str, str]:
        words = ("config", "-z", "--name-only", "--get-regexp", _PROGRAMS)
        found = (await self.git(*words, ends_with=(0, 1))).decode("utf-8", "surrogateescape")
        names = [name for name in found.split("\0") if name]
        for name in names:
            if "=" in name:  # could not be switched off
                raise GitFailed(f"its settings name a program under a name with '=': {name}")
        return {name: _instead_of(name) for name in names}

    async def _excludes(self) -> dict[str, str]:
        """What the person ignores everywhere."""
        words = ("config", "--type=path", "--get", "core.excludesFile")
        found = await ask_users_git(self.top, *words)
        return {} if found is None else {"core.excludesFile": os.fsdecode(found.rstrip(b"\n"))}

    # ── commits and trees ─────────────────────────────────────────────────────────────────────

    async def head(self) -> str:
        """The commit that is checked out. Raises WorktreeError where there is none yet."""
        if (commit := await self.ref("HEAD")) is None:
            raise WorktreeError(f"{self.top}: the repository has no commit yet; make one first")
        return commit

    async def tree_of(self, commit: str) -> str:
        return await self.line("rev-parse", "--verify", f"{commit}^{{tree}}")

    async def state(self, index: str) -> str:
        """The tree of all files as they are now, without those that git ignores. `index` is a file
        of ours; the one of the checkout is only read."""
        await self.copy_index(index)
        await self.run("add", "-A", index=index)
        return await self.line("write-tree", index=index)

    async def copy_index(self, index: str) -> None:
        """Of this checkout, to a file of ours; an empty one if it has none."""
        with suppress(FileNotFoundError):
            os.unlink(index)
        with suppress(FileNotFoundError):
            # With its time: git looks again at files that are as new as the index.
            shutil.copy2(os.path.join(self.git_dir, "index"), index)

    async def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """A commit that no branch has yet."""
        name, address = await self._identity()
        settings = {"user.name": name, "user.email": address}
        words = [word for each in parents for word in ("-p", each)]
        made = await self.run(
            "commit-tree", tree, *words, data=[f"{message}\n".encode()], settings=settings
        )
        return made.decode().strip()

    async def _identity(self) -> tuple[str, str]:
        """The user's, for commits in their name."""
        if self._author is None:
            asked = [await ask_users_git(self.top, "config", f"user.{each}") for each in _IDENTITY]
            name, address = ((each or b"").decode("utf-8", "replace").strip() for each in asked)
            self._author = (name, address) if name and address else _NOBODY
        return self._author

    async def changes(self, before: str, after: str, *, moves: bool = False) -> list[TreeChange]:
        """Between two trees or commits."""
        renames = "-M" if moves else "--no-renames"
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", renames, before, after)
        return tree_changes(await self.run(*words))

    async def patch(self, before: str, after: str, *, paths: Sequence[str] = ()) -> str:
        """A unified diff between two trees."""
        words = ("diff-tree", "-p", "-M", "--no-ext-diff", "--no-textconv", before, after, "--")
        return (await self.run(*words, *paths)).decode("utf-8", "replace")

    async def line_counts(self, before: str, after: str) -> tuple[int, int]:
        """How many lines were added and removed; of binary files none."""
        words = ("diff-tree", "-r", "--numstat", "--no-ext-diff", "--no-textconv", "--no-renames")
        lines = (await self.run(*words, before, after)).split(b"\n")
        counts = [line.split(b"\t")[:2] for line in lines if line[:1].isdigit()]
        return sum(int(each[0]) for each in counts), sum(int(each[1]) for each in counts)

    async def files_in(self, tree: str) -> dict[bytes, Blob]:
        return tree_entries(await self.run("ls-tree", "-r", "-z", "--full-tree", tree))

    async def contents(self, ids: Sequence[str]) -> dict[str, bytes]:
        try:
            return await self.git.contents(ids)
        except GitFailed as error:
            raise WorktreeError(f"{self.top}: {error}") from error

    async def tree_with(self, tree: str, changes: Mapping[bytes, Blob | None], index: str) -> str:
        """The same tree with other files in it; `index` is a file of ours."""
        with suppress(FileNotFoundError):
            os.unlink(index)
        await self.run("read-tree", tree, index=index)
        await self.run("update-index", "-z", "--index-info", data=_entries(changes), index=index)
        return await self.line("write-tree", index=index)

    async def update_entries(self, changes: Mapping[bytes, Blob | None], index: str) -> None:
        """Of an index that is not in use."""
        await self.run("update-index", "-z", "--index-info", data=_entries(changes), index=index)
        await self.run("update-index", "-q", "--refresh", index=index, ends_with=(0, 1))

    async def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Three trees merged, line by line, without touching a file."""
        if base == ours or ours == theirs:
            return Merged(theirs)
        if base == theirs:
            return Merged(ours)
        root = await self.commit(base, (), "base")
        tips = [await self.commit(each, (root,), "side") for each in (ours, theirs)]
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages", *tips)
        printed = await self.run(*words, ends_with=(0, 1))
        return _merged(printed)

    # ── files ─────────────────────────────────────────────────────────────────────────────────

    async def switch_files(self, before: str, after: str, index: str) -> None:
        """Change the files from one tree to another; `index`, a file of ours, is of the first. What
        someone changed meanwhile, or what is in the way, stops it before anything is changed."""
        await self.run("read-tree", "-m", "-u", before, after, index=index)

    async def put_files(self, tree: str, names: Sequence[bytes], index: str) -> None:
        """These files as they are in a tree, whatever is in their places; `index` is one of
        ours."""
        await self.run("read-tree", tree, index=index)
        data = [b"%b\0" % name for name in names]
        await self.run("checkout-index", "-f", "-z", "--stdin", data=data, index=index)

    async def fill(self, commit: str) -> None:
        """Put all files of a commit into an empty folder."""
        await self.run("read-tree", "--reset", "-u", commit)

    async def move_ref(self, name: str, commit: str, was: str, why: str = "") -> None:
        """Raises WorktreeError if it is not what it was; zeros are for none."""
        words = ("update-ref", *(("-m", why) if why else ()), name, commit, was)
        await self.run(*words, settings={"core.logAllRefUpdates": "true"} if why else None)

    async def delete_ref(self, name: str) -> None:
        await self.run("update-ref", "-d", name)

    async def ref(self, name: str) -> str | None:
        """The commit of a branch; None if there is none."""
        found = await self.run(
            "rev-parse", "--verify", "-q", f"{name}^{{commit}}", ends_with=(0, 1)
        )
        return found.decode().strip() or None

    async def commits_between(self, base: str, tip: str) -> list[str] | None:
        """Those after `base` on the way to `tip`, the oldest first; None if `tip` does not continue
        `base`, or not in one line."""
        words = ("rev-list", "--reverse", "--topo-order", "--parents", f"{base}..{tip}")
        rows = [line.split() for line in (await self.run(*words)).decode().splitlines()]
        before = base
        for row in rows:
            if row[1:] != [before]:
                return None
            before = row[0]
        return [row[0] for row in rows] if before == tip else None

    async def message_of(self, commit: str) -> str:
        return (await self.run("log", "-1", "--format=%B", commit)).decode("utf-8", "replace")


_IDENTITY = ("name", "email")


async def checkout_of(folder: str) -> Checkout:
    """The one that a folder is in. Raises WorktreeError."""
    words = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir")
    found = await ask_users_git(folder, *words, "--git-common-dir")
    places = [_real(each) for each in os.fsdecode(found or b"").splitlines()]
    if len(places) != 3:
        raise WorktreeError(
            f"{folder} is not in a git repository; worktrees need one (`git init`, then commit)"
        )
    return Checkout(*places)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _instead_of(name: str) -> str:
    if name.endswith(".driver"):
        return _PLAIN_MERGE
    return "false" if name.endswith(".required") else ""


def _entries(changes: Mapping[bytes, Blob | None]) -> list[bytes]:
    gone = [b"0 %040d\t%b\0" % (0, name) for name, blob in changes.items() if blob is None]
    there = [
        b"%b %b\t%b\0" % (blob.mode.encode(), blob.id.encode(), name)
        for name, blob in changes.items()
        if blob is not None
    ]
    return [*gone, *there]


def _merged(printed: bytes) -> Merged:
    """Of `git merge-tree -z --name-only --messages`: a tree, the names in conflict, an empty one,
    then groups of a count, so many names, a kind and a message."""
    fields = os.fsdecode(printed).split("\0")
    tree, rest = fields[0].strip(), fields[1:]
    end = rest.index("") if "" in rest else len(rest)
    names, told = rest[:end], rest[end + 1 :]
    if not names:
        return Merged(tree)
    reasons: dict[str, str] = {}
    while told and told[0].isdigit():
        count = int(told[0])
        paths, kind = told[1 : 1 + count], told[1 + count]
        if kind.startswith("CONFLICT"):
            reason = kind.removeprefix("CONFLICT").strip(" ()")
            reasons |= dict.fromkeys(paths[:1], reason)
        told = told[3 + count :]
    return Merged(conflicts={name: _WORDS.get(reasons.get(name, ""), _BOTH) for name in names})


_BOTH = "both sides changed it in different ways"
_WORDS = {
    "contents": "both sides changed the same lines",
    "modify/delete": "one side changed it, the other deleted it",
    "rename/delete": "one side renamed it, the other deleted it",
    "rename/rename": "both sides renamed it",
    "file/directory": "it is a file on one side and a folder on the other",
    "binary": "both sides changed it, and it is not text",
}
