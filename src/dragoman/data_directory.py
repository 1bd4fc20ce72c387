"""Where Dragoman keeps its data and finds its settings; agents cannot reach it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError

# `pathlib` imports the parser of addresses and more: it comes with the first path that is one.
if TYPE_CHECKING:
    from pathlib import Path


def data_directory() -> Path:
    """The same as a path. Raises ConfigError."""
    from pathlib import Path

    return Path(data_folder())


def data_folder() -> str:
    """`$DRAGOMAN_HOME`, else `dragoman` in the user's data directory.

    Raises ConfigError for a relative path, which would be another place in each folder.
    """
    if home := os.environ.get("DRAGOMAN_HOME"):
        if not home.startswith("/"):
            raise ConfigError("$DRAGOMAN_HOME", "", f"an absolute path, not {home!r}")
        return home.rstrip("/") or "/"
    if sys.platform == "darwin":
        return os.path.join(_home(), "Library", "Application Support", "dragoman")
    return os.path.join(_xdg("XDG_DATA_HOME", ".local/share"), "dragoman")


def running_directory() -> Path:
    """Where a process notes the agents that it runs."""
    return data_directory() / "running"


def worktrees_directory() -> Path:
    """Where the checkouts of worktrees are: next to our data, which agents cannot reach."""
    home = data_directory()
    return home.with_name(f"{home.name}-worktrees")


def settings_file() -> Path:
    """`$DRAGOMAN_SETTINGS`, else `dragoman/settings.json` in the user's config directory."""
    from pathlib import Path

    if path := os.environ.get("DRAGOMAN_SETTINGS"):
        return Path(path).absolute()
    return Path(_xdg("XDG_CONFIG_HOME", ".config"), "dragoman", "settings.json")


def store_address() -> str | None:
    """Where the store is if not in the data directory: `$DRAGOMAN_STORE`, or what `use_store` said.

    It is taken out of the environment: agents inherit that, and it may hold a password.
    """
    given = os.environ.pop("DRAGOMAN_STORE", "")
    if given and not _store:
        _store.append(given)
    return _store[-1] if _store else None


def use_store(address: str) -> None:
    """From now on, whatever the environment says."""
    store_address()
    _store.append(address)


_store: list[str] = []
"""Kept here, since it cannot stay in the environment."""


def make_private(directory: Path) -> Path:
    """The directory, made if it was not there, readable by its owner alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    return directory


def private_file(path: str, flags: int) -> int:
    """The `opener` of a file that its owner alone may read."""
    return os.open(path, flags, 0o600)


def home_id(directory: Path) -> str:
    """What this machine's data directory is called in a store that other machines have too; the
    same at every start."""
    path = directory / "home-id"
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    make_private(directory)
    # Written next to it first: another process must never read half of it.
    fresh = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    fresh.write_text(os.urandom(8).hex())
    try:
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()
    return path.read_text().strip()


def _xdg(variable: str, default: str) -> str:
    # The specification says to ignore a relative path there.
    value = os.environ.get(variable, "")
    return value if value.startswith("/") else os.path.join(_home(), default)


def _home() -> str:
    """Raises RuntimeError where nobody can say where it is."""
    home = os.path.expanduser("~")
    if home.startswith("~"):
        raise RuntimeError("could not determine the home directory")
    return home
