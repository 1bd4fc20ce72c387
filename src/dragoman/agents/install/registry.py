"""The ACP registry: downloads it, and reads which agents it has and how to install each.

Only the entry that is asked for is checked: a registry that is ahead of us stays usable.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import msgspec

from dragoman._version import __version__
from dragoman.errors import ConfigError, DownloadFailed, UnknownAgent

# Both become names of directories.
_ID = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}\Z")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")


class Package(msgspec.Struct, frozen=True):
    """A package of npm or PyPI, and how to run what is in it."""

    package: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class InstallArchive(msgspec.Struct, frozen=True):
    """An archive for one platform, or a bare program."""

    archive: str
    cmd: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    sha256: str | None = None


class Distribution(msgspec.Struct, frozen=True):
    binary: dict[str, InstallArchive] = {}
    npx: Package | None = None
    uvx: Package | None = None


class RegistryAgent(msgspec.Struct, frozen=True):
    """An agent of the registry."""

    id: str
    version: str
    distribution: Distribution
    name: str = ""
    license: str = ""


def find_agent(text: str, source: str, agent_id: str) -> RegistryAgent:
    """The entry of that id; `source` is what to call the registry in errors.

    Raises ConfigError for an invalid registry, UnknownAgent for an id it does not have.
    """
    entries = _entries(text, source)
    entry = entries.get(agent_id)
    if entry is None:
        raise UnknownAgent(agent_id, tuple(entries))
    try:
        agent = msgspec.convert(entry, RegistryAgent)
    except msgspec.ValidationError as error:
        raise ConfigError(source, agent_id, f"an entry of the registry ({error})") from error
    _must_be_sound(agent, source)
    return agent


def platform_key() -> str:
    """What the registry calls this machine."""
    system = {"darwin": "darwin", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    return f"{system}-{({'amd64': 'x86_64', 'arm64': 'aarch64'}).get(machine, machine)}"


def _entries(text: str, source: str) -> dict[str, Any]:
    try:
        registry = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(source, "", "the JSON of an ACP registry") from error
    match registry:
        case {"agents": [*agents]}:
            return {_id(agent): agent for agent in agents}
        case _:
            raise ConfigError(source, "agents", "a list of agents")


def _id(entry: Any) -> str:
    match entry:
        case {"id": str(agent_id)}:
            return agent_id
        case _:
            return ""


def _must_be_sound(agent: RegistryAgent, source: str) -> None:
    if not _ID.match(agent.id):
        raise ConfigError(source, f"{agent.id}.id", "lowercase letters, digits and hyphens")
    if not _VERSION.match(agent.version):
        raise ConfigError(source, f"{agent.id}.version", "a version, as 1.2.3")
    for key, archive in agent.distribution.binary.items():
        if archive.sha256 is not None and not _SHA256.match(archive.sha256):
            raise ConfigError(source, f"{agent.id}.{key}.sha256", "64 hexadecimal digits")


MAX_TEXT_BYTES = 16 << 20
MAX_ARCHIVE_BYTES = 1 << 30
_SECONDS = 60
_CHUNK = 1 << 20


def fetch_text(url: str, *, most: int = MAX_TEXT_BYTES) -> str:
    """Fetch a small text. Raises DownloadFailed."""
    try:
        return b"".join(_pieces(url, most)).decode()
    except UnicodeDecodeError as error:
        raise DownloadFailed(url, "not UTF-8 text") from error


def download(
    url: str, path: Path, *, sha256: str | None = None, most: int = MAX_ARCHIVE_BYTES
) -> None:
    """Fetch into a new file and verify its checksum, if one is given.

    Raises DownloadFailed, after deleting the file.
    """
    digest = hashlib.sha256()
    try:
        with path.open("xb") as file:
            for piece in _pieces(url, most):
                digest.update(piece)
                file.write(piece)
        if sha256 is not None and digest.hexdigest() != sha256.lower():
            raise DownloadFailed(url, f"SHA-256 is {digest.hexdigest()}, expected {sha256}")
    except BaseException:
        with suppress(FileNotFoundError):
            path.unlink()
        raise


def _pieces(url: str, most: int) -> Iterator[bytes]:
    _must_be_https(url, url)
    request = urllib.request.Request(url, headers={"User-Agent": f"dragoman/{__version__}"})
    try:
        with _opener().open(request, timeout=_SECONDS) as response:
            yield from _read(url, response, most)
    except HTTPError as error:
        raise DownloadFailed(url, f"the server replied with HTTP status {error.code}") from error
    except URLError as error:
        raise DownloadFailed(url, f"{error.reason}") from error
    except (OSError, HTTPException) as error:
        raise DownloadFailed(url, str(error) or type(error).__name__) from error


def _read(url: str, response: HTTPResponse, most: int) -> Iterator[bytes]:
    expected = response.headers.get("Content-Length")
    size = 0
    while piece := response.read(_CHUNK):
        size += len(piece)
        if size > most:
            raise DownloadFailed(url, f"larger than {most} bytes")
        yield piece
    if expected is not None and expected.isdecimal() and int(expected) != size:
        raise DownloadFailed(url, f"incomplete: {size} of {expected} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """An opener that supports only https."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _OnlyToHttps(),
    ):
        opener.add_handler(handler)
    return opener


class _OnlyToHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _must_be_https(newurl, req.full_url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _must_be_https(url: str, asked: str) -> None:
    if urlsplit(url).scheme.lower() != "https":
        raise DownloadFailed(asked, f"only https is allowed: {url}")
