"""Builds what a run needs in bench/build: the agent, and the TypeScript SDK at its version.

What cannot be had is `Missing`: the rows that need it say so, and the others go on.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / "build"
TYPESCRIPT_SDK = "@agentclientprotocol/sdk"
TYPESCRIPT_VERSIONS = {TYPESCRIPT_SDK: "2.4.0", "zod": "4.6.7"}


class Missing(Exception):
    """A column cannot be measured, and why."""


def build_agent() -> Path:
    """The scripted agent, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Missing("no C compiler")
    BUILD.mkdir(exist_ok=True)
    agent = BUILD / "agent"
    _run(compiler, "-O2", "-o", str(agent), str(HERE / "agent.c"))
    return agent


def install_typescript_client() -> list[str]:
    """The command of the TypeScript column, less its arguments."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Missing("no Node.js")
    BUILD.mkdir(exist_ok=True)
    wanted = [f"{name}@{version}" for name, version in TYPESCRIPT_VERSIONS.items()]
    if not all(_installed(name) == version for name, version in TYPESCRIPT_VERSIONS.items()):
        quiet = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
        _run(npm, "install", "--prefix", str(BUILD), *quiet, *wanted)
    # Node looks for packages beside the script, so the script goes to where they are.
    client = shutil.copy(HERE / "clients" / "typescript_sdk.mjs", BUILD)
    return [node, str(client)]


def _installed(package: str) -> str | None:
    try:
        manifest = (BUILD / "node_modules" / package / "package.json").read_text()
    except OSError:
        return None
    return json.loads(manifest)["version"]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{Path(command[0]).name} failed: {done.stderr.strip()[-300:]}")
