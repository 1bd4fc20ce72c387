"""Reading files of a workspace, where they may be, and what is logged of them."""

from __future__ import annotations

import logging
import os
import threading
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.workspace import files as host_files
from dragoman.host.workspace.atomic import read_up_to
from dragoman.host.workspace.files import INLINE_BYTES, MAX_BYTES, FilesProvider, LocalFiles
from dragoman.host.workspace.roots import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace("session", str(root))


async def refused(
    kind: type[RemoteError], files: FilesProvider, workspace: Workspace, path: str | Path
) -> RemoteError:
    with pytest.raises(kind) as caught:
        await files.read_text_file(workspace, str(path))
    return caught.value


async def write_refused(
    kind: type[RemoteError],
    files: FilesProvider,
    workspace: Workspace,
    path: str | Path,
    content: str = "new",
) -> RemoteError:
    with pytest.raises(kind) as caught:
        await files.write_text_file(workspace, str(path), content)
    return caught.value


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


# Reading


TEXT = "one\ntwo\r\nthree\u2028still three\x0b\x0c\nfour"


@pytest.mark.parametrize("text", ["", "x", "x\n", "\n\n", "a\r\nb\r\n", TEXT, "\ufeffbom", "日本"])
async def test_a_file_comes_back_unchanged(root: Path, workspace: Workspace, text: str) -> None:
    (root / "file").write_bytes(text.encode())
    assert await LocalFiles().read_text_file(workspace, f"{root}/file") == text


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, TEXT),
        (1, None, TEXT),
        (2, None, "two\r\nthree\u2028still three\x0b\x0c\nfour"),
        (4, None, "four"),
        (5, None, ""),
        (2**31, None, ""),
        (None, 1, "one\n"),
        (None, 2, "one\ntwo\r\n"),
        (None, 4, TEXT),
        (None, 2**63, TEXT),
        (None, 0, ""),
        (2, 1, "two\r\n"),
        (3, 2, "three\u2028still three\x0b\x0c\nfour"),
        (4, 1, "four"),
        (9, 9, ""),
    ],
)
async def test_a_window_has_whole_lines_counted_from_1(
    root: Path, workspace: Workspace, line: int | None, limit: int | None, expected: str
) -> None:
    (root / "file").write_bytes(TEXT.encode())
    files = LocalFiles()
    assert await files.read_text_file(workspace, f"{root}/file", line=line, limit=limit) == expected


async def test_windows_put_together_are_the_file(root: Path, workspace: Workspace) -> None:
    (root / "file").write_bytes(TEXT.encode())
    files = LocalFiles()
    windows = [
        await files.read_text_file(workspace, f"{root}/file", line=line, limit=1)
        for line in range(1, 6)
    ]
    assert "".join(windows) == TEXT


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 4_096])
async def test_a_window_is_the_same_however_the_lines_lie_in_blocks(
    root: Path, workspace: Workspace, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_files, "_BLOCK", block)
    files = LocalFiles()
    for text in ("", "\n", "a", "\n\n\n", "ab\n\ncde\nf", "ab\ncd\n"):
        (root / "file").write_text(text)
        for line, limit in product(range(1, 8), range(8)):
            wanted = "".join(_lines(text)[line - 1 :][:limit])
            given = await files.read_text_file(workspace, f"{root}/file", line=line, limit=limit)
            assert given == (wanted if line - 1 + limit < len(_lines(text)) else wanted[:-1])


class _Searched(str):
    """Text that counts how often it is searched."""

    __slots__ = ()
    searches = 0

    def find(self, *where: Any) -> int:
        _Searched.searches += 1
        return str.find(self, *where)

    def count(self, *where: Any) -> int:
        _Searched.searches += 1
        return str.count(self, *where)


async def test_millions_of_lines_are_counted_by_the_block_and_off_the_loop(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    window = host_files._window  # pyright: ignore[reportPrivateUsage]

    def counted(text: str, line: int | None, limit: int | None) -> str:
        threads.add(threading.get_ident())
        return window(_Searched(text), line, limit)

    monkeypatch.setattr(host_files, "_window", counted)
    monkeypatch.setattr(_Searched, "searches", 0)
    (root / "file").write_text("\n" * MAX_BYTES)
    files = LocalFiles()
    given = await files.read_text_file(workspace, f"{root}/file", line=MAX_BYTES - 5, limit=3)
    assert given == "\n" * 3
    assert _Searched.searches < 10_000
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(("line", "limit"), [(0, None), (-1, None), (0, 5), (None, -1)])
async def test_line_0_and_negative_numbers_are_refused(
    root: Path, workspace: Workspace, line: int | None, limit: int | None
) -> None:
    (root / "file").write_text("x")
    with pytest.raises(InvalidParams):
        await LocalFiles().read_text_file(workspace, f"{root}/file", line=line, limit=limit)


async def test_a_missing_file_is_not_found(root: Path, workspace: Workspace) -> None:
    error = await refused(ResourceNotFound, LocalFiles(), workspace, root / "missing")
    assert error.data == {"path": f"{root}/missing", "reason": "no such file or directory"}


@pytest.mark.parametrize("window", [{}, {"line": 1, "limit": 1}])
async def test_a_file_over_the_limit_is_refused_with_its_size(
    root: Path, workspace: Workspace, window: dict[str, int]
) -> None:
    files = LocalFiles(max_bytes=10)
    (root / "fits").write_bytes(b"0123456789")
    (root / "large").write_bytes(b"0123456789\n")
    assert await files.read_text_file(workspace, f"{root}/fits", **window) == "0123456789"
    with pytest.raises(InvalidParams) as caught:
        await files.read_text_file(workspace, f"{root}/large", **window)
    path = f"{root}/large"
    assert caught.value.data == {"path": path, "reason": "too large", "size": 11, "limit": 10}


async def test_the_limit_is_10_mib_and_a_sparse_file_costs_no_memory(
    root: Path, workspace: Workspace
) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    tracemalloc.start()
    await refused(InvalidParams, LocalFiles(), workspace, root / "sparse")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert MAX_BYTES == 10 * 1024 * 1024


async def test_a_file_that_grows_while_it_is_read_is_still_held_to_the_limit(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def growing(descriptor: int, most: int) -> bytes:
        (root / "file").write_bytes(b"0123456789 and more")
        return read_up_to(descriptor, most)

    monkeypatch.setattr("dragoman.host.workspace.files.read_up_to", growing)
    (root / "file").write_bytes(b"0123456789")
    error = await refused(InvalidParams, LocalFiles(max_bytes=10), workspace, root / "file")
    assert error.data["reason"] == "too large"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"caf\xe9", b"\xed\xa0\x80", b"\0" * 99])
async def test_what_is_not_text_is_refused(
    root: Path, workspace: Workspace, content: bytes
) -> None:
    (root / "file").write_bytes(content)
    error = await refused(InvalidParams, LocalFiles(), workspace, root / "file")
    assert error.data == {"path": f"{root}/file", "reason": "not text", "size": len(content)}


async def test_a_part_of_a_file_that_is_not_text_is_refused_too(
    root: Path, workspace: Workspace
) -> None:
    (root / "file").write_bytes(b"text\n\xff")
    with pytest.raises(InvalidParams, match="not text"):
        await LocalFiles().read_text_file(workspace, f"{root}/file", limit=1)


async def test_large_files_are_read_off_the_loop_and_small_ones_on_it(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[str] = []
    plain_read = os.read

    def noted(descriptor: int, most: int) -> bytes:
        readers.append(threading.current_thread().name)
        return plain_read(descriptor, most)

    monkeypatch.setattr("dragoman.host.workspace.atomic.os.read", noted)
    (root / "small").write_bytes(b"x" * INLINE_BYTES)
    (root / "large").write_bytes(b"x" * (INLINE_BYTES + 1))
    files = LocalFiles()
    await files.read_text_file(workspace, f"{root}/small")
    assert set(readers) == {"MainThread"}
    readers.clear()
    assert len(await files.read_text_file(workspace, f"{root}/large")) == INLINE_BYTES + 1
    assert readers
    assert "MainThread" not in readers


# Where


async def test_the_roots_are_those_of_the_session(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    files = LocalFiles()
    first = Workspace("first", str(tmp_path / "one"), (str(tmp_path / "two"),))
    second = Workspace("second", str(tmp_path / "three"))
    assert await files.read_text_file(first, f"{tmp_path}/one/file") == "one"
    assert await files.read_text_file(first, f"{tmp_path}/two/file") == "two"
    assert await files.read_text_file(second, f"{tmp_path}/three/file") == "three"
    await files.write_text_file(first, f"{tmp_path}/two/new", "new")
    await refused(InvalidParams, files, first, tmp_path / "three" / "file")
    await refused(InvalidParams, files, second, tmp_path / "one" / "file")
    await write_refused(InvalidParams, files, second, tmp_path / "two" / "new")


async def test_a_session_whose_roots_change_gets_the_new_ones(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    files = LocalFiles()
    one, two = (Workspace("s", str(tmp_path / name)) for name in ("one", "two"))
    await files.write_text_file(one, f"{tmp_path}/one/file", "changed")
    assert await files.read_text_file(two, f"{tmp_path}/two/file") == "two"
    await refused(InvalidParams, files, two, tmp_path / "one" / "file")
    assert len(files.changes(two).list()) == 1


async def test_a_session_let_in_elsewhere_keeps_the_roots_it_began_with(tmp_path: Path) -> None:
    for name in ("one", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    files, own = LocalFiles(), Workspace("s", str(tmp_path / "one"))
    assert await files.read_text_file(own, f"{tmp_path}/one/file") == "one"
    for number in range(100):
        (tmp_path / f"{number}").mkdir()
        wider = Workspace("s", own.cwd, (f"{tmp_path}/{number}",))
        await files.write_text_file(wider, f"{tmp_path}/{number}/file", "x")
    assert len(files.changes(own).list()) == 100
    (tmp_path / "one").rename(tmp_path / "moved")
    (tmp_path / "one").symlink_to("outside")
    await refused(InvalidParams, files, own, tmp_path / "one" / "file")


async def test_roots_of_its_own_replace_those_of_the_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    files = LocalFiles(roots=[str(tmp_path / "two")])
    workspace = Workspace("s", str(tmp_path / "one"))
    assert await files.read_text_file(workspace, f"{tmp_path}/two/file") == "two"
    await refused(InvalidParams, files, workspace, tmp_path / "one" / "file")


async def test_without_a_root_it_reads_anywhere_and_writes_nowhere(
    tmp_path: Path, root: Path, workspace: Workspace
) -> None:
    (tmp_path / "outside").write_text("outside")
    files = LocalFiles(roots=())
    assert await files.read_text_file(workspace, f"{tmp_path}/outside") == "outside"
    for path in (root / "new", tmp_path / "new"):
        error = await write_refused(InvalidParams, files, workspace, path)
        assert error.data == {"path": str(path), "reason": "outside the workspace"}
    assert names(root) == []


async def test_reading_outside_is_a_choice_that_never_extends_to_writing(
    tmp_path: Path, root: Path, workspace: Workspace
) -> None:
    (tmp_path / "outside").write_text("outside")
    (root / "link").symlink_to("../outside")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "data").write_text("ours")
    await refused(InvalidParams, LocalFiles(), workspace, tmp_path / "outside")
    files = LocalFiles(read_outside=True, forbidden=[str(tmp_path / "own")])
    for path in (tmp_path / "outside", root / "link"):
        assert await files.read_text_file(workspace, str(path)) == "outside"
        await write_refused(InvalidParams, files, workspace, path)
    for path in (tmp_path / "own" / "data", Path("/proc/self/status")):
        await refused(InvalidParams, files, workspace, path)
    await files.write_text_file(workspace, f"{root}/new", "new")
    assert (tmp_path / "outside").read_text() == "outside"


async def test_an_agent_reads_changes_and_writes_back(root: Path, workspace: Workspace) -> None:
    (root / "main.py").write_text("print('old')\n")
    files = LocalFiles()
    text = await files.read_text_file(workspace, f"{root}/main.py")
    await files.write_text_file(workspace, f"{root}/main.py", text.replace("old", "new"))
    assert await files.read_text_file(workspace, f"{root}/main.py") == "print('new')\n"


# The log


async def test_each_request_is_logged_with_path_bytes_and_outcome_but_no_content(
    root: Path, workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    files = LocalFiles()
    await files.write_text_file(workspace, f"{root}/file\n", "CANARY")
    await files.read_text_file(workspace, f"{root}/file\n")
    await refused(ResourceNotFound, files, workspace, root / "missing")
    await write_refused(InvalidParams, files, workspace, "/outside", "CANARY")
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("dragoman.host", "DEBUG")
    ] * 4
    path = f"{root}/file\\n"
    assert caplog.messages == [
        f"write '{path}': 6 bytes",
        f"read '{path}': 6 bytes",
        f"read refused: '{root}/missing: no such file or directory'",
        "write refused: '/outside: outside the workspace'",
    ]
