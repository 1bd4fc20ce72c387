"""Archives that nobody vouches for: what is good comes out, nothing else gets anywhere."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.install.installer import unpack
from dragoman.errors import UnsafeArchive


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def special(name: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    return info, b""


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    opened: Any = tarfile.open  # the stubs want a mode that is written out
    with opened(path, mode) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "victim").write_text("as it was")
    inner = tmp_path / "into"
    inner.mkdir()
    return inner


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2"), ("a.tbz2", "w:bz2")],
)
def test_a_tar_is_unpacked_with_its_programs(
    folder: Path, tmp_path: Path, name: str, mode: str
) -> None:
    archive = tar(
        tmp_path / "x",
        file("./bin/run", b"#!/bin/sh\n", 0o6755),
        file("notes.txt", b"hi"),
        link("bin/alias", "run"),
        link("copy.txt", "notes.txt", tarfile.LNKTYPE),
        mode=mode,
    )
    unpack(archive, name, folder)
    assert names(folder) == ["bin", "bin/alias", "bin/run", "copy.txt", "notes.txt"]
    assert stat.S_IMODE((folder / "bin/run").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "notes.txt").stat().st_mode) == 0o600
    assert (folder / "bin/alias").read_text() == "#!/bin/sh\n"
    assert (folder / "copy.txt").read_text() == "hi"


def test_a_zip_is_unpacked_with_its_programs(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        info = zipfile.ZipInfo("bin/run")
        info.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(info, "#!/bin/sh\n")
        archive.writestr("notes.txt", "hi")
        alias = zipfile.ZipInfo("alias")
        alias.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(alias, "bin/run")
    unpack(tmp_path / "x", "a.zip", folder)
    assert os.access(folder / "bin/run", os.X_OK)
    assert not os.access(folder / "notes.txt", os.X_OK)
    assert os.readlink(folder / "alias") == "bin/run"


def test_what_is_no_archive_is_a_program(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x7fELF")
    unpack(tmp_path / "x", "agent-linux", folder)
    assert os.access(folder / "agent-linux", os.X_OK)


UNSAFE: dict[str, list[tuple[tarfile.TarInfo, bytes]]] = {
    "an absolute path": [file("/tmp/dragoman-escape")],
    "a way up": [file("../escaped")],
    "a way up to something": [file("../victim")],
    "a way up in the middle": [file("a/../../escaped")],
    "a backslash": [file("..\\escaped")],
    "a link to an absolute path": [link("a", "/etc/passwd")],
    "a link up": [link("a", "../victim")],
    "a link up from a folder": [link("a/b", "../../victim")],
    "a file through a link": [link("a", ".."), file("a/victim")],
    "a file through a link that is inside": [link("a", "b"), file("a")],
    "a link through a link": [link("d/up", ".."), link("evil", "d/up/../victim")],
    "a link deep through a link": [link("a/b", ".."), link("a/b/c", "../victim")],
    "a hard link out": [link("a", "../victim", tarfile.LNKTYPE)],
    "a hard link to nothing": [link("a", "nothing", tarfile.LNKTYPE)],
    "the same name twice": [file("a"), file("a")],
    "a file where a folder is": [file("a/b"), file("a")],
    "a folder where a file is": [file("a"), file("a/b")],
    "a name that is too long": [file("a" * 300)],
    "a device": [special("a", tarfile.CHRTYPE)],
    "a pipe": [special("a", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_an_unsafe_archive_is_refused(folder: Path, tmp_path: Path, kind: str) -> None:
    archive = tar(tmp_path / "x", *UNSAFE[kind])
    with pytest.raises(UnsafeArchive):
        unpack(archive, "a.tar.gz", folder)
    assert (tmp_path / "victim").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["into", "victim", "x"]
    assert not Path("/tmp/dragoman-escape").exists()


@pytest.mark.parametrize("name", ["/tmp/dragoman-escape", "../escaped", "a/../../escaped"])
def test_an_unsafe_zip_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "evil")
    with pytest.raises(UnsafeArchive, match="points outside it"):
        unpack(tmp_path / "x", "a.zip", folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["into", "victim", "x"]


def test_a_zip_link_out_is_refused(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        info = zipfile.ZipInfo("a")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "../victim")
    with pytest.raises(UnsafeArchive, match="points outside it"):
        unpack(tmp_path / "x", "a.zip", folder)


def test_a_bomb_is_stopped_while_it_unpacks(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(64 << 20))
    with pytest.raises(UnsafeArchive, match="too large"):
        unpack(tmp_path / "x", "a.zip", folder, most=1 << 20)
    assert (folder / "zeros").stat().st_size <= 1 << 20


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
@pytest.mark.parametrize("cut", [0, 100, 2500])
def test_a_damaged_archive_is_refused(folder: Path, tmp_path: Path, name: str, cut: int) -> None:
    """Cut short, or something else altogether."""
    whole = tmp_path / "whole"
    if name.endswith(".zip"):
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("a", os.urandom(5000))
    else:
        tar(whole, file("a", os.urandom(5000)))
    (tmp_path / "x").write_bytes(whole.read_bytes()[:cut] or b"no archive at all")
    with pytest.raises(UnsafeArchive, match="damaged"):
        unpack(tmp_path / "x", name, folder)
