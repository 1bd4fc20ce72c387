"""Gets the pinned npm package and reads JSON out of its tarball.

The tarball is kept in `.cache/` between runs and never trusted without its checksum.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
from pathlib import Path

from .shapes import Node, without_prose

NAME = "@agentclientprotocol/sdk"
VERSION = "2.4.0"
SHA512 = "7qJ8nnyj7WesC5ve185ioTpB2/svQoeGV4HA4nLEhgDUrcmBe54/08VcXc/oL4p14tDbxxECZzdYmUYQ+4l+Wg=="
NPM_SECONDS = 120


class PackageUnavailable(Exception):
    """The package is not cached and could not be fetched (no npm, no network)."""


class PackageCorrupt(Exception):
    """The tarball is not the one that was pinned."""


def tarball(cache: Path) -> Path:
    """The checked tarball, fetched by `npm pack` unless `cache` already holds it."""
    path = cache / f"agentclientprotocol-sdk-{VERSION}.tgz"
    if not path.exists():
        _npm_pack(cache)
    if not path.exists():
        raise PackageUnavailable(f"npm pack did not write {path.name}")
    _verify(path)
    return path


def definitions(path: Path, version: str, *, stable: bool) -> dict[str, Node]:
    """The `$defs` of one schema, without prose; the unstable one contains the stable one."""
    name = "schema.json" if stable else "schema.unstable.json"
    with tarfile.open(path) as archive:
        member = archive.extractfile(f"package/schema/{version}/{name}")
        if member is None:
            raise PackageCorrupt(f"{path.name} has no schema/{version}/{name}")
        return json.load(member, object_hook=without_prose)["$defs"]


def _npm_pack(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    options = ["--loglevel=error", "--fetch-retries=1", "--pack-destination", str(cache)]
    command = ["npm", "pack", *options, f"{NAME}@{VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=NPM_SECONDS)
    except FileNotFoundError:
        raise PackageUnavailable("npm is not installed") from None
    except subprocess.TimeoutExpired:
        raise PackageUnavailable(f"npm pack took more than {NPM_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        # Its first line is the reason, the rest is where to read more.
        reason = error.stderr.strip().partition("\n")[0] or f"exit code {error.returncode}"
        raise PackageUnavailable(f"npm pack failed ({reason})") from None


def _verify(path: Path) -> None:
    digest = hashlib.sha512(path.read_bytes()).digest()
    if base64.b64encode(digest).decode() != SHA512:
        raise PackageCorrupt(f"{path} does not match the pinned checksum; delete it and try again")
