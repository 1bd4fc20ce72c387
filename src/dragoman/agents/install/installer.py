"""Installs an agent of the registry beneath our own directory, in a pinned version.

An archive is fetched, checked and unpacked; an npm package goes into a folder of its own, a PyPI
package into a virtual environment of its own. What was there before comes back if that fails.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.agents.install.download import download
from dragoman.agents.install.extraction import unpack
from dragoman.agents.install.registry import InstallArchive, Package, RegistryAgent, platform_key
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
