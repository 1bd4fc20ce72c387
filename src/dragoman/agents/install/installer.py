"""Installs an agent from the registry, in a pinned version, in the data directory.

An archive is fetched, checked and unpacked; an npm package goes into a folder of its own, a PyPI
package into a virtual environment of its own. What was there before comes back if that fails.

Every name and link is looked at, sizes are counted as they come, and links are made last, so that
nothing is ever written through one. Modes, owners and times of the archive are not taken over.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.agents.install.registry import (
    InstallArchive,
    Package,
    RegistryAgent,
    download,
    platform_key,
)
from dragoman.data_directory import data_directory, make_private
from dragoman.errors import InstallFailed, UnsafeArchive

_NPM = re.compile(
    r"(?P<name>(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)"
    r"(?:@(?P<version>[0-9][0-9A-Za-z.+-]*))?\Z"
)
_PYPI = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[A-Za-z0-9,._-]+\])?"
    r"(?:(?:==|@)(?P<version>[0-9][0-9A-Za-z.+!-]*))?\Z"
)
_INSTALL_SECONDS = 900
_SCRIPTS_OF = (
    "import importlib.metadata as m, sys; "
    "print(*(e.name for e in m.distribution(sys.argv[1]).entry_points"
    " if e.group == 'console_scripts'))"
)

Tell = Callable[[str], None]


class Installed(msgspec.Struct, frozen=True):
    """How to start what was installed."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]


def agents_directory() -> Path:
    """Where installed agents are: a folder each, and in it one for each version."""
    return data_directory() / "agents"


def install(agent: RegistryAgent, *, allow_scripts: bool, tell: Tell) -> Installed:
    """Install it; `tell` hears what is being done.

    Raises InstallFailed, DownloadFailed or UnsafeArchive.
    """
    ways = agent.distribution
    archive = ways.binary.get(platform_key())
    with _place(agent) as folder:
        if archive is not None:
            return _from_archive(archive, folder, tell)
        if ways.npx is not None:
            return _from_npm(ways.npx, agent.version, folder, allow_scripts, tell)
        if ways.uvx is not None:
            return _from_pypi(ways.uvx, agent.version, folder, tell)
        raise InstallFailed(f"{agent.id} is not available for {platform_key()}")


def remove(agent_id: str) -> None:
    """Remove every version of an installed agent."""
    shutil.rmtree(agents_directory() / agent_id)


def installed_id(command: str) -> str | None:
    """The id of the installed agent that this command belongs to, None if it is not ours."""
    try:
        return Path(command).relative_to(agents_directory()).parts[0]
    except (ValueError, IndexError):
        return None


@contextmanager
def _place(agent: RegistryAgent) -> Generator[Path]:
    """A new folder for this version, at the path where it stays: scripts name it."""
    make_private(data_directory())
    home = make_private(agents_directory() / agent.id)
    folder, before = home / agent.version, home / f".{agent.version}.before"
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if before.exists():
            before.rename(folder)
        elif not any(home.iterdir()):
            home.rmdir()
        raise
    shutil.rmtree(before, ignore_errors=True)


# ── archives ──────────────────────────────────────────────────────────────────────────────────


def _from_archive(archive: InstallArchive, folder: Path, tell: Tell) -> Installed:
    tell(f"fetching {archive.archive}")
    with tempfile.TemporaryDirectory(prefix="dragoman-", dir=folder.parent) as scratch:
        fetched = Path(scratch, "archive")
        download(archive.archive, fetched, sha256=archive.sha256)
        verified = "checksum verified" if archive.sha256 else "no checksum in the registry"
        tell(f"unpacking; {verified}")
        unpack(fetched, _file_name(archive.archive), folder)
    program = _program(folder, archive.cmd)
    program.chmod(0o700)
    return Installed(str(program), archive.args, archive.env)


def _file_name(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name or "program"


def _program(folder: Path, command: str) -> Path:
    """The file a `cmd` names: a bare program is the only file there is, whatever its name."""
    path = PurePosixPath(command)
    if path.is_absolute() or ".." in path.parts or "\\" in command:
        raise UnsafeArchive(command, "the command path points outside the archive")
    program = folder / path
    files = [found for found in folder.iterdir() if found.is_file()]
    if not program.exists() and len(files) == 1 and not any(f.is_dir() for f in folder.iterdir()):
        program = files[0]
    if not program.is_file() or not program.resolve().is_relative_to(folder.resolve()):
        raise InstallFailed(f"{command} is not in the archive")
    return program


# ── packages ──────────────────────────────────────────────────────────────────────────────────


def _from_npm(
    package: Package, version: str, folder: Path, allow_scripts: bool, tell: Tell
) -> Installed:
    found = _NPM.match(package.package)
    if found is None:
        raise InstallFailed(f"{package.package!r} is not the name of an npm package")
    spec = f"{found['name']}@{found['version'] or version}"
    tell(f"installing {spec} with npm")
    scripts = [] if allow_scripts else ["--ignore-scripts"]
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    _run("npm", "install", "--prefix", str(folder), *scripts, *quiet, "--", spec)
    program = folder / "node_modules" / ".bin" / _npm_program(folder, found["name"])
    return Installed(str(program), package.args, package.env)


def _npm_program(folder: Path, name: str) -> str:
    """Which of its programs `npx` would run."""
    manifest = (folder / "node_modules" / name / "package.json").read_bytes()
    own = name.rpartition("/")[2]
    match msgspec.json.decode(manifest).get("bin"):
        case str():
            return own
        case {**programs} if own in programs:
            return own
        case {**programs} if len(programs) == 1:
            return next(iter(programs))
        case _:
            raise InstallFailed(f"{name} does not say which of its programs is the agent")


def _from_pypi(package: Package, version: str, folder: Path, tell: Tell) -> Installed:
    found = _PYPI.match(package.package)
    if found is None:
        raise InstallFailed(f"{package.package!r} is not the name of a PyPI package")
    spec = f"{found['name']}{found['extras'] or ''}=={found['version'] or version}"
    tell(f"installing {spec} with pip")
    _run(sys.executable, "-m", "venv", str(folder / "venv"))
    python = str(folder / "venv" / "bin" / "python")
    pip = ("-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
    _run(python, *pip, "--", spec)
    scripts = _run(python, "-c", _SCRIPTS_OF, found["name"]).split()
    program = folder / "venv" / "bin" / _pypi_program(scripts, found["name"])
    return Installed(str(program), package.args, package.env)


def _pypi_program(scripts: Sequence[str], name: str) -> str:
    """Which of its programs `uvx` would run: the one of its own name."""
    if name in scripts:
        return name
    if len(scripts) == 1:
        return scripts[0]
    raise InstallFailed(f"{name} does not say which of its programs is the agent")


def _run(*argv: str) -> str:
    """What it printed. Raises InstallFailed with its last words."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise InstallFailed(f"{argv[0]} is required by this agent, but was not found") from error
    except subprocess.TimeoutExpired as error:
        reason = f"{argv[0]} did not finish within {_INSTALL_SECONDS} s"
        raise InstallFailed(reason) from error
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).strip().split("\n") if line.strip()]
        words = "\n".join(lines[-5:]) or f"exited with code {done.returncode}"
        raise InstallFailed(f"{Path(argv[0]).name} failed:\n{words}")
    return done.stdout


MAX_ENTRIES = 100_000
MAX_BYTES = 4 << 30
_CHUNK = 1 << 20
_LONGEST_TARGET = 4096
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
)


class _Entry(msgspec.Struct):
    """A file with `open`, a link with `target`, or a folder."""

    name: str
    executable: bool = False
    target: str | None = None
    open: Callable[[], IO[bytes] | None] | None = None


def unpack(archive: Path, name: str, folder: Path, *, most: int = MAX_BYTES) -> None:
    """Unpack into `folder`, which is new and empty; `name` says which kind of archive it is.

    What is neither a zip nor a tar is a program of that name. Raises UnsafeArchive; what was
    written until then is for the caller to remove.
    """
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                _Unpacking(name, folder, most).all(_zip_entries(zipped))
        elif name.endswith(_TARS):
            with tarfile.open(archive) as tar:
                _Unpacking(name, folder, most).all(_tar_entries(tar))
        else:
            shutil.copyfile(archive, folder / _checked(name, name))
            (folder / name).chmod(0o700)
    except _DAMAGED as error:
        raise UnsafeArchive(name, f"damaged ({error})") from error
    except OSError as error:  # a name that is both a file and a directory, a full disk, bad data
        raise UnsafeArchive(name, error.strerror or str(error)) from error


class _Unpacking:
    def __init__(self, archive: str, folder: Path, most: int) -> None:
        self._archive = archive
        self._folder = folder
        self._left = most
        self._links: list[tuple[str, str]] = []

    def all(self, entries: Iterator[_Entry]) -> None:
        for number, entry in enumerate(entries):
            if number >= MAX_ENTRIES:
                raise UnsafeArchive(self._archive, f"more than {MAX_ENTRIES} entries")
            self._one(entry)
        for name, target in self._links:
            self._link(name, target)
        root = os.path.realpath(self._folder)
        for name, _ in self._links:
            real = os.path.realpath(self._folder / name)
            if os.path.commonpath((root, real)) != root:
                raise UnsafeArchive(self._archive, f"the link {name!r} points outside it")

    def _one(self, entry: _Entry) -> None:
        name = _checked(self._archive, entry.name)
        if entry.target is not None:
            self._links.append((name, entry.target))
        elif entry.open is None:
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            self._file(name, entry)

    def _file(self, name: str, entry: _Entry) -> None:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        source = None if entry.open is None else entry.open()
        if source is None:
            raise UnsafeArchive(self._archive, f"{name!r} cannot be read")
        mode = 0o700 if entry.executable else 0o600
        try:
            with source, open(_new(path, mode), "wb") as file:
                self._copy(source, file)
        except FileExistsError as error:
            raise UnsafeArchive(self._archive, f"{name!r} appears twice") from error

    def _copy(self, source: IO[bytes], file: IO[bytes]) -> None:
        while piece := source.read(_CHUNK):
            self._left -= len(piece)
            if self._left < 0:
                raise UnsafeArchive(self._archive, "too large when unpacked")
            file.write(piece)

    def _link(self, name: str, target: str) -> None:
        """Create a link, unless its target as written is outside; `all` checks the real targets."""
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if target.startswith("/") or "\0" in target or place == ".." or place.startswith("../"):
            raise UnsafeArchive(self._archive, f"the link {name!r} points outside it")
        path = self._folder / name
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.symlink_to(target)
        except OSError as error:
            raise UnsafeArchive(self._archive, f"the link {name!r} cannot be created") from error


def _new(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def _checked(archive: str, name: str) -> str:
    """The name if it stays inside the directory, without `.` and double slashes."""
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise UnsafeArchive(archive, f"{name!r} points outside it")
    return posixpath.normpath(name)


def _tar_entries(tar: tarfile.TarFile) -> Iterator[_Entry]:
    for member in tar:
        if member.issym():
            yield _Entry(member.name, target=member.linkname)
        elif member.isdir():
            yield _Entry(member.name)
        elif member.isreg() or member.islnk():
            # A hard link becomes a copy of the file it names inside the archive.
            yield _Entry(member.name, bool(member.mode & 0o111), open=_opener(tar, member))
        else:
            raise UnsafeArchive(str(tar.name), f"{member.name!r} is neither a file nor a directory")


def _opener(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], IO[bytes] | None]:
    def opened() -> IO[bytes] | None:
        try:
            return tar.extractfile(member)
        except KeyError:  # a hard link to what is not there
            return None

    return opened


def _zip_entries(zipped: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in zipped.infolist():
        mode = info.external_attr >> 16
        if info.is_dir():
            yield _Entry(info.filename)
        elif stat.S_ISLNK(mode):
            yield _Entry(info.filename, target=_zip_target(zipped, info))
        else:
            opened = _zip_opener(zipped, info)
            yield _Entry(info.filename, bool(mode & 0o111), open=opened)


def _zip_target(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with zipped.open(info) as file:
        return file.read(_LONGEST_TARGET).decode("utf-8", "replace")


def _zip_opener(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: zipped.open(info)
