"""The ACP registry's file: which agents it has, and how each is distributed.

Only the entry that is asked for is checked: a registry that is ahead of us stays usable.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from typing import Any

import msgspec

from dragoman.errors import ConfigError, UnknownAgent

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
