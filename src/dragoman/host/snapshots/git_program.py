"""Runs the `git` program on a repository of our own, cut off from everything a folder configures.

Neither the user's nor the folder's configuration is read, so no filter, hook, monitor or pager of
theirs runs, and nothing is fetched. The program is looked for in absolute folders alone, and is
ended with us (`process`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, TypeVar

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import StartError
from dragoman.host.snapshots import git_output
from dragoman.process.process_tree import state
from dragoman.process.spawn import spawn

SECONDS = 120.0
_MOST_OUTPUT = 256 << 20
_SHORT_OUTPUT = 1 << 16
_LOOK_SECONDS = 0.5
_IDLE_LOOKS = 10
_GONE = (
    "not in this data directory: they are deleted after some time, and a copied store comes "
    "without them"
)
_OBJECT_MISSING = ("bad object", "not a tree object", "failed to unpack tree object")
_MISSING = "git is not installed: install it to see and undo what agents do by themselves"
_IN_THE_WAY = "{} is in a workspace, where an agent may have changed it: install git elsewhere, too"

_SAFELY = {
    "core.bare": "false",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "core.compression": "1",
    "core.logAllRefUpdates": "false",
    "core.protectNTFS": "false",  # it leaves out what Windows would take for `.git`, unsaid
    "core.quotePath": "false",
    "gc.auto": "0",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}


Found = TypeVar("Found")

_FEW = 100
"""Up to so many contents are looked for in files of their own."""


class GitFailed(Exception):
    """One line: why git could not do it."""


class GitStuck(GitFailed):
    """It took too long, or waited in vain: the next try would, too."""


class _ObjectMissing(GitFailed):
    """The repository does not have what it was asked about."""


def git_program(apart_from: Iterable[str] = ()) -> str:
    """Its path, which is not in a folder that agents write to: one that they put there would run
    outside of their fence. Raises GitFailed where there is none."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(folder, "git") for folder in folders if folder.startswith("/"))
    found = [each for each in places if os.path.isfile(each) and os.access(each, os.X_OK)]
    kept_from = tuple(f"{folder.rstrip('/')}/" for folder in apart_from)
    for path in found:
        if not path.startswith(kept_from) and not os.path.realpath(path).startswith(kept_from):
            return path
    raise GitFailed(_IN_THE_WAY.format(found[0]) if found else _MISSING)


class Git:
    """A repository at `directory`, for the files in `work_tree`."""

    def __init__(self, directory: str, work_tree: str, apart_from: Collection[str] = ()) -> None:
        self.directory = directory
        self.work_tree = work_tree
        self.apart_from = apart_from
        """Folders from which no program is run."""
        self.settings: dict[str, str] = {}
        """For every call, in addition to the safe ones."""
        self._last: tuple[tuple[int, ...], str] | None = None
        """The tree that was written last, and of which index."""

    async def __call__(
        self,
        *arguments: str | bytes,
        data: Iterable[bytes] = (),
        settings: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        ends_with: tuple[int, ...] = (0,),
        most: int = _MOST_OUTPUT,
        index: str | None = None,
    ) -> bytes:
        """What git prints, `most` bytes; with another `index` than the repository's own. Raises
        GitFailed unless it ends with one of these codes, and GitStuck."""
        chosen = {**_SAFELY, **self.settings, **(settings or {})}
        options = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        words = [git_program(self.apart_from), *options, *map(os.fsdecode, arguments)]
        environment = _environment(arguments) | {
            "GIT_DIR": self.directory,
            "GIT_WORK_TREE": self.work_tree,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "HOME": self.directory,
        }
        if index is not None:
            environment["GIT_INDEX_FILE"] = index
        # Not in the work tree, where git would look only at what is beneath.
        order = _Order(words, environment, seconds, ends_with, most)
        try:
            return await _run(order, data)
        except _ObjectMissing as error:
            raise GitFailed(f"the snapshots of {self.work_tree} are {_GONE}") from error

    # Short ways to what git keeps in files of its own: starting a program costs more than the rest.

    def loose_blob(self, blob_id: str) -> bytes | None:
        """Its content; None if it is not in a file of its own."""
        with suppress(OSError, zlib.error):
            with open(self._loose(blob_id), "rb") as file:
                head, _, content = zlib.decompress(file.read()).partition(b"\0")
            return content if head.startswith(b"blob ") else None
        return None

    def loose_size(self, object_id: str) -> int | None:
        """How large an object is; None if it is not in a file of its own."""
        with suppress(OSError, zlib.error, ValueError):
            with open(self._loose(object_id), "rb") as file:
                head = zlib.decompressobj().decompress(file.read(256), 64)
            return int(head.partition(b"\0")[0].split(b" ")[1])
        return None

    def keep_blob(self, content: bytes) -> str:
        """The id of this content, which is there from now on."""
        whole = b"blob %d\0%b" % (len(content), content)
        blob_id = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = self._loose(blob_id)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            self._write(path, zlib.compress(whole, 1))
        return blob_id

    async def sizes(self, ids: Sequence[str]) -> dict[str, int]:
        """Of those contents that are here."""
        sizes, wanted = await self._without_program(self.loose_size, ids)
        if not wanted:
            return sizes
        data = [f"{each}\n".encode() for each in wanted]
        printed = await self("cat-file", "--batch-check", data=data)
        lines = zip(wanted, printed.decode().splitlines(), strict=True)
        packed = {each: line.split(" ") for each, line in lines}
        return sizes | {each: int(told[2]) for each, told in packed.items() if len(told) == 3}

    async def contents(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Those that are here."""
        found, wanted = await self._without_program(self.loose_blob, ids)
        if not wanted:
            return found
        printed = await self("cat-file", "--batch", data=[f"{each}\n".encode() for each in wanted])
        packed = zip(wanted, git_output.contents(printed), strict=False)
        return found | {blob_id: data for blob_id, data in packed if data is not None}

    async def _without_program(
        self, look: Callable[[str], Found | None], ids: Sequence[str]
    ) -> tuple[dict[str, Found], list[str]]:
        """What can be read without starting a program, and the rest."""
        wanted = list(dict.fromkeys(ids))
        if len(wanted) > _FEW:
            return {}, wanted
        read = await asyncio.to_thread(lambda: [look(each) for each in wanted])
        found = {each: data for each, data in zip(wanted, read, strict=True) if data is not None}
        return found, [each for each in wanted if each not in found]

    async def keep_content(self, content: bytes) -> str:
        """Its id."""
        return await asyncio.to_thread(self.keep_blob, content)

    def keep_ref(self, name: str, object_id: str) -> None:
        path = os.path.join(self.directory, name)
        _make_private_folders(os.path.dirname(path))
        self._write(path, f"{object_id}\n".encode())

    async def write_tree(self) -> str:
        """The index as a tree; the same one again if nothing was changed."""
        index, known = self._index_mark(), self._last or self._remembered()
        if index is None or known is None or known[0] != index:
            tree = (await self("write-tree")).decode().strip()
            known = self._index_mark() or (), tree
            self._write(self._tree_file, f"{' '.join(map(str, known[0]))} {tree}".encode())
        self._last = known
        return known[1]

    def _remembered(self) -> tuple[tuple[int, ...], str] | None:
        """What another process wrote last; None where it may be gone: packs are not looked into."""
        with suppress(OSError, ValueError):
            with open(self._tree_file, "rb") as file:
                *index, tree = file.read().decode("ascii").split()
            if self.loose_size(tree) is not None:
                return tuple(map(int, index)), tree
        return None

    @property
    def _tree_file(self) -> str:
        return os.path.join(self.directory, "written-tree")

    def _index_mark(self) -> tuple[int, ...] | None:
        return mark(os.path.join(self.directory, "index"))

    def _loose(self, object_id: str) -> str:
        return os.path.join(self.directory, "objects", object_id[:2], object_id[2:])

    def _write(self, path: str, content: bytes) -> None:
        """Whole or not at all."""
        # By this name git knows what a killed process left.
        new = os.path.join(self.directory, "objects", f"tmp_obj_{os.urandom(8).hex()}")
        with open(new, "wb", opener=private_file) as file:
            file.write(content)
        os.rename(new, path)


def mark(path: str) -> tuple[int, ...] | None:
    """Another one when what is there was changed; None for nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


async def ask_users_git(
    folder: str, *arguments: str, apart_from: Collection[str] = ()
) -> bytes | None:
    """What the repository that `folder` is in says of itself: only questions that run nothing. None
    where there is no answer."""
    with suppress(GitFailed):
        safely = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false")
        options = [word for each in safely for word in ("-c", each)]
        words = [git_program((folder, *apart_from)), *options, "-C", folder, *arguments]
        kept = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
        environment = _environment(arguments) | {
            name: os.environ[name] for name in kept if name in os.environ
        }
        return await _run(_Order(words, environment), ())
    return None


def _environment(arguments: Sequence[str | bytes]) -> dict[str, str]:
    # This one takes no patterns, and refuses the variable that says so.
    takes_patterns = "check-ignore" not in arguments
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1" if takes_patterns else "0",
        "GIT_PAGER": "cat",
    }


class _Order(msgspec.Struct, frozen=True):
    """How git is run, how it may end, and how much it may print."""

    words: list[str]
    environment: Mapping[str, str]
    seconds: float = SECONDS
    ends_with: tuple[int, ...] = (0,)
    most: int = _MOST_OUTPUT

    @property
    def verb(self) -> str:
        words = (word for word in self.words[1:] if not word.startswith(("-", "/")))
        return next((word for word in words if "=" not in word), "")


async def _run(order: _Order, data: Iterable[bytes]) -> bytes:
    with (
        _scratch() as given,
        _scratch() as printed,
        _scratch() as complaints,
    ):
        if data:
            await asyncio.to_thread(_fill, given, data)
        code = await _wait_for(order, given, printed, complaints)
        if code not in order.ends_with:
            said = _complaint(complaints, order)
            is_missing = any(each in said for each in _OBJECT_MISSING)
            raise _ObjectMissing(said) if is_missing else GitFailed(said)
        _check_size(printed, order.most)
        return await _content(printed)


async def _wait_for(
    order: _Order, given: IO[bytes], printed: IO[bytes], complaints: IO[bytes]
) -> int:
    try:
        process = await spawn(
            order.words,
            env=order.environment,
            cwd="/",
            stdin=given.fileno(),
            stdout=printed.fileno(),
            stderr=complaints.fileno(),
        )
    except StartError as error:
        raise GitFailed(f"git could not be started: {error}") from error
    watch = _Watch(process.pid, order.verb)
    try:
        async with asyncio.timeout(order.seconds):
            waiting = asyncio.ensure_future(process.wait())
            while not (await asyncio.wait([waiting], timeout=_LOOK_SECONDS))[0]:
                _check_size(printed, order.most)
                watch.look()
            status = waiting.result()
    except TimeoutError:
        raise GitStuck(f"git took longer than {order.seconds:g} s") from None
    finally:
        await process.stop(exit_within=0, term_within=0)
    return -1 if status.code is None else status.code


class _Watch:
    """Looks whether git gets on. Where it expects a file of its own there may be a pipe, which it
    would wait for until its time is over."""

    def __init__(self, pid: int, verb: str) -> None:
        self._pid = pid
        self._waits_for_others = verb == "repack"
        self._work: list[bytes] = []
        self._idle_looks = 0

    def look(self) -> None:
        """Raises GitStuck once it has done nothing for some seconds."""
        now = state(self._pid)
        is_idle = now.state == b"S" and now.work == self._work and not self._waits_for_others
        self._idle_looks = self._idle_looks + 1 if is_idle else 0
        self._work = now.work
        if self._idle_looks >= _IDLE_LOOKS:
            raise GitStuck("git waits for a file of the folder that is a pipe, or does not answer")


def _check_size(printed: IO[bytes], most: int) -> None:
    if os.fstat(printed.fileno()).st_size > most:
        raise GitFailed("the folder holds too much to be listed")


def _make_private_folders(path: str) -> None:
    """For their owner alone, each of them: makedirs leaves those above the last to the umask."""
    missing: list[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)


def _scratch() -> IO[bytes]:
    """A file without a name, in the temporary folder."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    try:
        return os.fdopen(os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600), "w+b")
    except (AttributeError, OSError):  # macOS, and a few file systems, have none
        import tempfile  # late: it is slow to import, and every turn comes here

        return tempfile.TemporaryFile()


def _fill(file: IO[bytes], data: Iterable[bytes]) -> None:
    file.writelines(data)
    file.flush()
    file.seek(0)


async def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    if os.fstat(file.fileno()).st_size <= _SHORT_OUTPUT:
        return file.read()
    return await asyncio.to_thread(file.read)


def _complaint(file: IO[bytes], order: _Order) -> str:
    file.seek(0)
    lines = file.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    return f"git {order.verb} failed: {said or (lines or ['it was ended'])[-1]}"
