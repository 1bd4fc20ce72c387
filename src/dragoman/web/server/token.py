"""The token: 256 bits that are new at each start, or kept in a private file."""

from __future__ import annotations

import os
import re
import secrets
import sys
from pathlib import Path

from dragoman.errors import ConfigError

_TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,512}")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def kept_token(path: Path) -> str:
    """The token in a file, made if there is none. Raises ConfigError for a file that others can
    read, or that holds no token."""
    try:
        _make(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(str(path), "", f"a writable token file ({error.strerror})") from error
    with open(path, encoding="ascii", errors="replace") as file:
        _must_be_private(path, os.fstat(file.fileno()))
        token = file.read(1024).strip()
    if _TOKEN.fullmatch(token) is None:
        raise ConfigError(str(path), "", "a token of at least 32 letters, digits, - or _")
    return token


def _make(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"{new_token()}\n")


def _must_be_private(path: Path, status: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigError(str(path), "", "a file that only you can read (mode 0600)")
