"""The official SDKs' example agents, fetched from their registries once and kept in `.cache`."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent.parent / ".cache"
PYTHON_SDK = "agent-client-protocol==0.12.1"
TYPESCRIPT_SDK = "@agentclientprotocol/sdk@1.9.0"


def python_example(name: str) -> Path:
    """A program of the Python SDK's; its examples are in the source archive alone."""
    folder = CACHE / "py-sdk-0.12.1"
    program = folder / "agent_client_protocol-0.12.1" / "examples" / name
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        _fetch([*pip, "-d", str(folder), PYTHON_SDK], "the Python SDK's examples")
        with tarfile.open(folder / "agent_client_protocol-0.12.1.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return program


def typescript_example(name: str) -> Path:
    """A program of the TypeScript SDK's."""
    folder = CACHE / "ts-sdk-1.9.0"
    program = folder / "node_modules/@agentclientprotocol/sdk/dist/examples" / name
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        npm = ["npm", "install", "--prefix", str(folder), *quiet]
        _fetch([*npm, TYPESCRIPT_SDK], "the TypeScript SDK's examples")
    return program


def _fetch(command: list[str], what: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=50)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{what} could not be fetched: {error}")
