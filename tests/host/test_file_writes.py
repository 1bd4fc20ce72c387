"""Writing files of a workspace: as a whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from host.test_files import names, write_refused

from dragoman.errors import InternalError, InvalidParams
from dragoman.host.workspace import atomic
from dragoman.host.workspace.files import LocalFiles
from dragoman.host.workspace.roots import Workspace

KILLER = Path(__file__).parent / "programs" / "killed_writer.py"
SEED = 4


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace("session", str(root))


async def test_writing_creates_a_file_and_its_directories(root: Path, workspace: Workspace) -> None:
    text = "日本\r\nno final newline"
    await LocalFiles().write_text_file(workspace, f"{root}/a/b/c.txt", text)
    assert (root / "a" / "b" / "c.txt").read_bytes() == text.encode()
    assert names(root / "a" / "b") == ["c.txt"]


async def test_new_files_and_directories_get_the_mode_the_umask_leaves(
    root: Path, workspace: Workspace
) -> None:
    previous = os.umask(0o027)
    try:
        await LocalFiles().write_text_file(workspace, f"{root}/a/file", "x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((root / "a" / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o777, 0o664])
async def test_a_replaced_file_keeps_its_mode(root: Path, workspace: Workspace, mode: int) -> None:
    file = root / "file"
    file.write_text("old")
    file.chmod(mode)
    await LocalFiles().write_text_file(workspace, str(file), "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == mode


async def test_a_replaced_program_does_not_keep_the_right_to_run_as_its_owner(
    root: Path, workspace: Workspace
) -> None:
    (root / "tool").write_text("old")
    (root / "tool").chmod(0o6755)
    await LocalFiles().write_text_file(workspace, f"{root}/tool", "new")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o755


async def test_the_target_of_a_link_is_written_and_the_link_stays(
    root: Path, workspace: Workspace
) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    (root / "to-new").symlink_to(root / "made-by-link")
    files = LocalFiles()
    await files.write_text_file(workspace, f"{root}/link", "new")
    await files.write_text_file(workspace, f"{root}/to-new", "new")
    assert (root / "link").is_symlink()
    assert (root / "to-new").is_symlink()
    assert (root / "real").read_text() == (root / "made-by-link").read_text() == "new"


async def test_the_other_name_of_a_hard_link_is_left_alone(
    root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("old")
    (root / "file").hardlink_to(tmp_path / "other")
    files = LocalFiles()
    assert await files.read_text_file(workspace, f"{root}/file") == "old"
    await files.write_text_file(workspace, f"{root}/file", "new")
    assert (root / "file").read_text() == "new"
    assert (tmp_path / "other").read_text() == "old"


async def test_directories_and_special_files_are_not_written_over(
    root: Path, workspace: Workspace
) -> None:
    (root / "directory").mkdir()
    os.mkfifo(root / "fifo")
    for path in ("directory", "fifo", "new/", "new/.", "."):
        await write_refused(InvalidParams, LocalFiles(), workspace, f"{root}/{path}")
    assert names(root) == ["directory", "fifo"]


@pytest.mark.parametrize("content", ["\ud800", "a\udfffb"])
async def test_text_that_cannot_be_written_down_is_refused(
    root: Path, workspace: Workspace, content: str
) -> None:
    error = await write_refused(InvalidParams, LocalFiles(), workspace, root / "a" / "b", content)
    assert error.data == {"path": f"{root}/a/b", "reason": "not text"}
    assert names(root) == []


async def test_writing_more_than_the_limit_is_refused(root: Path, workspace: Workspace) -> None:
    files = LocalFiles(max_bytes=4)
    await files.write_text_file(workspace, f"{root}/fits", "éé")
    error = await write_refused(InvalidParams, files, workspace, root / "large", "ééx")
    assert error.data == {
        "path": f"{root}/large",
        "reason": "too large",
        "size": 5,
        "limit": 4,
    }
    assert names(root) == ["fits"]


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ("fchmod", "old"),  # a new file has no mode to keep
        *product(("write", "fsync", "link", "rename", "close"), ("old", "new/deep/file")),
    ],
)
async def test_a_full_disk_at_any_step_leaves_everything_as_it_was(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, step: str, path: str
) -> None:
    (root / "old").write_text("old")
    failed: list[str] = []
    plain_close = os.close

    def full(*arguments: object, **_: object) -> None:
        failed.append(step)
        if step == "close":
            plain_close(int(str(arguments[0])))
            monkeypatch.setattr(os, "close", plain_close)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full_once_written(*arguments: object, **_: object) -> None:
        plain_fsync(int(str(arguments[0])))
        monkeypatch.setattr(os, "close", full)

    plain_fsync = os.fsync
    if step == "close":
        monkeypatch.setattr(os, "fsync", full_once_written)
    else:
        monkeypatch.setattr(os, step, full)
    error = await write_refused(InternalError, LocalFiles(), workspace, root / path)
    monkeypatch.undo()
    assert failed
    assert error.data == {"path": f"{root}/{path}", "reason": "no space left on device"}
    assert names(root) == ["old"]
    assert (root / "old").read_text() == "old"


async def test_a_failed_write_is_no_change(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = LocalFiles()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        await write_refused(InternalError, files, workspace, root / "file")
    assert files.changes(workspace).list() == ()


def as_nobody(path: Path) -> bytes:
    """What becomes of a write by a user without special rights; the answer's reason."""
    reading, writing = os.pipe()
    script = (
        "import asyncio, ctypes, os, sys\n"  # while it may read them
        "from dragoman.errors import RemoteError\n"
        "from dragoman.host.workspace.files import LocalFiles\n"
        "from dragoman.host.workspace.roots import Workspace\n"
        "path, pipe = sys.argv[1], int(sys.argv[2])\n"
        "os.getuid() == 0 and os.setuid(65534)\n"
        "try:\n"
        "    write = LocalFiles().write_text_file\n"
        "    asyncio.run(write(Workspace('s', os.path.dirname(path)), path, 'new'))\n"
        "    os.write(pipe, b'written')\n"
        "except RemoteError as error:\n"
        "    os.write(pipe, error.data['reason'].encode())\n"
    )
    arguments = [sys.executable, "-c", script, str(path), str(writing)]
    subprocess.run(arguments, check=True, pass_fds=[writing], timeout=50)
    os.close(writing)
    with open(reading, "rb") as pipe:
        return pipe.read()


def test_a_write_protected_file_stays_as_it_is() -> None:
    with TemporaryDirectory() as name:  # pytest's own are closed to other users
        root = Path(name)
        root.chmod(0o777)
        (root / "file").write_text("old")
        (root / "file").chmod(0o444)
        assert as_nobody(root / "file") == b"permission denied"
        assert (root / "file").read_text() == "old"
        assert as_nobody(root / "other") == b"written"


async def test_writes_of_a_session_happen_in_the_order_asked_for(
    root: Path, workspace: Workspace
) -> None:
    files = LocalFiles()
    writes = [
        files.write_text_file(workspace, f"{root}/file", f"{number} " * (200 - number))
        for number in range(50)
    ]
    tasks = [asyncio.create_task(write) for write in writes]
    reads = asyncio.create_task(files.read_text_file(workspace, f"{root}/file"))
    await asyncio.gather(*tasks)
    assert (root / "file").read_text().startswith("49 ")
    assert (await reads).startswith("49 "), "a read asked for after a write sees it"


async def test_a_write_is_made_off_the_loop(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing: list[str] = []
    plain_fsync = os.fsync

    def noted(descriptor: int) -> None:
        syncing.append(threading.current_thread().name)
        plain_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    await LocalFiles().write_text_file(workspace, f"{root}/file", "x")
    assert len(syncing) == 2, "the file and its directory"
    assert "MainThread" not in syncing


async def test_a_write_given_up_half_way_happens_and_is_listed_one_given_up_before_does_not(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, release = threading.Event(), threading.Event()
    plain_fsync = os.fsync

    def slow(descriptor: int) -> None:
        syncing.set()
        assert release.wait(30)
        plain_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    files = LocalFiles()
    begun = asyncio.create_task(files.write_text_file(workspace, f"{root}/begun", "x"))
    waiting = asyncio.create_task(files.write_text_file(workspace, f"{root}/waiting", "x"))
    await asyncio.to_thread(syncing.wait, 30)
    begun.cancel()
    waiting.cancel()
    await asyncio.gather(begun, waiting, return_exceptions=True)
    release.set()
    await files.write_text_file(workspace, f"{root}/last", "x")
    assert names(root) == ["begun", "last"]
    changed = [Path(change.path).name for change in files.changes(workspace).list()]
    assert changed == ["begun", "last"]


# ── killed while writing ──────────────────────────────────────────────────────────────────────


def killed(directory: Path, times: int, kind: str) -> dict[str, list[int] | int]:
    arguments = [sys.executable, str(KILLER), str(directory), str(times), str(SEED), kind]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, timeout=55)
    return json.loads(done.stdout)


def test_kill_9_in_mid_write_leaves_the_old_file_or_the_new_one(root: Path) -> None:
    found = killed(root, 30, "atomic")
    assert found["torn"] == 0, f"seed {SEED}"
    left = found["left"]
    assert isinstance(left, list)
    assert len(left) == 30
    assert max(left) <= 1, "none left more than one file, and the next one removed that"
    assert found["visible"] == []


def test_kill_9_tears_a_file_that_is_written_in_place(root: Path) -> None:
    """The control: the kills do come in mid-write."""
    torn = killed(root, 30, "plain")["torn"]
    assert isinstance(torn, int)
    assert torn > 0, f"seed {SEED}"


KILLED_AT = """
import asyncio, os, signal, sys
from dragoman.host.workspace.files import LocalFiles
from dragoman.host.workspace.roots import Workspace
root, step = sys.argv[1:]
setattr(os, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
asyncio.run(LocalFiles().write_text_file(Workspace("s", root), f"{root}/old", "new"))
"""


def killed_at(step: str, root: Path) -> None:
    """A process that is writing `old`, and dies there."""
    command = [sys.executable, "-c", KILLED_AT, str(root), step]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", ["write", "fsync", "link", "rename"])
async def test_what_a_killed_process_left_is_swept_by_the_next_write(
    root: Path, workspace: Workspace, step: str
) -> None:
    (root / "old").write_text("old")
    killed_at(step, root)
    left = [name for name in os.listdir(root) if name != "old"]
    assert len(left) == (step == "rename"), "only what is whole has a name, and not for long"
    assert (root / "old").read_text() == "old"
    await LocalFiles().write_text_file(workspace, f"{root}/other", "x")
    assert names(root) == ["old", "other"]


async def test_nothing_is_swept_that_is_not_ours_and_left(root: Path, workspace: Workspace) -> None:
    (root / "data").write_text("x")
    (root / ".dragoman-0123456789abcdef0").write_text("longer")
    (root / ".dragoman-notes").write_text("a name of somebody's")
    (root / ".dragoman-00000000000000aa").mkdir()
    (root / ".dragoman-00000000000000bb").symlink_to("data")
    os.link(root / "data", root / ".dragoman-00000000000000cc")
    os.mkfifo(root / ".dragoman-00000000000000dd")
    busy = root / ".dragoman-00000000000000ee"
    busy.write_text("of a process that is still writing")
    kept = set(os.listdir(root))
    (root / ".dragoman-00000000000000ff").write_text("left")
    with busy.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await LocalFiles().write_text_file(workspace, f"{root}/other", "x")
    assert set(os.listdir(root)) == kept | {"other"}


async def test_a_file_system_without_nameless_files_will_do(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_NAMELESS", 0)
    await LocalFiles().write_text_file(workspace, f"{root}/a", "new")
    assert (names(root), (root / "a").read_text()) == (["a"], "new")
