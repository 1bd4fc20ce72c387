"""The official SDKs' example agents, fetched from their registries once and kept in `.cache`."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent.parent / ".cache"
PYTHON_SDK = "agent-client-protocol==0.12.1"
TYPESCRIPT_SDK = "@agentclientprotocol/sdk@1.9.0"
_PIP = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
_QUIET = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
_HANGS_SECONDS = 600.0
"""Both give up by themselves where there is no network; what takes that long is a failure."""


def python_example(name: str) -> Path:
    """A program of the Python SDK's; its examples are in the source archive alone."""
    folder = CACHE / "py-sdk-0.12.1"
    program = folder / "agent_client_protocol-0.12.1" / "examples" / name
    with _alone(folder):
        if not program.exists():
            _fetch([*_PIP, "-d", str(folder), PYTHON_SDK], "the Python SDK's examples")
            with tarfile.open(folder / "agent_client_protocol-0.12.1.tar.gz") as archive:
                archive.extractall(folder, filter="data")
    return program


def typescript_example(name: str) -> Path:
    """A program of the TypeScript SDK's."""
    folder = CACHE / "ts-sdk-1.9.0"
    program = folder / "node_modules/@agentclientprotocol/sdk/dist/examples" / name
    with _alone(folder):
        if not program.exists():
            npm = ["npm", "install", "--prefix", str(folder), *_QUIET]
            _fetch([*npm, TYPESCRIPT_SDK], "the TypeScript SDK's examples")
    return program


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Tests that run beside this one wait until it has fetched what they want, too."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(command: list[str], what: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_HANGS_SECONDS)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{what} could not be fetched: {error}")
