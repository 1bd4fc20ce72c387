"""A bare git repository of our own for a folder, which keeps the folder's snapshots.

It has the folder as its work tree, its own index and its own objects: the user's repository, if
there is one, is asked a few questions and never written. Files are kept byte for byte; which are
left out is decided by git's rules for ignored files, and by the limits.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import struct
from collections.abc import (
    AsyncGenerator,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from dragoman.data_directory import make_private, private_file
from dragoman.host.snapshots.folder_scan import FolderScan, scan_of, shown
from dragoman.host.snapshots.git_output import (
    FOLDER,
    Blob,
    FolderListing,
    TreeChange,
    each_tree_changes,
    listed,
    tree_changes,
    tree_entries,
)
from dragoman.host.snapshots.git_program import Git, GitFailed, GitStuck, mark
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.surroundings import surroundings, tracked_though_ignored
from dragoman.session.facts import RootSnapshot

REFS = "refs/dragoman"
_NAMED = 100
"""So many files that are left out are named."""
_MANY = 500
"""From so many files on, their contents go into one pack."""
_FEW = 1_000
"""Up to so many known files, a folder is not read ahead."""
_ATTEMPTS = 4
_MOST_LISTED = 64 << 20
"""Bytes of the names in a folder."""
_NESTED = 20
"""So often repositories within repositories are looked for."""
_LOCK_SECONDS = 120.0
_RETRY_SECONDS = 0.02
_ALONE = {"pack.threads": "1", "repack.writeBitmaps": "false"}
_AS_THEY_ARE = b"* -text -eol -crlf -filter -ident -working-tree-encoding\n"
# Whatever git makes here is for its owner alone.
_CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tsharedRepository = 0600
"""
_SEED = b".dragoman-seed"
_NOTHING = b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


class Shadow:
    """The snapshots of the folder `root`, kept in `directory`. `closed` are folders that are never
    looked into: ours. `others` are all that agents work in, now or later, this one among them."""

    def __init__(
        self,
        directory: Path,
        root: str,
        limits: SnapshotLimits,
        closed: Sequence[str] = (),
        others: Collection[str] = (),
    ) -> None:
        self.root = root
        self.directory = directory
        self.limits = limits
        self._closed = closed
        self._ours = frozenset(map(os.path.realpath, closed))
        self._apart_from = others or (root,)
        self.git = Git(str(directory / "git"), root, self._apart_from)
        self._inside = b""
        self._users_index: str | None = None
        self._index_was: tuple[int, ...] | None = None
        self._index_seen: tuple[int, ...] | None = None
        self._is_open = False
        self._kept: set[tuple[str, str]] = set()
        self._ahead: asyncio.Task[None] | None = None

    # ── opening ───────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Nobody else reads or writes the index, nor prunes, for as long as this lasts. Raises
        GitFailed."""
        async with self._alone():
            await self._open()
            yield

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        try:
            descriptor = await self._lock()
        except OSError as error:
            raise GitFailed(f"{self.directory} cannot be written: {error.strerror}") from error
        try:
            yield
        finally:
            os.close(descriptor)

    async def _lock(self) -> int:
        try:
            async with asyncio.timeout(_LOCK_SECONDS):
                while True:
                    if (descriptor := self._try_to_lock()) is not None:
                        return descriptor
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            raise GitFailed("another process is reading the folder and does not end") from None

    def _try_to_lock(self) -> int | None:
        """None while another has it, or has just removed it with everything else."""
        import fcntl

        make_private(self.directory.parent)
        make_private(self.directory)
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        os.close(descriptor)
        return None

    async def _open(self) -> None:
        # We hold the lock: what a killed git has left is nobody's.
        _remove_files(os.path.join(self.git.directory, "index.lock"))
        if self._is_open and mark(os.path.join(self.git.directory, "HEAD")) is not None:
            return
        self._index_was = self._noted_users_index()
        self._kept.clear()
        around = await surroundings(self.root, self._closed, self._apart_from)
        self.git.work_tree, self._inside, self._users_index = (
            around.top,
            around.inside,
            around.index,
        )
        self.git.settings["core.excludesFile"] = around.general_excludes
        self._make(around.excludes)
        self._is_open = True

    def _make(self, excludes: bytes) -> None:
        """An empty repository, unless there is one."""
        repository = Path(self.git.directory)
        for folder in ("", "objects", "objects/info", "objects/pack", "refs", "info"):
            make_private(repository / folder)
        _write(repository / "HEAD", b"ref: refs/heads/none\n")
        _write(repository / "config", _CONFIG)
        _write(repository / "info" / "attributes", _AS_THEY_ARE)
        _write(repository / "info" / "exclude", excludes)
        # For the one who cleans up: whose snapshots these are.
        _write(self.directory / "root", os.fsencode(self.root))
        _remove_locks(repository)

    # ── taking a snapshot ─────────────────────────────────────────────────────────────────────

    async def take(self, session_id: str | None = None) -> RootSnapshot:
        """The folder as it is now, kept for this session. What goes wrong is the `problem`."""
        try:
            async with self.locked():
                return await self.taken_locked(session_id)
        except (GitFailed, OSError) as error:
            return RootSnapshot(root=self.root, problem=str(error))

    async def read_ahead(self) -> None:
        """Take the first snapshot, unless that was begun before: it takes longest."""
        if self._ahead is None:
            self._ahead = asyncio.create_task(self._take_ahead())
        await asyncio.wait([self._ahead])

    async def _take_ahead(self) -> None:
        """A folder that is known and small is read in no time when its turn comes."""
        if not 0 < self._count() <= _FEW:
            await self.take()

    async def taken_locked(self, session_id: str | None = None) -> RootSnapshot:
        """The same for one who holds the lock."""
        try:
            return await self.take_locked(session_id)
        except (GitFailed, OSError) as error:
            return RootSnapshot(root=self.root, problem=str(error))

    async def take_locked(self, session_id: str | None = None) -> RootSnapshot:
        """The same, and raises GitFailed."""
        folder = self._real_folder()
        scan = await self._read()
        tree = await self.git.write_tree()
        if self._real_folder() != folder:
            raise GitFailed(f"{self.root} was replaced while it was read")
        if session_id is not None:
            self._keep_tree(tree, session_id)
        return RootSnapshot(
            root=self.root,
            tree=tree,
            left_out=scan.left_out[:_NAMED],
            left_out_count=len(scan.left_out),
            empty_folders=scan.empty_folders,
        )

    def _real_folder(self) -> tuple[int, int]:
        """The folder itself, whatever it holds. Raises GitFailed if it is not there, and for a link
        to another one: an agent may put that in its place, and git would follow it."""
        if mark(self.root) is None:
            raise GitFailed(f"{self.root} does not exist")
        if not _is_real(self.root):
            raise GitFailed(f"{self.root} was replaced by a link to another folder")
        status = os.lstat(self.root)
        return status.st_dev, status.st_ino

    def _keep_tree(self, tree: str, session_id: str) -> None:
        if (session_id, tree) not in self._kept:
            self.git.keep_ref(f"{REFS}/{ref_name(session_id)}/{tree}", tree)
            self._kept.add((session_id, tree))

    async def tree_with(
        self, tree: str, changes: Mapping[bytes, Blob | None], session_id: str
    ) -> str:
        """The same tree with other files in it, kept for this session. For one who holds the
        lock."""
        index = str(self.directory / "index-of-a-restore")
        gone = [b"0 %040d\t%b\0" % (0, name) for name, blob in changes.items() if blob is None]
        there = [
            b"%b %b\t%b\0" % (blob.mode.encode(), blob.id.encode(), name)
            for name, blob in changes.items()
            if blob is not None
        ]
        _remove_files(index, f"{index}.lock")
        try:
            await self.git("read-tree", tree, index=index)
            words = ("update-index", "-z", "--index-info")
            await self.git(*words, data=[*gone, *there], index=index)
            made = (await self.git("write-tree", index=index)).decode().strip()
        finally:
            _remove_files(index, f"{index}.lock")
        self._keep_tree(made, session_id)
        return made

    async def _read(self) -> FolderScan:
        """Bring the index up to date. Files may come and go meanwhile: then again."""
        for attempt in range(_ATTEMPTS):
            scan = await self._scan()
            try:
                await self._update(scan)
            except GitStuck:
                raise
            except GitFailed:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                if not scan.is_unfinished:
                    self._note_users_index()
                    return scan
        raise GitFailed(f"{self.root} changes too quickly to be read")

    async def _scan(self) -> FolderScan:
        found = await self._found()
        if found.folders:
            inner = await self._ls_files("-o", beneath=found.folders)
            found.new.update(dict.fromkeys(each for each in inner.split(b"\0") if each))
        if links := await asyncio.to_thread(self._links_to_folders, found):
            # Git sees what was in a folder through the link in its place, as if it were there.
            behind = await self._ls_files("-c", beneath=links)
            found.known.update(dict.fromkeys(each for each in behind.split(b"\0") if each))
        found.new.update(dict.fromkeys(await self._tracked_though_ignored()))
        if self._count() + len(found.new) > self.limits.files:
            raise self._too_many
        scan = await asyncio.to_thread(scan_of, found, os.fsencode(self.git.work_tree), self.limits)
        await self._forget_ignored(scan, found)
        return scan

    async def _forget_ignored(self, scan: FolderScan, found: FolderListing) -> None:
        """Empty folders within ignored ones: git lists the folder around both, if that has nothing
        else in it."""
        listed = {shown(self.path_of(each)) for each in found.folders}
        if not (inner := [each for each in scan.empty_folders if each not in listed]):
            return
        names = [self.name_of(os.fsencode(each)) for each in inner]
        ignored: set[bytes] = set()
        with suppress(GitFailed):  # such as for a folder that has just become a link
            ignored = await self._ignored(self.git, names)
        gone = {each for each, name in zip(inner, names, strict=True) if name in ignored}
        scan.empty_folders = [each for each in scan.empty_folders if each not in gone]

    async def _found(self) -> FolderListing:
        for _ in range(_NESTED):
            printed = await self._ls_files("-t", "-o", "-m", "-d", "--directory")
            found = await asyncio.to_thread(listed, printed)
            nested = [each for each in found.folders if self._is_repository(each)]
            if not nested:
                return found
            # With an entry beneath it, git takes a repository for a folder like any other.
            seeds = [b"100644 %b\t%b/%b\0" % (_NOTHING, each, _SEED) for each in nested]
            await self.git.keep_content(b"")
            await self.git("update-index", "-z", "--add", "--index-info", data=seeds)
        raise GitFailed(f"{self.root} holds repositories in repositories, too deep to be read")

    async def _ls_files(self, *options: str, beneath: Sequence[bytes] = ()) -> bytes:
        words = ("ls-files", "-z", *options, "--exclude-standard", "--")
        where = beneath or ((self._inside,) if self._inside else ())
        printed = await self.git(*words, *where, seconds=self.limits.seconds, most=_MOST_LISTED)
        # A file that was changed and is gone is there twice, and some lines are folders.
        if printed.count(b"\0") > 3 * self.limits.files:
            raise self._too_many
        return printed

    @property
    def _too_many(self) -> GitFailed:
        limit = f"{self.limits.files:,}"
        return GitFailed(f"{self.root} holds more than {limit} files: it is not watched")

    async def _tracked_though_ignored(self) -> list[bytes]:
        """What the user's repository has although it would be ignored, when it has changed."""
        self._index_seen = None if self._users_index is None else mark(self._users_index)
        if self._index_seen in (None, self._index_was):
            return []
        return await tracked_though_ignored(self.root, self._apart_from)

    def _note_users_index(self) -> None:
        """What it tracks is in ours by now; neither this process nor the next has to ask again."""
        if self._index_seen not in (None, self._index_was):
            self._index_was = self._index_seen
            _write(
                self.directory / "users-index", " ".join(map(str, self._index_was or ())).encode()
            )

    def _noted_users_index(self) -> tuple[int, ...] | None:
        """None where our own index is new, and has nothing of it."""
        with suppress(OSError, ValueError):
            if self._count():
                return tuple(map(int, (self.directory / "users-index").read_bytes().split()))
        return None

    async def ignored(self) -> list[str]:
        """What git's rules for ignored files leave out: of a folder that they leave out as a
        whole, only its own name, with a slash; without the folders that are ours."""
        options = ("-o", "-i", "--directory", "--no-empty-directory")
        names = (await self._ls_files(*options)).split(b"\0")
        paths = [shown(self.path_of(each)) for each in sorted(names) if each]
        return [each for each in paths if each.rstrip("/") not in self._ours]

    def _links_to_folders(self, found: FolderListing) -> list[bytes]:
        """Those that are new; nothing can have been in their places before the first snapshot."""
        if not self._count():
            return []
        top = os.fsencode(self.git.work_tree)
        return [each for each in found.new if os.path.isdir(os.path.join(top, each))]

    def _is_repository(self, folder: bytes) -> bool:
        path = os.path.join(os.fsencode(self.git.work_tree), folder)
        return os.path.lexists(os.path.join(path, b".git"))

    async def _update(self, scan: FolderScan) -> None:
        if scan.dropped:
            data = [path + b"\0" for path in scan.dropped]
            await self.git("update-index", "-z", "--force-remove", "--stdin", data=data)
        if scan.paths:
            await asyncio.to_thread(self._note_private, scan)
            settings = {"core.bigFileThreshold": "1"} if len(scan.paths) >= _MANY else None
            words = ("update-index", "-z", "--add", "--remove", "--stdin")
            data = [path + b"\0" for path in scan.paths]
            await self.git(*words, data=data, settings=settings, seconds=self.limits.seconds * 5)

    def _note_private(self, scan: FolderScan) -> None:
        known = self.private()
        now = known.difference(scan.paths) | scan.private
        if now != known:
            _write(self.directory / "private", b"\0".join(sorted(now)))

    def private(self) -> set[bytes]:
        """Files that only their owner could read when they were last seen, by their names. Git
        does not keep that, and one that comes back must not be open to all."""
        with suppress(FileNotFoundError):
            return set((self.directory / "private").read_bytes().split(b"\0")) - {b""}
        return set()

    def _count(self) -> int:
        """How many files the index has: it says so at its beginning."""
        try:
            with open(os.path.join(self.git.directory, "index"), "rb") as index:
                return int(struct.unpack(">4sLL", index.read(12))[2])
        except (OSError, struct.error):
            return 0

    # ── reading snapshots ─────────────────────────────────────────────────────────────────────

    def path_of(self, name: bytes) -> bytes:
        """Where a file of a tree is."""
        return os.path.join(os.fsencode(self.git.work_tree), name)

    def name_of(self, path: bytes) -> bytes:
        """What the file at this path is called in a tree."""
        return os.path.relpath(path, os.fsencode(self.git.work_tree))

    async def compare(self, before: str, after: str, *, moves: bool = True) -> list[TreeChange]:
        """What differs. Raises GitFailed where a tree is not here."""
        if before == after:
            return []
        options = ("-M", "-l2000") if moves else ("--no-renames",)
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *options, before, after)
        return await asyncio.to_thread(tree_changes, await self.git(*words))

    async def compare_plainly(self, before: str, after: str) -> dict[bytes, Blob | None]:
        """What the files that differ are in the second tree. Raises GitFailed."""
        found = await self.compare(before, after, moves=False)
        return {each.path: each.after for each in found}

    async def compare_each(self, pairs: Sequence[tuple[str, str]]) -> list[list[TreeChange]]:
        """What differs within each pair of trees, by the same names. Raises GitFailed where a tree
        is not here."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--stdin")
        data = [f"{before} {after}\n".encode() for before, after in pairs]
        printed = await self.git(*words, data=data)
        found = await asyncio.to_thread(lambda: list(each_tree_changes(printed)))
        if len(found) < len(pairs):
            raise GitFailed("a snapshot is no longer there: it was deleted")
        return found

    async def blobs_at(self, tree: str, names: Sequence[bytes]) -> dict[bytes, Blob]:
        """Those of these files that a tree has."""
        found: dict[bytes, Blob] = {}
        for some in _some(names, 500):
            found |= tree_entries(await self.git("ls-tree", "-z", tree, "--", *some))
        return {name: blob for name, blob in found.items() if blob.mode != FOLDER}

    async def folders_at(self, tree: str, names: Sequence[bytes]) -> set[bytes]:
        """Those of these folders that a tree has files in."""
        found: set[bytes] = set()
        for some in _some(names, 500):
            listed = tree_entries(await self.git("ls-tree", "-z", tree, "--", *some))
            found.update(name for name, blob in listed.items() if blob.mode == FOLDER)
        return found

    async def files_beneath(self, tree: str, folders: Sequence[bytes]) -> set[bytes]:
        """All that a tree has in these folders."""
        found: set[bytes] = set()
        for some in _some(folders, 500):
            found.update(tree_entries(await self.git("ls-tree", "-r", "-z", tree, "--", *some)))
        return found

    async def ignored_at(self, tree: str, names: Sequence[bytes]) -> set[bytes]:
        """Those that the rules for ignored files left out, as they were in a tree."""
        listed = tree_entries(await self.git("ls-tree", "-r", "-z", tree))
        rules = {each: blob for each, blob in listed.items() if is_rules(each)}
        texts = await self.git.contents([blob.id for blob in rules.values()])
        import tempfile  # late: it is slow to import

        with tempfile.TemporaryDirectory(dir=self.directory) as folder:
            for name, blob in rules.items():
                _place(os.path.join(os.fsencode(folder), name), texts.get(blob.id, b""))
            git = Git(self.git.directory, folder, self._apart_from)
            git.settings = self.git.settings
            return await self._ignored(git, names)

    async def _ignored(self, git: Git, names: Sequence[bytes]) -> set[bytes]:
        """Those that the rules in the work tree of `git` leave out."""
        data = [b"./%b\0" % each for each in names]
        words = ("check-ignore", "-z", "--stdin", "--no-index")
        printed = await git(*words, data=data, ends_with=(0, 1))
        return {each.removeprefix(b"./") for each in printed.split(b"\0")}

    # ── letting go ────────────────────────────────────────────────────────────────────────────

    def sessions(self) -> set[str]:
        """Those that have snapshots here, by the names of their refs; no program is started."""
        repository = Path(self.git.directory)
        found: set[str] = set()
        with suppress(OSError):
            found.update(each.name for each in (repository / REFS).iterdir() if any(each.iterdir()))
        with suppress(OSError):
            packed = (repository / "packed-refs").read_text("ascii", "replace")
            found.update(re.findall(rf"^\w+ {REFS}/(\w+)/", packed, re.MULTILINE))
        return found

    def has(self, session_id: str) -> bool:
        """Whether there are snapshots of a session."""
        return ref_name(session_id) in self.sessions()

    async def forget(self, names: Collection[str]) -> bool:
        """Drop the snapshots of sessions, by the names of their refs, and what only they had;
        whether there were any. With the last session all of it goes."""
        if not self.sessions().intersection(names):
            return False
        async with self._alone():
            if self.sessions() <= set(names) and not any(self.directory.glob("journal/*")):
                await asyncio.to_thread(self._remove)
                return True
            await self._open()
            for each in names:
                await self._drop_refs(f"{REFS}/{each}")
            self._kept.clear()
            await self.tidy()
            return True

    async def remove_unused(self, before: float) -> None:
        """All of it, if no session has snapshots here and it was not used since."""
        async with self._alone():
            index = mark(os.path.join(self.git.directory, "index"))
            is_young = index is not None and index[0] / 1e9 >= before
            if not (is_young or self.sessions() or any(self.directory.glob("journal/*"))):
                await asyncio.to_thread(self._remove)

    async def _drop_refs(self, beneath: str) -> None:
        _remove_locks(Path(self.git.directory))
        names = await self.git("for-each-ref", "--format=%(refname)", f"{beneath}/")
        orders = [b"delete %b\n" % name for name in names.split()]
        if orders:
            await self.git("update-ref", "--stdin", data=orders)

    def _remove(self) -> None:
        """For one who holds the lock; those who wait for it start again."""
        import shutil  # late: it is slow to import

        # First: if this is cut short, no index may name objects that are gone.
        with suppress(OSError):
            os.unlink(os.path.join(self.git.directory, "index"))
        shutil.rmtree(self.directory, ignore_errors=True)

    async def tidy(self) -> None:
        """Pack what is kept, and delete what is not. For one who holds the lock: what another
        writes meanwhile might be taken for rubbish."""
        await self.git("pack-refs", "--all", "--prune")
        # Looking for similar contents would take longer than all the rest.
        await self.git("repack", "-a", "-d", "-q", "--window=0", settings=_ALONE)
        await self.git("prune", "--expire=now")

    async def pack(self) -> None:
        """Put the files of many snapshots into one, if there are many. Nothing is taken away, so
        nobody has to wait for it."""
        if await asyncio.to_thread(self.loose_objects) > self.limits.loose:
            await self.git("repack", "-d", "-q", "--window=0", settings=_ALONE)

    def loose_objects(self) -> int:
        """How many files there are with one object each; no program is started."""
        folders = (Path(self.git.directory) / "objects").glob("[0-9a-f][0-9a-f]")
        return sum(1 for folder in folders for _ in folder.iterdir())


def ref_name(session_id: str) -> str:
    """A session's id as a part of a ref's name."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_rules(name: bytes) -> bool:
    return name == b".gitignore" or name.endswith(b"/.gitignore")


def _remove_locks(folder: Path) -> None:
    """What a killed git has left, also as it went over the refs of another session."""
    left = (*folder.glob("*.lock"), *folder.glob(f"{REFS}/*/*.lock"), folder / "packed-refs.new")
    _remove_files(*map(str, left))


def _remove_files(*paths: str) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _write(path: Path, content: bytes) -> None:
    """A file for its owner alone, whole or not at all."""
    with suppress(OSError):
        if path.read_bytes() == content:
            return
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb", opener=private_file) as file:
        file.write(content)
    new.replace(path)


def _place(path: bytes, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def _is_real(path: str) -> bool:
    return os.path.realpath(path) == path


def _some(names: Sequence[bytes], count: int) -> Iterable[Sequence[bytes]]:
    return (names[at : at + count] for at in range(0, len(names), count))
